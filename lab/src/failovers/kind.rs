//! The kinds of failovers.

use std::fmt;

use super::deployment::Setup;
use super::node::Fault;

/// A failover's kind.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) setup: Setup,
    pub(super) fault: Fault,
}

/// In the order of the table.
pub(super) const KINDS: [Kind; 9] = {
    use Fault::{Cut, Kill, Part, Planned, Stop};
    use Setup::{Cluster, Mixed, Pair, Sentinel};
    [
        Kind { setup: Sentinel, fault: Kill },
        Kind { setup: Sentinel, fault: Stop },
        Kind { setup: Sentinel, fault: Cut },
        Kind { setup: Pair, fault: Planned },
        Kind { setup: Cluster, fault: Kill },
        Kind { setup: Cluster, fault: Stop },
        Kind { setup: Cluster, fault: Cut },
        Kind { setup: Cluster, fault: Planned },
        Kind { setup: Mixed, fault: Part },
    ]
};

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", format!("{:?}-{:?}", self.setup, self.fault).to_lowercase())
    }
}

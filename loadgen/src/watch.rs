//! The progress of a run.

use std::time::Duration;

use crate::load::Length;
use crate::record::{Failures, Interval, Latencies, Redirects};

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Connections are being opened.
    Connecting,
    /// Load that is not measured.
    WarmUp,
    /// Load that is measured.
    Measuring,
    /// The last answers are awaited.
    Draining,
}

/// The next step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Go on.
    GoOn,
    /// End now, with the results so far.
    Stop,
}

/// A run under way.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Where it is.
    pub phase: Phase,
    /// Time since the measurement began; before that, since the run began.
    pub elapsed: Duration,
    /// When it will end.
    pub length: Length,
    /// All measured latencies.
    pub latencies: &'a Latencies,
    /// All failures.
    pub failures: &'a Failures,
    /// How long messages took to subscribers, in a run of pub/sub.
    pub deliveries: Option<&'a Latencies>,
    /// How often servers sent requests on, where each has its own server.
    pub redirects: Option<Redirects>,
    /// The seconds of the measurement that are over.
    pub timeline: &'a [Interval],
    /// Connections that are open.
    pub open_connections: usize,
}

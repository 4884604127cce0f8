//! The run's clock: nanoseconds since its beginning.

use std::time::{Duration, Instant};

/// Nanoseconds since the run's clock began.
pub type Nanos = u64;

/// Where time comes from. All threads of a run share one beginning.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    beginning: Instant,
}

impl Clock {
    /// A clock that begins now.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "a default that depends on the moment would surprise")]
    pub fn new() -> Self {
        Self { beginning: Instant::now() }
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Nanos {
        nanos(self.beginning.elapsed())
    }
}

/// A duration in nanoseconds; 584 years at most.
#[must_use]
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

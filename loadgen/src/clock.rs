//! The run's clock: nanoseconds since its beginning.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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

    /// The instant at a time.
    #[cfg(feature = "http3")]
    pub(crate) fn instant(&self, time: Nanos) -> Instant {
        self.beginning + Duration::from_nanos(time)
    }

    /// The time of an instant.
    #[cfg(feature = "http3")]
    pub(crate) fn time_of(&self, instant: Instant) -> Nanos {
        nanos(instant.saturating_duration_since(self.beginning))
    }
}

/// The seconds since 1970, for dates that other programs write.
pub(crate) fn unix_seconds() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

/// A duration in nanoseconds; 584 years at most.
#[must_use]
pub(crate) fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

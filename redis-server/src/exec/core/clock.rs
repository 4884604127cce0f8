//! A worker's clock: one reading of the monotonic clock, about 25 ns, serves a whole window of commands, for their duration as
//! well as for the time of day.

use std::cell::Cell;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NANOS_PER_SECOND: u64 = 1_000_000_000;
const NANOS_PER_MILLI: u64 = 1_000_000;
const NANOS_PER_MICRO: u64 = 1000;
/// Nanoseconds for which the time of day is carried on by the monotonic clock before it is asked for again.
const REBASE: u64 = NANOS_PER_SECOND;

/// A reading of the monotonic clock, in nanoseconds.
///
/// [`Instant`](std::time::Instant) keeps seconds and nanoseconds apart: the differences of two readings per window cost each of
/// sixteen commands more than its share of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(u64);

impl Tick {
    /// Now.
    #[allow(unsafe_code, reason = "std has no reading in one number")]
    #[inline]
    pub fn now() -> Self {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is writable for the time of the call, which reads nothing.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
        Self(now.tv_sec as u64 * NANOS_PER_SECOND + now.tv_nsec as u64)
    }

    /// Nanoseconds since an earlier reading.
    #[inline]
    fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The time since an earlier reading.
    #[inline]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }

    /// The time since this reading.
    pub fn elapsed(self) -> Duration {
        Self::now().since(self)
    }
}

/// When something was last logged that must not fill the log.
#[derive(Debug, Default)]
pub(crate) struct LastLogged(AtomicU64);

impl LastLogged {
    /// Whether `pause` milliseconds have passed since the last time this returned true. `now` is in milliseconds of Unix time.
    pub(crate) fn is_due(&self, now: u64, pause: u64) -> bool {
        let last = self.0.load(Relaxed);
        now.abs_diff(last) > pause && self.0.compare_exchange(last, now, Relaxed, Relaxed).is_ok()
    }
}

/// The clock of one worker.
#[derive(Clone, Debug)]
pub(in crate::exec) struct Clock {
    /// The last reading.
    tick: Cell<Tick>,
    /// The time of day at a recent reading, in nanoseconds of Unix time: no fraction of a millisecond is lost.
    base: Cell<(Tick, u64)>,
    /// The time of day at the last reading, in milliseconds: asked for several times per command.
    now_ms: Cell<u64>,
}

impl Default for Clock {
    fn default() -> Self {
        let (now, time) = (Tick::now(), time_of_day());
        Self { tick: Cell::new(now), base: Cell::new((now, time)), now_ms: Cell::new(time / NANOS_PER_MILLI) }
    }
}

impl Clock {
    /// Reads the clock; returns the nanoseconds since it was last read.
    #[inline]
    pub(in crate::exec) fn tick(&self) -> u64 {
        let now = Tick::now();
        let nanos = now.nanos_since(self.tick.replace(now));
        #[cfg(test)]
        if let Some(time) = virtual_time::get() {
            self.now_ms.set(time);
            return nanos;
        }
        let (at, base) = self.base.get();
        let mut time = base + now.nanos_since(at);
        if time - base > REBASE {
            time = time_of_day();
            self.base.set((now, time));
        }
        self.now_ms.set(time / NANOS_PER_MILLI);
        nanos
    }

    /// The last reading.
    pub(in crate::exec) fn ticked(&self) -> Tick {
        self.tick.get()
    }

    /// The time of the last reading, in milliseconds of Unix time.
    #[inline]
    pub(in crate::exec) fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }

    /// Takes over the time of another.
    pub(in crate::exec) fn set(&self, other: &Self) {
        self.tick.set(other.tick.get());
        self.base.set(other.base.get());
        self.now_ms.set(other.now_ms.get());
    }
}

/// Milliseconds of Unix time.
pub fn now_ms() -> u64 {
    time_of_day() / NANOS_PER_MILLI
}

/// Microseconds of Unix time.
pub fn now_us() -> u64 {
    time_of_day() / NANOS_PER_MICRO
}

/// Milliseconds of a clock that never steps, since some moment.
pub fn steady_ms() -> u64 {
    Tick::now().0 / NANOS_PER_MILLI
}

/// The time since the Unix epoch, in nanoseconds.
fn time_of_day() -> u64 {
    #[cfg(test)]
    if let Some(time) = virtual_time::get() {
        return time * NANOS_PER_MILLI;
    }
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// The time that a test has made up for its thread, in milliseconds of Unix time.
#[cfg(test)]
pub(crate) mod virtual_time {
    use std::cell::Cell;

    thread_local! {
        static NOW: Cell<Option<u64>> = const { Cell::new(None) };
    }

    pub(in crate::exec) fn get() -> Option<u64> {
        NOW.get()
    }

    pub(crate) fn set(now: Option<u64>) {
        NOW.set(now);
    }
}

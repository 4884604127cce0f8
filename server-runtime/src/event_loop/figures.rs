//! How busy a worker is.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use tokio::runtime::RuntimeMetrics;

/// The work of a worker's thread, as others see it.
#[derive(Debug)]
pub(crate) enum Work {
    Runtime(RuntimeMetrics),
    Loop(Arc<Figures>),
}

impl Work {
    /// Time that it has not waited for something to do.
    pub(crate) fn busy(&self) -> Duration {
        match self {
            Self::Runtime(runtime) => runtime.worker_total_busy_duration(0),
            Self::Loop(figures) => figures.busy(),
        }
    }

    /// True if it has something to do.
    pub(crate) fn is_awake(&self) -> bool {
        match self {
            // The count is odd while it waits.
            Self::Runtime(runtime) => runtime.worker_park_unpark_count(0).is_multiple_of(2),
            Self::Loop(figures) => !figures.is_asleep.load(Relaxed),
        }
    }
}

/// The time of a loop's thread, which itself writes whether it sleeps.
#[derive(Debug)]
pub(crate) struct Figures {
    is_asleep: AtomicBool,
    time: Time,
}

/// Where the time of a thread is counted.
#[derive(Debug)]
enum Time {
    /// By the system, in this file: a lone request needs no reading of the clock for it.
    Counted(String),
    /// By the thread, where the system does not.
    Measured { began: Instant, slept: AtomicU64, asleep_since: AtomicU64 },
}

impl Figures {
    /// Those of this thread.
    pub(super) fn here() -> Self {
        let file = format!("/proc/self/task/{}/schedstat", rustix::thread::gettid().as_raw_pid());
        let time = if counted(&file).is_some() { Time::Counted(file) } else { Time::measured() };
        Self { is_asleep: AtomicBool::new(false), time }
    }

    /// Notes a sleep.
    #[inline]
    pub(super) fn sleeping<T>(&self, sleep: impl FnOnce() -> T) -> T {
        self.is_asleep.store(true, Relaxed);
        let slept = self.time.sleeping(sleep);
        self.is_asleep.store(false, Relaxed);
        slept
    }

    fn busy(&self) -> Duration {
        self.time.busy()
    }
}

impl Time {
    fn measured() -> Self {
        Self::Measured { began: Instant::now(), slept: AtomicU64::new(0), asleep_since: AtomicU64::new(0) }
    }

    #[inline]
    fn sleeping<T>(&self, sleep: impl FnOnce() -> T) -> T {
        let Self::Measured { began, slept, asleep_since } = self else { return sleep() };
        let since = nanos(*began);
        asleep_since.store(since, Relaxed);
        let result = sleep();
        slept.store(slept.load(Relaxed) + nanos(*began).saturating_sub(since), Relaxed);
        asleep_since.store(0, Relaxed);
        result
    }

    fn busy(&self) -> Duration {
        match self {
            Self::Counted(file) => counted(file).unwrap_or_default(),
            Self::Measured { began, slept, asleep_since } => {
                let (since, now) = (asleep_since.load(Relaxed), nanos(*began));
                let asleep = if since == 0 { 0 } else { now.saturating_sub(since) };
                Duration::from_nanos(now.saturating_sub(slept.load(Relaxed) + asleep))
            }
        }
    }
}

/// Five centuries fit.
fn nanos(began: Instant) -> u64 {
    began.elapsed().as_nanos() as u64
}

/// The time that a thread has run, and waited for a processor: the first two figures of its `schedstat`, in nanoseconds (Linux'
/// documentation of the scheduler, "sched-stats").
fn counted(file: &str) -> Option<Duration> {
    let text = fs::read_to_string(file).ok()?;
    let mut figures = text.split_ascii_whitespace().map_while(|figure| figure.parse::<u64>().ok());
    Some(Duration::from_nanos(figures.next()? + figures.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long enough for the system to have counted.
    const PAUSE: Duration = Duration::from_millis(60);

    fn work() {
        let began = Instant::now();
        while began.elapsed() < PAUSE {
            std::hint::spin_loop();
        }
    }

    fn sleeps_are_no_work(figures: &Figures) {
        let (before, began) = (figures.busy(), Instant::now());
        figures.sleeping(|| {
            assert!(figures.is_asleep.load(Relaxed));
            std::thread::sleep(2 * PAUSE);
            // On a busy machine the thread waits for a processor behind its sleep, which is work.
            let idle = began.elapsed().saturating_sub(figures.busy() - before);
            assert!(idle > PAUSE, "{idle:?} of a sleep that lasts");
        });
        assert!(!figures.is_asleep.load(Relaxed));
        let before = figures.busy();
        work();
        assert!(figures.busy() - before > PAUSE / 2);
    }

    #[test]
    fn the_system_counts() {
        let figures = Figures::here();
        if matches!(figures.time, Time::Measured { .. }) {
            println!("skipped: the system does not count the time of threads");
            return;
        }
        sleeps_are_no_work(&figures);
    }

    #[test]
    fn the_loop_counts() {
        sleeps_are_no_work(&Figures { is_asleep: AtomicBool::new(false), time: Time::measured() });
    }
}

//! Pauses of processors: a hypervisor takes one away, and no program on it runs meanwhile. A latency with such a pause in it says nothing of a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

/// A thread of this machine that wants to run waits less for others than this.
pub(super) const PAUSE: Duration = Duration::from_millis(40);

/// Between two looks at the clock.
const LOOK: Duration = Duration::from_millis(2);

/// A thread on each processor that looks at the clock again and again.
pub(super) struct Watch {
    over: Arc<AtomicBool>,
    watchers: Vec<JoinHandle<Duration>>,
}

impl Watch {
    pub(super) fn begin() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let watchers = (0..processors).map(|processor| {
            let over = Arc::clone(&over);
            thread::spawn(move || {
                let mut set = CpuSet::new();
                set.set(processor);
                // Where it is refused, the thread sees the pauses of the processors that it happens to be on.
                let _ = sched_setaffinity(None, &set);
                longest_pause(&over, || thread::sleep(LOOK))
            })
        });
        let watchers = watchers.collect();
        Self { over, watchers }
    }

    /// The longest pause of any processor.
    pub(super) fn end(self) -> Duration {
        self.over.store(true, Relaxed);
        self.watchers.into_iter().filter_map(|watcher| watcher.join().ok()).max().unwrap_or_default()
    }
}

/// The longest time by which `look`, which takes [`LOOK`], has taken more.
fn longest_pause(over: &AtomicBool, mut look: impl FnMut()) -> Duration {
    let mut longest = Duration::ZERO;
    while !over.load(Relaxed) {
        let before = Instant::now();
        look();
        longest = longest.max(before.elapsed().saturating_sub(LOOK));
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_is_watched() {
        let watch = Watch::begin();
        assert_eq!(watch.watchers.len(), thread::available_parallelism().unwrap().get());
        thread::sleep(10 * LOOK);
        assert!(watch.end() > Duration::ZERO, "a sleep lasts longer than it should");
    }

    #[test]
    fn a_pause_is_noticed() {
        let (over, mut looks) = (AtomicBool::new(false), 0);
        let longest = longest_pause(&over, || {
            looks += 1;
            thread::sleep(if looks == 2 { LOOK + PAUSE } else { LOOK });
            over.store(looks == 3, Relaxed);
        });
        assert!(longest >= PAUSE, "{longest:?}");
    }
}

//! How fast goes what works beside the workers, and can wait.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::exec::core::{Instance, priority};
use crate::observe::stats::WorkerStats;

/// How many times as long as it works it rests at most where clients are served, where nothing else is said: about a sixth of a
/// processor is for it then.
const REST: u32 = 6;
/// How long it rests for each read from a socket since it rested last: one client that asks now and then is none that wants a
/// processor.
const REST_FOR_READ: Duration = Duration::from_micros(30);

/// Leaves clients the processors.
pub(in crate::exec) struct Pace {
    workers: Vec<Arc<WorkerStats>>,
    /// Reads from sockets, and for how long its threads had worked, when it had rested last.
    reads: u64,
    worked: Duration,
    /// How many times as long as it works it rests at most.
    most: u32,
}

impl Pace {
    /// Of the calling thread.
    pub(in crate::exec) fn new(instance: &Instance) -> Self {
        Self::resting(instance, REST)
    }

    /// Of the calling thread, which rests at most so many times as long as it works.
    pub(in crate::exec) fn resting(instance: &Instance, most: u32) -> Self {
        let workers = instance.stats.workers();
        Self { reads: reads(&workers), worked: priority::worked(), workers, most }
    }

    /// The calling thread rests, for what it has done itself and another one, which has worked for so long in all.
    pub(in crate::exec) fn rest(&mut self, other: Duration) {
        let (reads, worked) = (reads(&self.workers), priority::worked() + other);
        // A reset of the counters in between shows as a step down.
        let reads_since = reads.saturating_sub(self.reads);
        let most = self.most * worked.saturating_sub(self.worked);
        (self.reads, self.worked) = (reads, worked);
        if reads_since > 0 {
            thread::sleep(most.min(REST_FOR_READ.saturating_mul(reads_since as u32)));
        }
    }
}

/// Reads from sockets so far.
fn reads(workers: &[Arc<WorkerStats>]) -> u64 {
    workers.iter().map(|worker| worker.reads.get()).sum()
}

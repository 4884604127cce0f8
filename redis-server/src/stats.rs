//! Counters: by worker, so that counting never contends, and by command.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::registry;

/// A counter that only its own worker writes: no locked instruction.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. Only the owner may.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Back to zero (CONFIG RESETSTAT); an addition at the same moment may survive it.
    pub fn reset(&self) {
        self.0.store(0, Relaxed);
    }
}

/// What is counted of one command.
#[derive(Debug, Default)]
pub struct CommandStats {
    /// Calls that ran.
    pub calls: Counter,
    /// Nanoseconds that they took.
    pub nanos: Counter,
    /// Calls refused before they ran.
    pub rejected: Counter,
    /// Calls that ran and failed.
    pub failed: Counter,
    /// Calls by duration, for `INFO latencystats`: bucket n holds those below 2^n microseconds.
    pub durations: [Counter; 24],
}

/// The counters of one worker.
#[derive(Debug)]
pub struct WorkerStats {
    /// By command, in the registry's order.
    pub commands: Box<[CommandStats]>,
    /// Reads that found their key.
    pub hits: Counter,
    /// Reads that did not.
    pub misses: Counter,
    /// Bytes received.
    pub input: Counter,
    /// Bytes sent.
    pub output: Counter,
    /// Reads from sockets.
    pub reads: Counter,
    /// Writes to sockets.
    pub writes: Counter,
    /// Error replies.
    pub errors: Counter,
}

impl Default for WorkerStats {
    fn default() -> Self {
        Self {
            commands: (0..registry::COUNT).map(|_| CommandStats::default()).collect(),
            hits: Counter::default(),
            misses: Counter::default(),
            input: Counter::default(),
            output: Counter::default(),
            reads: Counter::default(),
            writes: Counter::default(),
            errors: Counter::default(),
        }
    }
}

impl WorkerStats {
    fn reset(&self) {
        for command in &self.commands {
            let CommandStats { calls, nanos, rejected, failed, durations } = command;
            [calls, nanos, rejected, failed].into_iter().chain(durations).for_each(Counter::reset);
        }
        let Self { commands: _, hits, misses, input, output, reads, writes, errors } = self;
        [hits, misses, input, output, reads, writes, errors].into_iter().for_each(Counter::reset);
    }

    /// Counts `calls` of a command that took `nanos` together.
    #[inline]
    pub fn ran(&self, id: u16, nanos: u64) {
        let stats = &self.commands[usize::from(id)];
        stats.calls.add(1);
        stats.nanos.add(nanos);
        let bucket = (64 - (nanos / 1000).leading_zeros()).min(23);
        stats.durations[bucket as usize].add(1);
    }
}

/// The counters of all workers.
#[derive(Debug, Default)]
pub struct Stats {
    workers: Mutex<Vec<Arc<WorkerStats>>>,
    errors: Mutex<BTreeMap<String, u64>>,
}

impl Stats {
    /// Counters for one more worker.
    pub fn add_worker(&self) -> Arc<WorkerStats> {
        let stats = Arc::new(WorkerStats::default());
        self.workers.lock().expect("no code that holds the list of workers panics").push(Arc::clone(&stats));
        stats
    }

    /// The counters of each worker.
    pub fn workers(&self) -> Vec<Arc<WorkerStats>> {
        self.workers.lock().expect("no code that holds the list of workers panics").clone()
    }

    /// Counts an error reply by its code.
    pub fn count_error(&self, code: String) {
        *self.errors().entry(code).or_default() += 1;
    }

    /// Error replies by their code, for `INFO errorstats`.
    pub fn errors(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.errors.lock().expect("no code that holds the error counts panics")
    }

    /// All counters back to zero (CONFIG RESETSTAT).
    pub fn reset(&self) {
        self.workers().iter().for_each(|worker| worker.reset());
        self.errors().clear();
    }

    /// One figure over all workers.
    pub fn sum(&self, figure: impl Fn(&WorkerStats) -> u64) -> u64 {
        self.workers().iter().map(|worker| figure(worker)).sum()
    }
}

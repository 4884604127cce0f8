//! Counters: by worker, so that counting never contends, and by command.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

/// Samples over which a rate is averaged: with ten a second, what happened within the last 1.6 seconds.
const SAMPLES: usize = 16;

/// Most error codes that are counted one by one, as in the genuine server: scripts can make any number of them.
const MAX_ERROR_CODES: usize = 128;
/// The name under which all further error codes count.
const OTHER_ERRORS: &str = "ERRORSTATS_OVERFLOW";

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

/// The counters of one command.
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

/// The counters of one worker, which share no cache line with those of another.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerStats {
    /// By command, in the registry's order.
    pub commands: Box<[CommandStats]>,
    /// Reads that found their key.
    pub hits: Counter,
    /// Changes of keys; never reset.
    pub changes: Counter,
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
    /// Payloads that `sanitize-dump-payload` has checked in full.
    pub sanitizations: Counter,
}

impl WorkerStats {
    fn new(commands: usize) -> Self {
        Self {
            commands: (0..commands).map(|_| CommandStats::default()).collect(),
            hits: Counter::default(),
            changes: Counter::default(),
            misses: Counter::default(),
            input: Counter::default(),
            output: Counter::default(),
            reads: Counter::default(),
            writes: Counter::default(),
            errors: Counter::default(),
            sanitizations: Counter::default(),
        }
    }

    fn reset(&self) {
        for command in &self.commands {
            let CommandStats { calls, nanos, rejected, failed, durations } = command;
            [calls, nanos, rejected, failed].into_iter().chain(durations).for_each(Counter::reset);
        }
        let Self { commands: _, changes: _, hits, misses, input, output, reads, writes, errors, sanitizations } = self;
        [hits, misses, input, output, reads, writes, errors, sanitizations].into_iter().for_each(Counter::reset);
    }

    /// Counts `calls` of a command that took `nanos` each.
    #[inline]
    pub fn ran(&self, id: u16, calls: u64, nanos: u64) {
        let stats = &self.commands[usize::from(id)];
        stats.calls.add(calls);
        stats.nanos.add(calls * nanos);
        let bucket = (64 - (nanos / 1000).leading_zeros()).min(23);
        stats.durations[bucket as usize].add(calls);
    }
}

/// The counters of all workers.
#[derive(Debug)]
pub struct Stats {
    /// Number of commands and subcommands.
    commands: usize,
    workers: Mutex<Vec<Arc<WorkerStats>>>,
    errors: Mutex<BTreeMap<String, u64>>,
    rates: Mutex<Rates>,
    /// Figures that others count, as they were at the last CONFIG RESETSTAT.
    base: Mutex<Totals>,
    /// Of the server's periodic work, which one thread does.
    pub expiry: Expiry,
    /// Commands of the append-only file or of a primary that have failed here, counted by the thread that runs them.
    pub unexpected_errors: AtomicU64,
}

/// Figures that are counted elsewhere, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections refused.
    pub refused: u64,
    /// Keys that have expired.
    pub expired: u64,
    /// Fields of hashes that have expired.
    pub expired_fields: u64,
    /// Keys that were evicted.
    pub evicted: u64,
    /// Clients that were cut off for what they held.
    pub evicted_clients: u64,
    /// Clients that `client-query-buffer-limit` has cut off.
    pub over_input_limit: u64,
    /// Clients that `client-output-buffer-limit` has cut off.
    pub over_output_limit: u64,
}

/// The current rates per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Commands.
    pub commands: u64,
    /// Bytes received.
    pub input: u64,
    /// Bytes sent.
    pub output: u64,
    /// Bytes received from a primary.
    pub replication_input: u64,
    /// Bytes sent to replicas.
    pub replication_output: u64,
}

/// Figures of which a [`Rate`] is made.
const RATES: usize = 5;

#[derive(Debug, Default)]
struct Rates {
    /// Time in milliseconds, and the counts of commands and bytes then.
    last: Option<(u64, [u64; RATES])>,
    samples: VecDeque<[u64; RATES]>,
}

/// The counters of active expiry.
#[derive(Debug, Default)]
pub struct Expiry {
    /// Runs that ended because their time was used up.
    pub cut_short: Counter,
    /// Nanoseconds that runs took.
    pub nanos: Counter,
}

impl Stats {
    /// The counters of a server with so many commands and subcommands.
    pub fn new(commands: usize) -> Self {
        let (workers, errors, rates, base) = Default::default();
        let (expiry, unexpected_errors) = Default::default();
        Self { commands, workers, errors, rates, base, expiry, unexpected_errors }
    }

    /// Counters for one more worker.
    pub fn add_worker(&self) -> Arc<WorkerStats> {
        let stats = Arc::new(WorkerStats::new(self.commands));
        self.workers.lock().expect("no code that holds the list of workers panics").push(Arc::clone(&stats));
        stats
    }

    /// Counters of one that counts for nobody.
    pub fn aside(&self) -> Arc<WorkerStats> {
        Arc::new(WorkerStats::new(self.commands))
    }

    /// The counters of each worker.
    pub fn workers(&self) -> Vec<Arc<WorkerStats>> {
        self.workers.lock().expect("no code that holds the list of workers panics").clone()
    }

    /// Counts an error reply by its code; those that come when there are `MAX_ERROR_CODES` already, together.
    pub fn count_error(&self, code: &str) {
        let mut errors = self.errors();
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
            return;
        }
        let code = if errors.len() < MAX_ERROR_CODES { code } else { OTHER_ERRORS };
        *errors.entry(code.to_owned()).or_default() += 1;
    }

    /// Error replies by their code, for `INFO errorstats`.
    pub fn errors(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.errors.lock().expect("no code that holds the error counts panics")
    }

    /// Calls of all commands.
    pub fn calls(&self) -> u64 {
        self.sum(|worker| worker.commands.iter().map(|command| command.calls.get()).sum())
    }

    /// Takes a sample for [`Stats::rate`]; `now` in milliseconds, `traffic` in bytes from a primary and to replicas.
    pub fn sample(&self, now: u64, (from_primary, to_replicas): (u64, u64)) {
        let input = self.sum(|worker| worker.input.get()) + from_primary;
        let counts = [self.calls(), input, self.sum(|worker| worker.output.get()), from_primary, to_replicas];
        let mut rates = self.rates.lock().expect("no code that holds the rates panics");
        if let Some((before, old)) = rates.last.replace((now, counts))
            && let elapsed @ 1.. = now.saturating_sub(before)
        {
            // A reset of the counters in between shows as a step down.
            let per_second = |at: usize| counts[at].saturating_sub(old[at]) * 1000 / elapsed;
            if rates.samples.len() == SAMPLES {
                rates.samples.pop_front();
            }
            rates.samples.push_back(std::array::from_fn(per_second));
        }
    }

    /// The rates per second, averaged over the last samples.
    pub fn rate(&self) -> Rate {
        let rates = self.rates.lock().expect("no code that holds the rates panics");
        let count = rates.samples.len().max(1) as u64;
        let mean = |at: usize| rates.samples.iter().map(|sample| sample[at]).sum::<u64>() / count;
        let [commands, input, output, replication_input, replication_output] = std::array::from_fn(mean);
        Rate { commands, input, output, replication_input, replication_output }
    }

    fn base(&self) -> MutexGuard<'_, Totals> {
        self.base.lock().expect("no code that holds the base panics")
    }

    /// Figures that others count, since the last reset; `now` is what they are now.
    pub fn since_reset(&self, now: Totals) -> Totals {
        let base = *self.base();
        Totals {
            accepted: now.accepted.saturating_sub(base.accepted),
            refused: now.refused.saturating_sub(base.refused),
            expired: now.expired.saturating_sub(base.expired),
            expired_fields: now.expired_fields.saturating_sub(base.expired_fields),
            evicted: now.evicted.saturating_sub(base.evicted),
            evicted_clients: now.evicted_clients.saturating_sub(base.evicted_clients),
            over_input_limit: now.over_input_limit.saturating_sub(base.over_input_limit),
            over_output_limit: now.over_output_limit.saturating_sub(base.over_output_limit),
        }
    }

    /// All counters back to zero (CONFIG RESETSTAT); `now` is what others have counted.
    pub fn reset(&self, now: Totals) {
        *self.base() = now;
        self.workers().iter().for_each(|worker| worker.reset());
        self.errors().clear();
        let Expiry { cut_short, nanos } = &self.expiry;
        [cut_short, nanos].into_iter().for_each(Counter::reset);
        self.unexpected_errors.store(0, Relaxed);
    }

    /// One figure over all workers.
    pub fn sum(&self, figure: impl Fn(&WorkerStats) -> u64) -> u64 {
        self.workers().iter().map(|worker| figure(worker)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_are_bounded() {
        let stats = Stats::new(1);
        for n in 0..100_000 {
            stats.count_error(&format!("E{n}"));
        }
        stats.count_error("E5");
        let errors = stats.errors();
        assert_eq!(errors.len(), MAX_ERROR_CODES + 1);
        assert_eq!((errors["E5"], errors[OTHER_ERRORS]), (2, 100_000 - MAX_ERROR_CODES as u64));
    }
}

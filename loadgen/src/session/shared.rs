//! The shared state of a run's threads.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::clock::{Clock, Nanos, nanos};
use crate::load::{Length, Load};
use crate::record::{Cpu, Stalls, Tally};

/// Not yet.
const NEVER: Nanos = Nanos::MAX;

/// A run's common state.
pub(super) struct Shared {
    pub(super) clock: Clock,
    /// When the load begins; the connections are open then.
    begins: AtomicU64,
    warm_up: Nanos,
    /// How long the window is; [`NEVER`] if requests are counted.
    length: Nanos,
    /// Requests of the window that no thread has taken yet.
    budget: AtomicU64,
    stopped: AtomicBool,
    given_up: Mutex<Option<String>>,
    pub(super) seats: Vec<Seat>,
}

/// The state that one thread shows the watcher.
pub(super) struct Seat {
    /// The answers since the watcher looked last.
    tally: Mutex<Tally>,
    pub(super) open_connections: AtomicUsize,
    /// All of its connections were opened, or failed to.
    pub(super) ready: AtomicBool,
    pub(super) finished: AtomicBool,
    /// Nothing of it is under way; more may follow.
    pub(super) idle: AtomicBool,
    ending: Mutex<SeatEnding>,
}

/// A thread's final report.
#[derive(Clone, Copy, Default)]
pub(super) struct SeatEnding {
    /// CPU time in the window.
    pub(super) cpu: Cpu,
    /// Wall time in the window, nanoseconds.
    pub(super) wall: Nanos,
    /// Answers of the least and the best served connection.
    pub(super) answers: Option<(u64, u64)>,
    /// When the thread began with what is counted: the time of its last answer before the first counted one.
    pub(super) first: Option<Nanos>,
    pub(super) stalls: Stalls,
    /// When the last counted answer came.
    pub(super) last_answer: Nanos,
    /// How many of its connections were open when the window ended.
    pub(super) open_at_end: Option<usize>,
    /// Resident memory of the process, while all connections of the thread were there.
    pub(super) resident_bytes: u64,
}

impl Shared {
    pub(super) fn new(clock: Clock, load: &Load, threads: usize, operations: usize) -> Self {
        let (length, budget) = match load.length {
            Length::Duration(length) => (nanos(length), u64::MAX),
            Length::Requests(requests) => (NEVER, requests),
        };
        let seat = || Seat {
            tally: Mutex::new(Tally::new(operations)),
            open_connections: AtomicUsize::new(0),
            ready: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            idle: AtomicBool::new(false),
            ending: Mutex::default(),
        };
        Self {
            clock,
            begins: AtomicU64::new(NEVER),
            warm_up: nanos(load.warm_up),
            length,
            budget: AtomicU64::new(budget),
            stopped: AtomicBool::new(false),
            given_up: Mutex::new(None),
            seats: (0..threads).map(|_| seat()).collect(),
        }
    }

    /// Lets the load begin.
    pub(super) fn begin(&self, at: Nanos) {
        self.begins.store(at, Ordering::Release);
    }

    /// When the load begins, if that is known.
    pub(super) fn begins(&self) -> Option<Nanos> {
        let begins = self.begins.load(Ordering::Acquire);
        (begins != NEVER).then_some(begins)
    }

    /// The window of a load that begins then: from, and until.
    pub(super) fn window(&self, begins: Nanos) -> (Nanos, Nanos) {
        let from = begins.saturating_add(self.warm_up);
        (from, from.saturating_add(self.length))
    }

    /// Takes up to `wanted` requests of the window; fewer when they are used up.
    pub(super) fn take(&self, wanted: usize) -> usize {
        if self.length != NEVER {
            return wanted;
        }
        let mut left = self.budget.load(Ordering::Relaxed);
        loop {
            let taken = left.min(wanted as u64);
            match self.budget.compare_exchange_weak(left, left - taken, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return taken as usize,
                Err(now) => left = now,
            }
        }
    }

    /// Whether no request of the window is left to be taken.
    pub(super) fn used_up(&self) -> bool {
        self.budget.load(Ordering::Relaxed) == 0
    }

    /// Ends the run early.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Ends the run because it cannot go on.
    pub(super) fn give_up(&self, reason: String) {
        locked(&self.given_up).get_or_insert(reason);
        self.stop();
    }

    pub(super) fn given_up(&self) -> Option<String> {
        locked(&self.given_up).clone()
    }
}

impl Seat {
    pub(super) fn tally(&self) -> MutexGuard<'_, Tally> {
        locked(&self.tally)
    }

    pub(super) fn end(&self, ending: SeatEnding) {
        *locked(&self.ending) = ending;
    }

    pub(super) fn ending(&self) -> SeatEnding {
        *locked(&self.ending)
    }
}

/// A panic of another thread leaves nothing half done in what is locked here.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

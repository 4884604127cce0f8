//! Wake-ups: of a task by its own thread without a lock, by others with one.

use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// The way to a loop from other threads.
pub(super) struct Remote {
    /// Tasks that were woken, by their headers.
    woken: Mutex<Vec<Arc<Header>>>,
    /// True if something was woken since the loop looked.
    is_told: AtomicBool,
    /// Ends the loop's sleep.
    interrupt: OwnedFd,
}

impl Remote {
    pub(super) fn new(interrupt: OwnedFd) -> Self {
        Self { woken: Mutex::default(), is_told: AtomicBool::new(false), interrupt }
    }

    fn push(&self, task: &Arc<Header>) {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(task));
        if !self.is_told.swap(true, AcqRel) {
            // It fails only when the counter is full, and then the loop has not slept since.
            let _ = rustix::io::write(&self.interrupt, &1_u64.to_ne_bytes());
        }
    }

    /// Hands on what was woken; for the loop's own thread.
    pub(super) fn take(&self, mut ready: impl FnMut(usize)) {
        if !self.is_told.load(Relaxed) {
            return;
        }
        self.is_told.swap(false, AcqRel);
        let woken = std::mem::take(&mut *self.woken.lock().unwrap_or_else(PoisonError::into_inner));
        for task in woken {
            // From here on it can be woken again: whoever does so before has left what the coming poll sees.
            task.is_woken_elsewhere.swap(false, AcqRel);
            if task.enters_queue() {
                ready(task.index);
            }
        }
    }
}

/// The part of a task that its wakers share.
pub(super) struct Header {
    pub(super) index: usize,
    pub(super) remote: Arc<Remote>,
    /// True if it is in the queue of its loop. Only the loop's thread reads and writes it.
    is_ready: AtomicBool,
    /// True if it is among those that other threads have woken.
    is_woken_elsewhere: AtomicBool,
}

impl Header {
    pub(super) fn new(index: usize, remote: Arc<Remote>) -> Self {
        Self { index, remote, is_ready: AtomicBool::new(false), is_woken_elsewhere: AtomicBool::new(false) }
    }

    /// Notes that it goes to the queue of its loop; false if it is there already.
    #[inline]
    pub(super) fn enters_queue(&self) -> bool {
        let is_new = !self.is_ready.load(Relaxed);
        self.is_ready.store(true, Relaxed);
        is_new
    }

    /// Notes that it is taken from the queue.
    #[inline]
    pub(super) fn leaves_queue(&self) {
        self.is_ready.store(false, Relaxed);
    }

    /// Wakes the task from another thread.
    pub(super) fn wake_elsewhere(self: &Arc<Self>) {
        if !self.is_woken_elsewhere.swap(true, AcqRel) {
            self.remote.push(self);
        }
    }
}

//! A place for the task to be woken, as the crate of this name has it, of a lock.

use std::task::Waker;

use shuttle::sync::Mutex;

/// Holds the last waker until somebody wakes by it.
#[derive(Debug, Default)]
pub struct AtomicWaker(Mutex<Option<Waker>>);

impl AtomicWaker {
    /// An empty place.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the task to wake from now on.
    pub fn register(&self, waker: &Waker) {
        *self.0.lock().expect("nobody panics with it") = Some(waker.clone());
    }

    /// Wakes the registered task.
    pub fn wake(&self) {
        let waker = self.0.lock().expect("nobody panics with it").take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

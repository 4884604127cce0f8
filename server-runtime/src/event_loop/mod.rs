//! The loop of a worker that has no runtime: its tasks and its sockets, all on one thread.
//!
//! A runtime must expect wake-ups from other threads at every place. A request that comes alone passes tokio's readiness of the
//! socket, its list of waiters and the task's state, each with locked instructions, on the way in and on the way back. Here, a socket
//! knows its task, and both belong to the thread that polls them. Only wake-ups from elsewhere take a lock ([`Remote`](task::Remote)).
//!
//! The order is tokio's: tasks run first come, first served. Behind [`TASKS_PER_LOOK`] of them, or when none is left, the loop
//! looks at the sockets.

mod figures;
mod inner;
mod polled;
mod sources;
mod task;

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::thread;

pub(crate) use figures::Work;
pub(crate) use inner::TASKS_PER_LOOK;
use inner::{Entered, Inner};
pub(crate) use polled::Accepts;
pub use polled::Polled;

/// A loop that is to run on this thread.
pub(crate) struct EventLoop(Rc<Inner>);

impl EventLoop {
    /// A loop without tasks.
    ///
    /// # Errors
    /// The system has no descriptors left, or lacks the call by which the loop waits.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(Rc::new(Inner::new()?)))
    }

    /// How busy it is, for other threads.
    pub(crate) fn work(&self) -> Work {
        self.0.work()
    }

    /// Runs `main` to its end, and beside it all tasks that are [spawned](spawn_local); those that are left then are dropped.
    ///
    /// # Panics
    /// When `main` does.
    pub(crate) fn run<T: 'static>(self, main: impl Future<Output = T> + 'static) -> T {
        let inner = self.0;
        let _entered = Entered::new(&inner);
        let result = Rc::new(Cell::new(None));
        let told = Rc::clone(&result);
        inner.spawn(Box::pin(async move { told.set(Some(caught(main).await)) }));
        loop {
            inner.run_ready();
            if let Some(result) = result.take() {
                return result.unwrap_or_else(|panic| resume_unwind(panic));
            }
            inner.look();
        }
    }
}

/// The outcome of a future, or its panic.
pub async fn caught<T>(future: impl Future<Output = T>) -> thread::Result<T> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(polled) => polled.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

/// True if this thread has a loop of its own instead of a runtime.
pub(crate) fn is_here() -> bool {
    Inner::here(|_| ()).is_some()
}

/// How often this worker has slept: what it does between two sleeps is one round. `None` on threads that are no workers with a
/// [loop of their own](crate::Service::OWN_LOOP).
#[inline]
pub fn rounds() -> Option<u64> {
    Inner::here(|inner| inner.sleeps.get())
}

/// Runs a task on this thread, beside others, until it ends or its worker does. A task that panics is over.
///
/// # Panics
/// On a thread that has neither a [loop of its own](crate::Service::OWN_LOOP) nor a tokio runtime for such tasks.
pub fn spawn_local(future: impl Future<Output = ()> + 'static) {
    let mut future = Some(future);
    Inner::here(|inner| inner.spawn(Box::pin(future.take().expect("this runs once"))));
    if let Some(future) = future {
        tokio::task::spawn_local(future);
    }
}

/// Has the task that is polled polled again, behind others, and behind those that the sockets make ready by then.
pub fn defer(cx: &mut Context<'_>) {
    let is_deferred = Inner::here(|inner| inner.deferred.borrow_mut().push(cx.waker().clone()));
    if is_deferred.is_none() {
        // tokio wakes a task that yields in this order.
        let _ = pin!(tokio::task::yield_now()).poll(cx);
    }
}

/// Waits until others have been polled, and those that the sockets make ready by then.
pub async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        defer(cx);
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests;

//! The wish to end: telling it, and waiting for it.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// A flag that goes up once and can be awaited. Clones share it.
///
/// Each worker has one of its own, so that waiting connections of different workers never meet on a lock.
#[derive(Clone, Default)]
pub struct Shutdown(Arc<Flag>);

#[derive(Default)]
struct Flag {
    up: AtomicBool,
    waiters: Notify,
}

impl Shutdown {
    /// Whether the server wants to end.
    #[inline]
    pub fn is_triggered(&self) -> bool {
        self.0.up.load(Ordering::Acquire)
    }

    /// Ready when the server wants to end, at once if it already does. Cancel safe.
    pub async fn triggered(&self) {
        let mut up = pin!(self.0.waiters.notified());
        // Listen first, look second: a trigger between the two is not lost.
        up.as_mut().enable();
        if !self.is_triggered() {
            up.await;
        }
    }

    pub(crate) fn trigger(&self) {
        self.0.up.store(true, Ordering::Release);
        self.0.waiters.notify_waiters();
    }
}

impl fmt::Debug for Shutdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shutdown").field(&self.is_triggered()).finish()
    }
}

/// The server's two flags: end in good order, and end at once.
pub(crate) struct Stop {
    /// For the acceptor.
    pub(crate) accept: Shutdown,
    /// One for each worker and its connections.
    pub(crate) workers: Vec<Shutdown>,
    /// Cuts the drain short.
    pub(crate) now: Shutdown,
}

impl Stop {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            accept: Shutdown::default(),
            workers: std::iter::repeat_with(Shutdown::default).take(workers).collect(),
            now: Shutdown::default(),
        }
    }

    /// Begins the end: the acceptor closes its listeners, and [tells the connections](Stop::listens_no_more) behind that.
    pub(crate) fn drain(&self) {
        self.accept.trigger();
    }

    /// All listeners are closed, so connections may end: a client that reconnects then finds nothing at the address.
    pub(crate) fn listens_no_more(&self) {
        self.workers.iter().for_each(Shutdown::trigger);
    }

    pub(crate) fn end(&self) {
        self.now.trigger();
        self.drain();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(flavor = "current_thread", start_paused = true)]
    async fn shutdown_wakes_current_and_later_waiters() {
        let shutdown = Shutdown::default();
        let waiting = shutdown.clone();
        let waits = tokio::spawn(async move { waiting.triggered().await });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished() && !shutdown.is_triggered());
        shutdown.trigger();
        let told = tokio::time::timeout(Duration::from_secs(1), waits).await;
        told.expect("it is woken").expect("it does not panic");
        let told = tokio::time::timeout(Duration::from_secs(1), shutdown.triggered()).await;
        told.expect("it is ready at once");
    }
}

//! Telling one task that something has happened, as tokio has it, of a lock.

use std::future::poll_fn;
use std::task::{Poll, Waker};

use shuttle::sync::Mutex;

/// Remembers one notification for the next task that asks.
#[derive(Debug, Default)]
pub struct Notify(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_told: bool,
    waiting: Option<Waker>,
}

impl Notify {
    /// Tells the task that waits, or the next one.
    pub fn notify_one(&self) {
        let mut state = self.0.lock().expect("nobody panics with it");
        state.is_told = true;
        let waiting = state.waiting.take();
        drop(state);
        if let Some(waker) = waiting {
            waker.wake();
        }
    }

    /// Waits to be told. One task does at a time.
    pub async fn notified(&self) {
        poll_fn(|cx| {
            let mut state = self.0.lock().expect("nobody panics with it");
            if std::mem::take(&mut state.is_told) {
                return Poll::Ready(());
            }
            state.waiting = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

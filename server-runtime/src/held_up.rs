//! Connections that come while the worker that accepts is held up.
//!
//! One worker accepts and deals to all: to be woken, with every connection, are those alone that have something to do. A handler that
//! computes or blocks holds it up, though, and new connections would wait. So a thread that serves nothing looks now and
//! then whether each worker has come to the end of its turn, and accepts in the place of one that has not.

use std::time::Duration;

use crate::event_loop::Work;
use crate::listen::{Dealer, Listener};

/// Time between two looks. The first that finds a worker at something asks for an answer, the second finds none.
const PERIOD: Duration = Duration::from_millis(100);
/// The same while a worker is held up, and so how long who connects may wait.
const MEANWHILE: Duration = Duration::from_millis(5);

/// Looks for ever.
pub(crate) async fn watch<C>(listeners: Vec<Listener>, work: &[Work], dealer: Dealer<C>) {
    let mut pause = PERIOD;
    loop {
        tokio::time::sleep(pause).await;
        let mut any = false;
        for (worker, work) in work.iter().enumerate() {
            // One that never waits has much to do, and answers between two things.
            let is_held_up = work.is_awake() && dealer.counters.ask(worker);
            dealer.counters.set_held_up(worker, is_held_up);
            any |= is_held_up;
        }
        pause = if any { MEANWHILE } else { PERIOD };
        if any {
            listeners.iter().for_each(|listener| listener.accept_waiting(|incoming| drop(dealer.deal(incoming))));
        }
    }
}

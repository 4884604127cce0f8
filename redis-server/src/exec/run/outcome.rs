//! The outcome of a command, and the way back of one that took its session along.

use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::parked::Waiting;
use super::tracking;
use super::transaction::discard_transaction;
use crate::clients::client::{Client, flag};
use crate::clients::pubsub::Kind;
use crate::exec::core::Instance;
use crate::exec::gate::Held;
use crate::protocol::Reply;

/// The outcome of a command that ran, or would have run, alone.
#[derive(Debug)]
pub enum Passed {
    /// Its reply is written; the client may want to close.
    Done,
    /// It waits for keys.
    Blocked(Waiting),
    /// It runs, and takes so long that others have their turn meanwhile.
    Interrupted(Interrupted),
    /// It runs on a thread of slow calls, with the session.
    Lent(Pending),
    /// It has not run: it waits for slow calls.
    Held(Held),
    /// It has not run: CLIENT PAUSE holds it back until then, in milliseconds of Unix time.
    Paused(u64),
}

/// Becomes ready when a command has ended that has taken the session with it: a script that is interrupted every now and
/// then, or a slow call.
#[derive(Debug)]
pub struct Pending(oneshot::Receiver<Box<Finished>>);

/// The way of such a command back to its connection, which learns of a panic when this is dropped.
#[derive(Debug)]
pub struct Answer(oneshot::Sender<Box<Finished>>);

/// Both ends of that way.
pub(crate) fn lend() -> (Answer, Pending) {
    let (answer, pending) = oneshot::channel();
    (Answer(answer), Pending(pending))
}

impl Answer {
    /// Gives the session back. Where the connection has gone meanwhile, it leaves.
    pub(crate) fn send(self, instance: &Instance, finished: Finished) {
        if let Err(mut finished) = self.0.send(Box::new(finished)) {
            if let Some(waiting) = finished.waiting.take() {
                waiting.leave(&finished.client);
            }
            leave(instance, &mut finished.client);
        }
    }
}

impl Future for Pending {
    /// `None` when the command has panicked, or the server ends.
    type Output = Option<Box<Finished>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Box<Finished>>> {
        Pin::new(&mut self.0).poll(cx).map(Result::ok)
    }
}

/// The outcome of such a command.
#[derive(Debug)]
pub struct Finished {
    /// The session that it was lent.
    pub client: Client,
    /// Its reply.
    pub reply: Reply,
    /// Its wait, if it waits for keys.
    pub waiting: Option<Waiting>,
}

/// Undoes what a session has left behind, at its end or at RESET: the transaction and its watched keys, subscriptions.
pub fn leave(instance: &Instance, client: &mut Client) {
    discard_transaction(instance, client);
    unsubscribe_all(instance, client);
    tracking::stop(instance, client);
    stop_monitoring(instance, client);
}

/// Ends all subscriptions without a word; messages that wait are dropped.
pub(crate) fn unsubscribe_all(instance: &Instance, client: &mut Client) {
    let Some(subscriptions) = client.subscriptions.take() else { return };
    for (kind, names) in [Kind::Channel, Kind::Pattern, Kind::Shard].into_iter().zip(&subscriptions.sets) {
        names.iter().for_each(|name| instance.pubsub.unsubscribe(kind, name, client.shared.id));
    }
    client.shared.take_messages();
    client.note_subscriptions();
}

/// Ends what MONITOR began, at the client's end or RESET.
pub(crate) fn stop_monitoring(instance: &Instance, client: &Client) {
    if client.shared.flags.load(Relaxed) & flag::MONITOR != 0 {
        client.shared.set_flag(flag::MONITOR, false);
        instance.observers.remove_monitor(&instance.config, client.shared.id);
    }
}

/// The proof that a command was interrupted, for the connection that sent it.
#[derive(Debug)]
pub struct Interrupted {
    /// The result that the connection waits for.
    pub pending: Pending,
}

//! Commands that wait: parking them, and running them again when a key becomes ready.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::oneshot;

use crate::client::{Client, ClientShared, flag};
use crate::command::{Block, OwnedArgs, Ready};
use crate::dispatch::{self, Call};
use crate::registry::Row;
use crate::resp::Reply;
use crate::worker::Worker;

/// A command that waits for keys, and its way back to the client.
#[derive(Debug)]
pub struct Parked {
    row: &'static Row,
    args: OwnedArgs,
    /// The keys waited for.
    keys: Vec<Box<[u8]>>,
    db: usize,
    resp3: bool,
    null_array: bool,
    client: Arc<ClientShared>,
    /// Taken by whoever answers: the command that made a key ready, the deadline, CLIENT UNBLOCK.
    answer: Mutex<Option<oneshot::Sender<Vec<u8>>>>,
}

/// What the connection of a parked command waits for.
#[derive(Debug)]
pub struct Waiting {
    /// The command.
    pub parked: Arc<Parked>,
    /// Its answer.
    pub answer: oneshot::Receiver<Vec<u8>>,
    /// When to give up, in milliseconds of Unix time.
    pub deadline: Option<u64>,
}

impl Parked {
    fn answer(&self) -> MutexGuard<'_, Option<oneshot::Sender<Vec<u8>>>> {
        self.answer.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The null that the command answers when it waited in vain.
    pub fn null(&self) -> Vec<u8> {
        let mut reply = Reply::default();
        reply.set_resp3(self.resp3);
        if self.null_array {
            reply.null_array()
        } else {
            reply.null()
        }
        reply.to_vec()
    }

    /// Ends the wait with `bytes`; false when it has ended already.
    pub fn finish(&self, bytes: Vec<u8>) -> bool {
        // The receiver is gone when the client is; then nobody needs the answer.
        self.answer().take().map(|answer| answer.send(bytes)).is_some()
    }

    /// Ends the wait without an answer: the client answers by itself, or is gone. False when it has ended already.
    pub fn abandon(&self) -> bool {
        self.answer().take().is_some()
    }

    /// Number of the database whose keys are waited for.
    pub fn db(&self) -> usize {
        self.db
    }

    /// The keys waited for.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(|key| &**key)
    }
}

/// Parks a call that has left the wish `block`. The locks of its keys must be held.
pub fn park(worker: &Worker, client: &Client, call: &Call<'_>, block: Block) -> Waiting {
    let (sender, answer) = oneshot::channel();
    let keys = call.args.keys()[block.keys].iter().map(|key| key.bytes.into()).collect();
    let parked = Arc::new(Parked {
        row: call.row,
        args: call.args.to_owned(),
        keys,
        db: client.db,
        resp3: client.resp3,
        null_array: block.null_array,
        client: Arc::clone(&client.shared),
        answer: Mutex::new(Some(sender)),
    });
    worker.instance.database(client.db).waiters.park(parked.keys(), &parked);
    *client.shared.blocked() = Some(Arc::clone(&parked));
    client.shared.set_flag(flag::BLOCKED, true);
    worker.instance.blocked_clients(1);
    Waiting { parked, answer, deadline: block.deadline }
}

/// Takes a command whose wait is over out of all queues.
pub fn leave(worker: &Worker, client: &Client, parked: &Arc<Parked>) {
    worker.instance.database(parked.db).waiters.leave(parked.keys(), parked);
    *client.shared.blocked() = None;
    client.shared.set_flag(flag::BLOCKED, false);
    worker.instance.blocked_clients(-1);
}

/// Runs the commands that wait for `ready` keys, in the order in which they became ready, until there are none any more.
pub fn serve(worker: &Worker, ready: Vec<Ready>) {
    let mut ready = VecDeque::from(ready);
    while let Some((db, key)) = ready.pop_front() {
        let waiters = &worker.instance.database(db).waiters;
        for parked in waiters.queue(&key) {
            let mut reply = Reply::default();
            reply.set_resp3(parked.resp3);
            let mut client = Client::new(Arc::clone(&parked.client), true);
            client.db = db;
            client.resp3 = parked.resp3;
            // Held while the command runs: neither deadline nor CLIENT UNBLOCK can answer in between.
            let mut answer = parked.answer();
            if answer.is_none() {
                continue;
            }
            let call = Call { row: parked.row, args: parked.args.args() };
            let woken = dispatch::serve_parked(worker, &mut client, &call, &mut reply);
            if !reply.is_empty()
                && let Some(sender) = answer.take()
            {
                waiters.leave(parked.keys(), &parked);
                // A client that has gone meanwhile loses its element, as with the genuine server's last write.
                let _ = sender.send(reply.to_vec());
            }
            drop(answer);
            ready.extend(woken);
        }
    }
}

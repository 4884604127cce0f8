//! Commands that wait for keys, and the ways in which a wait ends.

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use tokio::sync::oneshot;

use super::tracking;
use crate::clients::acl::Identity;
use crate::clients::client::{Client, ClientShared, Unblock, flag};
use crate::clients::tracking::{Own, Tracker};
use crate::command::{Categories, OwnedArgs, Row};
use crate::exec::core::{Block, Call, Ctx, InVain, Instance};
use crate::keyspace::{Database, Entry, Key, ValueRef, View, Waiter};
use crate::protocol::Reply;
use crate::protocol::error::{Error, echo};

/// A command that waits for keys, and its way back to the client.
#[derive(Debug)]
pub struct Parked {
    pub(crate) row: &'static Row,
    pub(crate) args: OwnedArgs,
    /// The keys waited for.
    pub(crate) keys: Vec<Box<[u8]>>,
    /// Which of the declared keys they are.
    pub(crate) waited: Range<usize>,
    /// Place in the queues of those keys.
    pub(crate) ticket: u64,
    pub(crate) db: usize,
    pub(crate) resp3: bool,
    pub(crate) in_vain: InVain,
    /// The group that is read, which goes with the stream.
    pub(crate) group: Option<Box<[u8]>>,
    /// Whether `CLIENT REPLY` suppresses the answer.
    pub(crate) muted: bool,
    /// How the client tracks what it reads, if it does.
    pub(crate) tracker: Option<Arc<Tracker>>,
    pub(crate) client: Arc<ClientShared>,
    pub(crate) instance: Arc<Instance>,
    /// Taken by the thread that ends the wait: for the command that made a key ready, the deadline, or CLIENT UNBLOCK.
    pub(crate) answer: Mutex<Option<Answer>>,
}

pub(crate) type Answer = oneshot::Sender<Vec<u8>>;

/// A parked command's wait, on the side of its connection.
#[derive(Debug)]
pub struct Waiting {
    /// The command.
    pub parked: Arc<Parked>,
    /// Its answer.
    pub answer: oneshot::Receiver<Vec<u8>>,
    /// When to give up, in milliseconds of Unix time.
    pub deadline: Option<u64>,
}

impl Waiting {
    /// Answers the client, unless it wants no replies, and forgets the wait.
    pub fn conclude(self, client: &Client, reply: &mut Reply, answer: &[u8]) {
        if client.tracking.is_some() {
            // The change that ended the wait may have invalidated keys that this client tracks.
            tracking::deliver(client, reply);
        }
        client.shared.traffic.commands.add(1);
        if !self.parked.muted {
            reply.raw(answer);
        }
        self.leave(client);
    }

    /// Forgets the wait, which ends if it has not yet.
    pub fn leave(self, client: &Client) {
        self.parked.abandon();
        *client.shared.blocked() = None;
    }
}

impl Parked {
    pub(crate) fn answer(&self) -> MutexGuard<'_, Option<Answer>> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The null that the command answers when it waited in vain.
    pub fn null(&self) -> Vec<u8> {
        let mut reply = Reply::default();
        reply.set_resp3(self.resp3);
        match self.in_vain {
            InVain::Null => reply.null_array(),
            InVain::Copies(copies) => _ = copies.answer(&self.instance, &mut reply, true),
        }
        reply.to_vec()
    }

    /// Ends the wait without an answer: the client answers by itself, or is gone. False when it has ended already.
    pub fn abandon(&self) -> bool {
        let mut answer = self.answer();
        self.end(&mut answer).is_some()
    }

    /// Takes the sender; with it go the places in the queues, and the client counts as blocked no longer.
    pub(crate) fn end(&self, answer: &mut Option<Answer>) -> Option<Answer> {
        let sender = answer.take()?;
        let database = self.instance.database(self.db);
        self.keys().for_each(|key| database.leave(&database.key(key), self.ticket));
        self.client.set_flag(flag::BLOCKED, false);
        self.instance.blocked_clients(-1);
        if self.group.is_some() {
            self.instance.group_readers(-1);
        }
        Some(sender)
    }

    /// For whom the command runs.
    pub(crate) fn identity(&self, instance: &Instance) -> Identity {
        let account = self.client.labels().account.clone();
        Identity::new(&instance.acl, account.unwrap_or_else(|| Arc::clone(instance.acl.default_account())), true)
    }

    /// The session as it was when it began to wait, as far as the command sees it, and room for its reply.
    pub(crate) fn session(&self, instance: &Instance) -> (Client, Reply) {
        let mut client = Client::new(Arc::clone(&self.client), self.identity(instance));
        client.db = self.db;
        client.resp3 = self.resp3;
        client.tracking = self.tracker.clone().map(|tracker| Box::new(Own::new(tracker)));
        let mut reply = Reply::default();
        reply.set_resp3(self.resp3);
        reply.set_shortest(instance.config.level().is_72());
        (client, reply)
    }

    /// Number of the database whose keys are waited for.
    pub fn db(&self) -> usize {
        self.db
    }

    /// The keys waited for.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(|key| &**key)
    }

    /// The declared keys as the command sees them when `ready` is served: of those waited for only that one.
    pub(crate) fn keys_for<'k>(&'k self, database: &Database, ready: Key<'k>) -> SmallVec<[Key<'k>; 4]> {
        let args = self.args.args();
        let positions = self.row.command.key_positions(args);
        let others = positions.iter().enumerate().filter(|(index, _)| !self.waited.contains(index));
        std::iter::once(ready).chain(others.map(|(_, &(at, _))| database.key(args.at(at)))).collect()
    }

    /// Whether the command takes elements from such a value: it goes on waiting when its key has another type.
    pub(crate) fn takes(&self, value: ValueRef<'_>) -> bool {
        match value {
            ValueRef::List(_) => self.row.category == Categories::LIST,
            ValueRef::SortedSet(_) => self.row.category == Categories::SORTEDSET,
            ValueRef::Stream(_) => self.row.category == Categories::STREAM,
            ValueRef::Str(_)
            | ValueRef::Hash(_)
            | ValueRef::Set(_)
            | ValueRef::Json(_)
            | ValueRef::Bloom(_)
            | ValueRef::VectorSet(_) => false,
        }
    }
}

impl Unblock for Parked {
    fn time_out(&self) -> bool {
        self.finish(self.null())
    }

    fn finish(&self, bytes: Vec<u8>) -> bool {
        let mut answer = self.answer();
        let answer = self.end(&mut answer);
        // The receiver is gone when the client is; then nobody needs the answer.
        answer.map(|answer| answer.send(bytes)).is_some()
    }

    fn fail(&self, error: &Error) -> bool {
        let mut reply = Reply::default();
        reply.error(error);
        self.finish(reply.to_vec())
    }

    fn row(&self) -> &'static Row {
        self.row
    }

    fn for_each_key(&self, visit: &mut dyn FnMut(&[u8])) {
        self.keys().for_each(visit);
    }
}

impl Parked {
    /// The error for a client that waits for a group's entries when the key no longer holds a stream. If `is_other`, the
    /// key holds another type. Since Redis 7.2 it is the error that the command would get now.
    pub(crate) fn stream_is_gone(&self, key: &[u8], is_other: bool) -> Error {
        match &self.group {
            Some(_) if self.instance.config.level().is_72() && is_other => Error::WrongType,
            Some(group) if self.instance.config.level().is_72() => no_group(key, group),
            _ => Error::Static("UNBLOCKED the stream key no longer exists"),
        }
    }
}

/// XREADGROUP's error for a group that does not exist.
pub(crate) fn no_group(key: &[u8], group: &[u8]) -> Error {
    let (key, group) = (echo(key, MAX_NAME), echo(group, MAX_NAME));
    Error::Message(format!("NOGROUP No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP option"))
}

/// Bytes of a name that an error repeats.
pub(crate) const MAX_NAME: usize = 128;

impl Waiter for Parked {
    fn goes_with_key(&self) -> bool {
        self.group.is_some()
    }

    /// Ends the wait of a group's reader: its stream is gone.
    fn gone(&self, key: &[u8]) {
        if self.group.is_some() {
            self.fail(&self.stream_is_gone(key, false));
        }
    }
}

/// Whether a parked command takes elements from the value that `key` has.
pub(super) fn is_awaited(view: &View<'_>, key: &Key<'_>) -> bool {
    let database = view.database();
    if !database.has_waiters(key) {
        return false;
    }
    let Some(value) = view.peek(key).map(Entry::value) else { return false };
    let mut last = 0;
    while let Some(parked) = behind(database, key, last) {
        if parked.takes(value) {
            return true;
        }
        last = parked.ticket;
    }
    false
}

/// The first command that waits for `key` behind `ticket`; 0 is before all.
pub(crate) fn behind(database: &Database, key: &Key<'_>, ticket: u64) -> Option<Arc<Parked>> {
    let (_, waiter) = database.waiter_behind(key, ticket)?;
    let waiter: Arc<dyn Any + Send + Sync> = waiter;
    Some(waiter.downcast().expect("nobody else parks commands"))
}

/// Parks a call that has left the wish `block`. The locks of its keys must be held.
pub fn park(cx: &Ctx<'_>, call: &Call<'_>, block: Block, muted: bool) -> Waiting {
    let (sender, answer) = oneshot::channel();
    let (client, instance) = (&*cx.client, &cx.worker.instance);
    let database = instance.database(client.db);
    let mut args = call.args.to_owned();
    block.replaced.iter().for_each(|(at, text)| args.replace(*at, text.as_bytes()));
    let parked = Arc::new(Parked {
        row: call.row,
        args,
        keys: call.args.keys()[block.keys.clone()].iter().map(|key| key.bytes.into()).collect(),
        waited: block.keys.clone(),
        ticket: database.ticket(),
        db: client.db,
        resp3: client.resp3,
        in_vain: block.in_vain,
        group: block.group,
        muted,
        tracker: client.tracking.as_ref().map(|own| Arc::clone(&own.tracker)),
        client: Arc::clone(&client.shared),
        instance: Arc::clone(instance),
        answer: Mutex::new(Some(sender)),
    });
    instance.blocked_clients(1);
    if parked.group.is_some() {
        instance.group_readers(1);
    }
    client.shared.set_flag(flag::BLOCKED, true);
    for key in &call.args.keys()[block.keys.clone()] {
        database.park(key, parked.ticket, Arc::clone(&parked) as Arc<dyn Waiter>);
    }
    *client.shared.blocked() = Some(Arc::clone(&parked) as Arc<dyn Unblock>);
    if let InVain::Copies(copies) = block.in_vain {
        let parked: Arc<dyn Unblock> = Arc::clone(&parked) as _;
        instance.replication.wait(instance, &parked, copies);
    }
    Waiting { parked, answer, deadline: block.deadline }
}

impl Ctx<'_> {
    /// Whether a blocking command must leave `key` to clients that have waited longer for a value of its type; they are
    /// looked after then.
    pub fn others_wait(&mut self, key: &Key<'_>) -> bool {
        let wait = !self.serving && self.may_block && is_awaited(&self.db, key);
        if wait {
            self.ready(self.client.db, key.bytes);
        }
        wait
    }
}

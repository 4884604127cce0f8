//! Commands that wait: parking them, and running them again when a key becomes ready.
//!
//! A waiter is served under the locks of the command that made its key ready, before anybody else can see the key,
//! if those locks cover all the keys that it needs; else under locks of its own right afterwards.
//!
//! Locks are taken in this order: shards, the parked command's answer, the queues. The thread that takes the sender out of
//! a parked command ends its wait; all later threads find nothing.

use std::any::Any;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use smallvec::SmallVec;
use tokio::sync::oneshot;

use crate::clients::acl::Identity;
use crate::clients::client::{Client, ClientShared, Unblock, flag};
use crate::clients::tracking::{Own, Tracker};
use crate::command::{Categories, OwnedArgs, Row};
use crate::exec::core::Call;
use crate::exec::core::Instance;
use crate::exec::core::Worker;
use crate::exec::core::{Block, Ctx, InVain, Ready};
use crate::exec::gate::Marks;
use crate::exec::panics;
use crate::exec::permission;
use crate::exec::tracking;
use crate::exec::window;
use crate::keyspace::{Access, Database, Entry, Key, ValueRef, View, Waiter};
use crate::protocol::Reply;
use crate::protocol::error::{Error, echo};

/// A command that waits for keys, and its way back to the client.
#[derive(Debug)]
pub struct Parked {
    row: &'static Row,
    args: OwnedArgs,
    /// The keys waited for.
    keys: Vec<Box<[u8]>>,
    /// Which of the declared keys they are.
    waited: Range<usize>,
    /// Place in the queues of those keys.
    ticket: u64,
    db: usize,
    resp3: bool,
    in_vain: InVain,
    /// The group that is read, which goes with the stream.
    group: Option<Box<[u8]>>,
    /// Whether `CLIENT REPLY` suppresses the answer.
    muted: bool,
    /// How the client tracks what it reads, if it does.
    tracker: Option<Arc<Tracker>>,
    client: Arc<ClientShared>,
    instance: Arc<Instance>,
    /// Taken by the thread that ends the wait: for the command that made a key ready, the deadline, or CLIENT UNBLOCK.
    answer: Mutex<Option<Answer>>,
}

type Answer = oneshot::Sender<Vec<u8>>;

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
    fn answer(&self) -> MutexGuard<'_, Option<Answer>> {
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
    fn end(&self, answer: &mut Option<Answer>) -> Option<Answer> {
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
    fn identity(&self, instance: &Instance) -> Identity {
        let account = self.client.labels().account.clone();
        Identity::new(&instance.acl, account.unwrap_or_else(|| Arc::clone(instance.acl.default_account())), true)
    }

    /// The session as it was when it began to wait, as far as the command sees it, and room for its reply.
    fn session(&self, instance: &Instance) -> (Client, Reply) {
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
    fn keys_for<'k>(&'k self, database: &Database, ready: Key<'k>) -> SmallVec<[Key<'k>; 4]> {
        let args = self.args.args();
        let positions = self.row.command.key_positions(args);
        let others = positions.iter().enumerate().filter(|(index, _)| !self.waited.contains(index));
        std::iter::once(ready).chain(others.map(|(_, &(at, _))| database.key(args.at(at)))).collect()
    }

    /// Whether the command takes elements from such a value: it goes on waiting when its key has another type.
    fn takes(&self, value: ValueRef<'_>) -> bool {
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
    fn stream_is_gone(&self, key: &[u8], is_other: bool) -> Error {
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
const MAX_NAME: usize = 128;

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
fn behind(database: &Database, key: &Key<'_>, ticket: u64) -> Option<Arc<Parked>> {
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

/// Serves the clients that wait for keys that the call has made ready, as far as its locks allow. Leaves the other keys
/// in `cx.ready` for [`serve_rest`].
#[inline]
pub fn serve(cx: &mut Ctx<'_>) {
    if !cx.ready.is_empty() {
        serve_ready(cx);
    }
}

/// Serves what became ready, in the order in which it did.
#[cold]
fn serve_ready(cx: &mut Ctx<'_>) {
    // Before others are served in the client's place.
    cx.commit();
    let selected = cx.client.db;
    let mut left = Vec::new();
    let mut ready = VecDeque::new();
    loop {
        // Serving a client may make further keys ready.
        ready.extend(cx.ready.drain(..));
        let Some(mut next) = ready.pop_front() else { break };
        if !serve_key(cx, &mut next) {
            left.push(next);
        }
    }
    if cx.client.db != selected {
        cx.select(selected);
    }
    cx.ready = left;
}

/// Serves keys that [`serve`] has left, each with a view of its own, until no key is ready any more. `begin` is asked
/// before each: `None` leaves it to another thread, anything else lasts until it is served. `view` finds the keys that it
/// needs.
#[cold]
pub fn serve_rest<G>(
    worker: &Worker,
    client: &mut Client,
    ready: Vec<Ready>,
    mut begin: impl FnMut(&Ready) -> Option<G>,
    view: for<'w> fn(&'w Worker, &Ready) -> View<'w>,
) {
    let mut ready = VecDeque::from(ready);
    let selected = client.db;
    // Nothing is answered to the client who made the keys ready: its call is over.
    let mut reply = Reply::default();
    while let Some(next) = ready.pop_front() {
        let Some(_lasting) = begin(&next) else { continue };
        client.db = next.db;
        let mut cx = Ctx::new(worker, view(worker, &next), &mut reply, client);
        cx.ready.push(next);
        serve_ready(&mut cx);
        cx.commit();
        tracking::broadcast(worker);
        ready.extend(cx.ready.drain(..));
    }
    client.db = selected;
}

/// Serves those who wait for one key while it has something for them. False if that needs more locks; they are in
/// `next.needs` then.
fn serve_key(cx: &mut Ctx<'_>, next: &mut Ready) -> bool {
    let database = cx.worker.instance.database(next.db);
    let key = database.key(&next.key);
    if !covers(cx, next.db, &[key]) {
        next.needs.push(key.bytes.into());
        return false;
    }
    let mut last = 0;
    while let Some(parked) = behind(database, &key, last) {
        last = parked.ticket;
        // Valkey leaves an expired key to the command that asks for it.
        let entry = if cx.instance.config.level().is_valkey() {
            cx.db.stored(&key).filter(|entry| !entry.is_expired(cx.db.over_by()))
        } else {
            cx.db.peek(&key)
        };
        let value = entry.map(Entry::value);
        if value.is_none() && cx.instance.group_readers(0) == 0 {
            break;
        }
        if parked.group.is_some() && !matches!(value, Some(ValueRef::Stream(_))) {
            let error = parked.stream_is_gone(key.bytes, value.is_some());
            cx.worker.failed(parked.row, &error);
            parked.fail(&error);
            continue;
        }
        if !value.is_some_and(|value| parked.takes(value)) {
            continue;
        }
        let keys = parked.keys_for(database, key);
        if !covers(cx, next.db, &keys) {
            // Keys that an earlier attempt needed stay. Otherwise two waiters could take turns for ever, each lacking
            // its own locks.
            next.needs.extend(keys.iter().map(|key| key.bytes.into()));
            return false;
        }
        serve_parked(cx, &parked, &keys);
    }
    true
}

/// Whether `keys` of database `db` may be changed: they are locked, and no slow call works on them, or lent. Selects that
/// database if it is another one.
fn covers(cx: &mut Ctx<'_>, db: usize, keys: &[Key<'_>]) -> bool {
    if cx.client.db != db {
        if cx.others.is_empty() {
            return false;
        }
        cx.select(db);
    }
    let is_free = cx.db.is_lent() || !cx.instance.exclusive.is_marked() || {
        let wanted = Marks::keys(db, keys.iter().map(|key| (key.hash(), Access::Write)));
        !cx.instance.exclusive.forbids(&wanted)
    };
    is_free && keys.iter().all(|key| cx.db.is_writable(key))
}

/// A parked client in the place of the client that has made its key ready. The latter is back when this is dropped, by a
/// panic too.
struct Stead<'s, 'a> {
    cx: &'s mut Ctx<'a>,
    /// The client that has made the key ready.
    client: &'s mut Client,
    reply: &'s mut Reply,
    may_block: bool,
    serving: bool,
}

impl<'s, 'a> Stead<'s, 'a> {
    fn take(cx: &'s mut Ctx<'a>, client: &'s mut Client, reply: &'s mut Reply) -> Self {
        std::mem::swap(cx.reply, reply);
        std::mem::swap(cx.client, client);
        let (may_block, serving) =
            (std::mem::replace(&mut cx.may_block, true), std::mem::replace(&mut cx.serving, true));
        Self { cx, client, reply, may_block, serving }
    }
}

impl Drop for Stead<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The log names the one whose command it was.
            panics::leave_call(self.cx);
        }
        self.cx.block = None;
        (self.cx.may_block, self.cx.serving) = (self.may_block, self.serving);
        std::mem::swap(self.cx.client, self.client);
        std::mem::swap(self.cx.reply, self.reply);
    }
}

/// Runs a parked command again, and sends the answer if it has one now.
fn serve_parked(cx: &mut Ctx<'_>, parked: &Parked, keys: &[Key<'_>]) {
    // Held while the command runs: neither deadline nor CLIENT UNBLOCK can answer in between.
    let mut answer = parked.answer();
    // Nothing is taken for a client that has gone.
    if answer.as_ref().is_none_or(oneshot::Sender::is_closed) {
        return;
    }
    let (mut client, mut reply) = parked.session(cx.instance);
    let call = Call { row: parked.row, args: parked.args.args().with_keys(keys) };
    let stead = Stead::take(cx, &mut client, &mut reply);
    let cx = &mut *stead.cx;
    let began = Instant::now();
    // The user may have lost the right meanwhile.
    match permission::serve(cx, call.row, call.args) {
        Ok(()) => window::invoke(cx, &call),
        Err(error) => {
            cx.worker.refused(Some(call.row), &error);
            cx.reply.error(&error);
        }
    }
    // Counted when it began to wait; now that it has run to its end, the slow log and MONITOR may want to see it.
    let nanos = began.elapsed().as_nanos() as u64;
    if nanos >= cx.instance.observers.threshold() {
        cx.worker.observe(cx, &call, nanos);
    }
    cx.worker.sized(cx, &call, cx.reply.len());
    // Before the answer can be seen.
    cx.commit();
    drop(stead);
    if !reply.is_empty()
        && let Some(sender) = parked.end(&mut answer)
    {
        let mut reply = reply.to_vec();
        // The invalidations of the command's own changes follow its reply. They reach even a client that wants no
        // replies.
        match tracking::pushes(&mut client) {
            Some(pushes) if parked.muted => _ = parked.client.post(pushes.into()),
            Some(pushes) => reply.extend_from_slice(&pushes),
            None => {}
        }
        // A client that goes at this very moment loses its element, as with the genuine server's last write.
        let _ = sender.send(reply);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::config::Config;

    #[test]
    fn a_panic_puts_the_sessions_back() {
        let worker = Worker::new(Arc::new(Instance::new(Arc::new(Config::default()), &crate::commands::TABLE)));
        let (mut pusher, mut parked) = (worker.nobody(), worker.nobody());
        (pusher.db, parked.db) = (1, 2);
        let (mut reply, mut answer) = (Reply::default(), Reply::default());
        let db = worker.instance.database(1).lock_none(0);
        let mut cx = Ctx::new(&worker, db, &mut reply, &mut pusher);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let stead = Stead::take(&mut cx, &mut parked, &mut answer);
            assert_eq!((stead.cx.client.db, stead.cx.serving), (2, true));
            stead.cx.reply.simple("half");
            std::panic::resume_unwind(Box::new("as asked"));
        }));
        assert!(panicked.is_err());
        assert_eq!((cx.client.db, cx.serving, cx.reply.is_empty()), (1, false, true));
        drop(cx);
        assert_eq!(parked.db, 2);
    }
}

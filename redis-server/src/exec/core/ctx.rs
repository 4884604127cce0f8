//! The handler's interface.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::clients::client::Client;
use crate::clients::notifications::{self, Event};
use crate::clients::tracking::Pending;
use crate::cluster::NodeId;
use crate::command::{Args, Registry, Result, Row};
use crate::config::{Config, Switch};
use crate::exec::core::{Block, Call, InVain, Instance, Ready, Worker};
use crate::exec::gate::Still;
use crate::journal;
use crate::keyspace::{Database, Entry, Garbage, Key, View};
use crate::protocol::Reply;
use crate::protocol::error::Error;
use crate::types::bloom::Bloom;
use crate::types::json::Json;
use crate::types::vector_set::VectorSet;
use crate::types::{Hash, List, LiveHash, Set, SmallBytes, SortedSet, Stream};

/// A command's handler: a plain function. When it is called, arity and permission are checked and the keys that the row
/// declares are locked. It reads its arguments, works on [`Ctx::db`] and appends to [`Ctx::reply`].
pub type Handler = fn(&mut Ctx<'_>, Args<'_>) -> Result;

/// Runs a call's words on this node in the client's name, inside of the execution gate. Returns the reply.
pub type RunHere<'r> = dyn FnMut(&[&[u8]]) -> Vec<u8> + 'r;

/// Has the nodes of a cluster do their parts of a call. It runs outside of the execution gate, because it waits for other nodes, which may wait for
/// this one.
pub type Gather = fn(&Worker, &mut Client, &Call<'_>, &mut RunHere<'_>) -> Result<Vec<Vec<u8>>>;

/// The commands of a server.
#[derive(Clone, Copy, Debug)]
pub struct CommandTable {
    /// Their rows.
    pub registry: Registry,
    /// Their handlers, by the number of the row.
    pub handlers: &'static [Handler],
    /// Does the part of other nodes of rows that [gather](crate::command::Command::gathers).
    pub gather: Gather,
}

/// The data that a handler works on, and its operations: three public fields, the rest by methods.
pub struct Ctx<'a> {
    /// The client's database: the shards of the call's keys.
    pub db: View<'a>,
    /// Where the answer goes.
    pub reply: &'a mut Reply,
    /// The calling client.
    pub client: &'a mut Client,
    pub(crate) instance: &'a Instance,
    /// On whose thread the command runs.
    pub(crate) worker: &'a Worker,
    /// The other databases by number, when the command locks everything (the current one's place is a blank view).
    pub(crate) others: Vec<View<'a>>,
    pub(crate) may_block: bool,
    pub(crate) serving: bool,
    /// The handler's wish to wait.
    pub(crate) block: Option<Block>,
    /// Keys that became ready for clients that wait for them.
    pub(crate) ready: Vec<Ready>,
    /// Changes made since the call began.
    pub(crate) dirty: Cell<u64>,
    pub(crate) journaled: bool,
}

/// Where handlers get random numbers from, which are no secrets.
#[derive(Clone, Copy, Debug)]
pub struct Random<'a>(&'a Worker);

impl Random<'_> {
    /// Any number.
    pub fn number(self) -> u64 {
        self.0.random()
    }

    /// One below `bound`, which is not 0.
    pub fn below(self, bound: usize) -> usize {
        self.0.random_below(bound)
    }
}

impl<'a> Ctx<'a> {
    /// A call of `client`'s that may wait, on the keys that `db` has locked.
    #[inline]
    pub(crate) fn new(worker: &'a Worker, db: View<'a>, reply: &'a mut Reply, client: &'a mut Client) -> Self {
        reply.set_shortest(worker.instance.config.level().is_72());
        Self {
            instance: &worker.instance,
            worker,
            db,
            others: Vec::new(),
            reply,
            client,
            may_block: true,
            serving: false,
            block: None,
            ready: Vec::new(),
            dirty: Cell::new(0),
            journaled: worker.instance.journal.is_on(),
        }
    }

    /// The server.
    #[inline]
    pub fn instance(&self) -> &'a Arc<Instance> {
        &self.worker.instance
    }

    /// Its settings.
    #[inline]
    pub fn config(&self) -> &'a Config {
        &self.instance.config
    }

    /// Random numbers.
    pub fn random(&self) -> Random<'a> {
        Random(self.worker)
    }

    /// Whether the command may wait: not inside a transaction.
    pub fn may_wait(&self) -> bool {
        self.may_block
    }

    /// Runs the commands of a transaction, none of which may wait.
    pub fn without_waiting(&mut self, run: impl FnOnce(&mut Self)) {
        let may_block = std::mem::replace(&mut self.may_block, false);
        run(self);
        self.may_block = may_block;
    }

    /// Whether this is a waiter's command that runs again because a key became ready.
    pub fn is_serving(&self) -> bool {
        self.serving
    }

    /// Whether the command comes from a source that alone decides: a file that is loaded, or a primary.
    pub fn is_told_by_others(&self) -> bool {
        self.worker.loads
    }

    /// The client's connection is about to bring the slots of a move.
    pub fn expect_import(&self, name: NodeId) {
        self.instance.cluster.expect(name);
    }

    /// It does not.
    pub fn expect_no_import(&self, name: NodeId) {
        self.instance.cluster.expect_no_more(name);
    }

    /// Whether a script calls.
    pub fn is_in_script(&self) -> bool {
        self.worker.is_script()
    }

    /// Whether what the call changes is written down.
    #[inline]
    pub fn is_journaled(&self) -> bool {
        self.journaled
    }

    /// Counts changes that [`Ctx::changed`] is not told of.
    pub fn count_changes(&self, changes: u64) {
        self.dirty.set(self.dirty.get() + changes);
    }

    /// Nothing of what the call has changed counts: it is in a file.
    pub fn forget_changes(&self) {
        self.dirty.set(0);
    }

    /// Accounts for a command that was refused inside of a transaction.
    pub fn refused(&self, row: &Row, error: &Error) {
        self.worker.refused(Some(row), error);
    }

    /// Accounts for a command of another client that the call has made fail.
    pub fn failed(&self, row: &Row, error: &Error) {
        self.worker.failed(row, error);
    }

    /// Puts the messages that have been posted for this client before what is written next. Inside a transaction, where
    /// nothing may stand between the replies, they wait.
    pub fn take_messages(&mut self) {
        if self.may_wait() && self.client.shared.has_mail() {
            self.client.shared.take_messages().iter().for_each(|message| self.reply.encoded(message));
        }
    }

    /// Shows the call to clients that monitor, before the commands that it runs itself.
    pub fn show_to_monitors(&self, args: Args<'_>) {
        self.worker.show_to_monitors(self, args);
    }

    /// The standstill that a call of [`Footprint::Still`](crate::command::Footprint) holds.
    ///
    /// # Errors
    /// Data is loaded.
    pub fn still(&self) -> Result<&'a Still> {
        self.worker.still.as_ref().ok_or(Error::Loading)
    }

    /// Database `db`, if the call has locked it: the client's own, or any in a call that has locked everything.
    pub fn view(&self, db: usize) -> Option<&View<'a>> {
        if db == self.client.db { Some(&self.db) } else { self.others.get(db) }
    }

    /// [`Ctx::view`], to be changed.
    ///
    /// # Panics
    /// The call has not locked it.
    pub fn view_mut(&mut self, db: usize) -> &mut View<'a> {
        if db == self.client.db { &mut self.db } else { &mut self.others[db] }
    }

    /// Two databases, `low` before `high`, in a call that has locked everything.
    ///
    /// # Panics
    /// It has not.
    pub fn two_views(&mut self, low: usize, high: usize) -> (&mut View<'a>, &mut View<'a>) {
        let (head, tail) = self.others.split_at_mut(high);
        match self.client.db {
            current if current == low => (&mut self.db, &mut tail[0]),
            current if current == high => (&mut head[low], &mut self.db),
            _ => (&mut head[low], &mut tail[0]),
        }
    }

    /// All databases in a call that has locked everything.
    pub fn views(&self) -> Vec<&View<'a>> {
        (0..self.others.len()).filter_map(|db| self.view(db)).collect()
    }

    /// Calls `work` with all databases of a call that has locked everything; the call itself has none meanwhile.
    pub fn with_views<R>(&mut self, work: impl FnOnce(&mut Self, Vec<&mut View<'a>>) -> R) -> R {
        let db = self.client.db;
        let mut views = std::mem::take(&mut self.others);
        std::mem::swap(&mut self.db, &mut views[db]);
        let result = work(self, views.iter_mut().collect());
        std::mem::swap(&mut self.db, &mut views[db]);
        self.others = views;
        result
    }

    /// The moment of the call, in milliseconds of Unix time.
    pub fn now(&self) -> u64 {
        self.db.now()
    }

    /// The call has changed what these words would change, rather than its own: they are what the journal is told, in
    /// addition to what it was told so.
    #[inline]
    pub fn instead(&self, words: &[&[u8]]) {
        if self.journaled {
            journal::replace();
            journal::command(self.client.db, words.iter().copied());
        }
    }

    /// The call has deleted a key rather than what its words say; without holding up others if `lazily` is on.
    pub fn instead_deleted(&self, key: &Key<'_>, lazily: Switch) {
        let name: &[u8] = if self.instance.config.is_on(lazily) { b"UNLINK" } else { b"DEL" };
        self.instead(&[name, key.bytes]);
    }

    /// The call has removed these fields of a hash, whatever its words say.
    pub fn instead_hdel(&self, key: &Key<'_>, fields: &[&[u8]]) {
        if self.journaled {
            self.instead(&[&[&b"HDEL"[..], key.bytes][..], fields].concat());
        }
    }

    /// Fields of the hash at `key` were removed, because the call is to set them and their time is over. To be called before it
    /// tells of its own change, of which it must say what is the same where the fields are taken for alive.
    #[inline]
    pub fn fields_expired(&self, key: &Key<'_>, fields: &[SmallBytes]) {
        if !fields.is_empty() {
            self.say_fields_expired(key, fields);
        }
    }

    #[cold]
    fn say_fields_expired(&self, key: &Key<'_>, fields: &[SmallBytes]) {
        self.db.database().count_expired_fields(fields.len());
        self.tell(key, Event::HEXPIRED);
    }

    /// The journal is told the call's own words, whether or not they have changed anything.
    pub fn verbatim(&self, args: Args<'_>) {
        if self.journaled {
            journal::replace();
            journal::command(self.client.db, args.iter());
        }
    }

    /// The journal is not told the call's own words.
    #[inline]
    pub fn instead_nothing(&self) {
        if self.journaled {
            journal::replace();
        }
    }

    /// Before the call: journal entries from now on are one unit with it.
    pub(in crate::exec) fn begin_call(&self) {
        journal::begin_call();
    }

    /// Behind the call: its changes are counted, and said.
    pub(in crate::exec) fn end_call(&self, args: Args<'_>) {
        let changes = self.dirty.take();
        self.worker.stats.changes.add(changes);
        journal::end_call(self.client.db, (changes > 0).then(|| args.iter()));
    }

    /// Appends what was said to the journal. To be called before any lock is released; the session remembers where that ends.
    #[inline]
    pub(crate) fn commit(&self) {
        if self.journaled
            && let Some(end) = self.instance.journal.commit()
        {
            self.client.shared.journal_offset.store(end, Relaxed);
        }
    }

    /// Must follow every change of a key: transactions that watch it fail, clients that wait for it are looked after,
    /// and the change is counted.
    #[inline]
    pub fn changed(&mut self, key: &Key<'_>, event: Event) {
        self.note_local(key);
        if self.is_heard() {
            return self.changed_in(self.client.db, key, event);
        }
        self.dirty.set(self.dirty.get() + 1);
    }

    /// Whether anybody may have to hear of a key that changes.
    #[inline]
    pub fn is_heard(&self) -> bool {
        notifications::is_on(&self.instance.config) || self.db.database().is_of_interest()
    }

    /// A replica that takes writes remembers what its own clients have changed.
    #[inline]
    fn note_local(&self, key: &Key<'_>) {
        if self.instance.replication.is_replica() && !self.worker.loads {
            self.instance.replication.note_local(self.client.db, key.bytes);
        }
    }

    /// [`Ctx::changed`] without a notification.
    pub fn changed_silently(&mut self, key: &Key<'_>) {
        self.note_local(key);
        self.touched(key);
        self.dirty.set(self.dirty.get() + 1);
    }

    /// [`Ctx::changed`] for a key of database `db`, which must be locked (`MOVE`, `COPY … DB`).
    pub fn changed_in(&mut self, db: usize, key: &Key<'_>, event: Event) {
        self.dirty.set(self.dirty.get() + 1);
        self.tell_in(db, key.bytes, event);
        let database = self.instance.database(db);
        if database.is_of_interest() {
            self.seen(database, key);
            if database.has_waiters(key) {
                self.ready(db, key.bytes);
            }
        }
    }

    /// A key has changed that clients may watch, or have read and kept.
    fn seen(&mut self, database: &Database, key: &Key<'_>) {
        database.touch(key);
        if database.any_tracker() {
            self.invalidate(key.bytes);
        }
    }

    /// Has those told who have read a key, which is locked, that it has changed.
    #[cold]
    fn invalidate(&mut self, key: &[u8]) {
        let tracking = &self.instance.tracking;
        let by = self.client.shared.id;
        if tracking.invalidate(&self.instance.config, key, Some(by))
            && let Some(own) = &mut self.client.tracking
        {
            own.pending.push(Pending::Key(key.into()));
        }
        if tracking.prefix_count.load(Relaxed) != 0 {
            self.worker.changed_keys.borrow_mut().push((key.into(), Some(by)));
        }
    }

    /// The call has emptied databases, which are locked: clients that have read keys are told.
    pub fn forget_read_keys(&mut self) {
        if self.instance.tracking.forget_all(&self.instance.config, self.client.shared.id)
            && let Some(own) = &mut self.client.tracking
        {
            own.pending.push(Pending::Everything);
        }
    }

    #[inline]
    fn tell_in(&self, db: usize, key: &[u8], event: Event) {
        if notifications::is_on(&self.instance.config) {
            notifications::tell(&self.instance.config, &self.instance.pubsub, db, key, event);
        }
    }

    /// Only reports an event: the caller has seen to all that follows from it.
    pub fn tell(&self, key: &Key<'_>, event: Event) {
        self.tell_in(self.client.db, key.bytes, event);
    }

    /// Counts and reports a change of a stream's groups. Such a change neither fails transactions that watch the key
    /// nor makes anything ready for clients that wait for it.
    pub fn noticed(&self, key: &Key<'_>, event: Event) {
        self.dirty.set(self.dirty.get() + 1);
        self.tell(key, event);
    }

    /// Makes transactions fail that watch the key, and has those told who have read it.
    pub fn touched(&mut self, key: &Key<'_>) {
        let database = self.instance.database(self.client.db);
        if database.is_of_interest() {
            self.seen(database, key);
        }
    }

    /// Has those looked after who wait for a key, though nothing was added to it.
    pub fn look_after(&mut self, key: &Key<'_>) {
        if self.database().has_waiters(key) {
            self.ready(self.client.db, key.bytes);
        }
    }

    /// Has those looked after who wait for a key, at a moment in milliseconds of Unix time.
    pub fn look_after_at(&self, key: &Key<'_>, at: u64) {
        self.instance.later.look_after(self.client.db, key.bytes, at);
    }

    /// Has those looked after who wait for a key, when the call is over.
    #[cold]
    pub(in crate::exec) fn ready(&mut self, db: usize, key: &[u8]) {
        self.ready.push(Ready { db, key: key.into(), needs: Vec::new() });
    }

    /// Looks after all clients that wait for a key of database `db` (`SWAPDB`).
    pub fn all_ready(&mut self, db: usize) {
        let keys = self.instance.database(db).awaited_keys();
        self.ready.extend(keys.into_iter().map(|key| Ready { db, key, needs: Vec::new() }));
    }

    /// Frees an entry that was taken out, without holding up those who wait for the locks; counted as freed in the
    /// background if that `is_counted`.
    pub fn discard(&mut self, entry: Entry, is_counted: bool) {
        if entry.is_heavy() {
            self.discard_all(Garbage::Entry(entry), is_counted);
        }
    }

    /// [`Ctx::discard`] for garbage of any kind.
    pub fn discard_all(&mut self, garbage: Garbage, is_counted: bool) {
        self.instance.reaper.free(garbage, is_counted);
    }

    /// A further event of the change that [`Ctx::changed`] was just told of: it is not counted again.
    pub fn notify(&mut self, key: &Key<'_>, event: Event) {
        self.changed(key, event);
        self.dirty.set(self.dirty.get() - 1);
    }

    /// Removes a collection that has lost its last element; to be called after elements were taken.
    pub fn drop_if_empty(&mut self, key: &Key<'_>) {
        let mut slot = self.db.slot(key);
        if slot.entry().is_some_and(|entry| entry.value().is_empty_collection()) {
            slot.take();
            self.changed(key, Event::DEL);
        }
    }

    /// Ends a command that has taken `count` elements out of the collection at `key`, which is `empty` now or is not.
    pub fn taken(&mut self, key: &Key<'_>, count: usize, empty: bool, event: Event) {
        if count > 0 {
            self.changed(key, event);
        }
        if empty {
            self.drop_if_empty(key);
        }
        self.reply.count(count);
    }

    /// Leaves the wish to wait for `keys` (positions among the declared ones). Where waiting is not allowed, it answers
    /// null at once: the null array, or the null bulk string. `timeout_ms` 0 waits for ever. Returns the wish, for more to
    /// be said of it.
    pub fn block(&mut self, timeout_ms: u64, keys: Range<usize>, null_array: bool) -> Option<&mut Block> {
        if self.may_block {
            let deadline = (timeout_ms > 0).then(|| self.now().saturating_add(timeout_ms));
            let (replaced, in_vain, group) = (Vec::new(), InVain::Null, None);
            return Some(self.block.insert(Block { deadline, keys, replaced, in_vain, group }));
        }
        if null_array {
            self.reply.null_array();
        } else {
            self.reply.null();
        }
        None
    }

    /// A blocking command's timeout in seconds (argument `index`), as milliseconds; 0: for ever.
    ///
    /// # Errors
    /// The texts of the genuine server.
    pub fn timeout(&self, args: Args<'_>, index: usize) -> Result<u64> {
        let invalid = Error::Static("ERR timeout is not a float or out of range");
        let seconds = crate::protocol::number::parse_f64(args.at(index)).filter(|s| !s.is_nan()).ok_or(invalid)?;
        let ms = (seconds * 1000.0).ceil();
        let most = (i64::MAX as u64).saturating_sub(self.now());
        if ms > most as f64 && self.config().level().is_72() {
            return Err(Error::Static("ERR timeout is out of range"));
        }
        // Redis 7.0 converts to 64 bits before it looks at the sign: a number that does not fit is "negative".
        if ms < 0.0 || ms >= i64::MAX as f64 {
            return Err(Error::Static("ERR timeout is negative"));
        }
        Ok(ms as u64)
    }

    /// Makes another database the client's, in a call that has locked everything or nothing.
    pub fn select(&mut self, index: usize) {
        let current = self.client.db;
        if index == current {
            return;
        }
        self.client.db = index;
        self.client.shared.db.store(index as u32, Relaxed);
        if self.others.is_empty() {
            self.db = self.instance.database(index).lock_none(self.db.now());
        } else {
            self.others.swap(current, index);
            std::mem::swap(&mut self.db, &mut self.others[current]);
        }
    }

    /// The database that commands of this client work on.
    pub fn database(&self) -> &Database {
        self.instance.database(self.client.db)
    }
}

macro_rules! typed {
    ($($(#[$doc:meta])* $get:ident, $get_mut:ident, $create:ident, $type:ident;)*) => {
        impl View<'_> {
            $(
                #[doc = concat!("The ", stringify!($get), " at `key`, for reading.")]
                ///
                /// # Errors
                /// The key holds another type.
                pub fn $get(&self, key: &Key<'_>) -> Result<Option<&$type>> {
                    match self.value(key) {
                        None => Ok(None),
                        Some(crate::keyspace::ValueRef::$type(value)) => Ok(Some(value)),
                        Some(_) => Err(Error::WrongType),
                    }
                }

                #[doc = concat!("The ", stringify!($get), " at `key`, to be changed.")]
                ///
                /// # Errors
                /// The key holds another type.
                pub fn $get_mut(&mut self, key: &Key<'_>) -> Result<Option<&mut $type>> {
                    match self.get_mut(key) {
                        None => Ok(None),
                        Some(entry) => match entry.object_mut() {
                            Some(crate::keyspace::Object::$type(value)) => Ok(Some(value)),
                            _ => Err(Error::WrongType),
                        },
                    }
                }

                #[doc = concat!("The ", stringify!($get), " at `key`, made empty if there is none; leave no empty one behind.")]
                ///
                /// # Errors
                /// The key holds another type.
                pub fn $create(&mut self, key: &Key<'_>) -> Result<&mut $type> {
                    let empty = || crate::keyspace::Value::Object(crate::keyspace::Object::$type(Box::default()));
                    match self.get_or_insert_with(key, empty).object_mut() {
                        Some(crate::keyspace::Object::$type(value)) => Ok(value),
                        _ => Err(Error::WrongType),
                    }
                }
            )*
        }
    };
}

typed! {
    list, list_mut, list_or_new, List;
    hash, hash_mut, hash_or_new, Hash;
    set_at, set_mut, set_or_new, Set;
    sorted_set, sorted_set_mut, sorted_set_or_new, SortedSet;
    stream, stream_mut, stream_or_new, Stream;
    json, json_mut, json_or_new, Json;
    bloom, bloom_mut, bloom_or_new, Bloom;
    vector_set, vector_set_mut, vector_set_or_new, VectorSet;
}

impl View<'_> {
    /// The hash at `key` as it is at the moment of the call, for reading.
    ///
    /// # Errors
    /// The key holds another type.
    #[inline]
    pub fn live_hash(&self, key: &Key<'_>) -> Result<Option<LiveHash<'_>>> {
        Ok(self.hash(key)?.map(|hash| hash.at(self.over_by())))
    }

    /// The string at `key`, for reading.
    ///
    /// # Errors
    /// The key holds another type.
    #[inline]
    pub fn string(&self, key: &Key<'_>) -> Result<Option<crate::keyspace::StrRef<'_>>> {
        match self.value(key) {
            None => Ok(None),
            Some(crate::keyspace::ValueRef::Str(value)) => Ok(Some(value)),
            Some(_) => Err(Error::WrongType),
        }
    }

    /// The entry of the string at `key`, to be changed.
    ///
    /// # Errors
    /// The key holds another type.
    #[inline]
    pub fn string_mut(&mut self, key: &Key<'_>) -> Result<Option<&mut crate::keyspace::Entry>> {
        match self.get_mut(key) {
            Some(entry) if entry.string().is_none() => Err(Error::WrongType),
            found => Ok(found),
        }
    }

    /// Calls `write` with the bytes of the string at `key`, made at least `len` long by zeros (a missing key is an empty
    /// string). Returns what it returns, and whether the string has grown.
    ///
    /// # Errors
    /// The key holds another type.
    pub fn write_string<R>(
        &mut self,
        key: &Key<'_>,
        len: usize,
        write: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<(R, bool)> {
        if let Some(entry) = self.string_mut(key)? {
            let grown = entry.string().is_some_and(|old| old.len() < len);
            return Ok((write(entry.bytes_mut(len).ok_or(Error::WrongType)?), grown));
        }
        let mut bytes = vec![0; len];
        let result = write(&mut bytes);
        self.set(key, crate::keyspace::Value::written(bytes), None);
        Ok((result, true))
    }
}

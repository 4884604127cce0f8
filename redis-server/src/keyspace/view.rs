//! The locked shards of a call, and the entries in them.

use std::cell::{Cell, RefCell};
use std::sync::MutexGuard;

use smallvec::SmallVec;

use super::database::Database;
use super::entry::Entry;
use super::key::{Access, Happening, Key, UNPLACED};
use super::loan::Loan;
use super::order::{self, Order};
use super::shards::{Guard, Shards};
use super::table::{self, Table};
use super::usage::Trace;
use super::value::{Object, Value, ValueRef};
use crate::cluster::SLOTS;
use crate::keyspace::Removed;

/// Expired entries that one view remembers; others wait for the periodic removal.
const MET_MAX: usize = 1024;

/// Most shards that are sorted in a bit set of 64 words, of which one word more tells what words are used.
const SORTED_BY_BITS: usize = 64 * 64;
/// Words for as many shards as there are hash slots.
const SLOT_WORDS: usize = SLOTS / 64;

/// The table of every shard that is locked before there are any.
static EMPTY: Table = Table::new();

/// The locked shards of a call, at one moment in time.
///
/// An entry whose time is over is never seen: reading skips it, writing removes it first.
pub struct View<'a> {
    pub(super) db: &'a Database,
    /// In ascending order of the shards.
    guards: SmallVec<[Locked<'a>; 4]>,
    /// Every shard is locked, but there are none: this keeps others from making them.
    unmade: Option<MutexGuard<'a, ()>>,
    now: u64,
    /// Entries whose time is over by then are as good as removed.
    pub(super) expired_by: u64,
    /// Whether nothing that is changed is over at once (`import-mode`).
    lasting: bool,
    /// The update of an entry's usage at each access.
    pub(super) trace: Trace,
    /// Looks at keys by reading commands that found one, and that did not.
    hits: Cell<u32>,
    misses: Cell<u32>,
    /// The entries that a slow call has borrowed; the view then holds no locks.
    pub(super) loan: Option<Box<Loan<'a>>>,
    /// Must stand behind the guards: dropping it locks again.
    met: Met<'a>,
}

/// A shard that is locked.
struct Locked<'a> {
    shard: u32,
    guard: Guard<'a>,
}

/// Entries that readers met when their time was over: they are removed when the view's locks are released.
struct Met<'a> {
    db: &'a Database,
    now: u64,
    expired: RefCell<Vec<(u32, u64)>>,
    /// Whether they stay where they are.
    keep: bool,
}

impl Met<'_> {
    #[cold]
    fn push(&self, key: &Key<'_>) {
        if self.keep {
            return;
        }
        self.db.has_met_expired(key);
        let mut expired = self.expired.borrow_mut();
        if expired.len() < MET_MAX {
            expired.push((key.shard, key.hash));
        }
    }
}

impl Drop for Met<'_> {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Nothing is changed any more; they are found another time.
            return;
        }
        for (shard, hash) in self.expired.get_mut().drain(..) {
            self.db.expire_found(shard, hash, self.now);
        }
    }
}

impl Database {
    /// Locks the shards of `keys` in ascending order; a shard is locked exclusively when one of its keys is for writing.
    /// `now` is in milliseconds of Unix time.
    pub fn lock<'a>(&'a self, keys: impl Iterator<Item = (u32, Access)>, now: u64) -> View<'a> {
        let mut wanted: SmallVec<[(u32, Access); 32]> = keys.collect();
        if wanted.len() > 1 {
            wanted.sort_unstable();
            // Write sorts behind Read: keep the last of each shard.
            wanted.reverse();
            wanted.dedup_by_key(|(shard, _)| *shard);
            wanted.reverse();
        }
        let lock = |&(shard, access): &(u32, _)| Locked { shard, guard: self.guard(shard as usize, access) };
        let guards = wanted.iter().map(lock).collect();
        View { guards, ..self.lock_none(now) }
    }

    /// [`Database::lock`] for hashed keys, which remember where in the view their shards are.
    pub fn lock_keys<'a>(&'a self, keys: &mut [(Key<'_>, Access)], now: u64) -> View<'a> {
        if let [(key, access)] = keys {
            key.guard = 0;
            let guard = self.guard(key.shard as usize, *access);
            let mut view = self.lock_none(now);
            view.guards.push(Locked { shard: key.shard, guard });
            return view;
        }
        match self.shards() {
            _ if keys.len() <= order::FEW => self.lock_few(keys, now),
            ..=SORTED_BY_BITS => self.lock_sorted::<64, 1>(keys, now),
            SLOTS => self.lock_sorted::<SLOT_WORDS, { SLOT_WORDS / 64 }>(keys, now),
            _ => {
                let view = self.lock(keys.iter().map(|(key, access)| (key.shard, *access)), now);
                keys.iter_mut().for_each(|(key, _)| key.guard = view.place(key) as u32);
                view
            }
        }
    }

    /// [`Database::lock_keys`] for as many keys as a window has.
    #[inline]
    fn lock_few<'a>(&'a self, keys: &mut [(Key<'_>, Access)], now: u64) -> View<'a> {
        let shards = self.made_or_make();
        let mut view = self.lock_none(now);
        view.guards = SmallVec::with_capacity(keys.len());
        let mut order = Order::new(keys, self.shards()).peekable();
        while let Some(at) = order.next() {
            let (key, access) = &mut keys[at];
            let (shard, mut access) = (key.shard, *access);
            key.guard = view.guards.len() as u32;
            while let Some(at) = order.next_if(|at| keys[*at].0.shard == shard) {
                keys[at].0.guard = view.guards.len() as u32;
                access = access.max(keys[at].1);
            }
            view.guards.push(Locked { shard, guard: shards.guard(shard as usize, access) });
        }
        view
    }

    /// [`Database::lock_keys`] for up to `64 * WORDS` shards, of which `64 * BLOCKS` words have a bit each. One bit per shard sorts
    /// the shards and drops repetitions.
    #[inline]
    fn lock_sorted<'a, const WORDS: usize, const BLOCKS: usize>(
        &'a self,
        keys: &mut [(Key<'_>, Access)],
        now: u64,
    ) -> View<'a> {
        let shards = self.made_or_make();
        let (mut wanted, mut exclusive, mut used) = ([0u64; WORDS], [0u64; WORDS], [0u64; BLOCKS]);
        for (key, access) in keys.iter() {
            let (word, bit) = split::<WORDS>(key.shard);
            wanted[word] |= bit;
            exclusive[word] |= if *access == Access::Write { bit } else { 0 };
            used[word / 64 % BLOCKS] |= 1 << (word % 64);
        }
        let mut view = self.lock_none(now);
        view.guards = SmallVec::with_capacity(keys.len());
        // Guards in front of each word's.
        let mut before = [0u16; WORDS];
        for (block, mut used) in used.into_iter().enumerate() {
            while used != 0 {
                let word = (block * 64 + used.trailing_zeros() as usize) % WORDS;
                used &= used - 1;
                before[word] = view.guards.len() as u16;
                let mut bits = wanted[word];
                while bits != 0 {
                    let shard = word as u32 * 64 + bits.trailing_zeros();
                    let is_exclusive = exclusive[word] & bits & bits.wrapping_neg() != 0;
                    let access = if is_exclusive { Access::Write } else { Access::Read };
                    view.guards.push(Locked { shard, guard: shards.guard(shard as usize, access) });
                    bits &= bits - 1;
                }
            }
        }
        for (key, _) in keys {
            let (word, bit) = split::<WORDS>(key.shard);
            let lower = wanted[word] & (bit - 1);
            // Mostly there is none, and counting takes a dozen instructions where the processor may have none for it.
            key.guard = u32::from(before[word]) + if lower == 0 { 0 } else { lower.count_ones() };
        }
        view
    }

    /// Locks every shard.
    pub fn lock_all(&self, access: Access, now: u64) -> View<'_> {
        let mut view = self.lock_none(now);
        let unmade = self.made().is_none().then(|| self.keep_unmade());
        match self.made() {
            Some(shards) => view.lock_whole(shards, access),
            None => view.unmade = unmade,
        }
        view
    }

    /// A view without any lock, for commands that have no keys or walk the database shard by shard.
    pub fn lock_none(&self, now: u64) -> View<'_> {
        View {
            db: self,
            guards: SmallVec::new(),
            unmade: None,
            now,
            expired_by: now,
            lasting: false,
            trace: self.usage().trace(now),
            hits: Cell::new(0),
            misses: Cell::new(0),
            loan: None,
            met: Met { db: self, now, expired: RefCell::default(), keep: false },
        }
    }
}

/// The word and the bit of a shard.
#[inline]
fn split<const WORDS: usize>(shard: u32) -> (usize, u64) {
    (shard as usize / 64 % WORDS, 1 << (shard % 64))
}

impl<'a> View<'a> {
    /// The database that the view looks into.
    pub fn database(&self) -> &'a Database {
        self.db
    }

    /// The moment of the call, in milliseconds of Unix time.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Leaves the entries' last use as it is (`CLIENT NO-TOUCH`).
    pub fn no_touch(&mut self) {
        self.trace = Trace::None;
    }

    /// Takes [`View::no_touch`] back.
    pub fn touch(&mut self) {
        self.trace = self.db.usage().trace(self.now);
    }

    /// Leaves expired entries that readers meet where they are (`CLIENT PAUSE`).
    pub fn keep_expired(&mut self) {
        self.met.keep = true;
    }

    /// Treats no entry as expired: the primary, or the AOF, records expiry itself.
    pub fn ignore_expiry(&mut self) {
        self.expired_by = 0;
    }

    /// Accepts deadlines in the past: the source of an import expires the keys.
    pub fn keep_lasting(&mut self) {
        self.lasting = true;
    }

    /// Whether what is to last until `at` is over.
    pub fn is_over(&self, at: u64) -> bool {
        !self.lasting && at <= self.expired_by
    }

    /// The time up to which what lasts so long is over.
    pub fn over_by(&self) -> u64 {
        self.expired_by
    }

    /// Hits and misses since the last call.
    pub fn take_lookups(&self) -> (u32, u32) {
        (self.hits.take(), self.misses.take())
    }

    /// Hashes a key that the table of commands does not declare; its shard must be locked for it to be looked up.
    pub fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        self.db.key(bytes)
    }

    /// Position of a shard's guard.
    #[inline]
    fn position(&self, shard: u32) -> Option<usize> {
        match self.guards.as_slice() {
            [only] => (only.shard == shard).then_some(0),
            every if every.len() == self.db.shards() => Some(shard as usize),
            some => some.binary_search_by_key(&shard, |locked| locked.shard).ok(),
        }
    }

    /// Whether `key`'s shard is locked.
    pub fn is_locked(&self, key: &Key<'_>) -> bool {
        self.position(key.shard).is_some()
    }

    /// Whether `key`'s shard is locked for writing.
    pub fn is_writable(&self, key: &Key<'_>) -> bool {
        self.unmade.is_some()
            || self.loan.as_ref().is_some_and(|loan| loan.is_writable(key))
            || self.position(key.shard).is_some_and(|at| matches!(self.guards[at].guard, Guard::Exclusive(_)))
    }

    /// Whether any shard is locked, or all of a database that has none yet.
    pub fn is_locking(&self) -> bool {
        self.unmade.is_some() || !self.guards.is_empty()
    }

    /// Whether the view has borrowed what it finds.
    pub fn is_lent(&self) -> bool {
        self.loan.is_some()
    }

    /// Whether any shard is locked for writing, or every one of a database that has none yet, or anything borrowed to be
    /// changed.
    pub fn is_exclusive(&self) -> bool {
        let is_lent = || self.loan.as_ref().is_some_and(|loan| loan.is_exclusive());
        self.unmade.is_some()
            || is_lent()
            || self.guards.iter().any(|locked| matches!(locked.guard, Guard::Exclusive(_)))
    }

    /// Makes the shards of a database that is locked without any, all locked.
    #[cold]
    fn make(&mut self) {
        let Some(unmade) = self.unmade.take() else { return };
        let shards = self.db.make_hidden();
        self.lock_whole(shards, Access::Write);
        self.db.show();
        drop(unmade);
    }

    /// Locks every shard, as none is yet.
    fn lock_whole(&mut self, shards: &'a Shards, access: Access) {
        let lock = |shard| Locked { shard: shard as u32, guard: shards.guard(shard, access) };
        self.guards.extend((0..self.db.shards()).map(lock));
    }

    #[inline]
    pub(super) fn table(&self, key: &Key<'_>) -> &Table {
        match self.guards.get(self.place(key)) {
            Some(locked) => locked.guard.table(),
            None => self.table_unlocked(key),
        }
    }

    /// [`View::table`] where nothing is locked.
    #[cold]
    fn table_unlocked(&self, key: &Key<'_>) -> &Table {
        self.loan.as_ref().map_or(&EMPTY, |loan| loan.table(key))
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "measured: every GET or SET passes here")]
    pub(super) fn table_mut(&mut self, key: &Key<'_>) -> &mut Table {
        if self.guards.is_empty() {
            return self.table_mut_unlocked(key);
        }
        let at = self.place(key);
        self.guards[at].guard.table_mut()
    }

    /// [`View::table_mut`] where nothing is locked yet.
    #[cold]
    fn table_mut_unlocked(&mut self, key: &Key<'_>) -> &mut Table {
        if self.loan.is_none() {
            self.make();
            let at = self.place(key);
            return self.guards[at].guard.table_mut();
        }
        self.loan.as_mut().expect("just seen").table_mut(key)
    }

    /// Whether the next new key makes its shard's table grow.
    #[cfg(test)]
    pub(super) fn grows_next(&self, key: &Key<'_>) -> bool {
        self.table(key).len() == self.table(key).capacity()
    }

    /// Position of the guard of a key's shard.
    #[inline]
    fn place(&self, key: &Key<'_>) -> usize {
        if key.guard != UNPLACED {
            return key.guard as usize;
        }
        match self.position(key.shard) {
            Some(at) => at,
            None if self.unmade.is_some() || self.loan.is_some() => usize::MAX,
            None => unreachable!("dispatch has locked the shards of all declared keys"),
        }
    }

    /// The live entry of `key` for a command that reads: counted as hit or miss, and remembered as used.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "measured: every GET or SET passes here")]
    pub fn get(&self, key: &Key<'_>) -> Option<&Entry> {
        let found = self.look(key);
        if let Some(entry) = found {
            self.trace.leave(entry);
        }
        found
    }

    /// The live entry of `key` for a command that only asks about it: counted, but not remembered as used.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "measured: every GET or SET passes here")]
    pub fn look(&self, key: &Key<'_>) -> Option<&Entry> {
        let found = self.look_quietly(key);
        if found.is_none() {
            self.db.tell(Happening::Missed, key.bytes);
        }
        found
    }

    /// [`View::look`] for a command that tells nobody of a miss (`OBJECT`).
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "measured: every GET or SET passes here")]
    pub fn look_quietly(&self, key: &Key<'_>) -> Option<&Entry> {
        let found = self.peek(key);
        self.count(found.is_some());
        found
    }

    #[inline]
    fn count(&self, found: bool) {
        let counter = if found { &self.hits } else { &self.misses };
        counter.set(counter.get() + 1);
    }

    /// Counts the next look at `key` by a command that changes, but is counted among those that read (`XACK` and its kin).
    pub fn count_look(&mut self, key: &Key<'_>) {
        let found = self.get_mut(key).is_some();
        self.count(found);
        if !found {
            self.db.tell(Happening::Missed, key.bytes);
        }
    }

    /// Whether there is an entry of `key`, even one whose time is over.
    pub fn holds(&self, key: &Key<'_>) -> bool {
        self.stored(key).is_some()
    }

    /// Whether there is a live entry of `key`; one whose time is over stays where it is.
    pub fn holds_live(&self, key: &Key<'_>) -> bool {
        self.stored(key).is_some_and(|entry| !entry.is_expired(self.expired_by))
    }

    /// The entry of `key`, even one whose time is over, looked at without a trace.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "measured: every GET or SET passes here")]
    pub fn stored(&self, key: &Key<'_>) -> Option<&Entry> {
        let table = self.table(key);
        table::entry_at(table, key.bucket as usize, key.bytes)
            .or_else(|| table.get(key.hash, |(entry, _)| entry.key() == key.bytes).map(|(entry, _)| entry))
    }

    /// The live entry of `key`, looked at without a trace.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "measured: every GET or SET passes here")]
    pub fn peek(&self, key: &Key<'_>) -> Option<&Entry> {
        let entry = self.stored(key)?;
        if entry.is_expired(self.expired_by) {
            self.met.push(key);
            return None;
        }
        Some(entry)
    }

    /// The live entry of `key`, to be changed; an expired one is removed. Expiry is changed by [`View::expire`] only.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "measured: every GET or SET passes here")]
    pub fn get_mut(&mut self, key: &Key<'_>) -> Option<&mut Entry> {
        let (db, by, trace) = (self.db, self.expired_by, self.trace);
        let entry = table::live_mut(self.table_mut(key), key, by, |entry| db.expired(key, entry))?;
        db.save_first(entry);
        trace.leave(entry);
        Some(entry)
    }

    /// The live entry of `key`, to be changed; if there is none it is made with what `make` gives, without expiry.
    #[inline]
    pub fn get_or_insert_with(&mut self, key: &Key<'_>, make: impl FnOnce() -> Value<'static>) -> &mut Entry {
        let (db, now, by, trace, is_new) = (self.db, self.now, self.expired_by, self.trace, Cell::new(false));
        let make = || {
            db.tell(Happening::Added, key.bytes);
            let entry = Entry::new(key.bytes, make(), None);
            entry.set_access(db.usage().fresh(now));
            entry.set_epoch(db.cut.epoch());
            db.note_change(&entry);
            trace.made(&entry);
            is_new.set(true);
            entry
        };
        let (hashed, expired) = ((key.hash, key.bytes), |entry| db.expired(key, entry));
        let entry = table::live_or_insert(self.table_mut(key), hashed, by, expired, make, db.rehash());
        if !is_new.get() {
            db.save_first(entry);
            trace.leave(entry);
        }
        entry
    }

    /// Stores a value under `key` in place of what there was; `expire_at` in milliseconds of Unix time.
    #[inline]
    pub fn set(&mut self, key: &Key<'_>, value: Value<'_>, expire_at: Option<u64>) {
        let db = self.db;
        let Some(entry) = self.get_mut(key) else {
            self.db.tell(Happening::Added, key.bytes);
            return self.insert(key, self.new_entry(key, value, expire_at));
        };
        if expire_at.is_none() && entry.overwrite_text(&value) {
            return;
        }
        db.note_value(key.bytes, &value);
        let had = entry.expire_at().is_some();
        debug_assert!(
            !matches!(&value, Value::Object(Object::Hash(_))),
            "collections are put in by replacing the entry"
        );
        if let Some(old) = entry.replace(value, expire_at) {
            self.db.discard(old);
        }
        if had || expire_at.is_some() {
            self.reindex(key, had, expire_at);
        }
    }

    pub(super) fn new_entry(&self, key: &Key<'_>, value: Value<'_>, expire_at: Option<u64>) -> Entry {
        let entry = Entry::new(key.bytes, value, expire_at);
        entry.set_access(self.db.usage().fresh(self.now));
        entry
    }

    /// Adds an entry whose key is not there.
    pub(super) fn insert(&mut self, key: &Key<'_>, mut entry: Entry) {
        let db = self.db;
        let expire_at = entry.expire_at();
        let may_expire = entry.may_expire();
        // Where it may have come from, others kept track of its fields.
        let fields_expire = may_expire
            && entry.hash_object_mut().is_some_and(|hash| {
                hash.unwatch();
                hash.expires()
            });
        entry.set_epoch(db.cut.epoch());
        db.note_change(&entry);
        self.trace.made(&entry);
        table::insert(self.table_mut(key), key.hash, entry, db.rehash());
        if let Some(at) = expire_at {
            self.reindex(key, false, Some(at));
        }
        if fields_expire {
            self.fields_expire(key);
        }
    }

    /// Makes room for so many keys more, so that the tables need not grow for them. Every shard must be locked exclusively.
    pub fn reserve(&mut self, keys: usize) {
        let (db, each) = (self.db, keys / self.db.shards());
        if each > 0 {
            self.make();
            self.guards.iter_mut().for_each(|locked| locked.guard.table_mut().reserve(each, db.rehash()));
        }
    }

    /// [`Database::reindex`]; a loan does so when it is given back.
    #[cold]
    pub(super) fn reindex(&self, key: &Key<'_>, had: bool, expire_at: Option<u64>) {
        if self.loan.is_none() {
            self.db.reindex(self.table(key), (key.shard, key.hash), had, expire_at);
        }
    }

    /// A reader has met an expired entry.
    pub(super) fn meets_expired(&self, key: &Key<'_>) {
        self.met.push(key);
    }

    /// Asks the processor for what looking up `keys`, placed by [`Database::lock_keys`], will read: four dependent cache misses each, which then overlap. The
    /// keys remember where their entries are.
    pub fn prefetch(&self, keys: &mut [(Key<'_>, Access)]) {
        let guards = self.guards.as_slice();
        let table = |key: &Key<'_>| guards[key.guard as usize].guard.table();
        for (key, _) in &*keys {
            table::prefetch_control(table(key), key.hash);
        }
        for (key, _) in &mut *keys {
            let bucket = table::prefetch_bucket(table(key), key.hash);
            key.bucket = bucket.map_or(UNPLACED, |bucket| bucket as u32);
        }
        for (key, _) in &*keys {
            if key.bucket != UNPLACED {
                table::prefetch_entry(table(key), key.bucket as usize);
            }
        }
    }

    /// Calls `visit` with shard `shard`'s table: the locked one, or locked for reading while it is visited.
    pub(super) fn with_shard<R>(&self, shard: usize, visit: impl FnOnce(&Table) -> R) -> R {
        match self.position(shard as u32) {
            Some(at) => visit(self.guards[at].guard.table()),
            None => match self.db.made() {
                Some(shards) => visit(shards.guard(shard, Access::Read).table()),
                None => visit(&EMPTY),
            },
        }
    }

    /// Calls `visit` with every entry of a shard, those whose time is over too.
    #[cfg(test)]
    pub(super) fn with_shard_entries(&self, shard: usize, visit: impl FnMut(&Entry)) {
        self.with_shard(shard, |table| table::entries(table).for_each(visit));
    }

    /// Number of entries in a shard, for which nothing is locked.
    #[inline]
    fn len_of(&self, shard: usize) -> usize {
        match self.position(shard as u32) {
            Some(at) => self.guards[at].guard.table().len(),
            None => self.db.len_of(shard),
        }
    }

    /// The shards that have entries.
    pub(super) fn used_shards(&self) -> impl Iterator<Item = usize> {
        (0..self.db.shards()).filter(|&shard| self.len_of(shard) != 0)
    }

    /// Calls `visit` with every live entry, shard by shard, until it returns false.
    pub fn for_each(&self, mut visit: impl FnMut(&Entry) -> bool) {
        self.for_each_stored(|entry| entry.is_expired(self.expired_by) || visit(entry));
    }

    /// The same with those that have expired, and that nobody has met yet.
    pub fn for_each_stored(&self, mut visit: impl FnMut(&Entry) -> bool) {
        for shard in self.used_shards() {
            let more = self.with_shard(shard, |table| table::entries(table).all(&mut visit));
            if !more {
                return;
            }
        }
    }

    /// Number of keys, expired ones that nobody has met yet included.
    pub fn len(&self) -> usize {
        if self.guards.is_empty() { self.db.len() } else { (0..self.db.shards()).map(|shard| self.len_of(shard)).sum() }
    }

    /// Bytes that the tables of entries and the indexes of deadlines take, besides the entries themselves.
    pub fn overhead(&self) -> (usize, usize) {
        let Some(made) = self.db.made() else { return (0, 0) };
        (0..self.db.shards()).fold((0, 0), |(tables, deadlines), shard| {
            let table = self.with_shard(shard, |table| table.buckets() * table::BUCKET);
            (tables + table, deadlines + made.deadlines(shard).memory())
        })
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Visits live entries from `cursor` on until `count` entries were met; returns the next cursor, 0 at the end.
    ///
    /// Every entry that is there from the first to the last call of a walk is visited, however the tables grow. Of those that are
    /// over, which are not visited, the ones that `concerns` are removed behind the call.
    pub fn scan(
        &self,
        cursor: u64,
        count: usize,
        concerns: impl Fn(&Entry) -> bool,
        mut visit: impl FnMut(&Entry),
    ) -> u64 {
        let shards = self.db.shards() as u64;
        let mut shard = cursor % shards;
        let mut at = cursor / shards;
        let mut met = 0;
        while shard < shards {
            if self.len_of(shard as usize) == 0 || self.db.hidden.has(shard as usize) {
                (shard, at) = (shard + 1, 0);
                continue;
            }
            at = self.with_shard(shard as usize, |table| {
                table::scan(
                    table,
                    at,
                    |key| self.db.hash(key),
                    |entry| {
                        met += 1;
                        if entry.is_expired(self.expired_by) {
                            if concerns(entry) {
                                self.met.push(&self.db.key(entry.key()));
                            }
                        } else {
                            visit(entry);
                        }
                    },
                )
            });
            shard += u64::from(at == 0);
            if met >= count {
                break;
            }
        }
        if shard == shards { 0 } else { at * shards + shard }
    }

    /// A random live entry's key; `None` when there is none.
    ///
    /// Each entry of the shard comes with the same probability, and each shard in proportion to its entries.
    pub fn random_key(&self, mut random: impl FnMut() -> u64) -> Option<Vec<u8>> {
        let shards = self.db.shards();
        let mut left = random() as usize % self.shown_len().max(1);
        let first = self.shown_shards().find(|&shard| match left.checked_sub(self.len_of(shard)) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
        // A shard may hold expired entries only, so the search goes on in the next shards.
        let from_first = (0..shards).map(|offset| (first.unwrap_or(0) + offset) % shards);
        let is_shown = |&shard: &usize| self.len_of(shard) != 0 && !self.db.hidden.has(shard);
        from_first.filter(is_shown).find_map(|shard| self.random_key_in(shard, &mut random))
    }

    /// A random live key of one shard.
    fn random_key_in(&self, shard: usize, random: impl FnMut() -> u64) -> Option<Vec<u8>> {
        let is_live = |entry: &Entry| {
            let expired = entry.is_expired(self.expired_by);
            if expired {
                self.met.push(&self.db.key(entry.key()));
            }
            !expired
        };
        self.with_shard(shard, |table| table::random_entry(table, random, is_live).map(|entry| entry.key().to_vec()))
    }

    /// Takes every entry out, to be given to [`Database::save_removed`]. All shards must be locked exclusively.
    pub fn clear(&mut self) -> Vec<Removed> {
        if let Some(shards) = self.db.made() {
            shards.with_deadlines().for_each(|shard| shards.deadlines(shard).clear());
        }
        self.db.count_fields_anew();
        let epoch = self.db.cut.epoch();
        let tables = self.guards.iter_mut().map(|locked| locked.guard.table_mut()).filter(|table| table.buckets() > 1);
        tables.map(|table| Removed { table: std::mem::take(table), epoch }).collect()
    }

    /// Exchanges all entries with another database. Both views must hold every lock exclusively.
    pub(super) fn swap_all(&mut self, other: &mut View<'_>) {
        if self.unmade.is_some() && other.unmade.is_some() {
            return;
        }
        self.make();
        other.make();
        for (a, b) in self.guards.iter_mut().zip(&mut other.guards) {
            std::mem::swap(a.guard.table_mut(), b.guard.table_mut());
        }
        self.db.swap_expiry(other.db);
        self.db.cut.swap(&other.db.cut);
    }

    /// The value of `key`, for a command that reads (see [`View::get`]).
    #[inline]
    pub fn value(&self, key: &Key<'_>) -> Option<ValueRef<'_>> {
        self.get(key).map(Entry::value)
    }
}

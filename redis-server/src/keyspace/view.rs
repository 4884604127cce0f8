//! The locked shards of a call, and the entries in them.

use std::cell::{Cell, RefCell};

use dashmap::{RwLockReadGuard, RwLockWriteGuard, SharedValue};
use smallvec::{SmallVec, smallvec};

use super::database::{Access, Database, Happening, Key, UNPLACED};
use super::entry::Entry;
use super::table::{self, Table};
use super::usage::Trace;
use super::value::{Value, ValueRef};

/// Expired entries that one view remembers; others wait for the periodic removal.
const MET_MAX: usize = 1024;
/// Empty shards that weigh as much as one entry in a scan: each costs a lock.
const EMPTY_SHARDS: usize = 100;
/// Random shards that are looked at for a random entry before the shards' sizes decide.
const SHARD_TRIES: usize = 32;

/// Up to so many shards, a window's are sorted in a bit set; a position among them fits into a byte.
const SORTED_BY_BITS: usize = 256;

/// One locked shard.
pub(super) enum Guard<'a> {
    Shared(RwLockReadGuard<'a, Table>),
    Exclusive(RwLockWriteGuard<'a, Table>),
}

impl Guard<'_> {
    #[inline]
    pub(super) fn table(&self) -> &Table {
        match self {
            Self::Shared(table) => table,
            Self::Exclusive(table) => table,
        }
    }

    #[inline]
    pub(super) fn table_mut(&mut self) -> &mut Table {
        match self {
            Self::Exclusive(table) => table,
            Self::Shared(_) => unreachable!("a command that writes declares its keys for writing"),
        }
    }
}

/// The locked shards of a call, at one moment in time.
///
/// An entry whose time is over is never seen: reading skips it, writing removes it first.
pub struct View<'a> {
    db: &'a Database,
    /// Shard numbers in ascending order, and their guards.
    shards: SmallVec<[u32; 4]>,
    guards: SmallVec<[Guard<'a>; 4]>,
    now: u64,
    /// What entries remember of their use.
    trace: Trace,
    /// Looks at keys by reading commands that found one, and that did not.
    hits: Cell<u32>,
    misses: Cell<u32>,
    /// Must stand behind the guards: dropping it locks again.
    met: Met<'a>,
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
        let mut expired = self.expired.borrow_mut();
        if expired.len() < MET_MAX && !self.keep {
            expired.push((key.shard, key.hash));
        }
    }
}

impl Drop for Met<'_> {
    #[inline]
    fn drop(&mut self) {
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
        let guards = wanted.iter().map(|&(shard, access)| self.guard(shard as usize, access)).collect();
        View { shards: wanted.iter().map(|&(shard, _)| shard).collect(), guards, ..self.lock_none(now) }
    }

    /// [`Database::lock`] for hashed keys, which remember where in the view their shards are.
    pub fn lock_keys<'a>(&'a self, keys: &mut [(Key<'_>, Access)], now: u64) -> View<'a> {
        if let [(key, access)] = keys {
            key.guard = 0;
            let guard = self.guard(key.shard as usize, *access);
            return View { shards: smallvec![key.shard], guards: smallvec![guard], ..self.lock_none(now) };
        }
        if self.shards() > SORTED_BY_BITS {
            return self.lock(keys.iter().map(|(key, access)| (key.shard, *access)), now);
        }
        // One bit per shard sorts the shards and drops repetitions.
        let mut wanted = [0u64; SORTED_BY_BITS / 64];
        let mut exclusive = wanted;
        for (key, access) in keys.iter() {
            let (word, bit) = (key.shard as usize / 64, 1 << (key.shard % 64));
            wanted[word] |= bit;
            exclusive[word] |= if *access == Access::Write { bit } else { 0 };
        }
        let mut view = self.lock_none(now);
        let mut place = [0u8; SORTED_BY_BITS];
        for (word, mut bits) in wanted.into_iter().enumerate() {
            while bits != 0 {
                let shard = word * 64 + bits.trailing_zeros() as usize;
                let access =
                    if exclusive[word] & bits & bits.wrapping_neg() != 0 { Access::Write } else { Access::Read };
                place[shard] = view.guards.len() as u8;
                view.guards.push(self.guard(shard, access));
                view.shards.push(shard as u32);
                bits &= bits - 1;
            }
        }
        for (key, _) in keys {
            key.guard = place[key.shard as usize].into();
        }
        view
    }

    /// Locks every shard.
    pub fn lock_all(&self, access: Access, now: u64) -> View<'_> {
        self.lock((0..self.shards() as u32).map(|shard| (shard, access)), now)
    }

    /// A view without any lock, for commands that have no keys or walk the database shard by shard.
    pub fn lock_none(&self, now: u64) -> View<'_> {
        View {
            db: self,
            shards: SmallVec::new(),
            guards: SmallVec::new(),
            now,
            trace: self.usage().trace(now),
            hits: Cell::new(0),
            misses: Cell::new(0),
            met: Met { db: self, now, expired: RefCell::default(), keep: false },
        }
    }
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

    /// Leaves expired entries that readers meet where they are (`CLIENT PAUSE`).
    pub fn keep_expired(&mut self) {
        self.met.keep = true;
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
        match self.shards.as_slice() {
            [only] => (*only == shard).then_some(0),
            // Every shard is locked: no need to search.
            all if all.len() == self.db.shards() => Some(shard as usize),
            some => some.binary_search(&shard).ok(),
        }
    }

    /// Whether `key`'s shard is locked for writing.
    pub fn is_writable(&self, key: &Key<'_>) -> bool {
        self.position(key.shard).is_some_and(|at| matches!(self.guards[at], Guard::Exclusive(_)))
    }

    #[inline]
    fn table(&self, key: &Key<'_>) -> &Table {
        self.guards[self.place(key)].table()
    }

    #[inline]
    fn table_mut(&mut self, key: &Key<'_>) -> &mut Table {
        let at = self.place(key);
        self.guards[at].table_mut()
    }

    /// Position of the guard of a key's shard.
    #[inline]
    fn place(&self, key: &Key<'_>) -> usize {
        if key.guard != UNPLACED {
            return key.guard as usize;
        }
        self.position(key.shard).expect("dispatch has locked the shards of all declared keys")
    }

    /// The live entry of `key` for a command that reads: counted as hit or miss, and remembered as used.
    #[inline]
    pub fn get(&self, key: &Key<'_>) -> Option<&Entry> {
        let found = self.look(key);
        if let Some(entry) = found {
            self.trace.leave(entry);
        }
        found
    }

    /// The live entry of `key` for a command that only asks about it: counted, but not remembered as used.
    #[inline]
    pub fn look(&self, key: &Key<'_>) -> Option<&Entry> {
        let found = self.look_quietly(key);
        if found.is_none() {
            self.db.tell(Happening::Missed, key.bytes);
        }
        found
    }

    /// [`View::look`] for a command that tells nobody of a miss (`OBJECT`).
    #[inline]
    pub fn look_quietly(&self, key: &Key<'_>) -> Option<&Entry> {
        let found = self.peek(key);
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.set(counter.get() + 1);
        found
    }

    /// Whether there is an entry of `key`, even one whose time is over.
    pub fn holds(&self, key: &Key<'_>) -> bool {
        self.stored(key).is_some()
    }

    /// The entry of `key`, even one whose time is over, looked at without a trace.
    #[inline]
    pub fn stored(&self, key: &Key<'_>) -> Option<&Entry> {
        self.table(key).get(key.hash, |(entry, _)| entry.key() == key.bytes).map(|(entry, _)| entry)
    }

    /// The live entry of `key`, looked at without a trace.
    #[inline]
    pub fn peek(&self, key: &Key<'_>) -> Option<&Entry> {
        let entry = self.stored(key)?;
        if entry.is_expired(self.now) {
            self.met.push(key);
            return None;
        }
        Some(entry)
    }

    /// The live entry of `key`, to be changed; an expired one is removed. Expiry is changed by [`View::expire`] only.
    #[inline]
    pub fn get_mut(&mut self, key: &Key<'_>) -> Option<&mut Entry> {
        let (db, now, trace) = (self.db, self.now, self.trace);
        let entry = table::live_mut(self.table_mut(key), key.hash, key.bytes, now, |_| db.has_expired(key))?;
        trace.leave(entry);
        Some(entry)
    }

    /// The live entry of `key`, to be changed; if there is none it is made with what `make` gives, without expiry.
    #[inline]
    pub fn get_or_insert_with(&mut self, key: &Key<'_>, make: impl FnOnce() -> Value<'static>) -> &mut Entry {
        let (db, now, trace) = (self.db, self.now, self.trace);
        let is_new = Cell::new(false);
        let expired = |_| db.has_expired(key);
        let make = || {
            db.tell(Happening::Added, key.bytes);
            let entry = Entry::new(key.bytes, make(), None);
            entry.set_access(db.usage().fresh(now));
            is_new.set(true);
            entry
        };
        let hashed = (key.hash, key.bytes);
        let entry = table::live_or_insert(self.table_mut(key), hashed, now, expired, make, db.rehash());
        if !is_new.get() {
            trace.leave(entry);
        }
        entry
    }

    /// Stores a value under `key` in place of what there was; `expire_at` in milliseconds of Unix time.
    #[inline]
    pub fn set(&mut self, key: &Key<'_>, value: Value<'_>, expire_at: Option<u64>) {
        let Some(entry) = self.get_mut(key) else {
            self.db.tell(Happening::Added, key.bytes);
            return self.insert(key, self.new_entry(key, value, expire_at));
        };
        let had = entry.expire_at().is_some();
        entry.replace(value, expire_at);
        if had || expire_at.is_some() {
            self.reindex(key, had, expire_at);
        }
    }

    /// Replaces only the value; the expiry stays.
    pub fn set_keep_ttl(&mut self, key: &Key<'_>, value: Value<'_>) {
        match self.get_mut(key) {
            Some(entry) => entry.replace_value(value),
            None => self.set(key, value, None),
        }
    }

    /// Stores a new object under `key`, without expiry, in the place of the entry that is returned, if there was one.
    pub fn replace(&mut self, key: &Key<'_>, value: Value<'_>) -> Option<Entry> {
        let replaced = self.remove(key);
        if replaced.is_none() {
            self.db.tell(Happening::Added, key.bytes);
        }
        self.insert(key, self.new_entry(key, value, None));
        replaced
    }

    fn new_entry(&self, key: &Key<'_>, value: Value<'_>, expire_at: Option<u64>) -> Entry {
        let entry = Entry::new(key.bytes, value, expire_at);
        entry.set_access(self.db.usage().fresh(self.now));
        entry
    }

    /// Adds an entry whose key is not there.
    fn insert(&mut self, key: &Key<'_>, entry: Entry) {
        let db = self.db;
        let expire_at = entry.expire_at();
        self.table_mut(key).insert(key.hash, (entry, SharedValue::new(())), db.rehash());
        if let Some(at) = expire_at {
            self.reindex(key, false, Some(at));
        }
    }

    /// Stores a whole entry, which was made for `key`, with its expiry; returns the one that was there. The key counts
    /// as new in any case, as in the genuine server.
    pub fn put(&mut self, key: &Key<'_>, entry: Entry) -> Option<Entry> {
        let replaced = self.remove(key);
        self.db.tell(Happening::Added, key.bytes);
        self.insert(key, entry);
        replaced
    }

    /// Removes a live entry and returns it.
    pub fn remove(&mut self, key: &Key<'_>) -> Option<Entry> {
        self.get_mut(key)?;
        self.take(key)
    }

    fn take(&mut self, key: &Key<'_>) -> Option<Entry> {
        let db = self.db;
        let entry = table::take(self.table_mut(key), key.hash, |entry| entry.key() == key.bytes, db.rehash())?;
        if entry.expire_at().is_some() {
            self.reindex(key, true, None);
        }
        Some(entry)
    }

    /// Sets or clears the expiry of a live entry, in milliseconds of Unix time; false if there is none.
    pub fn expire(&mut self, key: &Key<'_>, at: Option<u64>) -> bool {
        let Some(entry) = self.get_mut(key) else { return false };
        let had = entry.expire_at().is_some();
        entry.set_expire_at(at);
        self.reindex(key, had, at);
        true
    }

    /// Tells the shard's expiry index that an entry's deadline was `had` and is `expire_at` now.
    #[cold]
    fn reindex(&self, key: &Key<'_>, had: bool, expire_at: Option<u64>) {
        let mut index = self.db.expiry(key.shard as usize);
        match expire_at {
            Some(at) => {
                self.db.note_deadline();
                index.add(at, key.hash, had);
            }
            None if had => index.forget(),
            None => return,
        }
        let table = self.table(key);
        index.tidy(|deadline, hash| table.get(hash, |(e, _)| e.expire_at() == Some(deadline)).is_some());
    }

    /// Asks the processor for what looking up `keys` will read: four dependent cache misses each, which then overlap.
    pub fn prefetch<'k>(&self, keys: impl Iterator<Item = &'k Key<'k>> + Clone) {
        for key in keys.clone() {
            table::prefetch_control(self.table(key), key.hash);
        }
        let mut buckets: SmallVec<[(&Table, usize); 32]> = SmallVec::new();
        for key in keys {
            let table = self.table(key);
            if let Some(bucket) = table::prefetch_bucket(table, key.hash) {
                buckets.push((table, bucket));
            }
        }
        for (table, bucket) in buckets {
            table::prefetch_entry(table, bucket);
        }
    }

    /// Calls `visit` with shard `shard`'s table: the locked one, or locked for reading while it is visited.
    fn with_shard<R>(&self, shard: usize, visit: impl FnOnce(&Table) -> R) -> R {
        match self.position(shard as u32) {
            Some(at) => visit(self.guards[at].table()),
            None => visit(self.db.guard(shard, Access::Read).table()),
        }
    }

    /// Calls `visit` with every live entry, shard by shard, until it returns false.
    pub fn for_each(&self, mut visit: impl FnMut(&Entry) -> bool) {
        for shard in 0..self.db.shards() {
            let visit = |entry: &Entry| entry.is_expired(self.now) || visit(entry);
            let more = self.with_shard(shard, |table| table::entries(table).all(visit));
            if !more {
                return;
            }
        }
    }

    /// Number of keys, expired ones that nobody has met yet included.
    pub fn len(&self) -> usize {
        (0..self.db.shards()).map(|shard| self.with_shard(shard, Table::len)).sum()
    }

    /// Bytes that the tables of entries and the indexes of deadlines take, besides the entries themselves.
    pub fn overhead(&self) -> (usize, usize) {
        let shards = 0..self.db.shards();
        shards.fold((0, 0), |(tables, deadlines), shard| {
            let table = self.with_shard(shard, |table| table.buckets() * table::BUCKET);
            (tables + table, deadlines + self.db.expiry(shard).memory())
        })
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Visits live entries from `cursor` on until `count` entries were met; returns the next cursor, 0 at the end.
    ///
    /// Every entry that is there from the first to the last call of a walk is visited, however the tables grow.
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(&Entry)) -> u64 {
        let shards = self.db.shards() as u64;
        let mut shard = cursor % shards;
        let mut at = cursor / shards;
        let mut met = 0;
        let mut empty = 0;
        while shard < shards {
            at = self.with_shard(shard as usize, |table| {
                empty += usize::from(table.is_empty());
                table::scan(
                    table,
                    at,
                    |key| self.db.hash(key),
                    |entry| {
                        met += 1;
                        if entry.is_expired(self.now) {
                            self.met.push(&self.db.key(entry.key()));
                        } else {
                            visit(entry);
                        }
                    },
                )
            });
            shard += u64::from(at == 0);
            if met >= count || empty / EMPTY_SHARDS >= count {
                break;
            }
        }
        if shard == shards { 0 } else { at * shards + shard }
    }

    /// A random live entry's key; `None` when there is none.
    ///
    /// Entries of crowded shards come a little less often than others, as the shard is chosen first.
    pub fn random_key(&self, mut random: impl FnMut() -> u64) -> Option<Vec<u8>> {
        let shards = self.db.shards();
        let tries = (0..SHARD_TRIES).find_map(|_| {
            let shard = random() as usize % shards;
            self.random_key_in(shard, &mut random)
        });
        tries.or_else(|| {
            let sizes: Vec<usize> = (0..shards).map(|shard| self.with_shard(shard, Table::len)).collect();
            let mut left = random() as usize % sizes.iter().sum::<usize>().max(1);
            let first = sizes.iter().position(|&size| match left.checked_sub(size) {
                Some(rest) => {
                    left = rest;
                    false
                }
                None => true,
            })?;
            (0..shards).find_map(|offset| self.random_key_in((first + offset) % shards, &mut random))
        })
    }

    /// A random live key of one shard.
    fn random_key_in(&self, shard: usize, random: impl FnMut() -> u64) -> Option<Vec<u8>> {
        let is_live = |entry: &Entry| {
            let expired = entry.is_expired(self.now);
            if expired {
                self.met.push(&self.db.key(entry.key()));
            }
            !expired
        };
        self.with_shard(shard, |table| table::random_entry(table, random, is_live).map(|entry| entry.key().to_vec()))
    }

    /// Takes every entry out. All shards must be locked exclusively.
    pub fn clear(&mut self) -> Vec<Removed> {
        for shard in 0..self.db.shards() {
            *self.db.expiry(shard) = super::expire::ExpiryIndex::default();
        }
        let tables = self.guards.iter_mut().map(Guard::table_mut).filter(|table| table.buckets() > 1);
        tables.map(|table| Removed(std::mem::take(table))).collect()
    }

    /// Exchanges all entries with another database. Both views must hold every lock exclusively.
    pub(super) fn swap_all(&mut self, other: &mut View<'_>) {
        for (a, b) in self.guards.iter_mut().zip(&mut other.guards) {
            std::mem::swap(a.table_mut(), b.table_mut());
        }
        self.db.swap_expiry(other.db);
    }

    /// The value of `key`, for a command that reads (see [`View::get`]).
    pub fn value(&self, key: &Key<'_>) -> Option<ValueRef<'_>> {
        self.get(key).map(Entry::value)
    }
}

/// Entries taken out of a shard; dropping it may take long for many.
pub struct Removed(Table);

impl Removed {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

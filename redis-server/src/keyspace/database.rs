//! One numbered database.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arrayvec::ArrayVec;
use crossbeam_utils::CachePadded;
use foldhash::quality::RandomState;

use super::entry::Entry;
use super::interest::Interests;
use super::key::Access;
use super::parts::{Changes, Cut, Expired, Hidden, Loans};
use super::reaper::Reaper;
use super::shards::{Deadlines, Guard, Shards};
use super::table::{self, Table};
use super::usage::{self, Usage};
use super::view::View;
use crate::cluster::{SLOTS, slot_of};
use crate::keyspace::parts::Side;
use crate::keyspace::{Happening, Key};

/// Expiring keys per shard, and shards, that the estimated mean time to live looks at.
const TTL_SAMPLE: usize = 8;
const TTL_SHARDS: usize = 256;

/// One numbered database: its entries, in shards, and what else hangs on its keys.
///
/// Most servers use one database of sixteen, so the shards are made when a key is first looked for.
pub struct Database {
    hasher: RandomState,
    /// Number of shards, a power of two.
    count: usize,
    /// Whether a key's shard is its hash slot.
    by_slot: bool,
    shards: OnceLock<Shards>,
    /// Whether `shards` are to be used: a little later than they are there, when whoever has locked the database before
    /// they were there has locked them.
    made: AtomicBool,
    /// Held while a thread makes the shards, or keeps others from making them.
    making: Mutex<()>,
    pub(super) interests: Interests,
    pub(super) loans: Loans,
    pub(super) hidden: Hidden,
    pub(super) changes: Changes,
    reaper: Arc<Reaper>,
    pub(super) counts: CachePadded<Counts>,
    usage: usage::Shared,
    pub(super) cut: Side,
    /// Whether an entry was ever given a deadline.
    deadlines: AtomicBool,
    listener: OnceLock<Listener>,
}

/// The counts of a database. All windows read what stands beside them, so they have cache lines of their own.
#[derive(Debug, Default)]
pub(super) struct Counts {
    expired: AtomicU64,
    evicted: AtomicU64,
    pub(super) expired_fields: AtomicU64,
    /// Entries that hold hashes of which fields expire. Entries of an emptied database belong to another counter until they are freed.
    pub(super) with_fields: Mutex<Arc<AtomicUsize>>,
}

/// Is told of keys.
struct Listener(Box<OnKey>);

type OnKey = dyn Fn(Happening<'_>, &[u8]) + Send + Sync;

impl Database {
    /// An empty database with `shards` shards, a power of two that is at least 2.
    pub fn new(shards: usize, hasher: RandomState) -> Self {
        Self {
            hasher,
            count: shards,
            by_slot: false,
            shards: OnceLock::new(),
            made: AtomicBool::new(false),
            making: Mutex::default(),
            interests: Interests::default(),
            loans: Loans::default(),
            hidden: Hidden::default(),
            changes: Changes::default(),
            reaper: Arc::default(),
            counts: CachePadded::default(),
            usage: usage::Shared::default(),
            cut: Side::default(),
            deadlines: AtomicBool::new(false),
            listener: OnceLock::new(),
        }
    }

    /// An empty one that can change its entries with this one: [`Database::swap`].
    pub fn sibling(&self) -> Self {
        let database =
            Self { cut: self.cut.sibling(), by_slot: self.by_slot, ..Self::new(self.count, self.hasher.clone()) };
        database.set_usage(self.usage());
        database.with_reaper(Arc::clone(&self.reaper))
    }

    /// An empty database of a cluster's node: it has a shard for each hash slot, so that a slot's keys are counted, listed and
    /// removed as a whole.
    pub fn by_slot(hasher: RandomState) -> Self {
        Self { by_slot: true, ..Self::new(SLOTS, hasher) }
    }

    /// The same with a reaper that others use too.
    pub fn with_reaper(self, reaper: Arc<Reaper>) -> Self {
        Self { reaper, ..self }
    }

    /// The same, one of several that snapshots show together.
    pub fn with_cut(self, cut: Arc<Cut>) -> Self {
        Self { cut: Side::new(cut), ..self }
    }

    /// Frees an entry that was taken out, without holding up those who wait for a lock.
    #[inline]
    pub(super) fn discard(&self, entry: Entry) {
        self.reaper.discard(entry);
    }

    /// Whether an entry was ever given a deadline: most databases need no look for expired keys.
    pub fn has_deadlines(&self) -> bool {
        self.deadlines.load(Relaxed)
    }

    /// An entry is given a deadline.
    pub(super) fn note_deadline(&self) {
        if !self.has_deadlines() {
            self.deadlines.store(true, Relaxed);
        }
    }

    /// Number of shards.
    pub fn shards(&self) -> usize {
        self.count
    }

    /// The shards, if a key was ever looked for.
    #[inline]
    pub(super) fn made(&self) -> Option<&Shards> {
        if self.made.load(Acquire) { self.shards.get() } else { None }
    }

    /// The shards.
    #[inline]
    pub(super) fn made_or_make(&self) -> &Shards {
        match self.made() {
            Some(shards) => shards,
            None => self.make(),
        }
    }

    #[cold]
    fn make(&self) -> &Shards {
        let _making = self.keep_unmade();
        let shards = self.make_hidden();
        self.show();
        shards
    }

    /// Keeps others from making the shards.
    pub(super) fn keep_unmade(&self) -> MutexGuard<'_, ()> {
        self.making.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the shards, which others do not use before [`Database::show`]. To be called under [`Database::keep_unmade`].
    pub(super) fn make_hidden(&self) -> &Shards {
        self.shards.get_or_init(|| Shards::new(self.count, self.hasher.clone()))
    }

    pub(super) fn show(&self) {
        self.made.store(true, Release);
    }

    /// Hashes a key.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "measured: every GET or SET that comes alone passes here")]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        let mut key = self.key_by_hash(bytes);
        if self.by_slot {
            Self::place_by_slot([&mut key].into_iter());
        }
        key
    }

    /// Hashes keys, each with what is done to it, and appends them to `keys`, which has room for them.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "measured: every GET or SET in a pipeline passes here")]
    pub fn hash_keys<'a, const N: usize>(
        &self,
        named: impl Iterator<Item = (&'a [u8], Access)>,
        keys: &mut ArrayVec<(Key<'a>, Access), N>,
    ) {
        named.for_each(|(bytes, access)| keys.push((self.key_by_hash(bytes), access)));
        if self.by_slot {
            Self::place_by_slot(keys.iter_mut().map(|(key, _)| key));
        }
    }

    /// A key as if no shard was a slot.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "measured: every GET or SET passes here")]
    fn key_by_hash<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        let hash = self.hash(bytes);
        // The tables of the shards use the highest seven bits, and the lowest ones.
        let shard = ((hash << 7 >> 32) * self.count as u64) >> 32;
        Key::new(bytes, hash, shard as u32)
    }

    /// Gives keys the shards that are their slots; a function of its own, so that the other way stays small.
    #[inline(never)]
    fn place_by_slot<'k, 'a: 'k>(keys: impl Iterator<Item = &'k mut Key<'a>>) {
        keys.for_each(|key| key.shard = slot_of(key.bytes).into());
    }

    #[inline]
    pub(super) fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(bytes);
        hasher.finish()
    }

    /// Locks one shard, unless that has to be waited for.
    pub(super) fn try_guard(&self, shard: usize, access: Access) -> Option<Guard<'_>> {
        self.made_or_make().try_guard(shard, access)
    }

    /// Whether there is an entry of `key`, even one whose time is over; `None` if that cannot be known without waiting for its
    /// shard's lock.
    pub fn holds_now(&self, key: &Key<'_>) -> Option<bool> {
        let Some(shards) = self.made() else { return Some(false) };
        let guard = shards.try_guard(key.shard as usize, Access::Read)?;
        Some(guard.table().get(key.hash, |(entry, _)| entry.key() == key.bytes).is_some())
    }

    /// Locks one shard.
    #[inline]
    pub(super) fn guard(&self, shard: usize, access: Access) -> Guard<'_> {
        self.made_or_make().guard(shard, access)
    }

    /// Which entries of a shard expire.
    pub(super) fn deadlines(&self, shard: usize) -> Deadlines<'_> {
        self.made_or_make().deadlines(shard)
    }

    /// Number of keys, expired ones that nobody has met yet included.
    pub fn len(&self) -> usize {
        self.made().map_or(0, |shards| shards.lens().sum())
    }

    /// Number of entries in a shard, when it was last changed.
    #[inline]
    pub(super) fn len_of(&self, shard: usize) -> usize {
        self.made().map_or(0, |shards| shards.len_of(shard))
    }

    /// Number of buckets that the tables have.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        (0..self.count).map(|shard| self.guard(shard, Access::Read).table().buckets()).sum()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.made().is_none_or(|shards| shards.lens().all(|len| len == 0))
    }

    /// Number of keys that expire.
    pub fn expiring(&self) -> usize {
        self.made().map_or(0, |shards| shards.with_deadlines().map(|shard| shards.deadlines(shard).live()).sum())
    }

    /// Counts a key that a command has removed because its new time was over already.
    pub fn count_expired(&self) {
        self.counts.expired.fetch_add(1, Relaxed);
    }

    /// Keys that have expired and been removed, since the start.
    pub fn expired_count(&self) -> u64 {
        self.counts.expired.load(Relaxed)
    }

    /// Fields of hashes that have expired and been removed, since the start.
    pub fn expired_fields(&self) -> u64 {
        self.counts.expired_fields.load(Relaxed)
    }

    /// Number of keys that hold hashes of which fields expire.
    pub fn with_fields(&self) -> usize {
        self.fields_count().load(Relaxed)
    }

    /// Keys that have been evicted, since the start.
    pub fn evicted_count(&self) -> u64 {
        self.counts.evicted.load(Relaxed)
    }

    /// The usage that entries record.
    #[inline]
    pub fn usage(&self) -> Usage {
        self.usage.load()
    }

    /// From now on entries record this kind of usage. Their present values are read as such.
    pub fn set_usage(&self, usage: Usage) {
        self.usage.store(usage);
    }

    /// Tells a shard's expiry index that an entry's deadline was there, if it `had` one, and is `expire_at` now; `table` is the
    /// shard's.
    #[cold]
    pub(super) fn reindex(&self, table: &Table, (shard, hash): (u32, u64), had: bool, expire_at: Option<u64>) {
        let mut index = self.deadlines(shard as usize);
        match expire_at {
            Some(at) => {
                self.note_deadline();
                index.add(at, hash, had);
            }
            None if had => index.forget(),
            None => return,
        }
        index.tidy(|deadline, hash| table.get(hash, |(e, _)| e.expire_at() == Some(deadline)).is_some());
    }

    /// Accounts for an entry that was evicted, under its shard's exclusive lock.
    pub(super) fn has_been_evicted(&self, key: &Key<'_>, entry: &Entry) {
        if entry.expire_at().is_some() {
            self.deadlines(key.shard as usize).forget_evicted(key.hash);
        }
        self.counts.evicted.fetch_add(1, Relaxed);
        self.gone(key);
        self.tell(Happening::Evicted, key.bytes);
        self.tell(Happening::Gone { is_evicted: true }, key.bytes);
    }

    /// Accounts for an entry that was found expired and taken out, under its shard's exclusive lock.
    #[cold]
    pub(super) fn has_expired(&self, key: &Key<'_>) {
        let mut deadlines = self.deadlines(key.shard as usize);
        deadlines.forget();
        let was_told = deadlines.withdraw(key.hash);
        drop(deadlines);
        self.counts.expired.fetch_add(1, Relaxed);
        self.gone(key);
        if !was_told {
            self.tell(Happening::Expired, key.bytes);
        }
        self.tell(Happening::Gone { is_evicted: false }, key.bytes);
    }

    /// Notifies of an expired entry that a reader has found; its later removal does not notify again.
    #[cold]
    pub(super) fn has_met_expired(&self, key: &Key<'_>) {
        let is_first = self.deadlines(key.shard as usize).announce(key.hash);
        if is_first {
            self.tell(Happening::Expired, key.bytes);
        }
        self.tell(Happening::Met, key.bytes);
    }

    /// [`Database::has_expired`], and frees the entry.
    #[cold]
    pub(super) fn expired(&self, key: &Key<'_>, entry: Entry) {
        self.save_first(&entry);
        self.has_expired(key);
        self.discard(entry);
    }

    /// Tells the listener.
    pub(super) fn tell(&self, happening: Happening<'_>, key: &[u8]) {
        if let Some(listener) = self.listener.get() {
            listener.0(happening, key);
        }
    }

    /// Calls `listener` with what happens to keys, under the lock of their shards. The first listener stays.
    pub fn on_happening(&self, listener: impl Fn(Happening<'_>, &[u8]) + Send + Sync + 'static) {
        // One server has these databases, and it listens once.
        let _ = self.listener.set(Listener(Box::new(listener)));
    }

    /// Takes out entries and fields of shard `shard` that are due at `now`, at most `limit`. Entries are to be dropped without
    /// its lock, so they are returned. A value that a snapshot has to save first, which takes long, stays until that is done.
    pub fn expire_shard(&self, shard: usize, now: u64, limit: usize) -> Expired {
        let mut removed = Vec::new();
        // A key of a hidden slot expires when the source node deletes it.
        let shards = self.made().filter(|shards| shards.earliest(shard) <= now && !self.hidden.has(shard));
        // A long holder of this lock is a slow call, and no worker waits for one.
        let Some(mut guard) = shards.and_then(|shards| shards.try_exclusive(shard)) else {
            return Expired { entries: removed, is_done: true };
        };
        let mut waiting = Vec::new();
        // Stale records are dropped on the way; they cost time too, though less.
        for _ in 0..limit.saturating_mul(2) {
            let Some((deadline, hash)) = self.deadlines(shard).pop_due(now) else { break };
            let due = |entry: &Entry| entry.expire_at() == Some(deadline);
            if self.loans.has(hash) || self.is_awaited(&guard.table, hash, due) {
                waiting.push((deadline, hash));
                continue;
            }
            let Some(entry) = table::take(&mut guard.table, hash, due, self.rehash()) else { continue };
            self.save_first(&entry);
            self.has_expired(&Key::new(entry.key(), hash, shard as u32));
            removed.push(entry);
            if removed.len() == limit {
                break;
            }
        }
        if !waiting.is_empty() {
            self.deadlines(shard).put_back(waiting);
        }
        let most = limit - removed.len();
        let is_done = self.expire_fields((shard, &mut *guard.table), now, most, &mut removed);
        Expired { entries: removed, is_done }
    }

    /// Removes the entry of a key if its time is over, unless somebody holds the shard's lock.
    pub fn expire_key(&self, key: &Key<'_>, now: u64) {
        self.expire_found(key.shard(), key.hash(), now);
    }

    /// Removes an entry that a reader found expired, unless somebody holds the shard's lock: the periodic removal
    /// gets it then.
    #[cold]
    pub(super) fn expire_found(&self, shard: u32, hash: u64, now: u64) {
        let Some(mut exclusive) = self.made_or_make().try_exclusive(shard as usize) else { return };
        if self.loans.has(hash) {
            return;
        }
        let due = |entry: &Entry| entry.is_expired(now) && !self.saves_vast_first(entry);
        let removed = table::take(&mut exclusive.table, hash, due, self.rehash());
        if let Some(entry) = removed {
            self.save_first(&entry);
            self.has_expired(&Key::new(entry.key(), hash, shard));
            self.discard(entry);
        }
        drop(exclusive);
    }

    /// Mean time that expiring keys have left at `now`, in milliseconds, estimated from a sample; 0 if there is none.
    pub fn average_ttl(&self, now: u64) -> u64 {
        let (mut sum, mut count) = (0u64, 0);
        if let Some(shards) = self.made() {
            for shard in shards.with_deadlines().take(TTL_SHARDS) {
                for deadline in shards.deadlines(shard).sample(TTL_SAMPLE) {
                    sum = sum.saturating_add(deadline.saturating_sub(now));
                    count += 1;
                }
            }
        }
        sum.checked_div(count).unwrap_or(0)
    }

    /// Exchanges the entries of two databases, shard by shard; both views must hold every lock exclusively.
    pub fn swap(a: &mut View<'_>, b: &mut View<'_>) {
        a.swap_all(b);
    }

    pub(super) fn swap_expiry(&self, other: &Self) {
        self.note_deadline();
        other.note_deadline();
        let (ours, theirs) = (self.made_or_make(), other.made_or_make());
        let either = |&shard: &usize| ours.earliest(shard).min(theirs.earliest(shard)) != u64::MAX;
        for shard in (0..self.shards()).filter(either) {
            std::mem::swap(&mut *ours.deadlines(shard), &mut *theirs.deadlines(shard));
        }
        self.swap_fields(other);
    }

    pub(super) fn rehash<'a>(&'a self) -> impl Fn(&table::Slot) -> u64 + 'a {
        |(entry, _)| self.hash(entry.key())
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("keys", &self.len()).finish_non_exhaustive()
    }
}

/// A table that DashMap accepts needs keys that hash and compare; ours are always looked up by the raw interface.
impl std::hash::Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.key());
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

const _: () = assert!(size_of::<table::Slot>() == 8);
const _: fn(&Table) = |_| ();

//! The parts of a database, each with its own lock: a table, and what hangs on its keys.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard};

use dashmap::{DashMap, RwLockReadGuard, RwLockWriteGuard};
use foldhash::quality::RandomState;

use super::entry::Entry;
use super::expire::ExpiryIndex;
use super::held::{Held, assert_may_wait};
use super::interest::Interest;
use super::key::Access;
use super::queue::{Line, Queue};
use super::table::Table;

/// The shards of a database. Their tables are DashMap's, reached by position.
pub(super) struct Shards {
    map: DashMap<Entry, (), RandomState>,
    sides: Box<[Side]>,
    /// The number of entries of each shard, close together, so that counting or searching keys needs no locks. Each is told when an
    /// exclusive lock is released.
    lens: Box<[AtomicU32]>,
    /// Writers that wait for each shard.
    queues: Box<[Queue]>,
    line: Line,
}

/// The data that belongs to the keys of one shard, besides its table.
struct Side {
    /// Touched only under the shard's lock. Most shards of most databases have none.
    expiry: Mutex<Option<Box<ExpiryIndex>>>,
    /// Its earliest deadline, perhaps of a stale record; `u64::MAX` if there is none.
    earliest: AtomicU64,
    interest: Interest,
}

// Each database that is used has thousands.
const _: () = assert!(size_of::<Side>() == 48);

impl Shards {
    /// `count` is a power of two, and at least two, as DashMap has it.
    pub(super) fn new(count: usize, hasher: RandomState) -> Self {
        let side =
            |_| Side { expiry: Mutex::default(), earliest: AtomicU64::new(u64::MAX), interest: Interest::default() };
        Self {
            map: DashMap::with_capacity_and_hasher_and_shard_amount(0, hasher, count),
            sides: (0..count).map(side).collect(),
            lens: (0..count).map(|_| AtomicU32::new(0)).collect(),
            queues: (0..count).map(|_| Queue::default()).collect(),
            line: Line::default(),
        }
    }

    /// Locks one shard.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "measured: every GET or SET passes here")]
    pub(super) fn guard(&self, shard: usize, access: Access) -> Guard<'_> {
        assert_may_wait(self, shard);
        let lock = &self.map.shards()[shard];
        match access {
            Access::Read => {
                if self.line.has_writers() {
                    self.let_pass(shard);
                }
                self.shared(shard, lock.read())
            }
            Access::Write => {
                let table = lock.try_write().unwrap_or_else(|| self.wait_to_write(shard));
                Guard::Exclusive(self.exclusive(shard, table))
            }
        }
    }

    #[cold]
    fn let_pass(&self, shard: usize) {
        self.queues[shard].let_pass(&self.line);
    }

    #[cold]
    fn wait_to_write(&self, shard: usize) -> RwLockWriteGuard<'_, Table> {
        self.queues[shard].write(&self.line, || self.map.shards()[shard].write())
    }

    #[inline]
    fn shared<'a>(&self, shard: usize, table: RwLockReadGuard<'a, Table>) -> Guard<'a> {
        Guard::Shared(Shared { table, _held: Held::new(self, shard) })
    }

    #[inline]
    fn exclusive<'a>(&'a self, shard: usize, table: RwLockWriteGuard<'a, Table>) -> Exclusive<'a> {
        Exclusive { table, len: &self.lens[shard], _held: Held::new(self, shard) }
    }

    /// Locks one shard exclusively, unless somebody holds its lock.
    pub(super) fn try_exclusive(&self, shard: usize) -> Option<Exclusive<'_>> {
        let table = self.map.shards()[shard].try_write()?;
        Some(self.exclusive(shard, table))
    }

    /// Locks one shard, unless that has to be waited for.
    pub(super) fn try_guard(&self, shard: usize, access: Access) -> Option<Guard<'_>> {
        match access {
            Access::Read if self.line.has_writers() && !self.queues[shard].is_empty() => None,
            Access::Read => self.map.shards()[shard].try_read().map(|table| self.shared(shard, table)),
            Access::Write => self.try_exclusive(shard).map(Guard::Exclusive),
        }
    }

    /// Number of entries in each shard, when it was last changed.
    pub(super) fn lens(&self) -> impl Iterator<Item = usize> {
        self.lens.iter().map(|len| len.load(Relaxed) as usize)
    }

    /// Number of entries in one shard, when it was last changed.
    #[inline]
    pub(super) fn len_of(&self, shard: usize) -> usize {
        self.lens[shard].load(Relaxed) as usize
    }

    /// Which entries of a shard expire.
    pub(super) fn deadlines(&self, shard: usize) -> Deadlines<'_> {
        let side = &self.sides[shard];
        let index = side.expiry.lock().expect("no code that holds an expiry index panics");
        Deadlines { index, earliest: &side.earliest }
    }

    /// The earliest deadline of a shard's entries, perhaps of a stale record; `u64::MAX` if there is none.
    pub(super) fn earliest(&self, shard: usize) -> u64 {
        self.sides[shard].earliest.load(Relaxed)
    }

    /// The shards of which some entry expires.
    pub(super) fn with_deadlines(&self) -> impl Iterator<Item = usize> {
        (0..self.sides.len()).filter(|&shard| self.earliest(shard) != u64::MAX)
    }

    /// The watchers and waiters for keys of a shard.
    #[inline]
    pub(super) fn interest(&self, shard: usize) -> &Interest {
        &self.sides[shard].interest
    }
}

/// One locked shard.
pub(super) enum Guard<'a> {
    Shared(Shared<'a>),
    Exclusive(Exclusive<'a>),
}

/// A shard that others may read meanwhile.
pub(super) struct Shared<'a> {
    table: RwLockReadGuard<'a, Table>,
    _held: Held,
}

/// A shard locked exclusively.
pub(super) struct Exclusive<'a> {
    pub(super) table: RwLockWriteGuard<'a, Table>,
    len: &'a AtomicU32,
    _held: Held,
}

impl Drop for Exclusive<'_> {
    #[inline]
    fn drop(&mut self) {
        // In unit tests a failed assertion unwinds, whatever it has locked.
        if cfg!(not(test)) && std::thread::panicking() {
            end_process();
        }
        let len = self.table.len() as u32;
        // Most changes do not change the number: the line stays clean.
        if self.len.load(Relaxed) != len {
            self.len.store(len, Relaxed);
        }
    }
}

/// Ends the process before a shard is unlocked that a panic has left half changed.
#[cold]
pub(super) fn end_process() -> ! {
    tracing::error!("a panic while keys were locked for writing: the process ends");
    std::process::abort()
}

impl Guard<'_> {
    #[inline]
    pub(super) fn table(&self) -> &Table {
        match self {
            Self::Shared(shared) => &shared.table,
            Self::Exclusive(exclusive) => &exclusive.table,
        }
    }

    #[inline]
    pub(super) fn table_mut(&mut self) -> &mut Table {
        match self {
            Self::Exclusive(exclusive) => &mut exclusive.table,
            Self::Shared(_) => unreachable!("a command that writes declares its keys for writing"),
        }
    }
}

/// The locked expiry index of a shard.
pub(super) struct Deadlines<'a> {
    index: MutexGuard<'a, Option<Box<ExpiryIndex>>>,
    earliest: &'a AtomicU64,
}

impl Deref for Deadlines<'_> {
    type Target = ExpiryIndex;

    fn deref(&self) -> &ExpiryIndex {
        static NONE: ExpiryIndex = ExpiryIndex::new();
        self.index.as_deref().unwrap_or(&NONE)
    }
}

impl Deadlines<'_> {
    /// Nothing of the shard expires any more.
    pub(super) fn clear(&mut self) {
        *self.index = None;
    }
}

impl DerefMut for Deadlines<'_> {
    fn deref_mut(&mut self) -> &mut ExpiryIndex {
        self.index.get_or_insert_default()
    }
}

impl Drop for Deadlines<'_> {
    fn drop(&mut self) {
        self.earliest.store((**self).earliest().unwrap_or(u64::MAX), Relaxed);
    }
}

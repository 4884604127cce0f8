//! The parts of a database beside its shards.

use std::collections::HashMap;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use crossbeam_utils::CachePadded;
use foldhash::fast::RandomState;

use super::entry::Entry;
use super::key::Access;
use super::reaper::Removed;
use crate::cluster::SLOTS;

/// Parts with a lock each, so that writers seldom wait for each other.
pub(super) const PARTS: usize = 16;

/// Keys, each with the number of its last change.
pub(super) type Names = HashMap<Box<[u8]>, u64, RandomState>;

/// The names of changed keys of a database.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) is_on: AtomicBool,
    /// All keys may have changed.
    pub(super) all: AtomicBool,
    /// Each writer locks one of them, so they have cache lines of their own, as has the count.
    pub(super) parts: [CachePadded<Mutex<Names>>; PARTS],
    /// Changes that were noted.
    pub(super) count: CachePadded<AtomicU64>,
}

impl Changes {
    pub(super) fn part(&self, at: usize) -> MutexGuard<'_, Names> {
        self.parts[at % PARTS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    pub(super) fn add(&self, key: &[u8]) {
        // The first and last bytes differ most between keys of one kind.
        let hash = key.iter().rev().take(4).fold(key.len(), |hash, byte| hash.wrapping_mul(31) + usize::from(*byte));
        let number = self.count.fetch_add(1, Relaxed);
        let mut names = self.part(hash);
        match names.get_mut(key) {
            Some(known) => *known = number,
            None => _ = names.insert(key.into(), number),
        }
    }
}

/// Saves entries before they change. It is called under the exclusive lock of their shard.
pub trait Saver: Send + Sync {
    /// An entry of what was database `db` at the cut is about to change.
    fn save(&self, db: usize, entry: &Entry);

    /// Database `db`, by its number at the cut, is emptied. The receiver must save [`Removed::unsaved`].
    fn save_removed(&self, db: usize, entries: Vec<Removed>);
}

/// The state that the databases of one server share.
#[derive(Default)]
pub struct Cut {
    pub(super) saver: RwLock<Option<Arc<dyn Saver>>>,
    /// Whether there is a saver.
    pub(super) is_saving: AtomicBool,
    /// How often two databases were exchanged.
    pub(super) swaps: AtomicU64,
    /// Unsaved entries that slow calls have borrowed to change them.
    pub(super) lent: AtomicUsize,
}

/// The state of the cut in one database.
#[derive(Default)]
pub(super) struct Side {
    pub(super) cut: Arc<Cut>,
    /// [`EPOCH`](super::entry::EPOCH) or 0.
    pub(super) epoch: AtomicU32,
    /// The number that the entries' database had at the cut.
    pub(super) number: AtomicUsize,
}

impl Cut {
    #[cold]
    pub(super) fn with_saver(&self, work: impl FnOnce(&dyn Saver)) {
        if let Some(saver) = &*self.saver.read().unwrap_or_else(PoisonError::into_inner) {
            work(&**saver);
        }
    }
}

impl Side {
    pub(super) fn new(cut: Arc<Cut>) -> Self {
        Self { cut, ..Self::default() }
    }

    /// That of a database whose entries are to take the place of this one's, before the next cut.
    pub(super) fn sibling(&self) -> Self {
        Self {
            cut: Arc::clone(&self.cut),
            epoch: AtomicU32::new(self.epoch()),
            number: AtomicUsize::new(self.number.load(SeqCst)),
        }
    }

    /// The epoch bit that marks entries as saved.
    #[inline]
    pub(super) fn epoch(&self) -> u32 {
        self.epoch.load(Relaxed)
    }

    /// The entries were exchanged with another database's.
    pub(super) fn swap(&self, other: &Self) {
        let number = self.number.load(SeqCst);
        self.number.store(other.number.swap(number, SeqCst), SeqCst);
        self.cut.swaps.fetch_add(1, SeqCst);
    }
}

/// A bit for each slot, once there was one.
#[derive(Debug, Default)]
pub(super) struct Hidden(OnceLock<Box<[AtomicU64]>>);

impl Hidden {
    /// Whether a shard is hidden, which is a slot then.
    #[inline]
    pub(super) fn has(&self, shard: usize) -> bool {
        self.0.get().is_some_and(|words| words[shard / 64].load(Relaxed) >> (shard % 64) & 1 != 0)
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        self.0.get_or_init(|| (0..SLOTS / 64).map(|_| AtomicU64::new(0)).collect())
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = usize> {
        let words = self.0.get().into_iter().flat_map(|words| words.iter().enumerate());
        words.filter(|(_, word)| word.load(Relaxed) != 0).flat_map(|(at, _)| at * 64..at * 64 + 64)
    }
}

/// Hashes of keys, in ascending order, each once, and whether what they hold may be changed.
pub(super) type Hashes = Arc<[(u64, Access)]>;

pub(super) fn access(hashes: &Hashes, hash: u64) -> Option<Access> {
    hashes.binary_search_by_key(&hash, |(hash, _)| *hash).ok().map(|at| hashes[at].1)
}

/// The current loans of a database.
#[derive(Debug, Default)]
pub(super) struct Loans {
    /// Number of loans: most of the time there is none.
    pub(super) count: AtomicUsize,
    pub(super) hashes: Mutex<Vec<Hashes>>,
}

impl Loans {
    pub(super) fn list(&self) -> MutexGuard<'_, Vec<Hashes>> {
        self.hashes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the entry of a key with this hash is lent; exact under its shard's exclusive lock.
    #[inline]
    pub(super) fn has(&self, hash: u64) -> bool {
        self.count.load(Relaxed) != 0 && self.list().iter().any(|hashes| access(hashes, hash).is_some())
    }

    /// [`Loans::has`], for this use.
    pub(super) fn has_for(&self, hash: u64, wanted: Access) -> bool {
        self.list().iter().any(|hashes| access(hashes, hash) == Some(wanted))
    }

    /// Whether anything is lent.
    pub(super) fn has_any(&self) -> bool {
        self.count.load(Relaxed) != 0
    }

    /// To be called before any of the shards is locked to lend from it: so whoever locks it later knows.
    pub(super) fn add(&self, hashes: &Hashes) {
        self.list().push(Arc::clone(hashes));
        self.count.fetch_add(1, Relaxed);
    }

    /// To be called when all is given back.
    pub(super) fn remove(&self, hashes: &Hashes) {
        self.list().retain(|other| !Arc::ptr_eq(other, hashes));
        self.count.fetch_sub(1, Relaxed);
    }
}

/// The expired entries and fields that were removed from a shard.
pub struct Expired {
    /// Entries, to be dropped without the shard's lock.
    pub entries: Vec<Entry>,
    /// Whether nothing else is due, or somebody holds the shard's lock.
    pub is_done: bool,
}

//! Watchers and waiters of the keys of a shard: transactions (`WATCH`), and blocking commands such as BLPOP.
//!
//! Both are entered under the exclusive lock of the key's shard, so whoever holds that lock sees all of them. A writer first reads a
//! counter of the database, which is 0 while no key is watched or waited for. Then it reads a counter of its shard. It takes a mutex only
//! if a neighbour of its key is watched or waited for. Leaving needs no shard's lock.
//!
//! A blocking command that finds nothing is parked in the queue of each of its keys. A write that makes such a key ready runs the parked
//! commands again, first come, first served.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use hashbrown::HashTable;

use super::key::Key;

/// A transaction's mark: set when one of its watched keys has been touched.
#[derive(Clone, Debug, Default)]
pub struct Watched(pub(super) Arc<AtomicBool>);

impl Watched {
    /// Whether a watched key was touched.
    pub fn is_touched(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Clears the mark, when no key is watched.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Release);
    }

    /// Marks the transaction as touched.
    pub fn touch(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A parked command.
pub trait Waiter: Any + Send + Sync {
    /// A key that it waits for was removed because its time was over or memory was short; the key's shard is locked.
    fn gone(&self, key: &[u8]);
    /// Whether it waits no longer when the key is gone.
    fn goes_with_key(&self) -> bool;
}

/// A transaction that watches a key.
pub(super) struct Watcher {
    pub(super) mark: Watched,
    /// Whether the key's time was over when it was first watched, so that its removal is no change.
    pub(super) was_over: bool,
}

/// A key of interest.
pub(super) struct Followed {
    pub(super) key: Box<[u8]>,
    pub(super) hash: u64,
    pub(super) watchers: Vec<Watcher>,
    /// By ticket, so that any of them leaves quickly.
    pub(super) waiters: BTreeMap<u64, Arc<dyn Waiter>>,
}

impl Followed {
    pub(super) fn is_of_interest(&self) -> bool {
        !self.watchers.is_empty() || !self.waiters.is_empty()
    }
}

pub(super) type Table = HashTable<Followed>;

/// The keys of one shard that are watched or waited for.
#[derive(Default)]
pub(super) struct Interest {
    /// Number of these keys: writers look here first.
    pub(super) count: AtomicU32,
    pub(super) keys: Mutex<Option<Box<Table>>>,
}

impl Interest {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Option<Box<Table>>> {
        self.keys.lock().expect("no code that holds the keys of interest panics")
    }

    /// Reads what is known of `key`.
    pub(super) fn read<R>(&self, key: &Key<'_>, read: impl FnOnce(&Followed) -> R) -> Option<R> {
        let keys = self.lock();
        keys.as_ref()?.find(key.hash, |followed| *followed.key == *key.bytes).map(read)
    }

    /// Changes what is known of `key`, which is forgotten when it is of no interest any more; how many keys there are more.
    pub(super) fn change(&self, key: &Key<'_>, change: impl FnOnce(&mut Followed)) -> isize {
        let mut keys = self.lock();
        let table = keys.get_or_insert_default();
        let before = table.len();
        let mut entry =
            table.entry(key.hash, |followed| *followed.key == *key.bytes, |followed| followed.hash).or_insert_with(
                || Followed { key: key.bytes.into(), hash: key.hash, watchers: Vec::new(), waiters: BTreeMap::new() },
            );
        change(entry.get_mut());
        if !entry.get().is_of_interest() {
            entry.remove();
        }
        let after = table.len();
        if after == 0 {
            *keys = None;
        }
        self.count.store(after as u32, Ordering::Relaxed);
        after as isize - before as isize
    }
}

/// The keys of interest in all shards of a database.
#[derive(Debug, Default)]
pub(super) struct Interests {
    /// Number of keys of interest, and of clients that track what they read: writers look here first.
    pub(super) count: AtomicUsize,
    pub(super) trackers: AtomicUsize,
    /// Places in queues that were given out.
    pub(super) tickets: AtomicU64,
}

impl Interests {
    pub(super) fn add(&self, more: isize) {
        // Wraps to a subtraction.
        self.count.fetch_add(more as usize, Ordering::Relaxed);
    }
}

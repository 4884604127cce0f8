//! Which clients have read which key.

use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

use foldhash::quality::RandomState;
use indexmap::IndexMap;
use smallvec::SmallVec;

/// Parts of the table, each with its own lock, so that different keys rarely meet.
const SHARDS: usize = 64;
/// Counters of tracked keys by their hash: a change of a key whose counter is 0 needs no lock.
const COUNTERS: usize = 4096;
/// From so many readers of one key on, those that have left are looked for when their number has doubled.
const PRUNE_MIN: usize = 64;

/// Numbers of the clients that have read a key.
pub(super) type Readers = SmallVec<[u64; 2]>;

/// An index map, because keys are given up at random.
type Shard = IndexMap<Box<[u8]>, Readers, RandomState>;

/// Keys, whatever their database, and their readers. A client that leaves stays listed until the key goes.
#[derive(Debug)]
pub(super) struct Table {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    /// Raised under the lock of a read and looked at under that of a write, so what was read before a change counts.
    counters: Box<[AtomicU32]>,
    keys: AtomicUsize,
    items: AtomicUsize,
    /// Counts what was given up: the next shard, and the place in it, follow from it.
    given_up: AtomicU64,
}

impl Default for Table {
    fn default() -> Self {
        let hasher = RandomState::default();
        Self {
            shards: std::array::from_fn(|_| Mutex::new(IndexMap::with_hasher(hasher.clone()))),
            hasher,
            counters: (0..COUNTERS).map(|_| AtomicU32::new(0)).collect(),
            keys: AtomicUsize::new(0),
            items: AtomicUsize::new(0),
            given_up: AtomicU64::new(0),
        }
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().expect("no code that holds tracked keys panics")
}

impl Table {
    /// The part of the table that `key` belongs to, and the counter.
    #[inline]
    fn place(&self, key: &[u8]) -> (&Mutex<Shard>, &AtomicU32) {
        let hash = self.hasher.hash_one(key) as usize;
        (&self.shards[hash % SHARDS], &self.counters[hash / SHARDS % COUNTERS])
    }

    /// Number of keys.
    pub(super) fn keys(&self) -> usize {
        self.keys.load(Relaxed)
    }

    /// Number of pairs of key and reader.
    pub(super) fn items(&self) -> usize {
        self.items.load(Relaxed)
    }

    /// A client has read a key; `is_here` tells of a number whether its client still tracks.
    pub(super) fn add(&self, key: &[u8], reader: u64, is_here: impl Fn(u64) -> bool) {
        let (shard, counter) = self.place(key);
        let mut shard = lock(shard);
        let Some(readers) = shard.get_mut(key) else {
            shard.insert(key.into(), SmallVec::from_elem(reader, 1));
            counter.fetch_add(1, Relaxed);
            self.keys.fetch_add(1, Relaxed);
            self.items.fetch_add(1, Relaxed);
            return;
        };
        if readers.contains(&reader) {
            return;
        }
        let before = readers.len();
        if before >= PRUNE_MIN && before.is_power_of_two() {
            readers.retain(|reader| is_here(*reader));
        }
        readers.push(reader);
        let after = readers.len();
        // Wraps to a subtraction when more have gone than come.
        self.items.fetch_add(after.wrapping_sub(before), Relaxed);
    }

    /// Forgets a key.
    pub(super) fn take(&self, key: &[u8]) -> Option<Readers> {
        let (shard, counter) = self.place(key);
        if counter.load(Relaxed) == 0 {
            return None;
        }
        let readers = lock(shard).swap_remove(key)?;
        self.count_gone(key, &readers);
        Some(readers)
    }

    /// Forgets some key; none if the table is empty.
    pub(super) fn take_any(&self) -> Option<(Box<[u8]>, Readers)> {
        let random = self.hasher.hash_one(self.given_up.fetch_add(1, Relaxed)) as usize;
        let taken = (0..SHARDS).find_map(|step| {
            let mut shard = lock(&self.shards[(random + step) % SHARDS]);
            let at = (random / SHARDS).checked_rem(shard.len())?;
            shard.swap_remove_index(at)
        });
        if let Some((key, readers)) = &taken {
            self.count_gone(key, readers);
        }
        taken
    }

    /// Forgets all keys.
    pub(super) fn clear(&self) {
        for shard in &self.shards {
            let taken = std::mem::replace(&mut *lock(shard), IndexMap::with_hasher(self.hasher.clone()));
            taken.iter().for_each(|(key, readers)| self.count_gone(key, readers));
        }
    }

    fn count_gone(&self, key: &[u8], readers: &Readers) {
        self.place(key).1.fetch_sub(1, Relaxed);
        self.keys.fetch_sub(1, Relaxed);
        self.items.fetch_sub(readers.len(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_readers_are_counted() {
        let table = Table::default();
        let add = |key: &str, reader| table.add(key.as_bytes(), reader, |_| true);
        add("a", 1);
        add("a", 1);
        add("a", 2);
        add("b", 1);
        assert_eq!((table.keys(), table.items()), (2, 3));
        assert_eq!(table.take(b"a").unwrap().as_slice(), [1, 2]);
        assert_eq!(table.take(b"a"), None);
        assert_eq!((table.keys(), table.items()), (1, 1));
        assert_eq!(table.take_any().unwrap().0.as_ref(), b"b");
        assert_eq!(table.take_any(), None);
        (0..1000).for_each(|number| add(&format!("key:{number}"), number));
        assert_eq!((table.keys(), table.items()), (1000, 1000));
        table.clear();
        assert_eq!((table.keys(), table.items()), (0, 0));
    }

    /// A key that nobody has read needs no lock, whoever tracks others.
    #[test]
    fn changes_of_untracked_keys_take_no_lock() {
        let table = Table::default();
        table.add(b"read", 1, |_| true);
        let held: Vec<_> = table.shards.iter().map(lock).collect();
        let unread = (0..1000).map(|i| format!("key:{i}").into_bytes());
        // A lock that is held here would be waited for without an end: only keys with a counter of their own are taken.
        let taken = unread.filter(|key| !std::ptr::eq(table.place(key).1, table.place(b"read").1));
        assert!(taken.map(|key| table.take(&key)).filter(Option::is_none).count() > 900);
        drop(held);
        assert_eq!(table.take(b"read").unwrap().as_slice(), [1]);
        assert!(table.counters.iter().all(|counter| counter.load(Relaxed) == 0));
    }

    #[test]
    fn readers_that_have_left_do_not_pile_up() {
        let table = Table::default();
        for reader in 0..100_000 {
            table.add(b"k", reader, |other| other + 10 > reader);
        }
        assert!(table.items() <= PRUNE_MIN, "{}", table.items());
        assert_eq!(table.items(), lock(table.place(b"k").0)[b"k".as_slice()].len());
    }
}

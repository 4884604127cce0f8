//! A hash table whose elements lie in one dense array: the large form of hashes, sets and sorted sets.
//!
//! The array gives O(1) access to a random element and a scan that survives every change; the index holds only
//! positions (five bytes a slot). Removal moves the last element into the hole.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::small_bytes::SmallBytes;

/// An element of a [`Dense`] table: what it is found by.
pub(super) trait Keyed {
    fn key(&self) -> &SmallBytes;
}

/// Below this capacity nothing is given back: it would only be asked for again.
const SHRINK_FLOOR: usize = 64;

#[derive(Clone)]
pub(super) struct Dense<T> {
    entries: Vec<T>,
    index: HashTable<u32>,
    hasher: RandomState,
}

impl<T: Keyed> Dense<T> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            entries: Vec::with_capacity(capacity),
            index: HashTable::with_capacity(capacity),
            hasher: RandomState::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn entries(&self) -> &[T] {
        &self.entries
    }

    #[inline]
    pub(super) fn entry(&self, id: u32) -> &T {
        &self.entries[id as usize]
    }

    #[inline]
    pub(super) fn entry_mut(&mut self, id: u32) -> &mut T {
        &mut self.entries[id as usize]
    }

    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> Option<u32> {
        self.find_hashed(self.hash(key), key)
    }

    #[inline]
    pub(super) fn get(&self, key: &[u8]) -> Option<&T> {
        self.find(key).map(|id| self.entry(id))
    }

    /// The id of `key`'s element and whether it is new; `make` gives the element where there is none.
    #[inline]
    pub(super) fn find_or_insert_with(&mut self, key: &[u8], make: impl FnOnce() -> T) -> (u32, bool) {
        let hash = self.hash(key);
        match self.find_hashed(hash, key) {
            Some(id) => (id, false),
            None => (self.insert_hashed(hash, make()), true),
        }
    }

    /// Adds an element that is known to be absent.
    pub(super) fn insert_new(&mut self, entry: T) -> u32 {
        let hash = self.hash(entry.key());
        self.insert_hashed(hash, entry)
    }

    /// Removes the element of `key`. Its id now belongs to what was the last element, if there was another.
    pub(super) fn remove(&mut self, key: &[u8]) -> Option<T> {
        let entries = &self.entries;
        let hash = self.hash(key);
        let found = self.index.find_entry(hash, |&id| entries[id as usize].key()[..] == *key).ok()?;
        let (id, _) = found.remove();
        Some(self.take(id))
    }

    /// Removes the element with this id, which must exist.
    pub(super) fn remove_id(&mut self, id: u32) -> T {
        self.unlink(id, |found| {
            found.remove();
        });
        self.take(id)
    }

    /// Visits `count` elements below `cursor` (0 = start) and returns the next cursor, 0 at the end.
    ///
    /// The walk goes down while elements only ever move down (removal) or are added at the end, so an element present
    /// throughout a scan is always visited.
    pub(super) fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(&T)) -> u64 {
        let len = self.entries.len();
        let end = match usize::try_from(cursor) {
            Ok(0) | Err(_) => len,
            Ok(cursor) => cursor.min(len),
        };
        let start = end.saturating_sub(count.max(1));
        self.entries[start..end].iter().rev().for_each(visit);
        start as u64
    }

    /// Heap bytes of the array and the index, without what the elements own.
    pub(super) fn memory(&self) -> usize {
        let slots = (self.index.capacity() * 8 / 7).next_power_of_two();
        self.entries.capacity() * size_of::<T>() + slots * (size_of::<u32>() + 1)
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(key);
        hasher.finish()
    }

    #[inline]
    fn find_hashed(&self, hash: u64, key: &[u8]) -> Option<u32> {
        self.index.find(hash, |&id| self.entries[id as usize].key()[..] == *key).copied()
    }

    #[inline]
    fn insert_hashed(&mut self, hash: u64, entry: T) -> u32 {
        let id = u32::try_from(self.entries.len()).expect("memory ends before four billion elements");
        self.entries.push(entry);
        if self.index.len() == self.index.capacity() {
            // The new element is indexed with the rest.
            self.rebuild_index(self.entries.len() * 3 / 2);
        } else {
            self.index.insert_unique(hash, id, |_| unreachable!("there is room"));
        }
        id
    }

    /// The index is made anew from the array, in the array's order: a table that grows by itself would follow its
    /// ids at random.
    fn rebuild_index(&mut self, capacity: usize) {
        self.index = HashTable::new();
        self.index = HashTable::with_capacity(capacity);
        for id in 0..self.entries.len() {
            let hash = self.hash(self.entries[id].key());
            self.index.insert_unique(hash, id as u32, |_| unreachable!("there is room"));
        }
    }

    /// Calls `change` with the index slot that holds `id`.
    #[inline]
    fn unlink(&mut self, id: u32, change: impl FnOnce(hashbrown::hash_table::OccupiedEntry<'_, u32>)) {
        let hash = self.hash(self.entries[id as usize].key());
        let slot = self.index.find_entry(hash, |&other| other == id);
        change(slot.ok().expect("every element is indexed"));
    }

    /// Takes an element out of the array whose index slot is gone already.
    #[inline]
    fn take(&mut self, id: u32) -> T {
        let last = (self.entries.len() - 1) as u32;
        if id != last {
            self.unlink(last, |mut slot| *slot.get_mut() = id);
        }
        let entry = self.entries.swap_remove(id as usize);
        let len = self.entries.len();
        if self.entries.capacity() > SHRINK_FLOOR && len < self.entries.capacity() / 8 {
            self.entries.shrink_to(len * 2);
            self.rebuild_index(len * 2);
        }
        entry
    }
}

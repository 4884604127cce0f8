//! A hash table whose elements lie in one dense array: the large form of hashes, sets and sorted sets.
//!
//! The array gives O(1) access to a random element; removal moves the last element into the hole. The index holds positions
//! alone, beside a byte of the hash. Both grow and shrink in pieces: no addition or removal does more than a bounded amount of
//! work, however many elements there are.

mod chunks;
mod index;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;

use self::chunks::Chunks;
use self::index::Index;
/// An element of a [`Dense`] table, with its lookup key.
pub(super) trait Keyed {
    type Key: Key + ?Sized;

    fn key(&self) -> &Self::Key;
}

/// The lookup key of an element: equal keys have equal hashes.
pub(super) trait Key: Eq {
    fn write_to(&self, hasher: &mut impl Hasher);
}

impl Key for [u8] {
    #[inline]
    fn write_to(&self, hasher: &mut impl Hasher) {
        hasher.write(self);
    }
}

impl Key for i64 {
    #[inline]
    fn write_to(&self, hasher: &mut impl Hasher) {
        hasher.write_i64(*self);
    }
}

/// Elements of a piece of the array, of 16 to 96 KiB. An addition moves at most so many.
const CHUNK: usize = 2048;

/// Buckets that a scan looks into for each element that it is asked for, as in Redis: few have none.
const SCAN_BUCKETS: usize = 10;

/// Walks all elements, in no order.
pub(super) type DenseIter<'a, T> = chunks::Iter<'a, T, CHUNK>;

#[derive(Clone)]
pub(super) struct Dense<T> {
    entries: Chunks<T, CHUNK>,
    index: Index,
    hasher: RandomState,
}

impl<T: Keyed> Dense<T> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            entries: Chunks::with_capacity(capacity),
            index: Index::with_capacity(capacity),
            hasher: RandomState::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn iter(&self) -> DenseIter<'_, T> {
        self.entries.iter()
    }

    /// The element at a place from 0 to `len() - 1`.
    #[inline]
    pub(super) fn at(&self, place: usize) -> Option<&T> {
        self.entries.get(place)
    }

    #[inline]
    pub(super) fn entry(&self, id: u32) -> &T {
        self.entries.at(id as usize)
    }

    #[inline]
    pub(super) fn entry_mut(&mut self, id: u32) -> &mut T {
        self.entries.at_mut(id as usize)
    }

    #[inline]
    pub(super) fn find(&self, key: &T::Key) -> Option<u32> {
        self.find_hashed(hash(&self.hasher, key), key)
    }

    #[inline]
    pub(super) fn get(&self, key: &T::Key) -> Option<&T> {
        self.find(key).map(|id| self.entry(id))
    }

    /// The id of `key`'s element and whether it is new; `make` gives the element where there is none.
    #[inline]
    pub(super) fn find_or_insert_with(&mut self, key: &T::Key, make: impl FnOnce() -> T) -> (u32, bool) {
        let hash = hash(&self.hasher, key);
        match self.find_hashed(hash, key) {
            Some(id) => (id, false),
            None => (self.insert_hashed(hash, make()), true),
        }
    }

    /// Adds an element that is known to be absent.
    pub(super) fn insert_new(&mut self, entry: T) -> u32 {
        let hash = hash(&self.hasher, entry.key());
        self.insert_hashed(hash, entry)
    }

    /// Removes the element of `key`. Its id now belongs to what was the last element, if there was another.
    pub(super) fn remove(&mut self, key: &T::Key) -> Option<T> {
        let (entries, hasher) = (&self.entries, &self.hasher);
        let id = self.index.remove(hash(hasher, key), |id| entries.at(id as usize).key() == key)?;
        Some(self.take(id))
    }

    /// Removes the element with this id, which must exist.
    pub(super) fn remove_id(&mut self, id: u32) -> T {
        let hash = hash(&self.hasher, self.entry(id).key());
        self.index.remove(hash, |other| other == id);
        self.take(id)
    }

    /// Visits about `count` elements from `cursor` on (0 = start) and returns the next cursor, 0 at the end, or where there is
    /// none such. An element that is there from the first call to the last is visited once, whatever comes and goes meanwhile.
    pub(super) fn scan(&self, cursor: u64, count: usize, visit: &mut dyn FnMut(u32, &T)) -> u64 {
        let (mut cursor, mut visited, count) = (cursor, 0, count.max(1));
        for _ in 0..count.saturating_mul(SCAN_BUCKETS) {
            let hash_of = |id| hash(&self.hasher, self.entry(id).key());
            cursor = self.index.walk(cursor, hash_of, |id| {
                visited += 1;
                visit(id, self.entry(id));
            });
            if cursor == 0 || visited >= count {
                break;
            }
        }
        cursor
    }

    /// Heap bytes of the array and the index, without what the elements own.
    pub(super) fn memory(&self) -> usize {
        self.entries.memory() + self.index.memory()
    }

    #[inline]
    fn find_hashed(&self, hash: u64, key: &T::Key) -> Option<u32> {
        self.index.find(hash, |id| self.entry(id).key() == key)
    }

    #[inline]
    fn insert_hashed(&mut self, hash: u64, entry: T) -> u32 {
        let len = self.entries.len();
        let id = u32::try_from(len).expect("memory ends before four billion elements");
        let (entries, hasher) = (&self.entries, &self.hasher);
        self.index.insert(hash, id, len, |id| self::hash(hasher, entries.at(id as usize).key()));
        self.entries.push(entry);
        id
    }

    /// Takes an element out of the array whose id is out of the index already.
    fn take(&mut self, id: u32) -> T {
        let last = (self.entries.len() - 1) as u32;
        if id != last {
            let hash = hash(&self.hasher, self.entry(last).key());
            self.index.replace(hash, last, id);
        }
        self.index.shrink(last as usize);
        self.entries.swap_remove(id as usize)
    }
}

/// Elements that a table is made for which a smaller form of `len` elements becomes.
pub(super) fn room_to_grow(len: usize) -> usize {
    len + len / 4
}

#[inline]
fn hash(hasher: &RandomState, key: &(impl Key + ?Sized)) -> u64 {
    let mut hasher = hasher.build_hasher();
    key.write_to(&mut hasher);
    hasher.finish()
}

//! Where the elements of a dense table are found by their hashes: linear hashing (Litwin 1980) over buckets of one cache line.
//!
//! With `2^k <= n < 2^(k+1)` buckets, an element is in the bucket that the low `k + 1` bits of its hash name, or, where there
//! is none yet, the low `k`. The table grows by one bucket at a time, whose elements all come out of one other, and shrinks by
//! one: this is all that an addition or a removal ever moves. Since a bucket holds what has the same low bits, going through
//! the buckets in the order of their bits reversed keeps its place whatever the number of buckets becomes.

use smallvec::SmallVec;

use super::chunks::Chunks;

/// Elements of a bucket: with their tags and the link they fill a cache line.
const SLOTS: usize = 11;
/// Elements per bucket, on average, above which there comes one more. A look-up then reads a second line in one of fifteen
/// cases, and the index takes 9 bytes an element; with 7 it would be one in 25, and 10 bytes.
const FULL: usize = 8;
/// Elements per bucket below which there is one less.
const SPARSE: usize = 2;
/// Fewer buckets than these stay: they would only be asked for again.
const SHRINK_FLOOR: usize = 8;
/// Buckets of a piece, 32 KiB.
const CHUNK: usize = 512;
/// Positions of elements in a walk: 32 bits, more than there can be buckets.
const END: u64 = 1 << 32;

#[derive(Clone)]
pub(super) struct Index {
    buckets: Chunks<Bucket, CHUNK>,
    /// The low `k + 1` bits.
    mask: usize,
}

/// Elements with the same low bits of the hash.
#[derive(Clone, Default)]
#[repr(C, align(64))]
struct Bucket {
    ids: [u32; SLOTS],
    /// A byte of each element's hash, 0 where there is no element; the last one counts the elements, which come first.
    tags: [u8; SLOTS + 1],
    /// Further elements, where the bucket is full. Never empty.
    next: Option<Box<Self>>,
}

const _: () = assert!(size_of::<Bucket>() == 64);

impl Index {
    /// Room for `capacity` elements.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let count = capacity.div_ceil(FULL).max(1);
        let mut index = Self { buckets: Chunks::with_capacity(count), mask: 0 };
        (0..count).for_each(|_| index.push(Bucket::default()));
        index
    }

    /// The id with this hash of which `is_it` is true.
    #[inline]
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let tag = tag(hash);
        let mut bucket = self.buckets.at(self.home(hash));
        loop {
            if let Some((_, id)) = bucket.find(tag, &is_it) {
                return Some(id);
            }
            bucket = bucket.next.as_deref()?;
        }
    }

    /// Adds an id. There are `len` others; `hash_of` gives their hashes, of which no more than a bucket's are asked for.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, id: u32, len: usize, hash_of: impl Fn(u32) -> u64) {
        if len >= self.buckets.len() * FULL {
            self.split(hash_of);
        }
        let home = self.home(hash);
        self.buckets.at_mut(home).push(tag(hash), id);
    }

    /// Removes the id with this hash of which `is_it` is true.
    pub(super) fn remove(&mut self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let home = self.home(hash);
        self.buckets.at_mut(home).remove(tag(hash), &is_it)
    }

    /// Puts the id `new` in the place of `old`, which has this hash.
    pub(super) fn replace(&mut self, hash: u64, old: u32, new: u32) {
        let home = self.home(hash);
        let mut bucket = self.buckets.at_mut(home);
        loop {
            if let Some((slot, _)) = bucket.find(tag(hash), |id| id == old) {
                bucket.ids[slot] = new;
                return;
            }
            bucket = bucket.next.as_deref_mut().expect("every element is indexed");
        }
    }

    /// One bucket less, if `len` elements are few for so many.
    #[inline]
    pub(super) fn shrink(&mut self, len: usize) {
        if len < self.buckets.len() * SPARSE && self.buckets.len() > SHRINK_FLOOR {
            self.merge();
        }
    }

    /// Visits the elements whose position is `position` or up to the end of the bucket that it is in, and returns that end;
    /// 0 behind the last one. From 0 on, each element is visited once, whatever is added or removed between the calls.
    ///
    /// A position is the low half of a hash with its bits reversed. Only where `position` is inside of a bucket, which was two
    /// when it was returned, are the hashes asked for.
    pub(super) fn walk(&self, position: u64, hash_of: impl Fn(u32) -> u64, visit: impl FnMut(u32)) -> u64 {
        let Ok(position) = u32::try_from(position) else { return 0 };
        let home = self.home(u64::from(position.reverse_bits()));
        // All positions of a bucket begin with its bits, one more if there is a bucket that differs in the one before them.
        let narrow = self.mask >> 1;
        let is_split = (home & narrow) + narrow + 1 < self.buckets.len();
        let width = END >> (narrow.count_ones() + u32::from(is_split));
        let begin = u64::from(position) & !(width - 1);
        let is_whole = begin == u64::from(position);
        let ids = self.buckets.at(home).links().flat_map(|bucket| &bucket.ids[..bucket.used()]);
        ids.copied().filter(|&id| is_whole || position_of(hash_of(id)) >= position).for_each(visit);
        (begin + width) % END
    }

    /// Heap bytes.
    pub(super) fn memory(&self) -> usize {
        let links: usize = self.buckets.iter().map(|bucket| bucket.links().count() - 1).sum();
        self.buckets.memory() + links * size_of::<Bucket>()
    }

    /// The bucket of a hash.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        let home = hash as usize & self.mask;
        if home < self.buckets.len() { home } else { home & (self.mask >> 1) }
    }

    fn push(&mut self, bucket: Bucket) {
        self.buckets.push(bucket);
        self.mask = usize::MAX >> self.buckets.len().leading_zeros();
    }

    /// The bucket that the elements of the one behind the last come out of.
    fn parent(&self) -> usize {
        let count = self.buckets.len();
        count - (1 << count.ilog2())
    }

    /// Adds a bucket and moves into it what belongs there.
    #[cold]
    fn split(&mut self, hash_of: impl Fn(u32) -> u64) {
        let bit = 1 << self.buckets.len().ilog2();
        let parent = self.parent();
        let mixed = std::mem::take(self.buckets.at_mut(parent));
        // First all hashes, so that the cache misses of the elements overlap: which way they go no processor foresees.
        let elements: SmallVec<[_; 2 * SLOTS]> =
            mixed.elements().map(|(tag, id)| (tag, id, hash_of(id) & bit != 0)).collect();
        let mut parts = [Bucket::default(), Bucket::default()];
        elements.into_iter().for_each(|(tag, id, moves)| parts[usize::from(moves)].push(tag, id));
        let [stay, moved] = parts;
        *self.buckets.at_mut(parent) = stay;
        self.push(moved);
    }

    /// Takes the last bucket away; its elements go where they came from.
    #[cold]
    fn merge(&mut self) {
        let Some(last) = self.buckets.pop() else { return };
        self.mask = usize::MAX >> self.buckets.len().leading_zeros();
        let parent = self.parent();
        let parent = self.buckets.at_mut(parent);
        last.elements().for_each(|(tag, id)| parent.push(tag, id));
    }
}

/// The part of a hash that buckets keep: bits that do not choose the bucket. Neither 0, which says that there is no element,
/// nor 1, which [`equal_bytes`] may take for it.
#[inline]
fn tag(hash: u64) -> u8 {
    ((hash >> 56) as u8).max(2)
}

fn position_of(hash: u64) -> u32 {
    (hash as u32).reverse_bits()
}

impl Bucket {
    #[inline]
    fn used(&self) -> usize {
        usize::from(self.tags[SLOTS])
    }

    /// This bucket and those behind it.
    fn links(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |bucket| bucket.next.as_deref())
    }

    /// Tags and ids, with those behind.
    fn elements(&self) -> impl Iterator<Item = (u8, u32)> {
        self.links().flat_map(|bucket| bucket.tags.into_iter().zip(bucket.ids).take(bucket.used()))
    }

    /// The slot with this tag whose id `is_it`, and the id, in this bucket alone.
    #[inline]
    fn find(&self, tag: u8, is_it: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
        let (low, high) = (self.tags.first_chunk::<8>()?, self.tags.last_chunk::<4>()?);
        let low = equal_bytes(u64::from_le_bytes(*low), tag);
        let high = equal_bytes(u64::from(u32::from_le_bytes(*high)), tag) & 0x80_8080;
        // A bit for each slot: those of the upper ones beside those of the lower eight.
        let mut slots = low >> 7 | high >> 6;
        while slots != 0 {
            let bit = slots.trailing_zeros() as usize;
            let slot = bit / 8 + bit % 2 * 8;
            let id = self.ids[slot];
            if is_it(id) {
                return Some((slot, id));
            }
            slots &= slots - 1;
        }
        None
    }

    #[inline]
    fn push(&mut self, tag: u8, id: u32) {
        match self.used() {
            SLOTS => self.next.get_or_insert_default().push(tag, id),
            used => {
                self.ids[used] = id;
                self.tags[used] = tag;
                self.tags[SLOTS] += 1;
            }
        }
    }

    /// Takes the last element, of those behind if there are any.
    fn pop(&mut self) -> Option<(u8, u32)> {
        if let Some(next) = &mut self.next {
            let popped = next.pop();
            self.next.take_if(|next| next.used() == 0);
            return popped;
        }
        let last = self.used().checked_sub(1)?;
        self.tags[SLOTS] -= 1;
        Some((std::mem::take(&mut self.tags[last]), self.ids[last]))
    }

    fn remove(&mut self, tag: u8, is_it: &impl Fn(u32) -> bool) -> Option<u32> {
        let Some((slot, id)) = self.find(tag, is_it) else {
            let removed = self.next.as_mut()?.remove(tag, is_it);
            self.next.take_if(|next| next.used() == 0);
            return removed;
        };
        // The last element takes its place.
        let (tag, last) = self.pop()?;
        if last != id {
            (self.tags[slot], self.ids[slot]) = (tag, last);
        }
        Some(id)
    }
}

/// The highest bit of each byte that is `byte`; perhaps also of one that differs from it in the lowest bit alone.
#[inline]
fn equal_bytes(word: u64, byte: u8) -> u64 {
    let differing = word ^ u64::from_le_bytes([byte; 8]);
    differing.wrapping_sub(u64::from_le_bytes([1; 8])) & !differing & u64::from_le_bytes([0x80; 8])
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::super::testing::Rng;
    use super::*;

    /// However many elements there are, an addition asks for few hashes, and a removal moves few elements.
    #[test]
    fn an_addition_or_removal_moves_few_elements() {
        /// Three buckets that are full: far more than even hashes ever have in one.
        const BOUND: usize = 3 * SLOTS;
        let mut rng = Rng::new(1);
        let hashes: Vec<u64> = (0..300_000).map(|_| rng.next()).collect();
        let mut index = Index::with_capacity(0);
        let moved = Cell::new(0);
        for (len, &hash) in hashes.iter().enumerate() {
            moved.set(0);
            index.insert(hash, len as u32, len, |id| {
                moved.set(moved.get() + 1);
                hashes[id as usize]
            });
            assert!(moved.get() <= BOUND, "{} of {len}", moved.get());
        }
        for (len, &hash) in hashes.iter().enumerate().rev() {
            let count = index.buckets.len();
            let last = index.buckets.at(count - 1).elements().count();
            assert_eq!(index.remove(hash, |id| id == len as u32), Some(len as u32));
            index.shrink(len);
            assert!(index.buckets.len() >= count - 1 && last <= BOUND, "{last} of {len}");
        }
        assert_eq!(index.buckets.len(), SHRINK_FLOOR);
    }
}

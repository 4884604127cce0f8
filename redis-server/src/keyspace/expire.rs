//! Which entries of a shard expire, in order of time.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Stale records that may stay in the heap, as a multiple of the live ones, before it is rebuilt.
const STALE_FACTOR: usize = 2;
/// Heaps below this size are never rebuilt.
const REBUILD_MIN: usize = 64;

/// Heaps that use less than one place in so many give memory back.
const SPARSE: usize = 8;

/// Random records that are looked at for one that is not stale, before they are gone through: up to two thirds are.
const PICK_TRIES: usize = 16;

/// The expiring entries of one shard: deadline in milliseconds of Unix time, and the hash of the key.
///
/// Records are added whenever an entry gets a deadline and dropped lazily: one whose entry has another deadline by now
/// (or is gone) is stale.
#[derive(Debug, Default)]
pub(super) struct ExpiryIndex {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    /// Entries of the shard that have a deadline.
    live: usize,
    /// Hashes of those that readers have found expired, and told of, before anybody could remove them.
    announced: BTreeSet<u64>,
    /// Entries that hold hashes of which fields expire: most shards have none.
    fields: Option<Box<FieldIndex>>,
}

/// When the first field of a hash expires, and the hash of its key.
///
/// A record is stale unless the hash itself says that it is watched by it.
#[derive(Debug, Default)]
struct FieldIndex {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    /// Records at which stale ones are looked for.
    tidy_at: usize,
}

impl ExpiryIndex {
    /// Of a shard in which nothing expires.
    pub(super) const fn new() -> Self {
        Self { heap: BinaryHeap::new(), live: 0, announced: BTreeSet::new(), fields: None }
    }

    /// Number of entries that expire.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Bytes that the records take.
    pub(super) fn memory(&self) -> usize {
        let fields = self.fields.as_ref().map_or(0, |fields| fields.heap.capacity());
        (self.heap.capacity() + fields) * size_of::<(u64, u64)>()
    }

    /// An entry has got a deadline; `had` tells whether it had one before.
    pub(super) fn add(&mut self, deadline: u64, hash: u64, had: bool) {
        // The clock may have stepped back since.
        self.withdraw(hash);
        self.live += usize::from(!had);
        self.heap.push(Reverse((deadline, hash)));
    }

    /// An entry with a deadline is gone, or has lost it.
    pub(super) fn forget(&mut self) {
        self.live -= 1;
    }

    /// [`ExpiryIndex::forget`], and frees the records when none of them is of use any more: memory is short.
    pub(super) fn forget_evicted(&mut self, hash: u64) {
        self.forget();
        self.withdraw(hash);
        if self.live == 0 {
            *self = Self::default();
        }
    }

    /// A reader has found an entry expired; whether it is the first one.
    pub(super) fn announce(&mut self, hash: u64) -> bool {
        self.announced.insert(hash)
    }

    /// An entry that had expired is removed; whether a reader has told of it.
    pub(super) fn withdraw(&mut self, hash: u64) -> bool {
        self.announced.remove(&hash)
    }

    /// Takes the earliest record that is due at `now`.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<(u64, u64)> {
        let Reverse(first) = *self.heap.peek()?;
        if first.0 > now {
            return None;
        }
        self.heap.pop();
        if self.heap.capacity() > REBUILD_MIN && self.heap.len() < self.heap.capacity() / SPARSE {
            self.heap.shrink_to(2 * self.heap.len());
        }
        Some(first)
    }

    /// Puts records back that were taken and are not to be looked at yet.
    pub(super) fn put_back(&mut self, records: Vec<(u64, u64)>) {
        self.heap.extend(records.into_iter().map(Reverse));
    }

    /// The earliest deadline, of an entry or a field, perhaps of a stale record.
    pub(super) fn earliest(&self) -> Option<u64> {
        let of_fields = self.fields.as_ref().and_then(|fields| fields.heap.peek());
        [self.heap.peek(), of_fields].into_iter().flatten().map(|Reverse((deadline, _))| *deadline).min()
    }

    /// The first field of an entry's hash expires at `deadline`. Returns whether there are so many records that stale ones
    /// should be looked for.
    pub(super) fn add_fields(&mut self, deadline: u64, hash: u64) -> bool {
        let fields = self.fields.get_or_insert_default();
        fields.heap.push(Reverse((deadline, hash)));
        fields.heap.len() > fields.tidy_at.max(REBUILD_MIN)
    }

    /// Takes the earliest record of fields that is due at `now`.
    pub(super) fn pop_due_fields(&mut self, now: u64) -> Option<(u64, u64)> {
        let fields = self.fields.as_mut()?;
        let Reverse(first) = *fields.heap.peek()?;
        if first.0 > now {
            return None;
        }
        fields.heap.pop();
        if fields.heap.is_empty() {
            self.fields = None;
        }
        Some(first)
    }

    /// Drops stale records of fields; `is_live` looks an entry up by deadline and hash.
    pub(super) fn tidy_fields(&mut self, is_live: impl Fn(u64, u64) -> bool) {
        let Some(fields) = &mut self.fields else { return };
        fields.heap.retain(|Reverse((deadline, hash))| is_live(*deadline, *hash));
        fields.heap.shrink_to(2 * fields.heap.len());
        fields.tidy_at = 2 * fields.heap.len();
    }

    /// Deadlines of about `count` records, spread evenly over the heap.
    pub(super) fn sample(&self, count: usize) -> impl Iterator<Item = u64> {
        self.heap.iter().step_by(self.heap.len().div_ceil(count).max(1)).map(|Reverse((deadline, _))| *deadline)
    }

    /// Offers random records, deadline and hash, until one is taken; whether one was.
    pub(super) fn pick(&self, random: &mut dyn FnMut() -> u64, mut take: impl FnMut(u64, u64) -> bool) -> bool {
        let records = self.heap.as_slice();
        if records.is_empty() || self.live == 0 {
            return false;
        }
        let mut offer = |Reverse((deadline, hash)): &Reverse<(u64, u64)>| take(*deadline, *hash);
        // The walk would favour those that stand behind many stale ones.
        if (0..PICK_TRIES).any(|_| offer(&records[random() as usize % records.len()])) {
            return true;
        }
        let (head, tail) = records.split_at(random() as usize % records.len());
        tail.iter().chain(head).any(offer)
    }

    /// Drops stale records when they outweigh the live ones; `is_live` looks an entry up by deadline and hash.
    pub(super) fn tidy(&mut self, is_live: impl Fn(u64, u64) -> bool) {
        if self.heap.len() < REBUILD_MIN + STALE_FACTOR * self.live {
            return;
        }
        let mut records = std::mem::take(&mut self.heap).into_vec();
        records.sort_unstable();
        records.dedup();
        records.retain(|Reverse((deadline, hash))| is_live(*deadline, *hash));
        records.shrink_to(2 * records.len());
        self.heap = records.into();
    }
}

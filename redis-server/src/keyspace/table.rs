//! Operations on a shard's hash table that its own interface lacks: prefetching, cursors, random entries.
//!
//! The table is DashMap's, a hashbrown `RawTable`: one control byte per bucket (empty, deleted, or seven bits of the
//! hash), probed in groups from the bucket that the low bits of the hash name, the entry's *home*.
#![allow(
    unsafe_code,
    reason = "control bytes and buckets are read by position; measured: prefetching halves GET on 1 M keys"
)]

use dashmap::SharedValue;
use hashbrown::raw::{Bucket, RawTable};

use super::entry::Entry;
use super::key::Key;

/// One bucket: the entry, and DashMap's (empty) value.
pub(super) type Slot = (Entry, SharedValue<()>);
/// The hash table of one shard.
pub(super) type Table = RawTable<Slot>;

/// Bytes of one bucket: the pointer to the entry and the control byte.
pub const BUCKET: usize = size_of::<Slot>() + 1;
/// Control bytes that one probe step looks at: hashbrown's group width.
const GROUP: usize = if cfg!(all(target_arch = "x86_64", target_feature = "sse2")) { 16 } else { 8 };
const EMPTY: u8 = 0xff;
/// Tables below this many buckets are walked whole for every block: probe sequences would wrap around in them.
const SMALL: usize = 8 * GROUP;

/// Tables of which less than one bucket in so many is used are made smaller.
const SPARSE: usize = 8;
/// Tables of so few buckets stay as they are: they take two cache lines, and would be asked for again.
const SHRINK_MIN: usize = 8;
/// Random buckets that are looked at before the next used one is taken: in a table that is one eighth full, all miss
/// once in 5000 times.
const RANDOM_TRIES: usize = 64;

/// The seven bits of the hash that hashbrown keeps in the control byte.
fn tag(hash: u64) -> u8 {
    (hash >> 57) as u8
}

/// Pointer to the control byte of bucket `index`; the table has `buckets + GROUP` of them.
fn control(table: &Table, index: usize) -> *const u8 {
    // SAFETY: callers mask `index` to the bucket count; the control bytes begin where the data ends.
    unsafe { table.data_end().as_ptr().cast::<u8>().add(index) }
}

fn mask(table: &Table) -> usize {
    table.buckets() - 1
}

#[inline]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint; it does not access memory, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Asks for the control bytes that a lookup of `hash` reads first.
#[inline]
pub(super) fn prefetch_control(table: &Table, hash: u64) {
    prefetch(control(table, hash as usize & mask(table)));
}

/// The first bucket that may hold `hash`, by the control bytes alone, and asks for it.
#[inline]
pub(super) fn prefetch_bucket(table: &Table, hash: u64) -> Option<usize> {
    let home = hash as usize & mask(table);
    let tag = tag(hash);
    // SAFETY: GROUP bytes from any home are readable: the table mirrors its first group behind the last bucket.
    let group = unsafe { control(table, home).cast::<[u8; GROUP]>().read_unaligned() };
    let offset = position(group, tag)?;
    let index = (home + offset) & mask(table);
    // SAFETY: `index` is masked to the bucket count. The address is only prefetched.
    prefetch(unsafe { table.bucket(index) }.as_ptr().cast());
    Some(index)
}

/// Where `tag` first stands in a group of control bytes.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline]
fn position(group: [u8; GROUP], tag: u8) -> Option<usize> {
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8};
    // SAFETY: the target has SSE2, and the group is 16 bytes, which need not be aligned.
    let equal = unsafe {
        let group = _mm_loadu_si128(group.as_ptr().cast::<__m128i>());
        _mm_movemask_epi8(_mm_cmpeq_epi8(group, _mm_set1_epi8(tag.cast_signed())))
    };
    (equal != 0).then_some(equal.trailing_zeros() as usize)
}

/// Where `tag` first stands in a group of control bytes.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[inline]
fn position(group: [u8; GROUP], tag: u8) -> Option<usize> {
    group.iter().position(|&byte| byte == tag)
}

/// Asks for the entry in bucket `index`, which [`prefetch_bucket`] returned under the same lock.
#[inline]
pub(super) fn prefetch_entry(table: &Table, index: usize) {
    // SAFETY: the bucket's control byte held a tag, so it is full, and the caller's lock has kept it so.
    let entry = unsafe { &table.bucket(index).as_ref().0 };
    prefetch(entry.address());
    prefetch(entry.address().wrapping_add(64));
}

/// The entry of `key`, if it is in bucket `index` still, which [`prefetch_bucket`] returned some time ago.
#[inline]
pub(super) fn entry_at<'t>(table: &'t Table, index: usize, key: &[u8]) -> Option<&'t Entry> {
    // SAFETY: the index is below the bucket count, and the bucket is read only when it is full.
    let entry =
        unsafe { (index < table.buckets() && table.is_bucket_full(index)).then(|| &table.bucket(index).as_ref().0) };
    entry.filter(|entry| entry.key() == key)
}

/// Adds an entry whose key is not there.
#[inline]
pub(super) fn insert(table: &mut Table, hash: u64, entry: Entry, rehash: impl Fn(&Slot) -> u64) -> &mut Entry {
    if table.len() == table.capacity() {
        grow(table);
    }
    let bucket = table.insert(hash, (entry, SharedValue::new(())), rehash);
    // SAFETY: the bucket is full and in this table, which is borrowed as long as the entry; no other reference exists.
    unsafe { &mut bucket.as_mut().0 }
}

/// The table is about to grow: asks for all entries, whose keys will be hashed, so that their cache misses overlap.
#[cold]
fn grow(table: &Table) {
    entries(table).for_each(|entry| prefetch(entry.address()));
}

/// Calls `visit` with every entry whose home lies in the cursor's block; returns the next cursor, 0 at the end.
///
/// A block is GROUP neighbouring homes. Cursors count through the blocks with the highest bit first, as in the genuine server. When the
/// table grows, a block splits into blocks that share its low bits. So visited blocks stay visited, and a scan misses no element that was
/// there throughout.
pub(super) fn scan(table: &Table, cursor: u64, hash: impl Fn(&[u8]) -> u64, mut visit: impl FnMut(&Entry)) -> u64 {
    let block_mask = (mask(table) / GROUP) as u64;
    let block = cursor & block_mask;
    if !table.is_empty() {
        visit_block(table, block as usize * GROUP, |entry| {
            if (hash(entry.key()) / GROUP as u64) & block_mask == block {
                visit(entry);
            }
        });
    }
    // Increment the reversed cursor: set the bits above the mask, reverse, add one, reverse back.
    ((cursor | !block_mask).reverse_bits().wrapping_add(1)).reverse_bits()
}

/// Calls `visit` with every entry that can be found by probing from one of GROUP homes beginning at `first`.
fn visit_block(table: &Table, first: usize, mut visit: impl FnMut(&Entry)) {
    let mask = mask(table);
    if mask < SMALL {
        return visit_buckets(table, 0, mask + 1, &mut visit);
    }
    // Homes whose probe sequence has not met an empty bucket yet, one bit each.
    let mut open: u32 = (1 << GROUP) - 1;
    let mut at = first;
    let mut step = 0;
    while open != 0 && step <= mask {
        // Two groups hold what the GROUP homes' sequences look at in this step. The second step begins one group
        // behind the first, so its first half has been visited already.
        let seen = if step == GROUP { GROUP - 1 } else { 0 };
        visit_buckets(table, at + seen, 2 * GROUP - 1 - seen, &mut visit);
        let empties = (0..2 * GROUP - 1).fold(0u32, |bits, offset| {
            // SAFETY: the index is masked, so its control byte can be read.
            let byte = unsafe { control(table, (at + offset) & mask).read() };
            bits | u32::from(byte == EMPTY) << offset
        });
        for home in 0..GROUP {
            if empties >> home & ((1 << GROUP) - 1) != 0 {
                open &= !(1 << home);
            }
        }
        step += GROUP;
        at = (at + step) & mask;
    }
}

/// Calls `visit` with the entries in `count` buckets from `first` on, wrapping around.
fn visit_buckets(table: &Table, first: usize, count: usize, visit: &mut impl FnMut(&Entry)) {
    for index in first..first + count {
        let index = index & mask(table);
        // SAFETY: `index` is masked to the bucket count, and the bucket is read only when it is full.
        if unsafe { table.is_bucket_full(index) } {
            // SAFETY: as above.
            visit(unsafe { &table.bucket(index).as_ref().0 });
        }
    }
}

/// The entry of `key`, unless its time is over at `now`: then it is removed and handed to `expired`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "measured: every SET passes here")]
pub(super) fn live_mut<'t>(
    table: &'t mut Table,
    key: &Key<'_>,
    now: u64,
    expired: impl FnOnce(Entry),
) -> Option<&'t mut Entry> {
    let bucket = live_bucket(table, key, now, expired)?;
    // SAFETY: the bucket was found in this table, which is borrowed exclusively for 't; no other reference exists.
    Some(unsafe { &mut bucket.as_mut().0 })
}

/// The bucket of [`live_mut`]'s entry: [`entry_at`], [`entry_at_mut`] and [`take_at`] find it there until the table changes.
pub(super) fn live_index(table: &mut Table, key: &Key<'_>, now: u64, expired: impl FnOnce(Entry)) -> Option<usize> {
    let bucket = live_bucket(table, key, now, expired)?;
    // SAFETY: the bucket was found in this table, which nobody has changed since.
    Some(unsafe { table.bucket_index(&bucket) })
}

/// The full bucket of `key`; an entry whose time is over at `now` is removed and handed to `expired`.
#[inline(always)]
#[allow(clippy::inline_always, reason = "measured: every SET passes here")]
fn live_bucket(table: &mut Table, key: &Key<'_>, now: u64, expired: impl FnOnce(Entry)) -> Option<Bucket<Slot>> {
    let index = key.bucket as usize;
    let bucket = if entry_at(table, index, key.bytes).is_some() {
        // SAFETY: the bucket has just been read, so its index is below the bucket count.
        unsafe { table.bucket(index) }
    } else {
        table.find(key.hash, |(entry, _)| entry.key() == key.bytes)?
    };
    // SAFETY: the bucket is full; the reference ends with this expression.
    if !unsafe { bucket.as_ref() }.0.is_expired(now) {
        return Some(bucket);
    }
    // SAFETY: the bucket is full; nothing refers to it any more.
    let ((entry, _), _) = unsafe { table.remove(bucket) };
    expired(entry);
    None
}

/// [`entry_at`], to be changed.
#[inline]
pub(super) fn entry_at_mut<'t>(table: &'t mut Table, index: usize, key: &[u8]) -> Option<&'t mut Entry> {
    entry_at(table, index, key)?;
    // SAFETY: the bucket has just been read, so it is full; the table is borrowed exclusively for 't.
    Some(unsafe { &mut table.bucket(index).as_mut().0 })
}

/// [`take`] for the entry of `key`, if it is in bucket `index`.
#[inline]
pub(super) fn take_at(table: &mut Table, index: usize, key: &[u8], rehash: impl Fn(&Slot) -> u64) -> Option<Entry> {
    entry_at(table, index, key)?;
    // SAFETY: the bucket has just been read, so it is full; nothing refers to it.
    let ((entry, _), _) = unsafe { table.remove(table.bucket(index)) };
    shrink_if_sparse(table, rehash);
    Some(entry)
}

/// The entry of `key`, made by `make` if there is none; one whose time is over at `now` is removed first and handed to
/// `expired`.
#[inline]
pub(super) fn live_or_insert<'t>(
    table: &'t mut Table,
    key: (u64, &[u8]),
    now: u64,
    expired: impl FnOnce(Entry),
    make: impl FnOnce() -> Entry,
    rehash: impl Fn(&Slot) -> u64,
) -> &'t mut Entry {
    let (hash, bytes) = key;
    match table.find(hash, |(entry, _)| entry.key() == bytes) {
        // SAFETY: the bucket was just found, so it is full; the reference ends with this expression.
        Some(bucket) if !unsafe { bucket.as_ref() }.0.is_expired(now) => {
            // SAFETY: the table is borrowed exclusively for 't; no other reference exists.
            unsafe { &mut bucket.as_mut().0 }
        }
        found => {
            if let Some(bucket) = found {
                // SAFETY: the bucket is full; nothing refers to it any more.
                let ((entry, _), _) = unsafe { table.remove(bucket) };
                expired(entry);
            }
            insert(table, hash, make(), rehash)
        }
    }
}

/// Takes out the entry of `hash` that `is_it` knows, and gives memory back when the table has become sparse.
#[inline]
pub(super) fn take(
    table: &mut Table,
    hash: u64,
    is_it: impl Fn(&Entry) -> bool,
    rehash: impl Fn(&Slot) -> u64,
) -> Option<Entry> {
    let (entry, _) = table.remove_entry(hash, |(entry, _)| is_it(entry))?;
    shrink_if_sparse(table, rehash);
    Some(entry)
}

#[inline]
fn shrink_if_sparse(table: &mut Table, rehash: impl Fn(&Slot) -> u64) {
    if table.len() < table.buckets() / SPARSE && table.buckets() > SHRINK_MIN {
        shrink(table, rehash);
    }
}

/// Frees the buckets of a table without entries. With few keys, most of a database is the buckets of its many shards: eviction
/// would find nothing more to take out, and memory still short.
pub(super) fn give_back_if_empty(table: &mut Table) {
    if table.is_empty() {
        *table = Table::new();
    }
}

/// Leaves room for half as many entries again as there are.
#[cold]
fn shrink(table: &mut Table, rehash: impl Fn(&Slot) -> u64) {
    table.shrink_to(table.len() + table.len() / 2, rehash);
}

/// An entry that `wanted` accepts, each with the same probability as long as the table is not nearly empty of them.
pub(super) fn random_entry(
    table: &Table,
    mut random: impl FnMut() -> u64,
    wanted: impl Fn(&Entry) -> bool,
) -> Option<&Entry> {
    if table.is_empty() {
        return None;
    }
    let mask = mask(table);
    let wanted_at = |index: usize| {
        // SAFETY: `index` is masked to the bucket count, and the bucket is read only when it is full.
        let entry = unsafe { table.is_bucket_full(index).then(|| &table.bucket(index).as_ref().0) };
        entry.filter(|entry| wanted(entry))
    };
    let found = (0..RANDOM_TRIES).find_map(|_| wanted_at(random() as usize & mask));
    let from = random() as usize;
    found.or_else(|| (0..=mask).find_map(|offset| wanted_at(from.wrapping_add(offset) & mask)))
}

/// Every entry, once.
pub(super) fn entries(table: &Table) -> impl Iterator<Item = &Entry> {
    // SAFETY: the iterator's lifetime is tied to `table`, which nobody changes while it is borrowed.
    let buckets = unsafe { table.iter() };
    // SAFETY: each bucket that the iterator yields is full.
    buckets.map(|bucket| unsafe { &bucket.as_ref().0 })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::keyspace::value::Value;

    fn hash(key: &[u8]) -> u64 {
        use std::hash::{BuildHasher, Hasher};
        let mut hasher = foldhash::quality::FixedState::default().build_hasher();
        hasher.write(key);
        hasher.finish()
    }

    fn insert(table: &mut Table, key: &[u8]) {
        let entry = Entry::new(key, Value::Int(1), None);
        table.insert(hash(key), (entry, SharedValue::new(())), |(entry, _)| hash(entry.key()));
    }

    fn remove(table: &mut Table, key: &[u8]) {
        table.remove_entry(hash(key), |(entry, _)| entry.key() == key).expect("the key is there");
    }

    #[test]
    fn a_tag_is_found_where_it_first_stands() {
        let mut group = [EMPTY; GROUP];
        assert_eq!(position(group, 5), None);
        for at in (0..GROUP).rev() {
            group[at] = 5;
            assert_eq!(position(group, 5), Some(at));
        }
        assert_eq!(position([0; GROUP], 0), Some(0));
    }

    #[test]
    fn scan_finds_what_stays_while_the_table_grows_and_churns() {
        // Miri takes its time.
        let (stay, churn) = if cfg!(miri) { (150, 20) } else { (500, 200) };
        let mut table = Table::new();
        let stay: Vec<_> = (0..stay).map(|i| format!("stay:{i}").into_bytes()).collect();
        stay.iter().for_each(|key| insert(&mut table, key));
        let mut seen = HashSet::new();
        let mut cursor = 0;
        let mut round = 0;
        loop {
            cursor = scan(&table, cursor, hash, |entry| {
                seen.insert(entry.key().to_vec());
            });
            for i in 0..churn {
                insert(&mut table, format!("churn:{round}:{i}").as_bytes());
                if round > 3 {
                    remove(&mut table, format!("churn:{}:{i}", round - 2).as_bytes());
                }
            }
            round += 1;
            if cursor == 0 {
                break;
            }
        }
        let missed: Vec<_> = stay.iter().filter(|key| !seen.contains(*key)).collect();
        assert!(missed.is_empty(), "missed {} of {} keys", missed.len(), stay.len());
    }

    #[test]
    fn scan_of_a_still_table_visits_each_entry_once() {
        // Miri takes its time.
        let most = if cfg!(miri) { 150 } else { 5000 };
        for len in [0, 1, 7, 14, 28, 29, 100, most] {
            let mut table = Table::new();
            (0..len).for_each(|i| insert(&mut table, format!("key:{i}").as_bytes()));
            let mut seen = Vec::new();
            let mut cursor = 0;
            loop {
                cursor = scan(&table, cursor, hash, |entry| seen.push(entry.key().to_vec()));
                if cursor == 0 {
                    break;
                }
            }
            assert_eq!(seen.len(), len, "entries returned of {len}");
            assert_eq!(seen.iter().collect::<HashSet<_>>().len(), len, "distinct entries of {len}");
        }
    }
}

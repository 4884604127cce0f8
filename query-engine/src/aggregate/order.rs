//! The order of groups: that of RediSearch's hash table, so that rows without SORTBY stand as there.

use crate::expr::Datum;

/// The hash of a group's values: FNV-1a with 64 bits, which begins at 0.
pub(super) fn hash(values: &[Datum]) -> u64 {
    values.iter().fold(0, |hash, value| hash_value(value, hash))
}

fn hash_value(value: &Datum, hash: u64) -> u64 {
    match value {
        Datum::Null => hash.wrapping_add(1),
        Datum::Number(number) => hash_bytes(&number.to_le_bytes(), hash),
        Datum::Text(text) => hash_bytes(text, hash),
        Datum::Shown(value, _) => hash_value(value, hash),
        Datum::List(list) => list.iter().fold(hash, |hash, item| hash_value(item, hash)),
    }
}

fn hash_bytes(bytes: &[u8], hash: u64) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Places of hashes in a table with open addressing, quadratic steps and a size that is a power of two.
#[derive(Debug, Default)]
struct Buckets {
    /// A hash with the number of its group.
    places: Vec<Option<(u64, usize)>>,
    len: usize,
}

/// Buckets of the smallest table.
const MIN_BUCKETS: usize = 4;

impl Buckets {
    fn insert(&mut self, entry: (u64, usize)) {
        if self.len >= (self.places.len() as f64 * 0.77 + 0.5) as usize || self.places.is_empty() {
            self.grow();
        }
        let at = free(&self.places, entry.0);
        self.places[at] = Some(entry);
        self.len += 1;
    }

    /// Doubles the table. Entries move one after the other. One that takes the bucket of an entry which has not moved yet sends that
    /// one on next.
    fn grow(&mut self) {
        let size = (self.places.len() * 2).max(MIN_BUCKETS);
        let mut old = std::mem::replace(&mut self.places, vec![None; size]);
        for at in 0..old.len() {
            let mut moving = old[at].take();
            while let Some(entry) = moving {
                let at = free(&self.places, entry.0);
                self.places[at] = Some(entry);
                moving = old.get_mut(at).and_then(Option::take);
            }
        }
    }
}

/// The first free bucket for a hash.
fn free(places: &[Option<(u64, usize)>], hash: u64) -> usize {
    let mask = places.len() - 1;
    let mut at = ((hash >> 33) ^ hash ^ (hash << 11)) as u32 as usize & mask;
    let mut step = 0;
    while places[at].is_some() {
        step += 1;
        at = (at + step) & mask;
    }
    at
}

/// The numbers of groups, given by the hashes of their values in the order in which they came, in the order of the table.
pub(super) fn order(hashes: &[u64]) -> Vec<usize> {
    let mut buckets = Buckets::default();
    hashes.iter().enumerate().for_each(|(group, hash)| buckets.insert((*hash, group)));
    buckets.places.into_iter().flatten().map(|(_, group)| group).collect()
}

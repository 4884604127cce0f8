//! Numbers of documents, in blocks ordered by value.

use std::collections::{BTreeMap, btree_map};

use super::postings::DocNumber;

/// Entries of a block before it is split: a page of memory, so that an insertion moves little and a scan is sequential.
const BLOCK: usize = 256;

/// A number and the document that has it; ordered by the number's total order.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    value: f64,
    number: DocNumber,
}

impl Entry {
    fn key(self) -> (u64, DocNumber) {
        (ordered(self.value), self.number)
    }
}

/// Bits that sort as the numbers do; −0 equals 0.
pub(crate) fn ordered(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

/// A range of numbers (`@field:[min max]`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The lowest number.
    pub min: f64,
    /// The highest number.
    pub max: f64,
    /// Whether `min` itself is inside.
    pub includes_min: bool,
    /// Whether `max` itself is inside.
    pub includes_max: bool,
}

impl Range {
    /// Both ends are inside.
    #[must_use]
    pub fn inclusive(min: f64, max: f64) -> Self {
        Self { min, max, includes_min: true, includes_max: true }
    }

    /// Whether a number is inside.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        let above = if self.includes_min { value >= self.min } else { value > self.min };
        let below = if self.includes_max { value <= self.max } else { value < self.max };
        above && below
    }
}

/// The part of a block that lies in a range.
fn part(block: &[Entry], range: Range) -> &[Entry] {
    let from = block.partition_point(|entry| !range.contains(entry.value) && entry.value <= range.min);
    let inside = block[from..].partition_point(|entry| range.contains(entry.value));
    &block[from..from + inside]
}

/// The numbers of one field.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    /// Blocks by their lowest entry; each is sorted.
    blocks: BTreeMap<(u64, DocNumber), Vec<Entry>>,
    /// A document has had several numbers, or one that sorts elsewhere than it counts (−0).
    is_uneven: bool,
}

impl Ranges {
    /// Adds the numbers of a document. NaN is none and is left out.
    pub(crate) fn insert_all(&mut self, values: &[f64], number: DocNumber) {
        self.is_uneven |= values.len() > 1 || values.iter().any(|value| *value == 0.0 && value.is_sign_negative());
        values.iter().for_each(|value| self.insert(*value, number));
    }

    /// True if the order of entries is that of the documents' values: each has one.
    pub(crate) fn is_even(&self) -> bool {
        !self.is_uneven
    }

    fn insert(&mut self, value: f64, number: DocNumber) {
        if value.is_nan() {
            return;
        }
        let entry = Entry { value, number };
        let below = self.blocks.range(..=entry.key()).next_back().map(|(key, _)| *key);
        let Some(key) = below.or_else(|| self.blocks.keys().next().copied()) else {
            self.blocks.insert(entry.key(), vec![entry]);
            return;
        };
        let block = self.blocks.get_mut(&key).expect("its key was just read");
        let at = block.partition_point(|other| other.key() < entry.key());
        block.insert(at, entry);
        let upper = (block.len() > BLOCK).then(|| block.split_off(BLOCK / 2));
        if at == 0 {
            // The block's lowest entry is its key.
            let block = self.blocks.remove(&key).expect("it is there");
            self.blocks.insert(entry.key(), block);
        }
        if let Some(upper) = upper {
            self.blocks.insert(upper[0].key(), upper);
        }
    }

    /// The numbers of a range with their documents, by value; the range of each block is found by halving.
    pub(crate) fn within(&self, range: Range) -> impl DoubleEndedIterator<Item = (f64, DocNumber)> {
        self.parts(range).flatten().map(|entry| (entry.value, entry.number))
    }

    /// Entries of a range. Blocks between its ends are counted, and not read.
    pub(crate) fn count_within(&self, range: Range) -> u64 {
        let (min, max) = (ordered(range.min), ordered(range.max));
        let (mut count, mut blocks) = (0, self.blocks_of(range).peekable());
        while let Some(((lowest, _), block)) = blocks.next() {
            let is_inside = *lowest > min && blocks.peek().is_some_and(|((next, _), _)| *next < max);
            count += if is_inside { block.len() } else { part(block, range).len() } as u64;
        }
        count
    }

    /// The parts of blocks that lie in a range.
    fn parts(&self, range: Range) -> impl DoubleEndedIterator<Item = &[Entry]> {
        self.blocks_of(range).map(move |(_, block)| part(block, range))
    }

    /// The blocks that may have entries of a range.
    fn blocks_of(&self, range: Range) -> btree_map::Range<'_, (u64, DocNumber), Vec<Entry>> {
        let lowest = (ordered(range.min), 0);
        let first = self.blocks.range(..=lowest).next_back().map_or(lowest, |(key, _)| *key);
        // Nothing lies between ends that are crossed.
        let last = (ordered(range.max), DocNumber::MAX).max(first);
        self.blocks.range(first..=last)
    }

    /// Leaves only documents that `is_live` confirms.
    pub(crate) fn retain(&mut self, is_live: impl Fn(DocNumber) -> bool) {
        let entries = std::mem::take(&mut self.blocks).into_values().flatten();
        let live: Vec<Entry> = entries.filter(|entry| is_live(entry.number)).collect();
        self.blocks = live.chunks(BLOCK / 2).map(|block| (block[0].key(), block.to_vec())).collect();
    }

    /// Numbers, with those of documents that are gone and not yet compacted away.
    pub(crate) fn count(&self) -> usize {
        self.blocks.values().map(Vec::len).sum()
    }

    /// Bytes in memory, without `self`. A tree's node is estimated as its entry and a third.
    pub(crate) fn memory(&self) -> usize {
        let node = size_of::<(u64, DocNumber)>() + size_of::<Vec<Entry>>();
        let blocks = self.blocks.values().map(|block| block.capacity() * size_of::<Entry>());
        blocks.sum::<usize>() + self.blocks.len() * node * 4 / 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ranges: &Ranges, range: Range) -> Vec<u64> {
        let mut numbers: Vec<u64> = ranges.within(range).map(|(_, number)| number).collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn ranges_find_what_a_scan_finds() {
        let mut ranges = Ranges::default();
        let value = |number: u64| ((number * 7919) % 1000) as f64 / 4.0 - 100.0;
        for number in 1..5000 {
            ranges.insert(value(number), number);
        }
        let infinite = [f64::NEG_INFINITY, f64::INFINITY];
        let ends = [-200.0, -100.0, -99.75, 0.0, 3.1, 149.75, 150.0].into_iter().chain(infinite);
        for (min, max) in ends.clone().flat_map(|min| ends.clone().map(move |max| (min, max))) {
            for (includes_min, includes_max) in [(true, true), (true, false), (false, true), (false, false)] {
                let range = Range { min, max, includes_min, includes_max };
                let expected: Vec<u64> = (1..5000).filter(|number| range.contains(value(*number))).collect();
                assert_eq!(found(&ranges, range), expected, "{range:?}");
                assert_eq!(ranges.count_within(range), expected.len() as u64, "{range:?}");
                let mut backwards: Vec<_> = ranges.within(range).rev().collect();
                backwards.reverse();
                assert_eq!(backwards, ranges.within(range).collect::<Vec<_>>(), "{range:?}");
            }
        }
        ranges.retain(|number| number % 100 == 0);
        assert_eq!((ranges.count(), found(&ranges, Range::inclusive(-1e9, 1e9)).len()), (49, 49));
    }

    #[test]
    fn odd_numbers_have_their_place() {
        let mut ranges = Ranges::default();
        for (number, value) in [f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, f64::NAN].into_iter().enumerate() {
            ranges.insert(value, number as u64 + 1);
        }
        assert_eq!(found(&ranges, Range::inclusive(f64::NEG_INFINITY, f64::INFINITY)), [1, 2, 3, 4]);
        assert_eq!(found(&ranges, Range::inclusive(0.0, 0.0)), [3, 4]);
        assert_eq!(found(&ranges, Range { includes_min: false, ..Range::inclusive(-0.0, 1.0) }), []);
    }
}

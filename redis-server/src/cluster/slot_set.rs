//! Sets of slots.

use std::fmt;
use std::ops::RangeInclusive;

use super::SLOTS;

/// Bytes of a bitmap with one bit for each slot.
pub const BITMAP: usize = SLOTS / 8;

/// A set of slots, as it stands in packets: slot `s` is bit `s & 7` of byte `s / 8`.
#[derive(Clone, PartialEq, Eq)]
pub struct SlotSet {
    bits: [u8; BITMAP],
}

impl SlotSet {
    /// None.
    pub const EMPTY: Self = Self { bits: [0; BITMAP] };

    /// All of them.
    pub const ALL: Self = Self { bits: [255; BITMAP] };

    /// The slots of a packet's bitmap.
    pub fn from_bitmap(bits: &[u8; BITMAP]) -> Self {
        Self { bits: *bits }
    }

    /// For a packet.
    pub fn bitmap(&self) -> &[u8; BITMAP] {
        &self.bits
    }

    /// Whether it has a slot.
    pub fn has(&self, slot: u16) -> bool {
        self.bits[usize::from(slot) / 8] & 1 << (slot & 7) != 0
    }

    /// Adds a slot; whether it was not there.
    pub fn add(&mut self, slot: u16) -> bool {
        let is_new = !self.has(slot);
        self.bits[usize::from(slot) / 8] |= 1 << (slot & 7);
        is_new
    }

    /// Adds all from `first` to `last`.
    pub fn add_range(&mut self, first: u16, last: u16) {
        let (from, to) = (usize::from(first) / 8, usize::from(last) / 8);
        let (low, high) = (255 << (first & 7), 255 >> (7 - (last & 7)));
        if from == to {
            self.bits[from] |= low & high;
            return;
        }
        self.bits[from] |= low;
        self.bits[from + 1..to].fill(255);
        self.bits[to] |= high;
    }

    /// Takes a slot out; whether it was there.
    pub fn remove(&mut self, slot: u16) -> bool {
        let was_there = self.has(slot);
        self.bits[usize::from(slot) / 8] &= !(1 << (slot & 7));
        was_there
    }

    /// How many it has.
    pub fn len(&self) -> usize {
        self.words().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.bits == [0; BITMAP]
    }

    /// The slots of this set that are not in another.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self { bits: std::array::from_fn(|at| self.bits[at] & !other.bits[at]) }
    }

    /// Its slots, in order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.words().enumerate().flat_map(|(at, word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(at as u16 * u64::BITS as u16 + bit as u16)
            })
        })
    }

    /// Its slots as ranges, in order.
    pub fn ranges(&self) -> Vec<RangeInclusive<u16>> {
        let mut ranges: Vec<RangeInclusive<u16>> = Vec::new();
        for slot in self.iter() {
            match ranges.last_mut() {
                Some(last) if *last.end() + 1 == slot => *last = *last.start()..=slot,
                _ => ranges.push(slot..=slot),
            }
        }
        ranges
    }

    fn words(&self) -> impl Iterator<Item = u64> + '_ {
        self.bits.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes))
    }
}

impl FromIterator<u16> for SlotSet {
    fn from_iter<I: IntoIterator<Item = u16>>(slots: I) -> Self {
        let mut set = Self::EMPTY;
        for slot in slots {
            set.add(slot);
        }
        set
    }
}

/// Slots as the ranges that they make, in order: a primary has some thousands in a row, and of a large cluster each node keeps
/// every other one's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SlotRanges {
    /// First and last.
    ranges: Vec<(u16, u16)>,
    len: usize,
}

impl SlotRanges {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.ranges.iter().flat_map(|(first, last)| *first..=*last)
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u16>> + '_ {
        self.ranges.iter().map(|(first, last)| *first..=*last)
    }

    pub(super) fn to_set(&self) -> SlotSet {
        let mut set = SlotSet::EMPTY;
        for (first, last) in &self.ranges {
            set.add_range(*first, *last);
        }
        set
    }

    /// Adds a slot that is not there.
    pub(super) fn add(&mut self, slot: u16) {
        let at = self.ranges.partition_point(|(first, _)| *first < slot);
        let joins_left = at > 0 && self.ranges[at - 1].1 + 1 == slot;
        let joins_right = self.ranges.get(at).is_some_and(|(first, _)| *first == slot + 1);
        match (joins_left, joins_right) {
            (true, true) => {
                self.ranges[at - 1].1 = self.ranges[at].1;
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at - 1].1 = slot,
            (false, true) => self.ranges[at].0 = slot,
            (false, false) => self.ranges.insert(at, (slot, slot)),
        }
        self.len += 1;
    }

    /// Takes out a slot that is there.
    pub(super) fn remove(&mut self, slot: u16) {
        let at = self.ranges.partition_point(|(first, _)| *first <= slot) - 1;
        let (first, last) = self.ranges[at];
        match (first == slot, last == slot) {
            (true, true) => _ = self.ranges.remove(at),
            (true, false) => self.ranges[at].0 += 1,
            (false, true) => self.ranges[at].1 -= 1,
            (false, false) => {
                self.ranges[at].1 = slot - 1;
                self.ranges.insert(at + 1, (slot + 1, last));
            }
        }
        self.len -= 1;
    }
}

impl fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ranges()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::random::Random;

    #[test]
    fn sets() {
        let slots = [0_u16, 1, 2, 7, 8, 63, 64, 65, 8191, 16_382, 16_383];
        let mut set: SlotSet = slots.into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), slots);
        assert_eq!(set.ranges(), [0..=2, 7..=8, 63..=65, 8191..=8191, 16_382..=16_383]);
        assert_eq!((set.len(), set.bitmap()[0], set.bitmap()[2047]), (slots.len(), 0b1000_0111, 0b1100_0000));
        assert!(!set.add(7) && set.add(9) && set.remove(9) && !set.remove(9));
        let without: SlotSet = [1, 7, 16_382].into_iter().collect();
        assert_eq!(set.without(&without).iter().collect::<Vec<_>>(), [0, 2, 8, 63, 64, 65, 8191, 16_383]);
        assert!(set.without(&SlotSet::ALL).is_empty());
        assert_eq!((SlotSet::ALL.len(), SlotSet::ALL.ranges()), (SLOTS, vec![0..=16_383]));
        assert!(SlotSet::EMPTY.is_empty() && !set.is_empty());
    }

    /// Slots that come and go by chance, against a set of bits.
    #[test]
    fn ranges_are_sets() {
        let mut random = Random::new([7; 4]);
        for bound in [10, 100, 16_384] {
            let (mut set, mut ranges) = (SlotSet::EMPTY, SlotRanges::default());
            for _ in 0..2000 {
                let slot = random.below(bound) as u16;
                if set.remove(slot) {
                    ranges.remove(slot);
                } else {
                    set.add(slot);
                    ranges.add(slot);
                }
                assert_eq!((ranges.len(), ranges.ranges().collect()), (set.len(), set.ranges()));
            }
            assert_eq!(ranges.to_set(), set);
            assert!(ranges.iter().eq(set.iter()));
        }
    }
}

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

    /// What a packet says.
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

impl fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ranges()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets() {
        let slots = [0_u16, 1, 2, 7, 8, 63, 64, 65, 8191, 16_382, 16_383];
        let mut set: SlotSet = slots.into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), slots);
        assert_eq!(set.ranges(), [0..=2, 7..=8, 63..=65, 8191..=8191, 16_382..=16_383]);
        assert_eq!((set.len(), set.bitmap()[0], set.bitmap()[2047]), (slots.len(), 0b1000_0111, 0b1100_0000));
        assert!(!set.add(7) && set.add(9) && set.remove(9) && !set.remove(9));
        assert_eq!((SlotSet::ALL.len(), SlotSet::ALL.ranges()), (SLOTS, vec![0..=16_383]));
        assert!(SlotSet::EMPTY.is_empty() && !set.is_empty());
    }
}

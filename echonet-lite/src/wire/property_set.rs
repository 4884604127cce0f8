//! Sets of property codes.

use core::{fmt, iter::FusedIterator};

/// A set of property codes, 0x80..=0xFF: one bit each. Lower codes are no properties; they are never in a set.
///
/// Words of 32 bits, because a shift of 128 bits is a dozen instructions on the cores that a device has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PropertySet([u32; WORDS]);

const WORDS: usize = 4;

impl PropertySet {
    /// No property.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// The properties of a list. Codes below 0x80 are left out.
    pub const fn of(epcs: &[u8]) -> Self {
        let mut set = Self::EMPTY;
        let mut i = 0;
        while i < epcs.len() {
            set = set.with(epcs[i]);
            i += 1;
        }
        set
    }

    /// The set and `epc`, unless that is below 0x80.
    #[must_use]
    pub const fn with(mut self, epc: u8) -> Self {
        let (word, bit) = Self::place(epc);
        self.0[word] |= bit;
        self
    }

    /// The set without `epc`.
    #[must_use]
    pub const fn without(mut self, epc: u8) -> Self {
        let (word, bit) = Self::place(epc);
        self.0[word] &= !bit;
        self
    }

    /// Whether `epc` is in the set.
    #[inline]
    pub const fn contains(self, epc: u8) -> bool {
        let (word, bit) = Self::place(epc);
        self.0[word] & bit != 0
    }

    /// One bit for each property, the lowest for 0x80.
    pub const fn to_bits(self) -> u128 {
        let [a, b, c, d] = self.0;
        a as u128 | (b as u128) << 32 | (c as u128) << 64 | (d as u128) << 96
    }

    /// The set whose bits these are, the lowest for 0x80.
    pub const fn from_bits(bits: u128) -> Self {
        Self([bits as u32, (bits >> 32) as u32, (bits >> 64) as u32, (bits >> 96) as u32])
    }

    /// How many there are: 0..=128.
    pub const fn len(self) -> usize {
        self.rank_in(WORDS, 0)
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        let [a, b, c, d] = self.0;
        a | b | c | d == 0
    }

    /// The properties in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Self([a | e, b | f, c | g, d | h])
    }

    /// The properties in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Self([a & e, b & f, c & g, d & h])
    }

    /// The properties in this set and not in the other.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        let [a, b, c, d] = other.0;
        self.intersection(Self([!a, !b, !c, !d]))
    }

    /// Whether everything in this set is in the other.
    pub const fn is_subset(self, other: Self) -> bool {
        self.difference(other).is_empty()
    }

    /// How many of its codes are below `epc`: the place of `epc` in a list of them in ascending order.
    #[inline]
    pub const fn rank(self, epc: u8) -> usize {
        let (word, bit) = Self::place(epc);
        if bit == 0 { 0 } else { self.rank_in(word, bit - 1) }
    }

    /// The codes in ascending order.
    pub const fn iter(self) -> Epcs {
        Epcs { set: self, next: 0x80 }
    }

    /// How many there are in the first words, and in the next one below a mask.
    const fn rank_in(self, words: usize, mask: u32) -> usize {
        let mut count = 0;
        let mut at = 0;
        while at < words {
            count += self.0[at].count_ones();
            at += 1;
        }
        if words < WORDS {
            count += (self.0[words] & mask).count_ones();
        }
        count as usize
    }

    /// The word of a code and its bit, which is 0 for what is no property.
    #[inline]
    const fn place(epc: u8) -> (usize, u32) {
        ((epc >> 5 & 3) as usize, ((epc >> 7) as u32) << (epc & 31))
    }
}

impl fmt::Debug for PropertySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PropertySet({self})")
    }
}

/// The codes in hexadecimal: `80 81 FF`.
impl fmt::Display for PropertySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, epc) in self.iter().enumerate() {
            write!(f, "{}{epc:02X}", if i == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl FromIterator<u8> for PropertySet {
    fn from_iter<I: IntoIterator<Item = u8>>(epcs: I) -> Self {
        epcs.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl Extend<u8> for PropertySet {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, epcs: I) {
        *self = epcs.into_iter().fold(*self, Self::with);
    }
}

impl IntoIterator for PropertySet {
    type Item = u8;
    type IntoIter = Epcs;

    fn into_iter(self) -> Epcs {
        self.iter()
    }
}

/// The codes of a [`PropertySet`], ascending.
#[derive(Clone, Debug)]
pub struct Epcs {
    set: PropertySet,
    /// 0x100 at the end.
    next: u16,
}

impl Iterator for Epcs {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        while let Ok(epc) = u8::try_from(self.next) {
            let rest = self.set.0[usize::from(epc >> 5 & 3)] >> (epc & 31);
            if rest == 0 {
                // To the first code of the next word.
                self.next = u16::from(epc | 31) + 1;
                continue;
            }
            let found = epc + rest.trailing_zeros() as u8;
            self.next = u16::from(found) + 1;
            return Some(found);
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let past = u8::try_from(self.next).map_or(self.set.len(), |next| self.set.rank(next));
        let count = self.set.len() - past;
        (count, Some(count))
    }
}

impl ExactSizeIterator for Epcs {}
impl FusedIterator for Epcs {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn low_codes_are_never_in_a_set() {
        let set = PropertySet::of(&[0x00, 0x7F, 0x80, 0xFF]);
        assert!(set.iter().eq([0x80, 0xFF]));
        assert_eq!(set.len(), 2);
        assert!(!set.contains(0x00) && !set.contains(0x7F));
        assert_eq!(set.without(0x00), set);
        assert_eq!((set.rank(0x7F), set.rank(0x80), set.rank(0x81), set.rank(0xFF)), (0, 0, 1, 1));
        assert_eq!(PropertySet::from_bits(set.to_bits()), set);
        assert_eq!(set.to_bits(), 1 << 127 | 1);
    }

    #[test]
    fn iterates_in_order_and_knows_how_much_is_left() {
        for set in [0, 1, u128::MAX, 1 << 127, 0x8000_0001 << 31, 0xF0 << 60].map(PropertySet::from_bits) {
            let expected: Vec<u8> = (0x80..=0xFF).filter(|epc| set.contains(*epc)).collect();
            let mut codes = set.iter();
            for (at, epc) in expected.iter().enumerate() {
                assert_eq!((codes.len(), set.rank(*epc)), (expected.len() - at, at));
                assert_eq!(codes.next(), Some(*epc));
            }
            assert_eq!((codes.len(), codes.next()), (0, None));
        }
    }

    #[test]
    fn algebra() {
        let a: PropertySet = [0x80, 0x81, 0xC0].into_iter().collect();
        let b = PropertySet::of(&[0x81, 0xE0]);
        assert_eq!(a.union(b), PropertySet::of(&[0x80, 0x81, 0xC0, 0xE0]));
        assert_eq!(a.intersection(b), PropertySet::of(&[0x81]));
        assert_eq!(a.difference(b), PropertySet::of(&[0x80, 0xC0]));
        assert!(PropertySet::of(&[0xC0]).is_subset(a) && !b.is_subset(a));
    }
}

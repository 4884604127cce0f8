//! Sets of property codes.

use core::{fmt, iter::FusedIterator};

/// A set of property codes, 0x80..=0xFF: one bit each. Lower codes are no properties; they are never in a set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PropertySet(u128);

impl PropertySet {
    /// No property.
    pub const EMPTY: Self = Self(0);

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
    pub const fn with(self, epc: u8) -> Self {
        Self(self.0 | Self::bit(epc))
    }

    /// The set without `epc`.
    #[must_use]
    pub const fn without(self, epc: u8) -> Self {
        Self(self.0 & !Self::bit(epc))
    }

    /// Whether `epc` is in the set.
    #[inline]
    pub const fn contains(self, epc: u8) -> bool {
        self.0 & Self::bit(epc) != 0
    }

    /// One bit for each property, the lowest for 0x80.
    pub const fn to_bits(self) -> u128 {
        self.0
    }

    /// The set whose bits these are, the lowest for 0x80.
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// How many there are: 0..=128.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// What is in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in both sets.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is in this set and not in the other.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether everything in this set is in the other.
    pub const fn is_subset(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// How many of its codes are below `epc`: the place of `epc` in a list of them in ascending order.
    #[inline]
    pub const fn rank(self, epc: u8) -> usize {
        if epc < 0x80 { 0 } else { (self.0 & (Self::bit(epc) - 1)).count_ones() as usize }
    }

    /// The codes in ascending order.
    pub const fn iter(self) -> Epcs {
        Epcs(self.0)
    }

    #[inline]
    const fn bit(epc: u8) -> u128 {
        if epc < 0x80 { 0 } else { 1 << (epc & 0x7F) }
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
pub struct Epcs(u128);

impl Iterator for Epcs {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as u8;
        self.0 &= self.0 - 1;
        Some(0x80 | bit)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.0.count_ones() as usize;
        (count, Some(count))
    }
}

impl ExactSizeIterator for Epcs {}
impl FusedIterator for Epcs {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_codes_are_never_in_a_set() {
        let set = PropertySet::of(&[0x00, 0x7F, 0x80, 0xFF]);
        assert!(set.iter().eq([0x80, 0xFF]));
        assert_eq!(set.len(), 2);
        assert!(!set.contains(0x00) && !set.contains(0x7F));
        assert_eq!(set.without(0x00), set);
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

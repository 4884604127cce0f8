//! The properties of an object, and the access of a peer to each.

use super::PropertySet;

/// The access of a peer to the properties of an object: the content of its property maps. A class's table gives one:
/// `Class::mandatory`, `Class::offering`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PropertyAccess {
    /// Can be read (map 0x9F). Has the maps themselves.
    pub get: PropertySet,
    /// Can be written (map 0x9E).
    pub set: PropertySet,
    /// Are announced to all when they change (map 0x9D).
    pub announce: PropertySet,
}

impl PropertyAccess {
    /// No property.
    pub const NONE: Self = Self { get: PropertySet::EMPTY, set: PropertySet::EMPTY, announce: PropertySet::EMPTY };

    /// The three property maps, which every object has.
    pub const MAPS: PropertySet = PropertySet::of(&[0x9D, 0x9E, 0x9F]);

    /// From the codes of the properties that can be read, written, and are announced on change. The maps can be read
    /// without being listed.
    pub const fn new(get: &[u8], set: &[u8], announce: &[u8]) -> Self {
        Self {
            get: PropertySet::of(get).union(Self::MAPS),
            set: PropertySet::of(set),
            announce: PropertySet::of(announce),
        }
    }

    /// The properties of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self {
            get: self.get.union(other.get),
            set: self.set.union(other.set),
            announce: self.announce.union(other.announce),
        }
    }

    /// One property more, with the given services: get, set, announce.
    #[must_use]
    pub const fn with(mut self, epc: u8, [get, set, announce]: [bool; 3]) -> Self {
        if get {
            self.get = self.get.with(epc);
        }
        if set {
            self.set = self.set.with(epc);
        }
        if announce {
            self.announce = self.announce.with(epc);
        }
        self
    }

    /// The same without some properties.
    #[must_use]
    pub const fn without(self, others: PropertySet) -> Self {
        Self {
            get: self.get.difference(others),
            set: self.set.difference(others),
            announce: self.announce.difference(others),
        }
    }
}

//! A class: its names and its table, with the super class behind it.

use core::fmt;

use super::SUPER_CLASS;
use super::property::{Access, Names, PropertyAccess, PropertySpec, Releases};
use crate::wire::{ClassCode, PropertySet};

/// A class of the device objects with its constant table.
#[derive(Debug)]
pub struct Class {
    /// Group and class code, the first two bytes of the EOJs of its objects.
    pub code: ClassCode,
    /// The name programs use, for example `homeAirConditioner`.
    pub short_name: &'static str,
    /// The releases of the device objects that have the class.
    pub releases: Releases,
    /// The class's own properties, sorted by EPC, each in its newest form. [`Class::property`] finds the inherited ones
    /// too.
    pub properties: &'static [PropertySpec],
    /// Forms that properties had in earlier releases, sorted by EPC; none where the feature `earlier-releases` is off.
    pub superseded: &'static [PropertySpec],
    /// Of each of these sets a device has one property at least.
    pub either: &'static [PropertySet],
    super_class: Option<&'static Self>,
    /// The codes in `properties`: a code's rank is its row's place.
    own: PropertySet,
    names: Names,
}

impl Class {
    /// A class of a table file.
    pub(super) const fn new(
        code: u16,
        short_name: &'static str,
        releases: &'static str,
        [name, name_ja]: [&'static str; 2],
        [properties, superseded]: [&'static [PropertySpec]; 2],
    ) -> Self {
        assert!(is_sorted(properties, true) && is_sorted(superseded, false));
        Self {
            code: ClassCode::from_u16(code),
            short_name,
            releases: Releases::parse(releases),
            properties,
            superseded: if cfg!(feature = "earlier-releases") { superseded } else { &[] },
            either: &[],
            super_class: None,
            own: codes(properties),
            names: Names::new(name, name_ja),
        }
    }

    /// A class that the tables do not have: its code, its names for programs and for people, its own properties sorted by EPC. Those of
    /// the super class are behind them.
    ///
    /// # Panics
    ///
    /// The properties are not sorted, or a code is there twice.
    pub fn custom(code: ClassCode, [short_name, name]: [&'static str; 2], properties: &'static [PropertySpec]) -> Self {
        Self::new(code.to_u16(), short_name, "A..", [name, name], [properties, &[]]).inherits(&SUPER_CLASS)
    }

    /// This class with other properties of its own, sorted by EPC: with those of a maker, for example.
    ///
    /// # Panics
    ///
    /// The properties are not sorted, or a code is there twice.
    pub const fn with_properties(&self, properties: &'static [PropertySpec]) -> Self {
        assert!(is_sorted(properties, true), "the properties are sorted");
        let Self { code, short_name, releases, superseded, either, super_class, names, .. } = *self;
        Self { code, short_name, releases, properties, superseded, either, super_class, own: codes(properties), names }
    }

    /// This class with the properties of another behind its own.
    pub(super) const fn inherits(mut self, super_class: &'static Self) -> Self {
        self.super_class = Some(super_class);
        self
    }

    /// This class, of which every device has one property at least of each of these sets.
    pub(super) const fn either(mut self, sets: &'static [PropertySet]) -> Self {
        self.either = sets;
        self
    }

    /// The English name; the short name where the feature `names` is off.
    pub const fn name(&self) -> &'static str {
        self.names.english(self.short_name)
    }

    /// The Japanese name; the short name where the feature `names` is off.
    pub const fn name_ja(&self) -> &'static str {
        self.names.japanese(self.short_name)
    }

    /// The property with this code: the class's own, else the one it inherits from the super class.
    pub fn property(&self, epc: u8) -> Option<&'static PropertySpec> {
        if self.own.contains(epc) {
            return self.properties.get(self.own.rank(epc));
        }
        self.super_class?.property(epc)
    }

    /// The form a property had in a release (a capital letter), of which only the newest is there where the feature
    /// `earlier-releases` is off.
    pub fn property_at(&self, epc: u8, release: char) -> Option<&'static PropertySpec> {
        let newest = self.property(epc)?;
        if newest.releases.contains(release) {
            return Some(newest);
        }
        let inherited = self.super_class.map_or(&[][..], |class| class.superseded);
        let mut earlier = self.superseded.iter().chain(inherited);
        earlier.find(|row| row.epc == epc && row.releases.contains(release))
    }

    /// The property with this short name, whatever the case, or code in hex (`b3`, `0xB3`). The class's own properties
    /// go first: a controller's `productCode` is its 0xC8, not the 0x8C it inherits.
    pub fn property_by_name(&self, name: &str) -> Option<&'static PropertySpec> {
        let inherited = self.super_class.map_or(&[][..], |class| class.properties);
        let named = self.properties.iter().chain(inherited).find(|row| row.short_name.eq_ignore_ascii_case(name));
        named.or_else(|| self.property(u8::try_from(hex(name)?).ok()?))
    }

    /// The access that every device of the class offers: the properties that are required, the inherited ones too.
    pub const fn mandatory(&self) -> PropertyAccess {
        let mut access = match self.super_class {
            Some(super_class) => super_class.mandatory().without(self.own),
            None => PropertyAccess::NONE,
        };
        let mut at = 0;
        while at < self.properties.len() {
            let PropertySpec { epc, access: rules, .. } = self.properties[at];
            let required = [rules.get.is_required(), rules.set.is_required(), rules.inf.is_required()];
            access = access.with(epc, required);
            at += 1;
        }
        access
    }

    /// The access that a device offers with some optional properties besides the required ones. Each optional property
    /// can be read and written where the class knows that service, and is announced where the class wants it announced.
    ///
    /// ```
    /// use echonet_lite::class::{SUPER_CLASS, PropertyAccess};
    ///
    /// const LIMITED: PropertyAccess = SUPER_CLASS.offering(&[0x87]);
    /// assert!(LIMITED.get.contains(0x87) && LIMITED.set.contains(0x87) && !LIMITED.announce.contains(0x87));
    /// assert!(LIMITED.set.contains(0x81), "every device can be told its place");
    /// ```
    ///
    /// # Panics
    ///
    /// A code the class does not have; in a constant that is an error at compile time.
    pub const fn offering(&self, optional: &[u8]) -> PropertyAccess {
        let mut access = self.mandatory();
        let mut at = 0;
        while at < optional.len() {
            let rules = self.rules(optional[at]).expect("the class has the optional property");
            let offered = [rules.get.is_applicable(), rules.set.is_applicable(), rules.inf.is_required_if_present()];
            access = access.with(optional[at], offered);
            at += 1;
        }
        access
    }

    const fn rules(&self, epc: u8) -> Option<Access> {
        if self.own.contains(epc) {
            return Some(self.properties[self.own.rank(epc)].access);
        }
        match self.super_class {
            Some(super_class) => super_class.rules(epc),
            None => None,
        }
    }

    /// Its own and the inherited properties, sorted by EPC.
    pub fn all_properties(&self) -> impl Iterator<Item = &'static PropertySpec> {
        (0x80..=0xFF).filter_map(|epc| self.property(epc))
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.short_name)
    }
}

/// A number of up to four hexadecimal digits, with or without `0x`.
pub(super) fn hex(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    if digits.is_empty() || digits.len() > 4 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}

/// Whether a table's EPCs rise, each one above (`strictly`) or at least as high as the one before.
const fn is_sorted(rows: &[PropertySpec], strictly: bool) -> bool {
    let mut at = 1;
    while at < rows.len() {
        let (before, this) = (rows[at - 1].epc, rows[at].epc);
        if before > this || (strictly && before == this) {
            return false;
        }
        at += 1;
    }
    true
}

const fn codes(rows: &[PropertySpec]) -> PropertySet {
    let mut codes = PropertySet::EMPTY;
    let mut at = 0;
    while at < rows.len() {
        codes = codes.with(rows[at].epc);
        at += 1;
    }
    codes
}

//! One row of a class table: a property with its access rules, releases and data.

use super::Data;
pub use crate::wire::PropertyAccess;

/// One property of a class, as the device objects list it.
#[derive(Clone, Copy, Debug)]
pub struct PropertySpec {
    /// The property's code, 0x80 to 0xFF.
    pub epc: u8,
    /// The name programs use, for example `targetTemperature`.
    pub short_name: &'static str,
    /// Which services a device must offer on it.
    pub access: Access,
    /// The releases of the device objects that have it in this form.
    pub releases: Releases,
    /// The data type of its EDT.
    pub data: &'static Data,
    /// The property to be written in the same message before this one is read (historical data: the day).
    pub atomic: Option<u8>,
    pub(super) names: Names,
}

impl PropertySpec {
    /// A property that the tables do not have, such as a maker's: its code, its names for programs and for people, its services and
    /// its type.
    ///
    /// # Panics
    ///
    /// The code is below 0x80.
    pub const fn new(epc: u8, [short_name, name]: [&'static str; 2], access: Access, data: &'static Data) -> Self {
        assert!(epc >= 0x80, "a property has a code from 0x80");
        let releases = Releases::parse("A..");
        Self { epc, short_name, access, releases, data, atomic: None, names: Names::new(name, name) }
    }

    /// The English name; the short name where the feature `names` is off.
    pub const fn name(&self) -> &'static str {
        self.names.english(self.short_name)
    }

    /// The Japanese name; the short name where the feature `names` is off.
    pub const fn name_ja(&self) -> &'static str {
        self.names.japanese(self.short_name)
    }
}

/// Which services a device of the class must offer on a property.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Reading: Get and `INF_REQ`.
    pub get: Rule,
    /// Writing: `SetI`, `SetC`.
    pub set: Rule,
    /// Announcing a change of status by itself.
    pub inf: Rule,
}

/// How binding one service is on one property.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rule {
    /// Every device of the class offers it.
    Required,
    /// Devices that meet the condition of the class's note offer it (`required_c`).
    RequiredC,
    /// Devices that carry the function it belongs to offer it (`required_o`).
    RequiredO,
    /// Devices that have the property offer it.
    IfPresent,
    /// A device may offer it.
    Optional,
    /// There is no such service.
    NotApplicable,
}

impl Rule {
    /// Whether every device of the class offers it.
    pub const fn is_required(self) -> bool {
        matches!(self, Self::Required)
    }

    /// Whether every device that has the property offers it.
    pub const fn is_required_if_present(self) -> bool {
        matches!(self, Self::Required | Self::IfPresent)
    }

    /// Whether a device may offer it at all.
    pub const fn is_applicable(self) -> bool {
        !matches!(self, Self::NotApplicable)
    }

    /// The rule's name in the machine-readable appendix, which has "required" for [`Self::IfPresent`], too.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::RequiredC => "required_c",
            Self::RequiredO => "required_o",
            Self::IfPresent => "requiredIfPresent",
            Self::Optional => "optional",
            Self::NotApplicable => "notApplicable",
        }
    }
}

impl core::fmt::Display for Rule {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The releases of the device objects in which a row holds: a first letter and, where it was withdrawn, a last one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Releases {
    from: u8,
    to: Option<u8>,
}

impl Releases {
    /// The newest release these tables know.
    pub const LATEST: char = 'R';

    /// Reads `"A.."` (since A) or `"A..C"` (A to C); used on constants only.
    pub(super) const fn parse(text: &str) -> Self {
        let text = text.as_bytes();
        assert!(text.len() == 3 || text.len() == 4);
        assert!(text[1] == b'.' && text[2] == b'.');
        assert!(text[0].is_ascii_uppercase());
        let to = if text.len() == 4 { Some(text[3]) } else { None };
        if let Some(to) = to {
            assert!(to.is_ascii_uppercase() && to >= text[0]);
        }
        Self { from: text[0], to }
    }

    /// The first release.
    pub const fn from(self) -> char {
        self.from as char
    }

    /// The last release, where there was one.
    pub const fn to(self) -> Option<char> {
        match self.to {
            Some(to) => Some(to as char),
            None => None,
        }
    }

    /// Whether the row holds in this release (a capital letter, as properties 0x82 of devices tell).
    pub const fn contains(self, release: char) -> bool {
        let late = match self.to {
            Some(to) => release > to as char,
            None => false,
        };
        release >= self.from as char && !late
    }
}

impl core::fmt::Display for Releases {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.to() {
            Some(to) => write!(f, "{}-{to}", self.from()),
            None => write!(f, "{}-", self.from()),
        }
    }
}

/// The names for people. Without the feature `names` they take no room in the program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    #[cfg(feature = "names")]
    english: &'static str,
    #[cfg(feature = "names")]
    japanese: &'static str,
}

#[cfg(feature = "names")]
impl Names {
    pub(super) const fn new(english: &'static str, japanese: &'static str) -> Self {
        Self { english, japanese }
    }

    pub(super) const fn english(&self, _short: &'static str) -> &'static str {
        self.english
    }

    pub(super) const fn japanese(&self, _short: &'static str) -> &'static str {
        self.japanese
    }
}

#[cfg(not(feature = "names"))]
impl Names {
    pub(super) const fn new(_english: &'static str, _japanese: &'static str) -> Self {
        Self {}
    }

    pub(super) const fn english(&self, short: &'static str) -> &'static str {
        short
    }

    pub(super) const fn japanese(&self, short: &'static str) -> &'static str {
        short
    }
}

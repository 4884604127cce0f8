//! The data types of the device objects: the form of a property's EDT.

use super::property::Names;

/// The data type of a property, of a field or of an item.
#[derive(Debug)]
pub enum Data {
    /// A whole number, times a power of ten, with a unit.
    Number(Number),
    /// A code for one of a few numbers, for example 0x01 for 0.1.
    Numeric(&'static [Numeric]),
    /// One of several named codes.
    State(States),
    /// One of a few steps.
    Level(Level),
    /// Named bits.
    Bitmap(Bitmap),
    /// Year (2 bytes), month, day.
    Date,
    /// A time of day or a span.
    Time(TimeFormat),
    /// Year (2 bytes), month, day, hour, minute, and a second where `seconds` says so.
    DateTime {
        /// Whether a byte for the second follows: 7 bytes, else 6.
        seconds: bool,
    },
    /// A text in UTF-8. Zero bytes and spaces at its end do not belong to it. Without the feature `std`, no bytes are read as
    /// a text; [`Raw`](Self::Raw) reads them there.
    Text {
        /// The fewest bytes: zero bytes fill a shorter text.
        minimum: u8,
        /// The most bytes.
        maximum: u8,
    },
    /// Bytes whose meaning the tables leave open.
    Raw {
        /// The fewest bytes.
        minimum: u8,
        /// The most bytes.
        maximum: u8,
    },
    /// Items of one type and length, one after the other.
    Array(Array),
    /// Named fields, one after the other.
    Object(&'static [Field]),
    /// The first of these types that the bytes fit; states go before numbers.
    OneOf(&'static [Self]),
}

/// A whole number with its range, scale and unit.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Size and sign.
    pub format: Format,
    /// The least number allowed, before the scale.
    pub minimum: i64,
    /// The greatest number allowed, before the scale.
    pub maximum: i64,
    /// The power of ten the number counts: −1 for tenths.
    pub exponent: i8,
    /// The unit, after the scale.
    pub unit: Unit,
    /// Properties of the same object whose values the number has to be multiplied with (meters: 0xD3, 0xE1).
    pub coefficients: &'static [u8],
    /// Whether the codes of section 6.2.2 stand for an overflow and an underflow.
    pub has_codes: bool,
}

/// Size and sign of a number; the bytes are big-endian.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Format {
    Int8,
    Uint8,
    Int16,
    Uint16,
    Uint24,
    Int32,
    Uint32,
}

impl Format {
    /// How many bytes a number takes.
    pub const fn size(self) -> usize {
        match self {
            Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Uint24 => 3,
            Self::Int32 | Self::Uint32 => 4,
        }
    }

    /// The least and the greatest number there is room for.
    pub const fn range(self) -> (i64, i64) {
        match self {
            Self::Int8 => (i8::MIN as i64, i8::MAX as i64),
            Self::Uint8 => (0, u8::MAX as i64),
            Self::Int16 => (i16::MIN as i64, i16::MAX as i64),
            Self::Uint16 => (0, u16::MAX as i64),
            Self::Uint24 => (0, 0xFF_FFFF),
            Self::Int32 => (i32::MIN as i64, i32::MAX as i64),
            Self::Uint32 => (0, u32::MAX as i64),
        }
    }

    /// The code for "higher than there is a number for" (section 6.2.2).
    pub const fn overflow(self) -> i64 {
        self.range().1
    }

    /// The code for "lower than there is a number for" (section 6.2.2).
    pub const fn underflow(self) -> i64 {
        match self {
            Self::Int8 | Self::Int16 | Self::Int32 => self.range().0,
            Self::Uint8 | Self::Uint16 | Self::Uint24 | Self::Uint32 => self.range().1 - 1,
        }
    }
}

/// Units of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Unit {
    None,
    Celsius,
    Percent,
    Ppm,
    Watt,
    Kilowatt,
    WattHour,
    KilowattHour,
    KilovarHour,
    Volt,
    Ampere,
    Milliampere,
    AmpereHour,
    Lux,
    Kilolux,
    Millisecond,
    Second,
    Minute,
    Day,
    Degree,
    Litre,
    CubicMetre,
    CubicMetrePerHour,
    Megajoule,
    Digit,
    Millihertz,
    WattPerMillihertz,
    WattPerSecond,
    RevolutionPerMinute,
    Hour,
    Centimetre,
    Kine,
    Pascal,
    Hectopascal,
    Kilopascal,
    MetrePerSecond,
    CubicCentimetre,
    CubicCentimetrePerMinute,
    Kilogram,
    KilovoltAmpere,
}

impl Unit {
    /// The sign that follows a number, empty for a number without a unit.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Celsius => "°C",
            Self::Percent => "%",
            Self::Ppm => "ppm",
            Self::Watt => "W",
            Self::Kilowatt => "kW",
            Self::WattHour => "Wh",
            Self::KilowattHour => "kWh",
            Self::KilovarHour => "kvarh",
            Self::Volt => "V",
            Self::Ampere => "A",
            Self::Milliampere => "mA",
            Self::AmpereHour => "Ah",
            Self::Lux => "lux",
            Self::Kilolux => "klux",
            Self::Millisecond => "ms",
            Self::Second => "s",
            Self::Minute => "min",
            Self::Day => "d",
            Self::Degree => "°",
            Self::Litre => "L",
            Self::CubicMetre => "m³",
            Self::CubicMetrePerHour => "m³/h",
            Self::Megajoule => "MJ",
            Self::Digit => "digits",
            Self::Millihertz => "mHz",
            Self::WattPerMillihertz => "W/mHz",
            Self::WattPerSecond => "W/s",
            Self::RevolutionPerMinute => "r/min",
            Self::Hour => "h",
            Self::Centimetre => "cm",
            Self::Kine => "kine",
            Self::Pascal => "Pa",
            Self::Hectopascal => "hPa",
            Self::Kilopascal => "kPa",
            Self::MetrePerSecond => "m/s",
            Self::CubicCentimetre => "cm³",
            Self::CubicCentimetrePerMinute => "cm³/min",
            Self::Kilogram => "kg",
            Self::KilovoltAmpere => "kVA",
        }
    }
}

impl Unit {
    /// The unit with this sign, or with these letters in any case: `°C`, `C`, `m³`, `m3`. `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| text == unit.symbol() || text.eq_ignore_ascii_case(unit.plain()))
    }

    const ALL: [Self; 39] = [
        Self::Celsius,
        Self::Percent,
        Self::Ppm,
        Self::Watt,
        Self::Kilowatt,
        Self::WattHour,
        Self::KilowattHour,
        Self::KilovarHour,
        Self::Volt,
        Self::Ampere,
        Self::Milliampere,
        Self::AmpereHour,
        Self::Lux,
        Self::Kilolux,
        Self::Millisecond,
        Self::Second,
        Self::Minute,
        Self::Day,
        Self::Degree,
        Self::Litre,
        Self::CubicMetre,
        Self::CubicMetrePerHour,
        Self::Megajoule,
        Self::Digit,
        Self::Millihertz,
        Self::WattPerMillihertz,
        Self::WattPerSecond,
        Self::RevolutionPerMinute,
        Self::Hour,
        Self::Centimetre,
        Self::Kine,
        Self::Pascal,
        Self::Hectopascal,
        Self::Kilopascal,
        Self::MetrePerSecond,
        Self::CubicCentimetre,
        Self::CubicCentimetrePerMinute,
        Self::Kilogram,
        Self::KilovoltAmpere,
    ];

    /// The sign in letters that every keyboard has.
    const fn plain(self) -> &'static str {
        match self {
            Self::Celsius => "C",
            Self::Degree => "deg",
            Self::CubicMetre => "m3",
            Self::CubicMetrePerHour => "m3/h",
            Self::CubicCentimetre => "cm3",
            Self::CubicCentimetrePerMinute => "cm3/min",
            Self::Day => "days",
            _ => self.symbol(),
        }
    }

    /// The unit without its prefix, and the prefix as a power of ten.
    pub(super) const fn base(self) -> (Self, i8) {
        match self {
            Self::Kilowatt => (Self::Watt, 3),
            Self::KilowattHour => (Self::WattHour, 3),
            Self::Kilolux => (Self::Lux, 3),
            Self::Milliampere => (Self::Ampere, -3),
            Self::Millisecond => (Self::Second, -3),
            Self::Hectopascal => (Self::Pascal, 2),
            Self::Kilopascal => (Self::Pascal, 3),
            unit => (unit, 0),
        }
    }
}

/// A code that stands for a number.
#[derive(Debug)]
pub struct Numeric {
    /// The EDT, one byte.
    pub code: u8,
    /// The number, times `10^exponent`.
    pub number: u8,
    /// The power of ten.
    pub exponent: i8,
}

/// Named codes of one size.
#[derive(Clone, Copy, Debug)]
pub struct States {
    /// How many bytes a code takes, up to 8; 0 in a bitmap.
    pub size: u8,
    /// The codes.
    pub all: &'static [State],
}

/// A named code.
#[derive(PartialEq, Eq, Debug)]
pub struct State {
    /// The code, as a big-endian number.
    pub code: u64,
    /// How many further codes have the same name.
    pub more: u16,
    /// Whether it can be read only: a Set of it is an error.
    pub read_only: bool,
    /// The meaning of the code.
    pub name: &'static str,
}

/// Steps 1 to `maximum` that lie from `base` upwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// The code of level 1.
    pub base: u16,
    /// How many bytes a code takes, 1 or 2; 0 in a bitmap.
    pub size: u8,
    /// The highest level.
    pub maximum: u16,
}

/// Bytes with named bits.
#[derive(Debug)]
pub struct Bitmap {
    /// How many bytes.
    pub size: u8,
    /// The bits.
    pub flags: &'static [Flag],
}

/// Some bits of one byte of a bitmap.
#[derive(Debug)]
pub struct Flag {
    /// The meaning of the bits.
    pub name: &'static str,
    /// Which byte.
    pub index: u8,
    /// Which of its bits, all in one row.
    pub mask: u8,
    /// The type of their number, of size 0: [`Data::State`] or [`Data::Level`].
    pub data: &'static Data,
}

/// How many bytes a time takes, and how high it goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeFormat {
    /// Whether a byte for the second follows those for hour and minute.
    pub seconds: bool,
    /// The greatest hour: 23 for a time of day, 255 for a span.
    pub maximum_hour: u8,
}

/// Items of one type.
#[derive(Debug)]
pub struct Array {
    /// How many bytes an item takes.
    pub item_size: u8,
    /// The fewest items.
    pub minimum: u8,
    /// The most items.
    pub maximum: u8,
    /// The type of an item.
    pub items: &'static Data,
}

/// A field of an object.
#[derive(Debug)]
pub struct Field {
    /// The name programs use, for example `dateAndTime`.
    pub short_name: &'static str,
    /// The type of the field.
    pub data: &'static Data,
    pub(super) names: Names,
}

impl Field {
    /// The English name; the short name where the feature `names` is off.
    pub const fn name(&self) -> &'static str {
        self.names.english(self.short_name)
    }
}

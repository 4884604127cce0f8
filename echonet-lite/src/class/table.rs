//! How the tables write their rows.

use super::data::{Array, Bitmap, Data, Field, Flag, Format, Level, Number, Numeric, State, States, TimeFormat, Unit};
use super::property::{Access, Names, PropertySpec, Releases, Rule};

/// A row of a class table.
pub(super) const fn row(
    epc: u8,
    short_name: &'static str,
    access: [Rule; 3],
    releases: &'static str,
    data: &'static Data,
    name: &'static str,
    name_ja: &'static str,
) -> PropertySpec {
    assert!(epc >= 0x80);
    let [get, set, inf] = access;
    let access = Access { get, set, inf };
    PropertySpec {
        epc,
        short_name,
        access,
        releases: Releases::parse(releases),
        data,
        atomic: None,
        names: Names::new(name, name_ja),
    }
}

impl PropertySpec {
    /// This row with the property that has to be written before it is read.
    pub(super) const fn atomic(mut self, epc: u8) -> Self {
        assert!(epc >= 0x80);
        self.atomic = Some(epc);
        self
    }
}

macro_rules! number {
    ($($name:ident $format:ident),*) => { $(
        pub(super) const fn $name(minimum: i64, maximum: i64, unit: Unit) -> Data {
            let format = Format::$format;
            let (least, greatest) = format.range();
            assert!(least <= minimum && minimum <= maximum && maximum <= greatest);
            Data::Number(Number { format, minimum, maximum, exponent: 0, unit, coefficients: &[], has_codes: true })
        }
    )* };
}
number!(int8 Int8, uint8 Uint8, int16 Int16, uint16 Uint16, uint24 Uint24, int32 Int32, uint32 Uint32);

impl Data {
    const fn number(self) -> Number {
        let Self::Number(number) = self else { panic!("only numbers have a scale, coefficients and codes") };
        number
    }

    /// This number in steps of a power of ten: −1 for tenths.
    pub(super) const fn e(self, exponent: i8) -> Self {
        let mut number = self.number();
        number.exponent = exponent;
        Self::Number(number)
    }

    /// This number to be multiplied with other properties of the object.
    pub(super) const fn by(self, coefficients: &'static [u8]) -> Self {
        let mut number = self.number();
        number.coefficients = coefficients;
        Self::Number(number)
    }

    /// This number without codes for overflow and underflow.
    pub(super) const fn no_codes(self) -> Self {
        let mut number = self.number();
        number.has_codes = false;
        Self::Number(number)
    }
}

pub(super) const fn states(size: u8, all: &'static [State]) -> Data {
    assert!(size <= 8);
    let mut at = 0;
    while at < all.len() {
        let last = all[at].code + all[at].more as u64;
        assert!(size == 8 || last < 1 << (8 * if size == 0 { 1 } else { size }));
        at += 1;
    }
    Data::State(States { size, all })
}

pub(super) const fn s(code: u64, name: &'static str) -> State {
    State { code, more: 0, read_only: false, name }
}

/// A state that can be read but not be set.
pub(super) const fn ro(code: u64, name: &'static str) -> State {
    State { code, more: 0, read_only: true, name }
}

/// A name for all codes from the first to the last.
pub(super) const fn span(first: u64, last: u64, name: &'static str) -> State {
    assert!(first < last && last - first <= u16::MAX as u64);
    State { code: first, more: (last - first) as u16, read_only: false, name }
}

pub(super) const fn level(size: u8, base: u16, maximum: u16) -> Data {
    assert!(size <= 2 && maximum > 0 && base as u32 + maximum as u32 - 1 <= if size == 2 { 0xFFFF } else { 0xFF });
    Data::Level(Level { base, size, maximum })
}

pub(super) const fn n(code: u8, number: u8, exponent: i8) -> Numeric {
    Numeric { code, number, exponent }
}

pub(super) const fn bitmap(size: u8, flags: &'static [Flag]) -> Data {
    let mut at = 0;
    while at < flags.len() {
        assert!(flags[at].index < size && flags[at].mask != 0);
        at += 1;
    }
    Data::Bitmap(Bitmap { size, flags })
}

pub(super) const fn flag(index: u8, mask: u8, name: &'static str, data: &'static Data) -> Flag {
    Flag { name, index, mask, data }
}

/// Hour and minute.
pub(super) const TIME: Data = Data::Time(TimeFormat { seconds: false, maximum_hour: 23 });
/// Hour, minute and second.
pub(super) const TIME_HMS: Data = Data::Time(TimeFormat { seconds: true, maximum_hour: 23 });
/// Hours and minutes from now.
pub(super) const RELATIVE_TIME: Data = Data::Time(TimeFormat { seconds: false, maximum_hour: 255 });
pub(super) const DATE_TIME: Data = Data::DateTime { seconds: true };
pub(super) const DATE_TIME_MINUTES: Data = Data::DateTime { seconds: false };

pub(super) const fn raw(minimum: u8, maximum: u8) -> Data {
    assert!(minimum <= maximum);
    Data::Raw { minimum, maximum }
}

pub(super) const fn array(minimum: u8, maximum: u8, item_size: u8, items: &'static Data) -> Data {
    assert!(minimum <= maximum && item_size > 0);
    Data::Array(Array { item_size, minimum, maximum, items })
}

pub(super) const fn field(short_name: &'static str, data: &'static Data, name: &'static str) -> Field {
    Field { short_name, data, names: Names::new(name, name) }
}

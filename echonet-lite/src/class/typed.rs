//! Properties as types: `general_lighting::LightLevel` is a property and the type of its values.
//!
//! One module per class has them, with the codes as constants. Enums are states; [`Quantity`] is a number, a level, or a
//! state beside them; [`Record`] is everything longer. No table is needed to read and write them, but what of it the
//! type itself asks.

use core::fmt;
use core::marker::PhantomData;

use super::data::{Data, Level, Number, Numeric, State};
use super::value::{Scaled, Value};
use crate::wire::ClassCode;

/// A property as a type whose values are the property's.
pub trait Property: Sized {
    /// Its code.
    const EPC: u8;
    /// The class that has it; the super class (0x0000) for what every device has.
    const CLASS: ClassCode;

    /// Reads the value from an EDT.
    ///
    /// # Errors
    ///
    /// It has a wrong length, or says what the property cannot.
    fn decode(edt: &[u8]) -> Result<Self, EdtError>;

    /// Writes the value as EDT and returns its length.
    ///
    /// # Errors
    ///
    /// The buffer is too small.
    fn encode(&self, edt: &mut [u8]) -> Result<usize, EdtError>;

    /// Whether others may set it: not what only tells of a measurement, such as an overflow or "undefined".
    fn is_settable(&self) -> bool {
        true
    }
}

/// Why bytes are no value of a property.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum EdtError {
    /// They are too many or too few.
    Length,
    /// They say what the property cannot.
    Value,
    /// The buffer to write to is too small.
    Room,
}

impl fmt::Display for EdtError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Length => "wrong length",
            Self::Value => "not a value of the property",
            Self::Room => "the buffer is too small",
        })
    }
}

impl core::error::Error for EdtError {}

/// The property of which a [`Quantity`] or a [`Record`] is the value.
pub trait Spec {
    /// The property's code.
    const EPC: u8;
    /// Its class.
    const CLASS: ClassCode;
    /// The data type of its values.
    const DATA: &'static Data;
}

/// A value of one to four bytes: a number in its range, a level, or a named state, of which the type has constants.
///
/// ```
/// use echonet_lite::class::home_air_conditioner::{AirFlowLevel, TargetTemperature};
///
/// const WARM: TargetTemperature = TargetTemperature::of::<25>(); // `of::<51>` does not compile
/// assert_eq!(WARM.to_string(), "25 °C");
/// assert_eq!(TargetTemperature::new(51), None);
/// assert_eq!(TargetTemperature::UNDEFINED.number(), None);
/// assert_eq!(AirFlowLevel::level(3).map(|level| level.code()), Some(0x33));
/// ```
///
/// ```compile_fail
/// let hot = echonet_lite::class::home_air_conditioner::TargetTemperature::of::<51>();
/// ```
pub struct Quantity<S> {
    /// The EDT as a big-endian number.
    code: u32,
    spec: PhantomData<fn() -> S>,
}

impl<S: Spec> Quantity<S> {
    /// The least number.
    pub const MIN: Self = match first_number(S::DATA) {
        Some(number) => Self::checked(of_number(S::DATA, number.minimum)),
        None => panic!("it has no numbers"),
    };
    /// The greatest number.
    pub const MAX: Self = match first_number(S::DATA) {
        Some(number) => Self::checked(of_number(S::DATA, number.maximum)),
        None => panic!("it has no numbers"),
    };

    /// A number in the property's own steps (225 for 22.5 °C in tenths), whose range is checked at compile time.
    pub const fn of<const NUMBER: i64>() -> Self {
        const { Self::checked(of_number(S::DATA, NUMBER)) }
    }

    /// A number in the property's own steps, if it is in range.
    pub const fn new(number: i64) -> Option<Self> {
        Self::maybe(of_number(S::DATA, number))
    }

    /// A number in any scale and, but for a prefix, the property's unit, if the property has exactly that.
    pub fn from_scaled(number: Scaled) -> Option<Self> {
        let mut edt = [0; 4];
        let length = super::value::encode(S::DATA, Value::Number(number), &mut edt)?;
        Self::decode(&edt[..length]).ok()
    }

    /// The number of the range that is nearest to another.
    pub fn nearest(number: f64) -> Option<Self> {
        let range = first_number(S::DATA)?;
        Self::new(Scaled::nearest(number, range.exponent).raw.clamp(range.minimum, range.maximum))
    }

    /// A level from 1 upwards, if there is such a one.
    pub const fn level(level: u16) -> Option<Self> {
        let arms = S::DATA.arms();
        let mut at = 0;
        while at < arms.len() {
            if let Data::Level(Level { base, maximum, .. }) = arms[at] {
                let exists = 1 <= level && level <= maximum;
                return if exists { Some(Self::raw((base + level - 1) as u32)) } else { None };
            }
            at += 1;
        }
        None
    }

    /// The value with this code, the EDT as a big-endian number.
    pub const fn from_code(code: u32) -> Option<Self> {
        if fits(S::DATA, code) { Some(Self::raw(code)) } else { None }
    }

    /// The EDT as a big-endian number.
    pub const fn code(self) -> u32 {
        self.code
    }

    /// The number, with its scale and unit, where it is one.
    pub fn number(self) -> Option<Scaled> {
        self.value().number()
    }

    /// The number in the property's own steps, as [`new`](Self::new) takes it, where it is one.
    pub fn steps(self) -> Option<i64> {
        self.number().map(|number| number.raw)
    }

    /// The level, where it is one.
    pub fn as_level(self) -> Option<u16> {
        match self.value() {
            Value::Level(step) => Some(step.level),
            _ => None,
        }
    }

    /// The value as the tables have it.
    pub fn value(self) -> Value<'static> {
        let bytes = self.code.to_be_bytes();
        super::value::small(S::DATA, &bytes[4 - size(S::DATA)..])
    }

    pub(super) const fn raw(code: u32) -> Self {
        Self { code, spec: PhantomData }
    }

    const fn maybe(code: Option<u32>) -> Option<Self> {
        match code {
            Some(code) => Some(Self::raw(code)),
            None => None,
        }
    }

    const fn checked(code: Option<u32>) -> Self {
        match code {
            Some(code) => Self::raw(code),
            None => panic!("the property does not have this number"),
        }
    }
}

impl<S: Spec> Property for Quantity<S> {
    const EPC: u8 = S::EPC;
    const CLASS: ClassCode = S::CLASS;

    fn decode(edt: &[u8]) -> Result<Self, EdtError> {
        if edt.len() != size(S::DATA) {
            return Err(EdtError::Length);
        }
        let code = edt.iter().fold(0, |code, byte| code << 8 | u32::from(*byte));
        Self::from_code(code).ok_or(EdtError::Value)
    }

    fn encode(&self, edt: &mut [u8]) -> Result<usize, EdtError> {
        put(edt, &self.code.to_be_bytes()[4 - size(S::DATA)..])
    }

    fn is_settable(&self) -> bool {
        is_settable(S::DATA, self.code)
    }
}

impl<S> Clone for Quantity<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Quantity<S> {}

impl<S> PartialEq for Quantity<S> {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl<S> Eq for Quantity<S> {}

impl<S: Spec> fmt::Debug for Quantity<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

/// The code of a property, and the number that its EDT is.
#[cfg(feature = "defmt")]
impl<S: Spec> defmt::Format for Quantity<S> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=u8:02X}={=u32:#X}", S::EPC, self.code);
    }
}

/// The code of a property, and its EDT.
#[cfg(feature = "defmt")]
impl<S: Spec, const MOST: usize> defmt::Format for Record<S, MOST> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=u8:02X}={=[u8]:02X}", S::EPC, self.as_bytes());
    }
}

impl<S: Spec> fmt::Display for Quantity<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.value(), f)
    }
}

/// A value of up to `MOST` bytes that is none of the others: a date, a bitmap, fields, items, bytes.
///
/// ```
/// use echonet_lite::class::general_lighting::{OnTimerTime, Rgb};
/// use echonet_lite::class::{Time, Value};
///
/// let orange = Rgb::new(Value::List(&[255.into(), 128.into(), 0.into()]))?;
/// assert_eq!(orange.to_string(), "{red: 255, green: 128, blue: 0}");
/// let seven = OnTimerTime::new(Value::Time(Time { hour: 7, minute: 0, second: None }))?;
/// assert_eq!(seven.as_bytes(), [7, 0]);
/// # Ok::<(), echonet_lite::class::EdtError>(())
/// ```
pub struct Record<S, const MOST: usize> {
    length: u8,
    bytes: [u8; MOST],
    spec: PhantomData<fn() -> S>,
}

impl<S: Spec, const MOST: usize> Record<S, MOST> {
    /// A value.
    ///
    /// # Errors
    ///
    /// The property cannot have it.
    pub fn new(value: Value<'_>) -> Result<Self, EdtError> {
        let mut record = Self::zeros();
        let length = super::value::encode(S::DATA, value, &mut record.bytes).ok_or(EdtError::Value)?;
        record.length = length as u8;
        Ok(record)
    }

    /// The value as the tables have it.
    pub fn value(&self) -> Value<'_> {
        S::DATA.value(self.as_bytes())
    }

    /// The EDT.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length.into()).unwrap_or_default()
    }

    /// As many bytes as there can be, all zero: a bitmap's "nothing".
    pub(super) const fn zeros() -> Self {
        assert!(MOST <= u8::MAX as usize);
        Self { length: MOST as u8, bytes: [0; MOST], spec: PhantomData }
    }

    /// Some bits of one byte.
    pub(super) const fn bits(&self, index: usize, mask: u8) -> u8 {
        (self.bytes[index] & mask) >> mask.trailing_zeros()
    }

    /// This value with some bits of one byte replaced.
    pub(super) const fn with_bits(mut self, index: usize, mask: u8, bits: u8) -> Self {
        self.bytes[index] = self.bytes[index] & !mask | bits << mask.trailing_zeros() & mask;
        self
    }
}

impl<S: Spec, const MOST: usize> Property for Record<S, MOST> {
    const EPC: u8 = S::EPC;
    const CLASS: ClassCode = S::CLASS;

    fn decode(edt: &[u8]) -> Result<Self, EdtError> {
        let (least, most) = S::DATA.sizes();
        if !(least..=most).contains(&edt.len()) {
            return Err(EdtError::Length);
        }
        Self::new(Value::Raw(edt))
    }

    fn encode(&self, edt: &mut [u8]) -> Result<usize, EdtError> {
        put(edt, self.as_bytes())
    }

    fn is_settable(&self) -> bool {
        match self.value() {
            Value::State(state) => !state.is_read_only(),
            Value::Overflow | Value::Underflow => false,
            _ => true,
        }
    }
}

impl<S, const MOST: usize> Clone for Record<S, MOST> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, const MOST: usize> Copy for Record<S, MOST> {}

impl<S: Spec, const MOST: usize> PartialEq for Record<S, MOST> {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<S: Spec, const MOST: usize> Eq for Record<S, MOST> {}

impl<S: Spec, const MOST: usize> fmt::Debug for Record<S, MOST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

impl<S: Spec, const MOST: usize> fmt::Display for Record<S, MOST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.value(), f)
    }
}

pub(super) fn put(edt: &mut [u8], bytes: &[u8]) -> Result<usize, EdtError> {
    edt.get_mut(..bytes.len()).ok_or(EdtError::Room)?.copy_from_slice(bytes);
    Ok(bytes.len())
}

/// How many bytes the type of a quantity takes.
const fn size(data: &'static Data) -> usize {
    match data.arms()[0] {
        Data::Number(number) => number.format.size(),
        Data::State(states) => states.size as usize,
        Data::Level(level) => level.size as usize,
        _ => 1,
    }
}

const fn first_number(data: &'static Data) -> Option<Number> {
    let arms = data.arms();
    let mut at = 0;
    while at < arms.len() {
        if let Data::Number(number) = arms[at] {
            return Some(number);
        }
        at += 1;
    }
    None
}

/// The code of a number, where the type has it.
const fn of_number(data: &'static Data, number: i64) -> Option<u32> {
    let arms = data.arms();
    let mut at = 0;
    while at < arms.len() {
        match &arms[at] {
            Data::Number(Number { format, minimum, maximum, .. }) if *minimum <= number && number <= *maximum => {
                return Some(number as u32 & (u32::MAX >> (32 - 8 * format.size())));
            }
            Data::Numeric(codes) => return of_numeric(codes, number),
            _ => {}
        }
        at += 1;
    }
    None
}

const fn of_numeric(codes: &[Numeric], number: i64) -> Option<u32> {
    let mut at = 0;
    while at < codes.len() {
        let Numeric { code, number: digits, exponent } = codes[at];
        if exponent >= 0 && digits as i64 * 10i64.pow(exponent as u32) == number {
            return Some(code as u32);
        }
        at += 1;
    }
    None
}

/// Whether the type of a quantity has this code.
const fn fits(data: &'static Data, code: u32) -> bool {
    let arms = data.arms();
    let mut at = 0;
    while at < arms.len() {
        let found = match &arms[at] {
            Data::Number(number) => {
                let value = signed(number, code);
                let is_code =
                    number.has_codes && (value == number.format.overflow() || value == number.format.underflow());
                is_code || number.minimum <= value && value <= number.maximum
            }
            Data::Numeric(codes) => has_numeric(codes, code),
            Data::State(states) => state(states.all, code).is_some(),
            Data::Level(level) => {
                let (base, maximum) = (level.base as u32, level.maximum as u32);
                base <= code && code < base + maximum
            }
            _ => false,
        };
        if found {
            return true;
        }
        at += 1;
    }
    false
}

/// The number that a code is by the format of a number.
const fn signed(number: &Number, code: u32) -> i64 {
    let unused = 32 - 8 * number.format.size();
    if number.format.range().0 < 0 { (((code << unused) as i32) >> unused) as i64 } else { code as i64 }
}

const fn has_numeric(codes: &[Numeric], code: u32) -> bool {
    let mut at = 0;
    while at < codes.len() {
        if codes[at].code as u32 == code {
            return true;
        }
        at += 1;
    }
    false
}

const fn state(all: &'static [State], code: u32) -> Option<&'static State> {
    let mut at = 0;
    while at < all.len() {
        if all[at].code <= code as u64 && code as u64 <= all[at].code + all[at].more as u64 {
            return Some(&all[at]);
        }
        at += 1;
    }
    None
}

/// Whether a code that fits may be set: named states say so; otherwise numbers in their range and levels.
fn is_settable(data: &'static Data, code: u32) -> bool {
    let named = data.arms().iter().find_map(|arm| match arm {
        Data::State(states) => state(states.all, code),
        _ => None,
    });
    if let Some(named) = named {
        return !named.read_only;
    }
    data.arms().iter().any(|arm| match arm {
        Data::Number(number) => (number.minimum..=number.maximum).contains(&signed(number, code)),
        Data::Level(_) | Data::Numeric(_) => fits(arm, code),
        _ => false,
    })
}

/// An enum of states: its property, its size, and its codes; of those behind `read only` a Set is an error.
macro_rules! states {
    ($(#[$doc:meta])* $name:ident, $repr:ty, $class:literal, $epc:literal, { $($variant:ident = $code:literal,)* }, [$($fixed:ident),*]) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs, clippy::enum_variant_names, reason = "the names are the appendix' own")]
        #[repr($repr)]
        pub enum $name { $($variant = $code,)* }

        impl $crate::class::Property for $name {
            const EPC: u8 = $epc;
            const CLASS: $crate::wire::ClassCode = $crate::wire::ClassCode::from_u16($class);

            fn decode(edt: &[u8]) -> ::core::result::Result<Self, $crate::class::EdtError> {
                let bytes = edt.try_into().map_err(|_| $crate::class::EdtError::Length)?;
                match <$repr>::from_be_bytes(bytes) {
                    $($code => ::core::result::Result::Ok(Self::$variant),)*
                    _ => ::core::result::Result::Err($crate::class::EdtError::Value),
                }
            }

            fn encode(&self, edt: &mut [u8]) -> ::core::result::Result<usize, $crate::class::EdtError> {
                $crate::class::typed::put(edt, &(*self as $repr).to_be_bytes())
            }

            fn is_settable(&self) -> bool {
                const FIXED: &[$name] = &[$($name::$fixed),*];
                !FIXED.contains(self)
            }
        }

        #[cfg(feature = "defmt")]
        impl ::defmt::Format for $name {
            fn format(&self, f: ::defmt::Formatter<'_>) {
                let name = match self { $(Self::$variant => ::core::stringify!($variant),)* };
                ::defmt::write!(f, "{=str}", name);
            }
        }

        #[cfg(feature = "serde")]
        impl ::serde_core::Serialize for $name {
            fn serialize<S: ::serde_core::Serializer>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error> {
                let name = match self { $(Self::$variant => ::core::stringify!($variant),)* };
                $crate::shape::write_state(serializer, name, *self as u32)
            }
        }

        #[cfg(feature = "serde")]
        impl<'de> ::serde_core::Deserialize<'de> for $name {
            fn deserialize<D: ::serde_core::Deserializer<'de>>(deserializer: D) -> ::core::result::Result<Self, D::Error> {
                const NAMES: &[&str] = &[$(::core::stringify!($variant)),*];
                $crate::shape::read_state(deserializer, NAMES, &[$(Self::$variant),*], |state| state as u32)
            }
        }
    };
}
pub(super) use states;

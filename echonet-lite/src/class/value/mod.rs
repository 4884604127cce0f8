//! Typed values: the content of an EDT, to and from bytes, text and JSON.
//!
//! The data type of a property ([`Data`]) tells how: `PropertySpec::decode` borrows the EDT and checks all of it,
//! `PropertySpec::encode` writes into a buffer of the caller's, `PropertySpec::parse` does so from what a person typed.

mod decode;
mod display;
mod encode;
mod error;
mod scaled;
mod text;
mod time;

pub use display::Json;
pub use error::{Cause, Excerpt, ValueError};
pub use scaled::Scaled;
pub use time::{Date, DateTime, Time};

use super::data::{Bitmap, Data, Field, Flag, Level, Number, State, States};
use super::property::PropertySpec;

/// The content of an EDT.
///
/// `Display` writes it for people, with its unit: `22.5 °C`, `cooling`, `level 3`, `14:30`, `[1 W, 2 W]`,
/// `{day: 1, electricEnergy: [10 kWh]}`. [`PropertySpec::parse`] reads all of that again. [`Value::json`] writes JSON.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value<'a> {
    /// A number with its scale and unit.
    Number(Scaled),
    /// Higher than there is a number for (section 6.2.2).
    Overflow,
    /// Lower than there is a number for (section 6.2.2).
    Underflow,
    /// A named code.
    State(Named),
    /// A step.
    Level(Step),
    /// Named bits.
    Bitmap(Flags<'a>),
    /// A day.
    Date(Date),
    /// A time of day or a span.
    Time(Time),
    /// A moment.
    DateTime(DateTime),
    /// A date or time that was never set: every byte 0xFF, as meters answer.
    Unset,
    /// A text.
    Text(&'a str),
    /// Bytes whose meaning the tables leave open. Encoding takes them for every type whose value they are.
    Raw(&'a [u8]),
    /// Items of one type.
    Array(Items<'a>),
    /// Named fields.
    Object(Fields<'a>),
    /// Items or fields to be encoded, in their order; decoding gives [`Array`](Self::Array) or
    /// [`Object`](Self::Object).
    List(&'a [Self]),
}

impl<'a> Value<'a> {
    /// A whole number, in the unit of the property it is for.
    pub const fn whole(number: i64) -> Self {
        Self::Number(Scaled::whole(number))
    }

    /// The number, where it is one.
    pub const fn number(self) -> Option<Scaled> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The name of the state, where it is one.
    pub const fn state(self) -> Option<&'static str> {
        match self {
            Self::State(named) => Some(named.state.name),
            _ => None,
        }
    }

    /// The field of this name, where the value is an object that has it.
    pub fn field(self, short_name: &str) -> Option<Self> {
        let Self::Object(mut fields) = self else { return None };
        fields.find(|(field, _)| field.short_name == short_name).map(|(_, value)| value)
    }

    /// The items, none where the value is no array.
    pub fn items(self) -> Items<'a> {
        match self {
            Self::Array(items) => items,
            _ => Items::NONE,
        }
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::whole(number)
    }
}

impl From<Scaled> for Value<'_> {
    fn from(number: Scaled) -> Self {
        Self::Number(number)
    }
}

/// One of the states of a property.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    states: States,
    state: &'static State,
    code: u64,
}

impl Named {
    /// Its name, for example `cooling`.
    pub const fn name(self) -> &'static str {
        self.state.name
    }

    /// Its code.
    pub const fn code(self) -> u64 {
        self.code
    }

    /// Whether a Set of it is an error.
    pub const fn is_read_only(self) -> bool {
        self.state.read_only
    }

    /// `true` and `on`, `false` and `off` as what they mean.
    pub fn as_bool(self) -> Option<bool> {
        match self.state.name {
            "true" | "on" => Some(true),
            "false" | "off" => Some(false),
            _ => None,
        }
    }

    /// Whether the name alone says which code it is.
    fn is_plain(self) -> bool {
        let first = self.states.all.iter().find(|state| state.name == self.state.name);
        self.state.more == 0 && first.is_some_and(|first| first.code == self.code)
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        (self.states.size, self.code) == (other.states.size, other.code)
    }
}

/// One of the levels of a property.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Which, from 1.
    pub level: u16,
    /// Of which series: some properties have several, told apart by their base.
    pub series: Level,
}

impl Level {
    /// Whether a level's number alone says which one it is. Series at 0x31 are the rule, and those of bitmaps have no
    /// other beside them.
    const fn is_plain(self) -> bool {
        self.base == 0x31 || self.size == 0
    }
}

/// The named bits of a bitmap.
#[derive(Clone, Copy, Debug)]
pub struct Flags<'a> {
    bitmap: &'static Bitmap,
    bytes: &'a [u8],
}

impl<'a> Flags<'a> {
    /// The value of each of them.
    pub fn iter(self) -> impl Iterator<Item = (&'static Flag, Value<'a>)> {
        self.bitmap.flags.iter().map(move |flag| (flag, flag.value(self.bits(flag))))
    }

    /// Whether any bit of the one with this name is 1.
    pub fn contains(self, name: &str) -> bool {
        self.bitmap.flags.iter().any(|flag| flag.name == name && self.bits(flag) != 0)
    }

    /// The bytes.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    fn bits(self, flag: &Flag) -> u8 {
        let byte = self.bytes.get(usize::from(flag.index)).copied().unwrap_or(0);
        (byte & flag.mask) >> flag.mask.trailing_zeros()
    }

    /// The bits of the byte at `index` that have no name.
    fn reserved(self, index: usize) -> u8 {
        let byte = self.bytes.get(index).copied().unwrap_or(0);
        byte & !self.bitmap.named(index)
    }
}

impl PartialEq for Flags<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Bitmap {
    fn named(&self, index: usize) -> u8 {
        let here = self.flags.iter().filter(|flag| usize::from(flag.index) == index);
        here.fold(0, |named, flag| named | flag.mask)
    }
}

/// The items of an array; iterates over their values.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a> {
    data: &'static Data,
    size: usize,
    bytes: &'a [u8],
}

impl<'a> Items<'a> {
    const NONE: Self = Self { data: &Data::Date, size: 1, bytes: &[] };

    /// The item at `index`.
    pub fn get(mut self, index: usize) -> Option<Value<'a>> {
        self.nth(index)
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let (item, rest) = self.bytes.split_at_checked(self.size)?;
        self.bytes = rest;
        Some(self.data.value(item))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.bytes.len() / self.size.max(1);
        (left, Some(left))
    }
}

impl ExactSizeIterator for Items<'_> {}

impl PartialEq for Items<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

/// The fields of an object; iterates over them with their values.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    fields: &'static [Field],
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The next field and its bytes. Of fields of varying length each takes all it can, but the bytes that the next ones need.
    fn split(&mut self) -> Option<(&'static Field, &'a [u8])> {
        let (field, rest) = self.fields.split_first()?;
        let needed: usize = rest.iter().map(|field| field.data.sizes().0).sum();
        let most = field.data.sizes().1.min(self.bytes.len().saturating_sub(needed));
        let (bytes, left) = self.bytes.split_at(most.min(self.bytes.len()));
        (self.fields, self.bytes) = (rest, left);
        Some((field, bytes))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'static Field, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.split().map(|(field, bytes)| (field, field.data.value(bytes)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.fields.len(), Some(self.fields.len()))
    }
}

impl ExactSizeIterator for Fields<'_> {}

impl PartialEq for Fields<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl PropertySpec {
    /// Reads an EDT of this property.
    ///
    /// # Errors
    ///
    /// The EDT has another length than the property's, or says what the property cannot.
    pub fn decode<'a>(&self, edt: &'a [u8]) -> Result<Value<'a>, ValueError> {
        decode::decode(self.data, edt).map_err(|fault| fault.of(self))
    }

    /// Writes a value as EDT and returns its length. A number may come in another scale or with a prefixed unit
    /// (1.5 kW for 1500 W) if that is the same.
    ///
    /// # Errors
    ///
    /// The property cannot have that value, or the buffer is too small.
    pub fn encode(&self, value: Value<'_>, edt: &mut [u8]) -> Result<usize, ValueError> {
        encode::encode(self.data, value, edt).map_err(|fault| fault.of(self))
    }

    /// Reads what a person typed, writes it as EDT and returns its length: `on`, `22.5`, `22 °C`, `level 3`, `14:30`,
    /// `[1, 2]`, `{red: 255, green: 0, blue: 0}`, everything that `Display` of a [`Value`] writes; and `0x41`, the EDT
    /// itself in hex.
    ///
    /// # Errors
    ///
    /// The text is none of this property's values, or the buffer is too small.
    pub fn parse(&self, text: &str, edt: &mut [u8]) -> Result<usize, ValueError> {
        text::parse(self.data, text, edt).map_err(|fault| fault.of(self))
    }

    /// The value nearest to a number that this property can have: `None` where it has no numbers.
    pub fn nearest(&self, number: f64) -> Option<Value<'static>> {
        let Number { exponent, unit, minimum, maximum, .. } = *self.number()?;
        let raw = Scaled::nearest(number, exponent).raw.clamp(minimum, maximum);
        Some(Value::Number(Scaled { raw, exponent, unit }))
    }

    /// Its numbers' range, scale, unit and coefficients, where it has numbers.
    pub fn number(&self) -> Option<&'static Number> {
        self.data.arms().iter().find_map(|data| match data {
            Data::Number(number) => Some(number),
            _ => None,
        })
    }
}

/// The EDT that a text says; its length.
#[cfg(feature = "serde")]
pub(crate) fn parse_text(data: &'static Data, text: &str, edt: &mut [u8]) -> Option<usize> {
    text::parse(data, text, edt).ok()
}

/// Writes a value as EDT of this type, if it is one, and returns its length.
pub(super) fn encode(data: &'static Data, value: Value<'_>, edt: &mut [u8]) -> Option<usize> {
    encode::encode(data, value, edt).ok()
}

/// The value of bytes that were checked before, of a type whose values borrow nothing.
pub(super) fn small(data: &'static Data, bytes: &[u8]) -> Value<'static> {
    match data.value(bytes) {
        Value::Number(number) => Value::Number(number),
        Value::State(named) => Value::State(named),
        Value::Level(step) => Value::Level(step),
        Value::Underflow => Value::Underflow,
        _ => Value::Overflow,
    }
}

impl Data {
    /// The value of bytes that were checked before.
    pub(super) fn value<'a>(&'static self, bytes: &'a [u8]) -> Value<'a> {
        decode::decode(self, bytes).unwrap_or(Value::Raw(bytes))
    }

    /// The types it may be.
    pub(super) const fn arms(&'static self) -> &'static [Self] {
        match self {
            Self::OneOf(arms) => arms,
            one => core::slice::from_ref(one),
        }
    }

    /// The fewest and the most bytes of an EDT.
    pub fn sizes(&self) -> (usize, usize) {
        let fixed = |size: usize| (size, size);
        match self {
            Self::Number(number) => fixed(number.format.size()),
            Self::Numeric(_) => fixed(1),
            Self::State(states) => fixed(states.size.into()),
            Self::Level(level) => fixed(level.size.into()),
            Self::Bitmap(bitmap) => fixed(bitmap.size.into()),
            Self::Date => fixed(4),
            Self::Time(format) => fixed(if format.seconds { 3 } else { 2 }),
            Self::DateTime { seconds } => fixed(if *seconds { 7 } else { 6 }),
            Self::Text { minimum, maximum } | Self::Raw { minimum, maximum } => ((*minimum).into(), (*maximum).into()),
            Self::Array(array) => {
                let items = |count: u8| usize::from(count) * usize::from(array.item_size);
                (items(array.minimum), items(array.maximum))
            }
            Self::Object(fields) => fields.iter().map(|field| field.data.sizes()).fold((0, 0), add),
            Self::OneOf(arms) => {
                let sizes = arms.iter().map(Self::sizes);
                sizes.reduce(|(a, b), (c, d)| (a.min(c), b.max(d))).unwrap_or((0, 0))
            }
        }
    }
}

fn add((a, b): (usize, usize), (c, d): (usize, usize)) -> (usize, usize) {
    (a + c, b + d)
}

//! Bytes to values.

use super::error::{Cause, Excerpt, Fault};
use super::{Date, DateTime, Fields, Flags, Items, Named, Scaled, Step, Time, Value};
use crate::class::data::{Data, Flag, Format, Level, Number, Numeric, States};

/// Reads `edt` as a value of type `data`; checks the whole of it.
pub(super) fn decode<'a>(data: &'static Data, edt: &'a [u8]) -> Result<Value<'a>, Fault> {
    let (least, most) = data.sizes();
    if !(least..=most).contains(&edt.len()) {
        return Err(Cause::Length { length: edt.len(), expected: data }.into());
    }
    match data {
        Data::Array(array) => items(Items { data: array.items, size: array.item_size.into(), bytes: edt }, data),
        Data::Object(fields) => object(Fields { fields, bytes: edt }),
        data => plain(data, edt).ok_or_else(|| mismatch(data, edt)),
    }
}

/// Reads `edt`, of a right length, as a value of a type that is neither array nor object.
fn plain<'a>(data: &'static Data, edt: &'a [u8]) -> Option<Value<'a>> {
    match data {
        Data::Number(number) => number.value(edt).or_else(|| number.code(edt)),
        Data::Numeric(codes) => numeric(codes, edt).map(Value::Number),
        Data::State(states) => states.named(integer(edt)).map(Value::State),
        Data::Level(level) => level.step(integer(edt)).map(Value::Level),
        Data::Bitmap(bitmap) => Some(Value::Bitmap(Flags { bitmap, bytes: edt })),
        Data::Date => Date::from_bytes(edt).map(Value::Date).or_else(|| unset(edt)),
        Data::Time(format) => Time::from_bytes(edt, format.maximum_hour).map(Value::Time).or_else(|| unset(edt)),
        Data::DateTime { .. } => DateTime::from_bytes(edt).map(Value::DateTime).or_else(|| unset(edt)),
        Data::Text { .. } => text(edt).map(Value::Text),
        Data::Raw { .. } => Some(Value::Raw(edt)),
        Data::OneOf(arms) => one_of(arms, edt),
        Data::Array(_) | Data::Object(_) => decode(data, edt).ok(),
    }
}

/// The first arm that the bytes fit: named codes before numbers, whose ranges may hold them, and the codes for overflow
/// and underflow last.
fn one_of<'a>(arms: &'static [Data], edt: &'a [u8]) -> Option<Value<'a>> {
    let states = arms.iter().filter(|arm| matches!(arm, Data::State(_)));
    let others = arms.iter().filter(|arm| !matches!(arm, Data::State(_)));
    let exact = states.chain(others.clone()).find_map(|arm| match arm {
        Data::Number(number) => number.value(edt),
        arm => {
            let (least, most) = arm.sizes();
            if (least..=most).contains(&edt.len()) { plain(arm, edt) } else { None }
        }
    });
    exact.or_else(|| {
        others.into_iter().find_map(|arm| match arm {
            Data::Number(number) => number.code(edt),
            _ => None,
        })
    })
}

fn items<'a>(items: Items<'a>, data: &'static Data) -> Result<Value<'a>, Fault> {
    if !items.bytes.len().is_multiple_of(items.size) {
        return Err(Cause::Length { length: items.bytes.len(), expected: data }.into());
    }
    for item in items.bytes.chunks_exact(items.size) {
        decode(items.data, item)?;
    }
    Ok(Value::Array(items))
}

fn object(fields: Fields<'_>) -> Result<Value<'_>, Fault> {
    let mut left = fields;
    while let Some((field, bytes)) = left.split() {
        decode(field.data, bytes).map_err(|fault| fault.in_field(field.short_name))?;
    }
    // Left-over bytes cannot be: the fields' sizes were checked in sum.
    Ok(Value::Object(fields))
}

fn numeric(codes: &'static [Numeric], edt: &[u8]) -> Option<Scaled> {
    codes.iter().find(|numeric| edt == [numeric.code]).map(Numeric::number)
}

fn unset(edt: &[u8]) -> Option<Value<'static>> {
    edt.iter().all(|byte| *byte == 0xFF).then_some(Value::Unset)
}

/// The text of bytes; none if they are not UTF-8, or have control characters in the text.
#[cfg(feature = "std")]
fn text(edt: &[u8]) -> Option<&str> {
    let text = core::str::from_utf8(edt).ok()?.trim_end_matches(['\0', ' ']);
    (!text.contains(char::is_control)).then_some(text)
}

/// A microcontroller has the tables' classes, and these have no texts: UTF-8 would take 0.9 kB of its flash for nothing.
#[cfg(not(feature = "std"))]
const fn text(_: &[u8]) -> Option<&str> {
    None
}

fn mismatch(data: &'static Data, edt: &[u8]) -> Fault {
    let number = data.arms().iter().find_map(|arm| match arm {
        Data::Number(number) => number.scaled(edt),
        _ => None,
    });
    match number {
        Some(number) => Cause::Number { number, expected: data }.into(),
        None => Cause::Bytes { bytes: Excerpt::hex(edt), expected: data }.into(),
    }
}

/// A big-endian number of up to eight bytes.
fn integer(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Number {
    /// The number as it is sent, where the length is right.
    fn raw(&self, edt: &[u8]) -> Option<i64> {
        Some(match (self.format, edt) {
            (Format::Int8, &[a]) => i8::from_be_bytes([a]).into(),
            (Format::Uint8, &[a]) => a.into(),
            (Format::Int16, &[a, b]) => i16::from_be_bytes([a, b]).into(),
            (Format::Uint16, &[a, b]) => u16::from_be_bytes([a, b]).into(),
            (Format::Uint24, &[a, b, c]) => u32::from_be_bytes([0, a, b, c]).into(),
            (Format::Int32, &[a, b, c, d]) => i32::from_be_bytes([a, b, c, d]).into(),
            (Format::Uint32, &[a, b, c, d]) => u32::from_be_bytes([a, b, c, d]).into(),
            _ => return None,
        })
    }

    fn scaled(&self, edt: &[u8]) -> Option<Scaled> {
        Some(Scaled { raw: self.raw(edt)?, exponent: self.exponent, unit: self.unit })
    }

    fn value(&self, edt: &[u8]) -> Option<Value<'static>> {
        let number = self.scaled(edt)?;
        (self.minimum..=self.maximum).contains(&number.raw).then_some(Value::Number(number))
    }

    /// The meaning of the codes of section 6.2.2.
    fn code(&self, edt: &[u8]) -> Option<Value<'static>> {
        match self.raw(edt)? {
            _ if !self.has_codes => None,
            code if code == self.format.overflow() => Some(Value::Overflow),
            code if code == self.format.underflow() => Some(Value::Underflow),
            _ => None,
        }
    }
}

impl Numeric {
    pub(super) fn number(&self) -> Scaled {
        Scaled { exponent: self.exponent, ..Scaled::whole(self.number.into()) }
    }
}

impl States {
    pub(super) fn named(self, code: u64) -> Option<Named> {
        let state = self.all.iter().find(|state| (state.code..=state.code + u64::from(state.more)).contains(&code))?;
        Some(Named { states: self, state, code })
    }
}

impl Level {
    fn step(self, code: u64) -> Option<Step> {
        let above = code.checked_sub(self.base.into())?;
        let level = u16::try_from(above).ok()?.checked_add(1)?;
        (level <= self.maximum).then_some(Step { level, series: self })
    }
}

impl Flag {
    /// The value of its bits.
    pub(super) fn value(&self, bits: u8) -> Value<'static> {
        let value = match self.data {
            Data::State(states) => states.named(bits.into()).map(Value::State),
            Data::Level(level) => level.step(bits.into()).map(Value::Level),
            _ => None,
        };
        value.unwrap_or_else(|| Value::whole(bits.into()))
    }
}

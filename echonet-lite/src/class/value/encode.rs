//! Values to bytes.

use super::decode::decode;
use super::error::{Cause, Fault};
use super::{Scaled, Value};
use crate::class::data::{Data, Field, Number};

/// Writes `value` as an EDT of type `data` and returns its length.
pub(super) fn encode(data: &'static Data, value: Value<'_>, out: &mut [u8]) -> Result<usize, Fault> {
    if let Data::OneOf(arms) = data {
        return one_of(data, arms, value, out);
    }
    match (data, value) {
        (Data::Number(number), Value::Number(scaled)) => {
            put(out, &number.bytes(scaled, data)?[8 - number.format.size()..])
        }
        (Data::Number(number), Value::Overflow | Value::Underflow) => code(number, data, value, out),
        (Data::Numeric(codes), Value::Number(scaled)) => {
            let same = codes.iter().find(|numeric| numeric.number().eq(&scaled));
            put(out, &[same.ok_or(Cause::Number { number: scaled, expected: data })?.code])
        }
        (Data::State(states), Value::State(named)) if states.size == named.states.size => {
            let named = states.named(named.code).ok_or_else(|| kind(value, data))?;
            put(out, &named.code.to_be_bytes()[8 - usize::from(states.size).min(8)..])
        }
        (Data::Level(level), Value::Level(step))
            if *level == step.series && (1..=level.maximum).contains(&step.level) =>
        {
            put(out, &(level.base + (step.level - 1)).to_be_bytes()[2 - usize::from(level.size).min(2)..])
        }
        (Data::Date, Value::Date(date)) => put(out, &date.checked().ok_or_else(|| kind(value, data))?.to_bytes()),
        (Data::Time(format), Value::Time(time)) => {
            let (bytes, length) = time.checked(format.maximum_hour).ok_or_else(|| kind(value, data))?.to_bytes();
            if format.seconds == (length == 3) { put(out, &bytes[..length]) } else { Err(kind(value, data)) }
        }
        (Data::DateTime { seconds }, Value::DateTime(moment)) => {
            let date = moment.date.checked().ok_or_else(|| kind(value, data))?.to_bytes();
            let (time, length) = moment.time.checked(23).ok_or_else(|| kind(value, data))?.to_bytes();
            if *seconds != (length == 3) {
                return Err(kind(value, data));
            }
            let bytes = [date[0], date[1], date[2], date[3], time[0], time[1], time[2]];
            put(out, &bytes[..date.len() + length])
        }
        (Data::Date | Data::Time(_) | Data::DateTime { .. }, Value::Unset) => {
            put(out, &[0xFF; 7][..data.sizes().0.min(7)])
        }
        (Data::Text { .. }, Value::Text(text)) if text.contains(char::is_control) => Err(kind(value, data)),
        (Data::Text { minimum, maximum }, Value::Text(text)) => {
            if text.len() > usize::from(*maximum) {
                return Err(Cause::Length { length: text.len(), expected: data }.into());
            }
            let (needed, room) = (text.len().max((*minimum).into()), out.len());
            let target = out.get_mut(..needed).ok_or(Cause::Room { needed, room })?;
            target.fill(0);
            put(target, text.as_bytes())?;
            Ok(needed)
        }
        (Data::Array(array), Value::List(items)) => {
            if !(usize::from(array.minimum)..=usize::from(array.maximum)).contains(&items.len()) {
                return Err(kind(value, data));
            }
            list(items.iter().map(|item| (array.items, *item, None)), out)
        }
        (Data::Object(fields), Value::List(values)) if fields.len() == values.len() => {
            let parts = fields.iter().zip(values);
            list(parts.map(|(field, value): (&Field, _)| (field.data, *value, Some(field.short_name))), out)
        }
        (_, Value::Raw(bytes)) => checked(data, bytes, out),
        (Data::Bitmap(_), Value::Bitmap(flags)) => checked(data, flags.bytes, out),
        (Data::Array(_), Value::Array(items)) => checked(data, items.bytes, out),
        (Data::Object(_), Value::Object(fields)) => checked(data, fields.bytes, out),
        _ => Err(kind(value, data)),
    }
}

/// The first arm that has the value.
fn one_of(data: &'static Data, arms: &'static [Data], value: Value<'_>, out: &mut [u8]) -> Result<usize, Fault> {
    let mut best = None;
    for arm in arms {
        let codes_of = matches!(value, Value::Overflow | Value::Underflow);
        match encode(arm, value, out) {
            // A code of one arm may be a value of another.
            Ok(length) if codes_of && decode(data, &out[..length]).ok() != Some(value) => {}
            Ok(length) => return Ok(length),
            Err(fault) if fault.is_of_room() || fault.is_of_step() => best = Some(fault),
            Err(_) => {}
        }
    }
    Err(match (best, value) {
        (Some(fault), _) => fault,
        (None, Value::Number(number)) => Cause::Number { number, expected: data }.into(),
        (None, _) => kind(value, data),
    })
}

fn code(number: &Number, data: &'static Data, value: Value<'_>, out: &mut [u8]) -> Result<usize, Fault> {
    let code = if value == Value::Overflow { number.format.overflow() } else { number.format.underflow() };
    if !number.has_codes || (number.minimum..=number.maximum).contains(&code) {
        return Err(kind(value, data));
    }
    put(out, &code.to_be_bytes()[8 - number.format.size()..])
}

/// Items or fields, one after the other.
fn list<'a>(
    parts: impl Iterator<Item = (&'static Data, Value<'a>, Option<&'static str>)>,
    out: &mut [u8],
) -> Result<usize, Fault> {
    let mut length = 0;
    for (data, value, field) in parts {
        let written = encode(data, value, &mut out[length..]);
        length += written.map_err(|fault| field.map_or(fault, |field| fault.in_field(field)))?;
    }
    Ok(length)
}

/// Bytes as they are, where they are a value of the type.
pub(super) fn checked(data: &'static Data, bytes: &[u8], out: &mut [u8]) -> Result<usize, Fault> {
    decode(data, bytes)?;
    put(out, bytes)
}

pub(super) fn put(out: &mut [u8], bytes: &[u8]) -> Result<usize, Fault> {
    let room = out.len();
    let target = out.get_mut(..bytes.len()).ok_or(Cause::Room { needed: bytes.len(), room })?;
    target.copy_from_slice(bytes);
    Ok(bytes.len())
}

fn kind(value: Value<'_>, expected: &'static Data) -> Fault {
    Cause::Kind { offered: value.kind(), expected }.into()
}

impl Number {
    /// The number as it is sent, in the last bytes.
    pub(super) fn bytes(&self, scaled: Scaled, data: &'static Data) -> Result<[u8; 8], Fault> {
        let Some(raw) = scaled.steps_in(self.unit, self.exponent) else {
            let step = Scaled { raw: 1, exponent: self.exponent, unit: self.unit };
            let comparable = scaled.unit == crate::class::Unit::None || scaled.unit.base().0 == self.unit.base().0;
            let off_step = comparable && scaled.exponent < self.exponent;
            return Err(match off_step {
                true => Cause::Step { number: scaled, step }.into(),
                false => Cause::Number { number: scaled, expected: data }.into(),
            });
        };
        if !(self.minimum..=self.maximum).contains(&raw) {
            return Err(Cause::Number { number: scaled, expected: data }.into());
        }
        Ok(raw.to_be_bytes())
    }
}

//! Values that people type, to bytes.

use super::encode::{checked, encode, put};
use super::error::{Cause, Excerpt, Fault};
use super::{Date, DateTime, Scaled, Time, Value};
use crate::class::data::{Bitmap, Data, Field, Flag, Level, Number, Numeric, States, Unit};

/// Writes what `text` says as an EDT of type `data` and returns its length.
pub(super) fn parse(data: &'static Data, text: &str, out: &mut [u8]) -> Result<usize, Fault> {
    let text = unquoted(text.trim());
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return hex(data, text, digits, out);
    }
    let value = match data {
        Data::Number(number) => number.parse(text),
        Data::Numeric(codes) => numeric(codes, text),
        Data::State(states) => states.parse(text),
        Data::Level(level) => level.parse(text),
        Data::Date => Date::parse(text).map(Value::Date).or_else(|| unset(text)),
        Data::Time(format) => Time::parse(text, format.maximum_hour).map(Value::Time).or_else(|| unset(text)),
        Data::DateTime { .. } => DateTime::parse(text).map(Value::DateTime).or_else(|| unset(text)),
        Data::Text { .. } => Some(Value::Text(text)),
        Data::Raw { .. } => return hex(data, text, text, out),
        Data::Bitmap(bitmap) => return bits(bitmap, data, text, out),
        Data::Array(array) => return items(array.items, data, text, out),
        Data::Object(fields) => return object(fields, data, text, out),
        Data::OneOf(arms) => return one_of(arms, data, text, out),
    };
    encode(data, value.ok_or_else(|| mismatch(data, text))?, out)
}

fn mismatch(expected: &'static Data, text: &str) -> Fault {
    match Scaled::parse(text) {
        Some((number, rest)) if unit(rest).is_some() => Cause::Number { number, expected }.into(),
        _ => Cause::Text { text: Excerpt::text(text), expected }.into(),
    }
}

/// An EDT as it is, in hex; spaces and `:` between the bytes are left out.
fn hex(data: &'static Data, text: &str, digits: &str, out: &mut [u8]) -> Result<usize, Fault> {
    let mut edt = [0; u8::MAX as usize];
    let mut count = 0;
    for digit in digits.chars().filter(|c| !matches!(c, ' ' | ':' | '_')) {
        let (Some(value), Some(byte)) = (digit.to_digit(16), edt.get_mut(count / 2)) else {
            return Err(mismatch(data, text));
        };
        *byte = *byte << 4 | value as u8;
        count += 1;
    }
    if count % 2 != 0 {
        return Err(mismatch(data, text));
    }
    checked(data, edt.get(..count / 2).unwrap_or_default(), out)
}

/// The first type that has the text: a name goes before a number that begins alike, and a level without its base is of
/// the series that is written so.
fn one_of(arms: &'static [Data], data: &'static Data, text: &str, out: &mut [u8]) -> Result<usize, Fault> {
    let rank = |arm: &Data| match arm {
        Data::State(_) => 0,
        Data::Level(series) if !series.is_plain() => 2,
        _ => 1,
    };
    let mut telling = None;
    for arm in (0..=2).flat_map(|turn| arms.iter().filter(move |arm| rank(arm) == turn)) {
        match parse(arm, text, out) {
            Ok(length) if super::decode::decode(data, &out[..length]).is_ok_and(|value| !shadows(value, text)) => {
                return Ok(length);
            }
            Ok(_) => {}
            Err(fault) if fault.is_of_room() || fault.is_of_step() => telling = Some(fault),
            Err(_) => {}
        }
    }
    Err(telling.unwrap_or_else(|| mismatch(data, text)))
}

/// Whether a code for an overflow is a number of another type.
fn shadows(value: Value<'_>, text: &str) -> bool {
    let asked = code(text);
    asked.is_some() && asked != Some(value)
}

fn code(text: &str) -> Option<Value<'static>> {
    let names = [("overflow", Value::Overflow), ("underflow", Value::Underflow)];
    names.into_iter().find(|(name, _)| text.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

impl Number {
    fn parse(&self, text: &str) -> Option<Value<'static>> {
        if let Some(code) = code(text) {
            return Some(code);
        }
        let (number, rest) = Scaled::parse(text)?;
        Some(Value::Number(Scaled { unit: unit(rest)?, ..number }))
    }
}

/// The unit a text names: its sign or what keyboards have for it.
fn unit(text: &str) -> Option<Unit> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Unit::None);
    }
    Unit::parse(text)
}

fn numeric(codes: &'static [Numeric], text: &str) -> Option<Value<'static>> {
    let (number, rest) = Scaled::parse(text)?;
    let known = codes.iter().any(|numeric| numeric.number() == number);
    (rest.is_empty() && known).then_some(Value::Number(number))
}

impl States {
    fn parse(self, text: &str) -> Option<Value<'static>> {
        let (name, code) = match text.strip_suffix(')').and_then(|text| text.split_once(" (0x")) {
            Some((name, code)) => (name, Some(u64::from_str_radix(code, 16).ok()?)),
            None => (text, None),
        };
        let named = |name: &str| {
            let mut states = self.all.iter().filter(|state| state.name.eq_ignore_ascii_case(name));
            states.find(|state| code.is_none_or(|code| self.named(code).is_some_and(|named| *named.state == **state)))
        };
        let state = named(name)
            .or_else(|| ALIASES.iter().filter(|row| has(row.as_slice(), name)).flatten().find_map(|n| named(n)))?;
        self.named(code.unwrap_or(state.code)).map(Value::State)
    }
}

/// Words that people use for each other.
const ALIASES: [[&str; 3]; 2] = [["true", "on", "yes"], ["false", "off", "no"]];

fn has(row: &[&str], name: &str) -> bool {
    row.iter().any(|word| word.eq_ignore_ascii_case(name))
}

impl Level {
    /// Reads `3`, `level 3` or, for a property with several series of levels, `level 3 from 0xA0`.
    fn parse(self, text: &str) -> Option<Value<'static>> {
        let number = text.strip_prefix("level").unwrap_or(text).trim_start();
        let (number, base) = match number.split_once(" from 0x") {
            Some((number, base)) => (number, u16::from_str_radix(base, 16).ok()?),
            None => (number, self.base),
        };
        let level = number.parse().ok()?;
        (base == self.base).then_some(Value::Level(super::Step { level, series: self }))
    }
}

fn unset(text: &str) -> Option<Value<'static>> {
    text.eq_ignore_ascii_case("unset").then_some(Value::Unset)
}

/// Reads `[a, b]`, the brackets may be missing.
fn items(item: &'static Data, data: &'static Data, text: &str, out: &mut [u8]) -> Result<usize, Fault> {
    let mut length = 0;
    for part in parts(inside(text, ["[", "]"])) {
        length += parse(item, part, out.get_mut(length..).unwrap_or_default())?;
    }
    let (least, most) = data.sizes();
    if (least..=most).contains(&length) { Ok(length) } else { Err(Cause::Length { length, expected: data }.into()) }
}

/// Reads `{name: a, other: b}` in any order, or `{a, b}` in that of the type; the braces may be missing.
fn object(fields: &'static [Field], data: &'static Data, text: &str, out: &mut [u8]) -> Result<usize, Fault> {
    let text = inside(text, ["{", "}"]);
    let name = |part: &str| named(part).is_some_and(|(name, _)| fields.iter().any(|field| field.short_name == name));
    if parts(text).count() != fields.len() {
        return Err(mismatch(data, text));
    }
    let mut length = 0;
    for (place, field) in fields.iter().enumerate() {
        let by_name = parts(text).filter_map(named).find(|(name, _)| *name == field.short_name);
        let by_place = || parts(text).nth(place).filter(|part| !name(part));
        let part = by_name.map(|(_, value)| value).or_else(by_place).ok_or_else(|| mismatch(data, text))?;
        let written = parse(field.data, part, out.get_mut(length..).unwrap_or_default());
        length += written.map_err(|fault| fault.in_field(field.short_name))?;
    }
    Ok(length)
}

/// Reads `{name: on, other: level 3}`, or only the names of bits to be 1; the rest is 0.
fn bits(bitmap: &'static Bitmap, data: &'static Data, text: &str, out: &mut [u8]) -> Result<usize, Fault> {
    let mut bytes = [0; u8::MAX as usize];
    for part in parts(inside(text, ["{", "}"])) {
        let (name, value) = named(part).unwrap_or_else(|| (unquoted(part), "true"));
        if let Some(digits) = value.strip_prefix("0x").filter(|_| name == "reserved") {
            hex(data, value, digits, &mut bytes)?;
            for (index, byte) in bytes.iter_mut().enumerate() {
                *byte &= !bitmap.named(index);
            }
        }
    }
    for part in parts(inside(text, ["{", "}"])) {
        let (name, value) = named(part).unwrap_or_else(|| (unquoted(part), "true"));
        let Some(flag) = bitmap.flags.iter().find(|flag| flag.name == name) else {
            if name == "reserved" {
                continue;
            }
            return Err(mismatch(data, part));
        };
        let code = flag.parse(value).ok_or_else(|| mismatch(flag.data, value).in_field(flag.name))?;
        if let Some(byte) = bytes.get_mut(usize::from(flag.index)) {
            *byte = (*byte & !flag.mask) | (code << flag.mask.trailing_zeros() & flag.mask);
        }
    }
    put(out, bytes.get(..bitmap.size.into()).unwrap_or_default())
}

impl Flag {
    fn parse(&self, text: &str) -> Option<u8> {
        let text = unquoted(text);
        let code = match self.data {
            Data::State(states) => match states.parse(text)? {
                Value::State(named) => named.code(),
                _ => return None,
            },
            Data::Level(level) => match level.parse(text)? {
                Value::Level(step) if (1..=level.maximum).contains(&step.level) => {
                    u64::from(step.level - 1 + level.base)
                }
                _ => return None,
            },
            _ => return None,
        };
        u8::try_from(code).ok()
    }
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

fn inside<'t>(text: &'t str, [open, close]: [&str; 2]) -> &'t str {
    text.strip_prefix(open).and_then(|text| text.strip_suffix(close)).unwrap_or(text)
}

/// The name before the first `:` and the value behind it.
fn named(part: &str) -> Option<(&str, &str)> {
    let (name, value) = part.split_once(':')?;
    Some((unquoted(name.trim()), unquoted(value.trim())))
}

/// The parts between the commas that are in no bracket, brace or quotation.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text).filter(|text| !text.trim().is_empty());
    core::iter::from_fn(move || {
        let text = rest?;
        let (mut depth, mut quoted) = (0usize, false);
        let end = text.find(|c: char| {
            match c {
                '"' => quoted = !quoted,
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ',' && depth == 0 && !quoted
        });
        let (part, left) = end.map_or((text, None), |end| (&text[..end], Some(&text[end + 1..])));
        rest = left;
        Some(part.trim())
    })
}

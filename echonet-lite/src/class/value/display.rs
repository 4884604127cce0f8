//! Values for people and as JSON, and data types in words.

use core::fmt::{self, Display, Formatter};

use super::Scaled;
use super::{Flags, Named, Step, Value};
use crate::class::data::{Data, Level, Number, States, Unit};

impl Display for Value<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Overflow => f.write_str("overflow"),
            Self::Underflow => f.write_str("underflow"),
            Self::State(named) => named.fmt(f),
            Self::Level(step) => step.fmt(f),
            Self::Bitmap(flags) => flags.fmt(f),
            Self::Date(date) => date.fmt(f),
            Self::Time(time) => time.fmt(f),
            Self::DateTime(moment) => moment.fmt(f),
            Self::Unset => f.write_str("unset"),
            Self::Text(text) => f.write_str(text),
            Self::Raw(bytes) => hex(bytes, f),
            Self::Array(items) => list(f, ["[", "]"], *items, Display::fmt),
            Self::Object(fields) => {
                list(f, ["{", "}"], *fields, |(field, value), f| write!(f, "{}: {value}", field.short_name))
            }
            Self::List(values) => list(f, ["[", "]"], values.iter(), |value, f| value.fmt(f)),
        }
    }
}

impl Display for Named {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        let digits = 2 + 2 * usize::from(self.states.size.max(1));
        if self.is_plain() { Ok(()) } else { write!(f, " ({:#0digits$X})", self.code) }
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "level {}", self.level)?;
        if self.series.is_plain() { Ok(()) } else { write!(f, " from {:#X}", self.series.base) }
    }
}

impl Display for Flags<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (place, (flag, value)) in self.iter().enumerate() {
            write!(f, "{}{}: {value}", comma(place), flag.name)?;
        }
        self.fmt_reserved(f, "reserved: ", "")?;
        f.write_str("}")
    }
}

impl Flags<'_> {
    /// Writes the bits that have no name, if any of them is 1.
    fn fmt_reserved(&self, f: &mut Formatter<'_>, before: &str, after: &str) -> fmt::Result {
        if (0..self.bytes.len()).all(|index| self.reserved(index) == 0) {
            return Ok(());
        }
        write!(f, "{}{before}0x", comma(self.bitmap.flags.len()))?;
        for index in 0..self.bytes.len() {
            write!(f, "{:02X}", self.reserved(index))?;
        }
        f.write_str(after)
    }
}

fn list<T>(
    f: &mut Formatter<'_>,
    [open, close]: [&str; 2],
    parts: impl Iterator<Item = T>,
    each: impl Fn(&T, &mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    f.write_str(open)?;
    for (place, part) in parts.enumerate() {
        f.write_str(comma(place))?;
        each(&part, f)?;
    }
    f.write_str(close)
}

const fn comma(place: usize) -> &'static str {
    if place == 0 { "" } else { ", " }
}

fn hex(bytes: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str("0x")?;
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
}

/// A text as JSON.
fn quoted(text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for letter in text.chars() {
        match letter {
            '"' | '\\' => write!(f, "\\{letter}")?,
            letter if letter.is_control() => write!(f, "\\u{:04x}", u32::from(letter))?,
            letter => write!(f, "{letter}")?,
        }
    }
    f.write_str("\"")
}

impl<'a> Value<'a> {
    /// This value as JSON: numbers without their unit; the states `true` and `false` as those; levels as numbers where
    /// that is clear; an overflow, a date or bytes as the text that `Display` writes.
    pub const fn json(self) -> Json<'a> {
        Json(self)
    }
}

/// A value that `Display` writes as JSON; from [`Value::json`].
#[derive(Clone, Copy, Debug)]
pub struct Json<'a>(Value<'a>);

impl Display for Json<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Number(number) => number.digits().fmt(f),
            Value::State(named) if named.is_plain() && matches!(named.name(), "true" | "false") => named.fmt(f),
            Value::Level(step) if step.series.is_plain() => step.level.fmt(f),
            Value::Bitmap(flags) => {
                f.write_str("{")?;
                for (place, (flag, value)) in flags.iter().enumerate() {
                    write!(f, "{}\"{}\": {}", comma(place), flag.name, value.json())?;
                }
                flags.fmt_reserved(f, "\"reserved\": \"", "\"")?;
                f.write_str("}")
            }
            Value::Array(items) => list(f, ["[", "]"], items, |item, f| item.json().fmt(f)),
            Value::Object(fields) => {
                list(f, ["{", "}"], fields, |(field, value), f| write!(f, "\"{}\": {}", field.short_name, value.json()))
            }
            Value::List(values) => list(f, ["[", "]"], values.iter(), |value, f| value.json().fmt(f)),
            Value::Text(text) => quoted(text, f),
            // Names, dates and hex need no escapes.
            text => write!(f, "\"{text}\""),
        }
    }
}

/// The values a type has, in words: `0..=50 °C, undefined`.
impl Display for Data {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Numeric(codes) => list(f, ["", ""], codes.iter(), |code, f| code.number().fmt(f)),
            Self::State(states) => states.fmt_names(f, usize::MAX, true),
            Self::Level(level) => level.fmt(f),
            Self::Bitmap(bitmap) => {
                list(f, ["{", "}"], bitmap.flags.iter(), |flag, f| write!(f, "{}: {}", flag.name, flag.data))
            }
            Self::Date => f.write_str("YYYY-MM-DD"),
            Self::Time(format) => f.write_str(if format.seconds { "HH:MM:SS" } else { "HH:MM" }),
            Self::DateTime { seconds } => {
                f.write_str(if *seconds { "YYYY-MM-DD HH:MM:SS" } else { "YYYY-MM-DD HH:MM" })
            }
            Self::Text { .. } => {
                f.write_str("text of ")?;
                self.fmt_length(f)
            }
            Self::Raw { .. } => self.fmt_length(f),
            Self::Array(array) => write!(f, "[{}] × {}..={}", array.items, array.minimum, array.maximum),
            Self::Object(fields) => {
                list(f, ["{", "}"], fields.iter(), |field, f| write!(f, "{}: {}", field.short_name, field.data))
            }
            Self::OneOf(arms) => list(f, ["", ""], arms.iter(), |arm, f| arm.fmt(f)),
        }
    }
}

impl Data {
    fn fmt_length(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (least, most) = self.sizes();
        let s = if most == 1 { "" } else { "s" };
        if least == most { write!(f, "{least} byte{s}") } else { write!(f, "{least} to {most} bytes") }
    }

    /// The values that can be set, as the end of "x is not …".
    pub(super) const fn allowed(&'static self) -> Allowed {
        Allowed(self)
    }
}

/// The end of a sentence that begins "x is not".
pub(super) struct Allowed(&'static Data);

impl Display for Allowed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // Enough to see what kind of names they are; `Display` of the type lists them all.
        const NAMES: usize = 12;
        match self.0 {
            Data::Number(number) => write!(f, "in {number}"),
            Data::Numeric(_) => write!(f, "one of {}", self.0),
            Data::State(states) => {
                f.write_str(if states.all.len() > 1 { "one of " } else { "" })?;
                states.fmt_names(f, NAMES, false)
            }
            Data::Level(level) => write!(f, "a {level}"),
            Data::Bitmap(_) | Data::Raw { .. } => self.0.fmt_length(f),
            Data::Text { .. } => {
                f.write_str("a text of ")?;
                self.0.fmt_length(f)
            }
            Data::Date => f.write_str("a date (2024-12-31)"),
            Data::Time(format) => f.write_str(if format.seconds { "a time (14:30:15)" } else { "a time (14:30)" }),
            Data::DateTime { seconds: true } => f.write_str("a moment (2024-12-31 14:30:15)"),
            Data::DateTime { seconds: false } => f.write_str("a moment (2024-12-31 14:30)"),
            Data::Array(array) if array.minimum == array.maximum => write!(f, "a list of {} items", array.maximum),
            Data::Array(array) => write!(f, "a list of {} to {} items", array.minimum, array.maximum),
            Data::Object(fields) => {
                list(f, ["an object {", "}"], fields.iter(), |field, f| f.write_str(field.short_name))
            }
            Data::OneOf(arms) => {
                let settable = arms.iter().filter(|arm| !arm.is_read_only());
                for (place, arm) in settable.enumerate() {
                    write!(f, "{}{}", if place == 0 { "" } else { " or " }, Self(arm))?;
                }
                Ok(())
            }
        }
    }
}

impl Data {
    fn is_read_only(&self) -> bool {
        matches!(self, Self::State(states) if states.all.iter().all(|state| state.read_only))
    }
}

impl States {
    fn fmt_names(&self, f: &mut Formatter<'_>, limit: usize, read_only: bool) -> fmt::Result {
        let all_read_only = self.all.iter().all(|state| state.read_only);
        let shown = self.all.iter().filter(|state| read_only || all_read_only || !state.read_only);
        let mut names = shown.map(|state| state.name);
        for (place, name) in names.by_ref().take(limit).enumerate() {
            write!(f, "{}{name}", comma(place))?;
        }
        f.write_str(if names.next().is_some() { ", …" } else { "" })
    }
}

impl Display for Number {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let scaled = |raw, unit| Scaled { raw, exponent: self.exponent, unit };
        write!(f, "{}..={}", scaled(self.minimum, Unit::None), scaled(self.maximum, self.unit))
    }
}

impl Display for Level {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "level 1..={}", self.maximum)?;
        if self.is_plain() { Ok(()) } else { write!(f, " from {:#X}", self.base) }
    }
}

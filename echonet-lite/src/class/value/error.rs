//! Why bytes, a value or a text cannot be the value of a property.

use core::fmt;

use super::{Scaled, Value};
use crate::class::data::Data;
use crate::class::property::PropertySpec;

/// Bytes, a value or a text that cannot be the value of a property. `Display` names the property, what was offered, and
/// what is allowed: `0xB3 target temperature: 51 is not in 0..=50 °C`.
#[derive(Clone, Copy, Debug)]
pub struct ValueError {
    /// The property.
    pub epc: u8,
    /// Its short name.
    pub short_name: &'static str,
    /// The field of it that is wrong, where it is an object.
    pub field: Option<&'static str>,
    /// The reason.
    pub cause: Cause,
}

/// The reasons for which bytes, a value or a text are refused.
#[derive(Clone, Copy, Debug)]
pub enum Cause {
    /// An EDT has another length than the type.
    Length {
        /// How many bytes it has.
        length: usize,
        /// The type.
        expected: &'static Data,
    },
    /// Bytes say nothing that the type knows.
    Bytes {
        /// The first of them.
        bytes: Excerpt,
        /// The type.
        expected: &'static Data,
    },
    /// A number is out of range.
    Number {
        /// The number.
        number: Scaled,
        /// The type.
        expected: &'static Data,
    },
    /// A number lies between two steps.
    Step {
        /// The number.
        number: Scaled,
        /// One step.
        step: Scaled,
    },
    /// A value is of another kind than the type.
    Kind {
        /// The kind of the value.
        offered: &'static str,
        /// The type.
        expected: &'static Data,
    },
    /// A text is no value of the type.
    Text {
        /// Its beginning.
        text: Excerpt,
        /// The type.
        expected: &'static Data,
    },
    /// The buffer is too small.
    Room {
        /// The bytes needed, as far as is known.
        needed: usize,
        /// The bytes there.
        room: usize,
    },
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#04X} ", self.epc)?;
        words(self.short_name, f)?;
        if let Some(field) = self.field {
            f.write_str(", ")?;
            words(field, f)?;
        }
        write!(f, ": {}", self.cause)
    }
}

impl core::error::Error for ValueError {}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { length, expected } => {
                let (least, most) = expected.sizes();
                let s = if *length == 1 { "" } else { "s" };
                write!(f, "{length} byte{s} instead of {least}")?;
                if most > least { write!(f, " to {most}") } else { Ok(()) }
            }
            Self::Bytes { bytes, expected } => write!(f, "{bytes} is not {}", expected.allowed()),
            Self::Number { number, expected } => write!(f, "{} is not {}", number.digits(), expected.allowed()),
            Self::Step { number, step } => write!(f, "{} is not a multiple of {step}", number.digits()),
            Self::Kind { offered, expected } => write!(f, "{offered} is not {}", expected.allowed()),
            Self::Text { text, expected } => write!(f, "`{text}` is not {}", expected.allowed()),
            Self::Room { needed, room } => write!(f, "the value needs {needed} bytes, the buffer has {room}"),
        }
    }
}

/// Writes `targetTemperature` as `target temperature`.
fn words(name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut before = ' ';
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && before.is_ascii_lowercase() {
            f.write_str(" ")?;
        }
        write!(f, "{}", letter.to_ascii_lowercase())?;
        before = letter;
    }
    Ok(())
}

/// The beginning of a text, or of bytes in hex; kept so that an error borrows nothing.
#[derive(Clone, Copy)]
pub struct Excerpt {
    bytes: [u8; Self::ROOM],
    length: u8,
    cut: bool,
}

impl Excerpt {
    /// Enough to recognise what was typed, small enough to copy.
    const ROOM: usize = 36;

    pub(super) fn text(text: &str) -> Self {
        let mut excerpt = Self { bytes: [0; Self::ROOM], length: 0, cut: false };
        for letter in text.chars() {
            excerpt.push(letter);
        }
        excerpt
    }

    pub(super) fn hex(bytes: &[u8]) -> Self {
        let mut excerpt = Self::text("0x");
        for byte in bytes {
            for nibble in [byte >> 4, byte & 0xF] {
                let digit = char::from_digit(nibble.into(), 16).unwrap_or('?');
                excerpt.push(digit.to_ascii_uppercase());
            }
        }
        excerpt
    }

    fn push(&mut self, letter: char) {
        let (start, end) = (usize::from(self.length), usize::from(self.length) + letter.len_utf8());
        match self.bytes.get_mut(start..end) {
            Some(room) if !self.cut => {
                letter.encode_utf8(room);
                self.length += letter.len_utf8() as u8;
            }
            _ => self.cut = true,
        }
    }

    /// The part of the text that is kept.
    pub fn as_str(&self) -> &str {
        let kept = self.bytes.get(..self.length.into()).unwrap_or_default();
        core::str::from_utf8(kept).unwrap_or_default()
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())?;
        f.write_str(if self.cut { "…" } else { "" })
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// An error on its way up to where the property is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    field: Option<&'static str>,
    cause: Cause,
}

impl Fault {
    pub(super) fn of(self, property: &PropertySpec) -> ValueError {
        let PropertySpec { epc, short_name, .. } = *property;
        ValueError { epc, short_name, field: self.field, cause: self.cause }
    }

    /// The innermost field's name stays: it is the most exact.
    pub(super) fn in_field(self, field: &'static str) -> Self {
        Self { field: self.field.or(Some(field)), ..self }
    }

    pub(super) const fn is_of_room(self) -> bool {
        matches!(self.cause, Cause::Room { .. })
    }

    pub(super) const fn is_of_step(self) -> bool {
        matches!(self.cause, Cause::Step { .. })
    }
}

impl From<Cause> for Fault {
    fn from(cause: Cause) -> Self {
        Self { field: None, cause }
    }
}

impl Value<'_> {
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Self::Number(_) => "a number",
            Self::Overflow => "an overflow",
            Self::Underflow => "an underflow",
            Self::State(named) => named.name(),
            Self::Level(_) => "this level",
            Self::Bitmap(_) => "a bitmap",
            Self::Date(_) => "this date",
            Self::Time(_) => "this time",
            Self::DateTime(_) => "this moment",
            Self::Unset => "an unset date or time",
            Self::Text(_) => "this text",
            Self::Raw(_) => "a row of bytes",
            Self::Array(_) => "this array",
            Self::Object(_) => "this object",
            Self::List(_) => "this list",
        }
    }
}

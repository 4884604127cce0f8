//! The values of one iteration, and the texts that they are filled into.

use std::ops::Range;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::Feeder;
use crate::workload::Source;

/// The values of one user's iteration. Its memory is used again for the next one.
#[derive(Debug)]
pub(crate) struct Values {
    /// The number of the iteration among all of the run.
    iteration: u64,
    user: u64,
    /// Where the iteration's own choices come from: think times, random numbers, one of several values.
    pub(super) rng: SmallRng,
    numbers: Vec<u64>,
    /// The row of each feeder; those that the flow does not use keep the last one.
    rows: Vec<usize>,
    /// The texts taken from answers, and where each one is; a name that is taken again has the later one.
    text: Vec<u8>,
    taken: Vec<Range<usize>>,
}

impl Values {
    /// The values of a user that has done nothing.
    pub(crate) fn new(user: usize) -> Self {
        Self {
            iteration: 0,
            user: user as u64,
            rng: SmallRng::seed_from_u64(0),
            numbers: Vec::new(),
            rows: Vec::new(),
            text: Vec::new(),
            taken: Vec::new(),
        }
    }

    /// Begins an iteration: forgets what was taken, and draws the numbers.
    pub(super) fn begin(&mut self, numbers: &[(u64, u64)], feeders: usize, taken: usize, source: &mut Source) {
        self.iteration = source.next_in_sequence();
        self.rng = SmallRng::seed_from_u64(source.rng.random());
        self.numbers.clear();
        self.numbers.extend(numbers.iter().map(|(least, most)| self.rng.random_range(*least..=*most)));
        self.rows.resize(feeders, 0);
        self.text.clear();
        self.taken.clear();
        self.taken.resize(taken, 0..0);
    }

    pub(super) fn set_row(&mut self, feeder: usize, row: usize) {
        self.rows[feeder] = row;
    }

    /// Keeps a text that was taken from an answer.
    pub(super) fn take(&mut self, place: usize, text: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(text);
        self.taken[place] = start..self.text.len();
    }
}

/// A text with values: `/orders/{{id}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Vec<u8>),
    Value(Value, Encoding),
}

/// A value by its kind and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Iteration,
    User,
    Number(usize),
    Column { feeder: usize, column: usize },
    Taken(usize),
}

/// How values are written at the place of a text. The text itself stands as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// As they are.
    Plain,
    /// In a request's path: bytes that cannot stand there are percent-encoded.
    Path,
    /// In a header: a line end is a space.
    Header,
    /// In a string of JSON: escaped.
    Json,
}

impl Text {
    /// Reads a text. `value` finds a value by its name.
    ///
    /// # Errors
    /// When a `{{` has no end, or a name is unknown; `value` says then what was expected.
    pub(super) fn parse(
        text: &str,
        encoding: Encoding,
        mut value: impl FnMut(&str) -> Result<Value, String>,
    ) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((plain, behind)) = rest.split_once("{{") {
            let (name, behind) = behind.split_once("}}").ok_or("}} behind each {{")?;
            if !plain.is_empty() {
                parts.push(Part::Text(plain.as_bytes().to_vec()));
            }
            parts.push(Part::Value(value(name.trim())?, encoding));
            rest = behind;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.as_bytes().to_vec()));
        }
        Ok(Self { parts })
    }

    /// A text without values.
    pub(super) fn plain(text: &str) -> Self {
        Self { parts: vec![Part::Text(text.as_bytes().to_vec())] }
    }

    /// This one with another behind it.
    pub(super) fn then(mut self, other: Self) -> Self {
        for part in other.parts {
            match (self.parts.last_mut(), part) {
                (Some(Part::Text(text)), Part::Text(more)) => text.extend_from_slice(&more),
                (_, part) => self.parts.push(part),
            }
        }
        self
    }

    /// The values in it.
    pub(super) fn values(&self) -> impl Iterator<Item = Value> + '_ {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Value(value, _) => Some(*value),
        })
    }

    /// Appends it, filled with the values.
    #[inline]
    pub(super) fn append(&self, values: &Values, feeders: &[Feeder], out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text),
                Part::Value(value, encoding) => append_value(*value, *encoding, values, feeders, out),
            }
        }
    }
}

fn append_value(value: Value, encoding: Encoding, values: &Values, feeders: &[Feeder], out: &mut Vec<u8>) {
    let number = match value {
        Value::Iteration => values.iteration,
        Value::User => values.user,
        Value::Number(place) => values.numbers[place],
        Value::Column { feeder, column } => {
            return encoding.append(feeders[feeder].field(values.rows[feeder], column).as_bytes(), out);
        }
        Value::Taken(place) => return encoding.append(&values.text[values.taken[place].clone()], out),
    };
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

impl Encoding {
    fn append(self, text: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Plain => out.extend_from_slice(text),
            Self::Path => text.iter().for_each(|byte| match byte {
                b'!'..=b'~' if !b"\"#<>".contains(byte) => out.push(*byte),
                _ => out.extend_from_slice(&[b'%', hex(byte >> 4), hex(byte & 15)]),
            }),
            Self::Header => out.extend(text.iter().map(|byte| if b"\r\n\0".contains(byte) { b' ' } else { *byte })),
            Self::Json => text.iter().for_each(|byte| match byte {
                b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
                b'\n' => out.extend_from_slice(b"\\n"),
                0..0x20 => out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(byte & 15)]),
                _ => out.push(*byte),
            }),
        }
    }
}

fn hex(digit: u8) -> u8 {
    b"0123456789ABCDEF"[usize::from(digit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text, filled with the taken value `x`.
    fn filled(text: &str, encoding: Encoding, value: &[u8]) -> Result<String, String> {
        let names = |name: &str| match name {
            "x" => Ok(Value::Taken(0)),
            "n" => Ok(Value::Number(0)),
            "iteration" => Ok(Value::Iteration),
            "user" => Ok(Value::User),
            _ => Err(format!("no {name}")),
        };
        let text = Text::parse(text, encoding, names)?;
        let mut values = Values::new(4);
        values.begin(&[(7, 7)], 0, 1, &mut Source::new(0, 3, 5));
        values.take(0, value);
        let mut out = Vec::new();
        text.append(&values, &[], &mut out);
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn values_are_filled_in() {
        #[track_caller]
        fn check(text: &str, expected: Result<&str, &str>) {
            let found = filled(text, Encoding::Plain, b"v");
            assert_eq!(found.as_deref(), expected.map_err(str::to_owned).as_ref().map(|text| *text), "{text}");
        }
        check("", Ok(""));
        check("plain {x} }}", Ok("plain {x} }}"));
        check("/{{x}}/{{ n }}{{x}}", Ok("/v/7v"));
        check("{{iteration}} {{user}}", Ok("3 4"));
        check("{{x", Err("}} behind each {{"));
        check("{{y}}", Err("no y"));
    }

    #[test]
    fn values_cannot_break_out_of_their_place() {
        #[track_caller]
        fn check(encoding: Encoding, value: &str, expected: &str) {
            assert_eq!(filled("\"{{x}}\"", encoding, value.as_bytes()).unwrap(), format!("\"{expected}\""));
        }
        check(Encoding::Plain, "a\r\n", "a\r\n");
        check(Encoding::Path, "/a?b=c&d%20 e\r\nü#\"", "/a?b=c&d%20%20e%0D%0A%C3%BC%23%22");
        check(Encoding::Header, "a\r\nb: \"c\"", "a  b: \"c\"");
        check(Encoding::Json, "a\"b\\c\n\u{1}ü", "a\\\"b\\\\c\\n\\u0001ü");
    }
}

//! Text with places for what differs from request to request.

use rand::Rng;

use super::{Keys, Source, Values};

/// Digits of a number in a template, with leading zeros: as redis-benchmark writes its `__rand_int__`.
pub const DIGITS: usize = 12;

/// Text with places that are filled anew for each request:
///
/// - `{key}`: the number of the request's key, twelve digits, the same at every place of a request;
/// - `{value}`: the value that belongs to that key;
/// - `{random}`, or redis-benchmark's `__rand_int__`: a random number below the number of keys, another at every place;
/// - `{sequence}`: 0, 1, 2, …, over all requests of the run.
///
/// Other braces are text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(Vec<u8>),
    Key,
    Value,
    Random,
    Sequence,
}

/// The places by their names.
const PLACES: &[(&[u8], Part)] = &[
    (b"{key}", Part::Key),
    (b"{value}", Part::Value),
    (b"{random}", Part::Random),
    (b"__rand_int__", Part::Random),
    (b"{sequence}", Part::Sequence),
];

/// The values of templates: a run's keys and their values.
#[derive(Clone, Debug)]
pub struct Subjects {
    /// Which keys.
    pub keys: Keys,
    /// Their values.
    pub values: Values,
}

impl Template {
    /// Finds the places in a text.
    #[must_use]
    pub fn new(text: impl AsRef<[u8]>) -> Self {
        let mut parts = Vec::new();
        let mut text = text.as_ref();
        let mut plain = Vec::new();
        while let Some(first) = text.first() {
            if let Some((name, place)) = PLACES.iter().find(|(name, _)| text.starts_with(name)) {
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(place.clone());
                text = &text[name.len()..];
            } else {
                plain.push(*first);
                text = &text[1..];
            }
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Self { parts }
    }

    /// The first word in braces that is no place: most likely a mistake where braces are not text of their own.
    #[must_use]
    pub fn unknown_place(text: &str) -> Option<&str> {
        let starts = text.match_indices('{').map(|(start, _)| start);
        let words = starts.filter_map(|start| Some(&text[start..start + text[start..].find('}')? + 1]));
        let is_word = |word: &&str| {
            let name = &word[1..word.len() - 1];
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        words.filter(is_word).find(|word| !PLACES.iter().any(|(place, _)| *place == word.as_bytes()))
    }

    /// Text without places, whatever braces are in it.
    #[must_use]
    pub fn text(text: &[u8]) -> Self {
        Self { parts: vec![Part::Text(text.to_vec())] }
    }

    /// This one with another behind it.
    #[must_use]
    pub fn then(mut self, other: &Self) -> Self {
        for part in &other.parts {
            match (self.parts.last_mut(), part) {
                (Some(Part::Text(text)), Part::Text(more)) => text.extend_from_slice(more),
                _ => self.parts.push(part.clone()),
            }
        }
        self
    }

    /// The text, if there is no place in it.
    #[must_use]
    pub fn as_text(&self) -> Option<&[u8]> {
        match self.parts.as_slice() {
            [] => Some(b""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether it is filled with the request's key or that key's value.
    #[must_use]
    pub fn has_key(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Key | Part::Value))
    }

    /// Whether the value of the request's key is in it.
    #[must_use]
    pub fn has_value(&self) -> bool {
        self.parts.contains(&Part::Value)
    }

    /// Whether it can be filled again for the same key and be the same.
    #[must_use]
    pub fn is_determined_by_key(&self) -> bool {
        !self.parts.iter().any(|part| matches!(part, Part::Random | Part::Sequence))
    }

    /// How long it is when filled for a key.
    #[must_use]
    pub fn size(&self, key: u64, subjects: &Subjects) -> usize {
        let size = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Key | Part::Random | Part::Sequence => DIGITS,
            Part::Value => subjects.values.size(key),
        };
        self.parts.iter().map(size).sum()
    }

    /// Appends it, filled for a key.
    #[inline]
    pub fn append(&self, key: u64, subjects: &Subjects, source: &mut Source, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text),
                Part::Key => append_number(key, out),
                Part::Value => subjects.values.append(key, out),
                Part::Random => append_number(source.rng.random_range(0..subjects.keys.space()), out),
                Part::Sequence => append_number(source.next_in_sequence(), out),
            }
        }
    }
}

/// Twelve digits; of a longer number the last ones.
fn append_number(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [b'0'; DIGITS];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.extend_from_slice(&digits);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Distribution, Sizes};

    #[test]
    fn places_are_filled() {
        let subjects = Subjects {
            keys: Keys::new(1, Distribution::Uniform).unwrap(),
            values: Values::new(Sizes::Fixed(3), 0).unwrap(),
        };
        let check = |text: &str, expected: &str| {
            let template = Template::new(text);
            let mut out = Vec::new();
            template.append(0x21, &subjects, &mut Source::new(0, 0, 1), &mut out);
            assert_eq!(String::from_utf8(out.clone()).unwrap(), expected, "{text}");
            assert_eq!(template.size(0x21, &subjects), out.len(), "{text}");
        };
        check("", "");
        check("plain {text}", "plain {text}");
        check("key:{key}/{key}", "key:000000000033/000000000033");
        check("{value}", "120");
        check("a{random}__rand_int__", "a000000000000000000000000");
        check("{sequence}-{sequence}", "000000000000-000000000001");
    }
}

//! The value of a setting: from words to a value, and back to the text that the genuine server prints.

use std::borrow::Cow;

use bytes::Bytes;

use super::setting::Kind;
use super::special;
use super::title::is_template;

/// The error for a value, in the words of Redis.
pub(super) type Expected = Cow<'static, str>;

/// A parsed value. Which variant it is follows from the setting's [`Kind`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Numbers, switches, words of an enumeration, flags.
    Number(i64),
    /// One text.
    Text(Bytes),
    /// Words, in canonical order and form.
    Words(Vec<Bytes>),
    /// A directive's lines.
    Lines(Vec<Vec<Bytes>>),
}

impl Value {
    /// The number, for kinds that are numbers; 0 for the others.
    pub(super) fn number(&self) -> i64 {
        match self {
            Self::Number(number) => *number,
            Self::Text(_) | Self::Words(_) | Self::Lines(_) => 0,
        }
    }

    pub(super) fn words(&self) -> &[Bytes] {
        match self {
            Self::Words(words) => words,
            Self::Number(_) | Self::Text(_) | Self::Lines(_) => &[],
        }
    }
}

/// The value of a setting of this kind before its default is parsed.
pub(super) fn empty(kind: Kind) -> Value {
    match kind {
        Kind::Bool
        | Kind::Int { .. }
        | Kind::Clamped { .. }
        | Kind::Memory { .. }
        | Kind::MemoryOrPercent
        | Kind::Octal { .. }
        | Kind::Enum(_)
        | Kind::FlagWords(_)
        | Kind::Events => Value::Number(0),
        Kind::Text | Kind::FileName | Kind::Hostname | Kind::Title | Kind::Directory => Value::Text(Bytes::new()),
        Kind::Words { .. }
        | Kind::Percentiles
        | Kind::OomScores
        | Kind::SavePoints
        | Kind::OutputLimits
        | Kind::HostPort => Value::Words(Vec::new()),
        Kind::Lines { .. } => Value::Lines(Vec::new()),
    }
}

/// The value that `words` mean, given the value `before` for kinds that add to it.
///
/// Where several words are expected, one word is cut at its spaces: `--save '60 1'`, and every `CONFIG SET`.
pub(super) fn parse(kind: Kind, words: &[Bytes], before: &Value) -> Result<Value, Expected> {
    let split = split(words);
    match kind {
        Kind::FlagWords(table) => special::flag_words(table, &split).map(Value::Number),
        Kind::Words { max, too_many } if split.len() > max => Err(too_many.into()),
        Kind::Words { .. } => Ok(Value::Words(without_blank(&split))),
        Kind::Percentiles => special::percentiles(&split).map(Value::Words),
        Kind::OomScores => special::oom_scores(&split).map(Value::Words),
        Kind::SavePoints => special::save_points(&split, before.words()).map(Value::Words),
        Kind::OutputLimits => special::output_limits(&split, before.words()).map(Value::Words),
        Kind::HostPort => special::host_port(&split).map(Value::Words),
        Kind::Lines { min, max } if words.len() < min || words.len() > max => Err("wrong number of arguments".into()),
        Kind::Lines { .. } => {
            let mut lines = match before {
                Value::Lines(lines) => lines.clone(),
                Value::Number(_) | Value::Text(_) | Value::Words(_) => Vec::new(),
            };
            lines.push(words.to_vec());
            Ok(Value::Lines(lines))
        }
        Kind::Bool
        | Kind::Int { .. }
        | Kind::Clamped { .. }
        | Kind::Memory { .. }
        | Kind::MemoryOrPercent
        | Kind::Octal { .. }
        | Kind::Enum(_)
        | Kind::Events
        | Kind::Text
        | Kind::FileName
        | Kind::Hostname
        | Kind::Title
        | Kind::Directory => {
            let [word] = words else { return Err("wrong number of arguments".into()) };
            parse_single(kind, word)
        }
    }
}

/// The words of a setting that takes several: one word alone is cut at its spaces.
fn split(words: &[Bytes]) -> Cow<'_, [Bytes]> {
    match words {
        [text] => text.split(|byte| *byte == b' ').map(Bytes::copy_from_slice).collect(),
        _ => Cow::Borrowed(words),
    }
}

fn parse_single(kind: Kind, word: &Bytes) -> Result<Value, Expected> {
    match kind {
        Kind::Bool if word.eq_ignore_ascii_case(b"yes") => Ok(Value::Number(1)),
        Kind::Bool if word.eq_ignore_ascii_case(b"no") => Ok(Value::Number(0)),
        Kind::Bool => Err("argument must be 'yes' or 'no'".into()),
        Kind::Int { min, max } => between(integer(word).ok_or(NO_INTEGER)?, min, max),
        Kind::Clamped { min, max } => {
            let any = between(integer(word).ok_or(NO_INTEGER)?, 0, i32::MAX.into())?;
            Ok(Value::Number(any.number().clamp(min, max)))
        }
        Kind::Memory { min, max } => between(memory(word).ok_or("argument must be a memory value")?, min, max),
        Kind::MemoryOrPercent => memory_or_percent(word).map(Value::Number),
        Kind::Octal { max } => {
            let octal = std::str::from_utf8(word).ok().and_then(|text| i64::from_str_radix(text, 8).ok());
            let octal = octal.ok_or("argument couldn't be parsed as an octal number")?;
            if (0..=max).contains(&octal) {
                return Ok(Value::Number(octal));
            }
            Err(format!("argument must be between 0 and {max:o} inclusive").into())
        }
        Kind::Enum(choices) => {
            let place = choices.iter().position(|choice| word.eq_ignore_ascii_case(choice.as_bytes()));
            let place = place.ok_or_else(|| one_of(choices.iter().copied()))?;
            Ok(Value::Number(i64::try_from(place).expect("a short list")))
        }
        Kind::Events => special::events(word).map(Value::Number),
        Kind::FileName if word.contains(&b'/') => Err("argument can't be a path, just a filename".into()),
        Kind::Hostname if word.len() > MAX_HOSTNAME => Err("Hostnames must be less than 256 characters".into()),
        Kind::Hostname if !word.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(byte)) => {
            Err("Hostnames may only contain alphanumeric characters, hyphens or dots".into())
        }
        Kind::Title if !std::str::from_utf8(word).is_ok_and(is_template) => {
            Err("template format is invalid or contains unknown variables".into())
        }
        Kind::Directory => special::directory(word).map(Value::Text),
        _ => Ok(Value::Text(word.clone())),
    }
}

/// The longest name of a host: the bus's packets have room for one more byte.
const MAX_HOSTNAME: usize = 255;

const NO_INTEGER: &str = "argument couldn't be parsed into an integer";

/// The value as `CONFIG GET` prints it.
pub(super) fn format(kind: Kind, value: &Value) -> Bytes {
    let number = match value {
        Value::Text(text) => return text.clone(),
        Value::Words(words) => return words.join(&b" "[..]).into(),
        Value::Lines(lines) => return lines.iter().flatten().cloned().collect::<Vec<_>>().join(&b" "[..]).into(),
        Value::Number(number) => *number,
    };
    match kind {
        Kind::Bool => Bytes::from_static(if number == 0 { b"no" } else { b"yes" }),
        Kind::Enum(choices) => {
            usize::try_from(number).ok().and_then(|at| choices.get(at)).map_or_else(Bytes::new, text)
        }
        Kind::FlagWords(table) => special::format_flag_words(table, number).into(),
        Kind::Events => special::format_events(number).into(),
        Kind::Octal { .. } => format!("{number:o}").into(),
        Kind::MemoryOrPercent if number < 0 => format!("{}%", -number).into(),
        _ => number.to_string().into(),
    }
}

/// The value as a configuration file spells it: memory with the largest unit that divides it.
pub(super) fn format_for_file(kind: Kind, value: &Value) -> Bytes {
    const UNITS: [(i64, &str); 3] = [(1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb")];
    match (kind, value) {
        (Kind::Memory { .. } | Kind::MemoryOrPercent, Value::Number(number)) if *number > 0 => {
            let unit = UNITS.iter().find(|(size, _)| number % size == 0);
            unit.map_or_else(|| number.to_string(), |(size, unit)| format!("{}{unit}", number / size)).into()
        }
        _ => format(kind, value),
    }
}

fn text(choice: &&'static str) -> Bytes {
    Bytes::from_static(choice.as_bytes())
}

pub(super) fn one_of<'a>(choices: impl Iterator<Item = &'a str>) -> Expected {
    format!("argument(s) must be one of the following: {}", choices.collect::<Vec<_>>().join(", ")).into()
}

/// An empty argument alone clears a list.
fn without_blank(words: &[Bytes]) -> Vec<Bytes> {
    if words.iter().all(Bytes::is_empty) { Vec::new() } else { words.to_vec() }
}

fn between(number: impl Into<i128>, min: i64, max: i64) -> Result<Value, Expected> {
    match i64::try_from(number.into()) {
        Ok(number) if (min..=max).contains(&number) => return Ok(Value::Number(number)),
        Ok(_) | Err(_) => {}
    }
    Err(format!("argument must be between {min} and {max} inclusive").into())
}

/// A decimal integer in its canonical form, as Redis reads integers.
pub(super) fn integer(word: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(word).ok()?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let canonical =
        digits == "0" && digits.len() == text.len() || digits.starts_with(|c: char| ('1'..='9').contains(&c));
    if canonical { text.parse().ok() } else { None }
}

/// Bytes with an optional unit: `b`, `k`, `kb`, `m`, `mb`, `g`, `gb`, in any case. A number that is too large saturates, and then fails at
/// the bounds of the setting.
pub(super) fn memory(word: &[u8]) -> Option<i128> {
    let text = std::str::from_utf8(word).ok()?;
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(unit_at);
    let scale: i128 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    // No digits are none, to the genuine server.
    if digits.is_empty() {
        return Some(0);
    }
    Some(digits.parse().unwrap_or(i128::MAX).saturating_mul(scale))
}

fn memory_or_percent(word: &[u8]) -> Result<i64, Expected> {
    const WRONG: &str = "argument must be a memory or percent value";
    let Some(percent) = word.strip_suffix(b"%") else {
        return memory(word).and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| WRONG.into());
    };
    match integer(percent) {
        Some(percent @ 0..=100) => Ok(-percent),
        Some(101..) => Err("percentage argument must be less or equal to 100".into()),
        Some(_) | None => Err(WRONG.into()),
    }
}

//! Functions of expressions, one row each.

use std::ops::RangeInclusive;

use super::calendar::{self, Date};
use super::{Datum, ExpressionError, Node, Row, value};
use crate::index::geo::Place;

/// A function's row.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) arity: RangeInclusive<usize>,
    run: Run,
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

#[derive(Debug)]
enum Run {
    /// Of a number; NaN if the argument is none.
    Math(fn(f64) -> f64),
    /// Of a point of time in seconds since 1970; NULL if the argument is none or lies before.
    Time(fn(f64) -> f64),
    /// Of values.
    Values(fn(&'static str, &[Datum]) -> Outcome),
    /// Decides itself which arguments it reads.
    Exists,
    Case,
    /// The words that the row was found by.
    Terms,
}

type Outcome = Result<Datum, ExpressionError>;

/// More arguments than anybody gives.
const MANY: usize = 64;

/// The most words of `matched_terms`.
const MAX_TERMS: usize = 100;

/// The property with the words that a row was found by. No expression can name it.
pub(crate) const TERMS: &str = "\0terms";

#[rustfmt::skip]
static FUNCTIONS: &[Function] = &[
    Function { name: "log",         arity: 1..=1,    run: Run::Math(f64::ln) },
    Function { name: "floor",       arity: 1..=1,    run: Run::Math(f64::floor) },
    Function { name: "abs",         arity: 1..=1,    run: Run::Math(f64::abs) },
    Function { name: "ceil",        arity: 1..=1,    run: Run::Math(f64::ceil) },
    Function { name: "sqrt",        arity: 1..=1,    run: Run::Math(f64::sqrt) },
    Function { name: "log2",        arity: 1..=1,    run: Run::Math(f64::log2) },
    Function { name: "exp",         arity: 1..=1,    run: Run::Math(f64::exp) },
    Function { name: "lower",       arity: 1..=1,    run: Run::Values(lower) },
    Function { name: "upper",       arity: 1..=1,    run: Run::Values(upper) },
    Function { name: "substr",      arity: 3..=3,    run: Run::Values(substr) },
    Function { name: "format",      arity: 1..=MANY, run: Run::Values(format) },
    Function { name: "split",       arity: 1..=3,    run: Run::Values(split) },
    Function { name: "to_number",   arity: 1..=1,    run: Run::Values(to_number) },
    Function { name: "to_str",      arity: 1..=1,    run: Run::Values(|_, values| Ok(Datum::Text(values[0].bytes()))) },
    Function { name: "exists",      arity: 1..=1,    run: Run::Exists },
    Function { name: "case",        arity: 3..=3,    run: Run::Case },
    Function { name: "matched_terms", arity: 0..=1,  run: Run::Terms },
    Function { name: "startswith",  arity: 2..=2,    run: Run::Values(startswith) },
    Function { name: "contains",    arity: 2..=2,    run: Run::Values(contains) },
    Function { name: "strlen",      arity: 1..=1,    run: Run::Values(strlen) },
    Function { name: "timefmt",     arity: 1..=2,    run: Run::Values(timefmt) },
    Function { name: "parsetime",   arity: 2..=2,    run: Run::Values(parsetime) },
    Function { name: "hour",        arity: 1..=1,    run: Run::Time(|time| time - time.rem_euclid(3600.0)) },
    Function { name: "minute",      arity: 1..=1,    run: Run::Time(|time| time - time.rem_euclid(60.0)) },
    Function { name: "day",         arity: 1..=1,    run: Run::Time(|time| time - time.rem_euclid(86_400.0)) },
    Function { name: "month",       arity: 1..=1,    run: Run::Time(|time| Date::of(time).month_start()) },
    Function { name: "monthofyear", arity: 1..=1,    run: Run::Time(|time| f64::from(Date::of(time).month - 1)) },
    Function { name: "year",        arity: 1..=1,    run: Run::Time(|time| Date::of(time).year as f64) },
    Function { name: "dayofmonth",  arity: 1..=1,    run: Run::Time(|time| f64::from(Date::of(time).day)) },
    Function { name: "dayofweek",   arity: 1..=1,    run: Run::Time(|time| f64::from(Date::of(time).weekday())) },
    Function { name: "dayofyear",   arity: 1..=1,    run: Run::Time(|time| f64::from(Date::of(time).day_of_year())) },
    Function { name: "geodistance", arity: 2..=4,    run: Run::Values(geodistance) },
];

/// Names are compared without regard to case.
pub(super) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name.eq_ignore_ascii_case(name))
}

impl Function {
    /// True for the function that reads [`TERMS`].
    pub(super) fn reads_terms(&self) -> bool {
        matches!(self.run, Run::Terms)
    }

    pub(super) fn call(&'static self, arguments: &[Node], row: &dyn Row) -> Outcome {
        match self.run {
            Run::Exists => {
                let exists = match value(&arguments[0], row) {
                    Ok(found) => found != Datum::Null,
                    Err(ExpressionError::Missing(_)) => false,
                    Err(error) => return Err(error),
                };
                Ok(Datum::Number(f64::from(u8::from(exists))))
            }
            Run::Case => {
                let holds = value(&arguments[0], row)?.is_true();
                value(&arguments[if holds { 1 } else { 2 }], row)
            }
            Run::Terms => {
                let given = arguments.first().map(|argument| value(argument, row)).transpose()?;
                let most = given.and_then(|most| most.number()).filter(|most| *most >= 1.0);
                let most = most.map_or(MAX_TERMS, |most| MAX_TERMS.min(most as usize));
                Ok(match row.property(TERMS) {
                    Some(Datum::List(terms)) if !terms.is_empty() => {
                        Datum::List(terms.iter().take(most).cloned().collect())
                    }
                    _ => Datum::Null,
                })
            }
            Run::Math(function) => {
                let argument = value(&arguments[0], row)?;
                Ok(Datum::Number(argument.number().map_or(f64::NAN, function)))
            }
            Run::Time(function) => {
                let time = value(&arguments[0], row)?.number();
                let time = time.filter(|time| (0.0..calendar::END).contains(time));
                Ok(time.map_or(Datum::Null, |time| Datum::Number(function(time.trunc()))))
            }
            Run::Values(function) => {
                let values = arguments.iter().map(|argument| Ok(value(argument, row)?.plain().clone()));
                function(self.name, &values.collect::<Result<Vec<_>, _>>()?)
            }
        }
    }
}

/// A string argument. Numbers are none.
fn string<'d>(name: &'static str, values: &'d [Datum], at: usize) -> Result<&'d [u8], ExpressionError> {
    match &values[at] {
        Datum::Text(text) => Ok(text),
        Datum::List(list) => match list.first() {
            Some(Datum::Text(text)) => Ok(text),
            _ => Err(wrong_type(name, values, at, false)),
        },
        _ => Err(wrong_type(name, values, at, false)),
    }
}

/// A number argument. Strings are none.
fn plain_number(name: &'static str, values: &[Datum], at: usize) -> Result<f64, ExpressionError> {
    if let Datum::Number(number) = values[at] { Ok(number) } else { Err(wrong_type(name, values, at, true)) }
}

/// The error for an argument. RediSearch names types by their numbers.
fn wrong_type(function: &'static str, values: &[Datum], argument: usize, wants_number: bool) -> ExpressionError {
    let given = match values[argument].plain() {
        Datum::Number(_) => 1,
        Datum::Null => 4,
        Datum::List(_) => 6,
        Datum::Text(_) | Datum::Shown(..) => 3,
    };
    ExpressionError::Type { function, argument, given, wants_number }
}

fn lower(name: &'static str, values: &[Datum]) -> Outcome {
    Ok(string(name, values, 0).map_or(Datum::Null, |text| Datum::text(text.to_ascii_lowercase())))
}

fn upper(name: &'static str, values: &[Datum]) -> Outcome {
    Ok(string(name, values, 0).map_or(Datum::Null, |text| Datum::text(text.to_ascii_uppercase())))
}

/// `substr(text, offset, length)`: a negative offset counts from the end, a negative length leaves so many off.
fn substr(name: &'static str, values: &[Datum]) -> Outcome {
    let (offset, length) = (plain_number(name, values, 1)?, plain_number(name, values, 2)?);
    let text = string(name, values, 0)?;
    let size = text.len() as i64;
    let (offset, length) = (offset as i64, length as i64);
    let start = if offset < 0 { offset.saturating_add(size) } else { offset };
    // As in RediSearch, a start before the text is one behind it.
    let start = if start < 0 { size } else { start.min(size) };
    let length = if length < 0 { (size - start).saturating_add(length).max(0) } else { length.min(size - start) };
    Ok(Datum::text(&text[start as usize..(start + length) as usize]))
}

fn format(name: &'static str, values: &[Datum]) -> Outcome {
    let (mut out, mut arguments) = (Vec::new(), values[1..].iter());
    let mut bytes = string(name, values, 0)?.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'%') => out.push(b'%'),
            Some(b's') => match arguments.next().ok_or(ExpressionError::FormatArguments)? {
                Datum::Null => out.extend_from_slice(b"(null)"),
                argument => out.extend_from_slice(&argument.bytes()),
            },
            _ => return Err(ExpressionError::Format),
        }
    }
    Ok(Datum::text(out))
}

/// The most parts of a string.
const MAX_PARTS: usize = 1024;

/// `split(text, separators = ",", trimmed = " ")`.
fn split(name: &'static str, values: &[Datum]) -> Outcome {
    let separators = if values.len() > 1 { string(name, values, 1)? } else { b"," };
    let trimmed = if values.len() > 2 { string(name, values, 2)? } else { b" " };
    let parts = string(name, values, 0)?.split(|byte| separators.contains(byte)).map(|part| trim(part, trimmed));
    let parts = parts.filter(|part| !part.is_empty()).take(MAX_PARTS).map(Datum::text);
    Ok(Datum::List(parts.collect()))
}

fn trim<'t>(text: &'t [u8], set: &[u8]) -> &'t [u8] {
    let keeps = |byte: &u8| !set.contains(byte);
    let Some(start) = text.iter().position(keeps) else { return b"" };
    let end = text.iter().rposition(keeps).unwrap_or(start);
    &text[start..=end]
}

fn to_number(name: &'static str, values: &[Datum]) -> Outcome {
    if let Some(number) = values[0].number() {
        return Ok(Datum::Number(number));
    }
    let text = string(name, values, 0)?;
    let shown = String::from_utf8_lossy(&text[..text.len().min(MAX_SHOWN)]).into_owned();
    Err(ExpressionError::NoNumber(shown))
}

/// The longest part of a text that an error shows.
const MAX_SHOWN: usize = 64;

fn startswith(name: &'static str, values: &[Datum]) -> Outcome {
    let starts = string(name, values, 0)?.starts_with(string(name, values, 1)?);
    Ok(Datum::Number(f64::from(u8::from(starts))))
}

/// How often the second string stands in the first, overlaps counted.
fn contains(name: &'static str, values: &[Datum]) -> Outcome {
    let (text, part) = (string(name, values, 0)?, string(name, values, 1)?);
    let count = if part.is_empty() {
        text.len() + 1
    } else {
        text.windows(part.len()).filter(|window| *window == part).count()
    };
    Ok(Datum::Number(count as f64))
}

fn strlen(name: &'static str, values: &[Datum]) -> Outcome {
    Ok(Datum::Number(string(name, values, 0)?.len() as f64))
}

fn timefmt(name: &'static str, values: &[Datum]) -> Outcome {
    let format = if values.len() > 1 { string(name, values, 1)? } else { b"%FT%TZ" };
    let time = values[0].number().filter(|time| time.abs() < calendar::END);
    let text = time.and_then(|time| calendar::format(time.trunc(), format));
    Ok(text.map_or(Datum::Null, Datum::text))
}

fn parsetime(name: &'static str, values: &[Datum]) -> Outcome {
    let (text, format) = (string(name, values, 0)?, string(name, values, 1)?);
    Ok(calendar::parse(text, format).map_or(Datum::Null, Datum::Number))
}

/// Metres between two places, each `"longitude,latitude"` or two numbers, to the centimetre.
fn geodistance(_: &'static str, values: &[Datum]) -> Outcome {
    let mut rest = values;
    let distance = place(&mut rest).zip(place(&mut rest)).filter(|_| rest.is_empty());
    let metres = distance.map_or(f64::NAN, |(one, other)| (one.distance(other) * 100.0).round() / 100.0);
    Ok(Datum::Number(metres))
}

fn place(values: &mut &[Datum]) -> Option<Place> {
    let (first, rest) = values.split_first()?;
    if let Some(longitude) = first.number() {
        let (second, rest) = rest.split_first()?;
        *values = rest;
        return Some(Place { longitude, latitude: second.number()? });
    }
    *values = rest;
    Place::parse(std::str::from_utf8(&first.bytes()).ok()?)
}

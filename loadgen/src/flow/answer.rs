//! The parts of answers that are taken, and the checks of answers.

use std::borrow::Cow;

use rand::rngs::SmallRng;
use regex::bytes::Regex;

use super::Feeder;
use super::json_path::{JsonPath, Pick};
use super::values::{Text, Values};
use crate::codec::unfolded;

/// An answer of an HTTP server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    /// With its status line.
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [u8],
}

/// A part of an answer.
#[derive(Clone, Debug)]
pub(super) struct Extract {
    pub(super) source: Source,
    /// Only what this finds in it: its first group, or all of it if it has none.
    pub(super) regex: Option<Regex>,
}

/// The place of a part.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Body,
    Json(JsonPath, Pick),
    Header(String),
    /// A cookie that the answer sets.
    Cookie(String),
}

impl Extract {
    /// True if the part stands in the body.
    pub(super) fn needs_body(&self) -> bool {
        matches!(self.source, Source::Body | Source::Json(..))
    }

    /// Finds the part, if the answer has it.
    pub(super) fn find<'a>(&self, answer: Answer<'a>, rng: &mut SmallRng) -> Option<Cow<'a, [u8]>> {
        let found = match &self.source {
            Source::Body => Cow::Borrowed(answer.body),
            Source::Json(path, pick) => match path.find(answer.body, *pick, rng)? {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            },
            Source::Header(name) => find_field(answer.head, name, |value| Some(value))?,
            Source::Cookie(name) => find_field(answer.head, "set-cookie", |value| cookie(value, name))?,
        };
        let Some(regex) = &self.regex else { return Some(found) };
        let range = {
            let groups = regex.captures(&found)?;
            groups.get(1).or_else(|| groups.get(0))?.range()
        };
        Some(match found {
            Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[range]),
            Cow::Owned(bytes) => Cow::Owned(bytes[range].to_vec()),
        })
    }
}

/// The first value of a header that `part` takes something of.
fn find_field<'a>(head: &'a [u8], name: &str, part: impl Fn(&[u8]) -> Option<&[u8]>) -> Option<Cow<'a, [u8]>> {
    fn lines<'h>(head: &'h [u8], name: &str, part: impl Fn(&[u8]) -> Option<&[u8]>) -> Option<&'h [u8]> {
        head.split(|byte| *byte == b'\n').skip(1).find_map(|line| {
            let colon = memchr::memchr(b':', line)?;
            line[..colon].eq_ignore_ascii_case(name.as_bytes()).then(|| part(line[colon + 1..].trim_ascii()))?
        })
    }
    match unfolded(head) {
        Cow::Borrowed(head) => lines(head, name, part).map(Cow::Borrowed),
        Cow::Owned(head) => lines(&head, name, part).map(|value| Cow::Owned(value.to_vec())),
    }
}

/// The value of a cookie in a `Set-Cookie` (RFC 6265), if it is this one.
fn cookie<'a>(field: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let pair = field.split(|byte| *byte == b';').next()?;
    let equals = memchr::memchr(b'=', pair)?;
    (pair[..equals].trim_ascii() == name.as_bytes()).then(|| pair[equals + 1..].trim_ascii())
}

/// A condition on an answer.
#[derive(Clone, Debug)]
pub(super) struct Check {
    /// Its name in results.
    pub(super) name: String,
    pub(super) condition: Condition,
}

#[derive(Clone, Debug)]
pub(super) enum Condition {
    /// The status is one of these.
    Status(Vec<u16>),
    /// A part is there, and as expected.
    Part(Extract, Expected),
}

/// The expectation of a part.
#[derive(Clone, Debug)]
pub(super) enum Expected {
    /// Anything.
    Anything,
    /// This text.
    Is(Text),
    /// With this text in it.
    Contains(Text),
}

impl Check {
    pub(super) fn needs_body(&self) -> bool {
        matches!(&self.condition, Condition::Part(extract, _) if extract.needs_body())
    }

    pub(super) fn is_status(&self) -> bool {
        matches!(self.condition, Condition::Status(_))
    }

    /// Judges an answer; true if it passes. `scratch` is memory for the expected text.
    pub(super) fn passes(
        &self,
        answer: Answer<'_>,
        values: &mut Values,
        feeders: &[Feeder],
        scratch: &mut Vec<u8>,
    ) -> bool {
        let (extract, expected) = match &self.condition {
            Condition::Status(statuses) => return statuses.contains(&answer.status),
            Condition::Part(extract, expected) => (extract, expected),
        };
        let Some(found) = extract.find(answer, &mut values.rng) else { return false };
        match expected {
            Expected::Anything => true,
            Expected::Is(text) => *found == *filled(text, values, feeders, scratch),
            Expected::Contains(text) => memchr::memmem::find(&found, filled(text, values, feeders, scratch)).is_some(),
        }
    }
}

fn filled<'s>(text: &Text, values: &Values, feeders: &[Feeder], scratch: &'s mut Vec<u8>) -> &'s [u8] {
    scratch.clear();
    text.append(values, feeders, scratch);
    scratch
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    const HEAD: &[u8] =
        b"HTTP/1.1 200 OK\r\nLocation: /orders/17?x\r\nSet-Cookie: a=1; Path=/\r\nset-cookie: sid = s%3D \r\n\
        X-Fold: one\r\n two\r\nempty:\r\n\r\n";

    #[test]
    fn parts_are_found() {
        #[track_caller]
        fn check(source: Source, regex: &str, expected: Option<&str>) {
            let regex = (!regex.is_empty()).then(|| Regex::new(regex).unwrap());
            let answer = Answer { status: 200, head: HEAD, body: b"<a id=\"7\"> {no JSON}" };
            let found = Extract { source, regex }.find(answer, &mut SmallRng::seed_from_u64(0));
            let found = found.map(|found| String::from_utf8(found.into_owned()).unwrap());
            assert_eq!(found.as_deref(), expected);
        }
        check(Source::Header("location".to_owned()), "", Some("/orders/17?x"));
        check(Source::Header("location".to_owned()), r"/orders/(\d+)", Some("17"));
        check(Source::Header("location".to_owned()), r"\d+", Some("17"));
        check(Source::Header("location".to_owned()), r"users", None);
        check(Source::Header("X-Fold".to_owned()), "", Some("one two"));
        check(Source::Header("empty".to_owned()), "", Some(""));
        check(Source::Header("absent".to_owned()), "", None);
        check(Source::Cookie("sid".to_owned()), "", Some("s%3D"));
        check(Source::Cookie("a".to_owned()), "", Some("1"));
        check(Source::Cookie("Path".to_owned()), "", None);
        check(Source::Body, "id=\"(.*?)\"", Some("7"));
        check(Source::Json(JsonPath::parse("$.id").unwrap(), Pick::First), "", None);
    }

    #[test]
    fn answers_pass_or_fail() {
        #[track_caller]
        fn check(condition: Condition, expected: bool) {
            let answer = Answer { status: 201, head: HEAD, body: b"{\"id\": 7}" };
            let (name, mut values) = (String::new(), Values::new(0));
            let passes = Check { name, condition }.passes(answer, &mut values, &[], &mut Vec::new());
            assert_eq!(passes, expected);
        }
        let id = |expected| {
            let source = Source::Json(JsonPath::parse("$.id").unwrap(), Pick::First);
            Condition::Part(Extract { source, regex: None }, expected)
        };
        let body = |expected| Condition::Part(Extract { source: Source::Body, regex: None }, expected);
        check(Condition::Status(vec![200, 201]), true);
        check(Condition::Status(vec![200]), false);
        check(id(Expected::Anything), true);
        check(id(Expected::Is(Text::plain("7"))), true);
        check(id(Expected::Is(Text::plain("70"))), false);
        check(body(Expected::Contains(Text::plain("\"id\""))), true);
        check(body(Expected::Contains(Text::plain("name"))), false);
    }
}

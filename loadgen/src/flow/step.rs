//! From a step of the file to a request, its checks, and the values that it takes.

use std::collections::BTreeSet;
use std::time::Duration;

use regex::bytes::Regex;
use toml::{Spanned, Value as Toml};

use super::answer::{Check, Condition, Expected, Extract, Source};
use super::faults::{Faults, shown};
use super::file::{CheckFile, PartFile, StepFile};
use super::json_path::JsonPath;
use super::names::{BUILT_IN, Names, check_name};
use super::values::{Encoding, Text, Value};
use super::{Step, Take};
use crate::clock::nanos;
use crate::number;

/// Reads the steps of a flow, one after the other.
pub(super) struct StepReader<'a, 't> {
    names: &'a Names,
    headers: &'a [(String, String)],
    faults: &'a mut Faults<'t>,
    /// The values that the steps before take.
    taken: Vec<String>,
    feeders: BTreeSet<usize>,
}

impl<'a, 't> StepReader<'a, 't> {
    pub(super) fn new(names: &'a Names, headers: &'a [(String, String)], faults: &'a mut Faults<'t>) -> Self {
        Self { names, headers, faults, taken: Vec::new(), feeders: BTreeSet::new() }
    }

    /// How many values the flow takes, and the feeders that it uses.
    pub(super) fn used(self) -> (usize, Vec<usize>) {
        (self.taken.len(), self.feeders.into_iter().collect())
    }

    pub(super) fn read(&mut self, file: &StepFile, count: &mut usize) -> Step {
        let first_check = *count;
        let body = self.body(file);
        let method = self.method(file);
        let path = self.path(file);
        let head = self.head(file, &method, body.is_some());
        let checks: Vec<Check> = file.check.iter().filter_map(|check| self.check(check, file.name.get_ref())).collect();
        *count += file.check.len();
        // Names are known to the steps behind this one only.
        let takes: Vec<_> = file.take.iter().filter_map(|(name, part)| self.take(name, part)).collect();
        let think = file.think.as_ref().and_then(|times| think(times, self.faults)).unwrap_or_default();
        let needs_body = checks.iter().any(Check::needs_body) || takes.iter().any(|take| take.part.needs_body());
        Step {
            name: file.name.get_ref().clone(),
            first_check,
            is_head: method == "HEAD",
            needs_body,
            method: format!("{method} "),
            path,
            head,
            body,
            checks,
            takes,
            think: (nanos(think.0), nanos(think.1)),
        }
    }

    fn method(&mut self, file: &StepFile) -> String {
        let has_body = file.body.is_some() || file.json.is_some();
        let Some(method) = &file.method else {
            return if has_body { "POST" } else { "GET" }.to_owned();
        };
        let word = method.get_ref();
        if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') {
            self.faults.add(method, "step.method", word, "a word such as GET");
        }
        word.clone()
    }

    fn body(&mut self, file: &StepFile) -> Option<Text> {
        match (&file.body, &file.json) {
            (Some(body), None) => self.text(body, "step.body", Encoding::Plain),
            (None, Some(json)) => self.text(json, "step.json", Encoding::Json),
            (Some(body), Some(_)) => {
                self.faults.add(body, "step.body", body.get_ref(), "either body or json");
                None
            }
            (None, None) => None,
        }
    }

    fn path(&mut self, file: &StepFile) -> Text {
        let path = file.path.get_ref();
        if !(path.starts_with('/') || path.starts_with("{{")) || path.bytes().any(|byte| byte <= b' ' || byte >= 0x7f) {
            let expected = "a path of ASCII that begins with / or {{ and has no spaces";
            self.faults.add(&file.path, "step.path", path, expected);
        }
        self.text(&file.path, "step.path", Encoding::Path).unwrap_or_else(|| Text::plain(""))
    }

    /// The headers, up to the body's length where there is a body.
    fn head(&mut self, file: &StepFile, method: &str, has_body: bool) -> Text {
        let mut head = Text::plain("");
        let given = |name: &str| file.headers.keys().any(|given| given.eq_ignore_ascii_case(name));
        for (name, value) in self.headers.iter().filter(|(name, _)| !given(name)) {
            head = head.then(Text::plain(&format!("{name}: {value}\r\n")));
        }
        for (name, value) in &file.headers {
            let is_token = |byte: u8| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?={}".contains(&byte);
            let is_length = ["content-length", "transfer-encoding"].iter().any(|own| name.eq_ignore_ascii_case(own));
            if name.is_empty() || !name.bytes().all(is_token) || is_length {
                let expected = "a header's name, other than Content-Length and Transfer-Encoding";
                self.faults.add(value, "a name in step.headers", name, expected);
            }
            if self.names.keeps_cookies && name.eq_ignore_ascii_case("cookie") {
                self.faults.add(value, "a name in step.headers", name, "no Cookie beside `cookies = true`");
            }
            if value.get_ref().bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
                self.faults.add(value, &format!("step.headers.{name}"), value.get_ref(), "a value in one line");
            }
            let value = self.text(value, &format!("step.headers.{name}"), Encoding::Header);
            let value = value.unwrap_or_else(|| Text::plain(""));
            head = head.then(Text::plain(&format!("{name}: "))).then(value).then(Text::plain("\r\n"));
        }
        if file.json.is_some() && !given("content-type") {
            head = head.then(Text::plain("Content-Type: application/json\r\n"));
        }
        let expects_body = matches!(method, "POST" | "PUT" | "PATCH");
        head.then(Text::plain(match (has_body, expects_body) {
            (true, _) => "Content-Length: ",
            (false, true) => "Content-Length: 0\r\n\r\n",
            (false, false) => "\r\n",
        }))
    }

    /// A text whose values are known.
    fn text(&mut self, text: &Spanned<String>, field: &str, encoding: Encoding) -> Option<Text> {
        let parsed = Text::parse(text.get_ref(), encoding, |name| self.value(name));
        let parsed = self.faults.get(text, field, parsed)?;
        let feeders = parsed.values().filter_map(|value| match value {
            Value::Column { feeder, .. } => Some(feeder),
            Value::Iteration | Value::User | Value::Number(_) | Value::Taken(_) => None,
        });
        self.feeders.extend(feeders);
        Some(parsed)
    }

    fn value(&self, name: &str) -> Result<Value, String> {
        let place = |names: &[String], name: &str| names.iter().position(|known| known == name);
        if name == "iteration" {
            return Ok(Value::Iteration);
        }
        if name == "user" {
            return Ok(Value::User);
        }
        if let Some(place) = place(&self.taken, name) {
            return Ok(Value::Taken(place));
        }
        if let Some(place) = place(&self.names.numbers, name) {
            return Ok(Value::Number(place));
        }
        if let Some((feeder, column)) = name.split_once('.') {
            if self.names.unread.contains(feeder) {
                return Ok(Value::User);
            }
            let found = self.names.feeders.iter().position(|(known, _)| known == feeder);
            if let Some(feeder) = found
                && let Some(column) = place(&self.names.feeders[feeder].1, column)
            {
                return Ok(Value::Column { feeder, column });
            }
        }
        Err(format!("a known name for {{{{{name}}}}}: {}", self.known().join(", ")))
    }

    /// All names that a text may have here.
    fn known(&self) -> Vec<String> {
        let columns = self.names.feeders.iter();
        let columns =
            columns.flat_map(|(feeder, columns)| columns.iter().map(move |column| format!("{feeder}.{column}")));
        let mut known: Vec<String> = BUILT_IN.iter().map(ToString::to_string).collect();
        known.extend(self.names.numbers.iter().cloned().chain(columns).chain(self.taken.iter().cloned()));
        known
    }

    fn take(&mut self, name: &Spanned<String>, part: &Spanned<PartFile>) -> Option<Take> {
        check_name(name, "step.take", self.faults);
        let word = name.get_ref();
        if self.names.numbers.contains(word) {
            self.faults.add(name, "the name of step.take", word, "a name that no random number has");
        }
        let place = self.taken.iter().position(|taken| taken == word).unwrap_or_else(|| {
            self.taken.push(word.clone());
            self.taken.len() - 1
        });
        let found = self.part(part, part.get_ref())?;
        Some(Take { name: word.clone(), place, part: found })
    }

    /// The part of an answer that is meant; the body if none is named.
    fn part<T>(&mut self, place: &Spanned<T>, part: &PartFile) -> Option<Extract> {
        let PartFile { json, pick, header, cookie, regex } = part;
        let regex = match regex {
            Some(text) => {
                let found = Regex::new(text.get_ref());
                let found = found.map_err(|error| format!("a regular expression ({})", last_line(&error.to_string())));
                Some(self.faults.get(text, "regex", found)?)
            }
            None => None,
        };
        if pick.is_some() && json.is_none() {
            self.faults.add(place, "pick", format!("{:?}", pick.unwrap_or_default()).to_lowercase(), "json beside it");
        }
        let source = match (json, header, cookie) {
            (None, None, None) => Source::Body,
            (Some(path), None, None) => {
                let found = self.faults.get(path, "json", JsonPath::parse(path.get_ref()))?;
                Source::Json(found, pick.unwrap_or_default())
            }
            (None, Some(header), None) => Source::Header(header.clone()),
            (None, None, Some(cookie)) => Source::Cookie(cookie.clone()),
            _ => {
                self.faults.add(place, "the part of the answer", "several", "one of json, header and cookie");
                return None;
            }
        };
        Some(Extract { source, regex })
    }

    fn check(&mut self, file: &Spanned<CheckFile>, step: &str) -> Option<Check> {
        let check = file.get_ref();
        let name = check.name.clone().unwrap_or_else(|| describe(check));
        let name = format!("{step}: {name}");
        let part = check.part();
        if let Some(status) = &check.status {
            if !part.is_body() || check.is.is_some() || check.contains.is_some() {
                self.faults.add(file, "check", "status and more", "a check of its own for the status");
            }
            let statuses = self.statuses(status)?;
            return Some(Check { name, condition: Condition::Status(statuses) });
        }
        if part.is_body() && check.is.is_none() && check.contains.is_none() {
            let expected = "status, json, header, cookie, regex, is or contains";
            self.faults.add(file, "check", "empty", expected);
        }
        let part = self.part(file, &part)?;
        let expected = match (&check.is, &check.contains) {
            (None, None) => Expected::Anything,
            (Some(text), None) => Expected::Is(self.text(text, "check.is", Encoding::Plain)?),
            (None, Some(text)) => Expected::Contains(self.text(text, "check.contains", Encoding::Plain)?),
            (Some(text), Some(_)) => {
                self.faults.add(text, "check.is", text.get_ref(), "either is or contains");
                return None;
            }
        };
        Some(Check { name, condition: Condition::Part(part, expected) })
    }

    fn statuses(&mut self, place: &Spanned<Toml>) -> Option<Vec<u16>> {
        let read = |value: &Toml| {
            let status = value.as_integer().and_then(|status| u16::try_from(status).ok());
            status.filter(|status| (100..1000).contains(status))
        };
        let statuses = match place.get_ref() {
            Toml::Array(several) => several.iter().map(read).collect::<Option<Vec<_>>>(),
            one => read(one).map(|status| vec![status]),
        };
        let statuses = statuses.filter(|statuses| !statuses.is_empty());
        if statuses.is_none() {
            let expected = "a status such as 200, or several, as in [200, 201]";
            self.faults.add(place, "check.status", shown(place.get_ref()), expected);
        }
        statuses
    }
}

impl PartFile {
    /// True if the part is the whole body.
    fn is_body(&self) -> bool {
        self.json.is_none() && self.header.is_none() && self.cookie.is_none() && self.regex.is_none()
    }
}

/// A check's name, if it has none of its own: `status 200`, `header location`, `$.items[0].id is 7`.
fn describe(check: &CheckFile) -> String {
    let text = |text: &Option<Spanned<String>>| text.as_ref().map(|text| text.get_ref().clone());
    if let Some(status) = &check.status {
        return format!("status {}", shown(status.get_ref()));
    }
    let part = text(&check.json)
        .or_else(|| check.header.as_ref().map(|name| format!("header {name}")))
        .or_else(|| check.cookie.as_ref().map(|name| format!("cookie {name}")));
    let mut words = vec![part.unwrap_or_else(|| "body".to_owned())];
    for (word, text) in [("matches", text(&check.regex)), ("is", text(&check.is)), ("contains", text(&check.contains))]
    {
        words.extend(text.map(|text| format!("{word} {text}")));
    }
    words.join(" ")
}

/// The line of an error of several lines that says what is wrong.
fn last_line(error: &str) -> &str {
    let line = error.trim_end().lines().last().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line)
}

/// A time, or the least and the most.
fn think(value: &Spanned<Toml>, faults: &mut Faults<'_>) -> Option<(Duration, Duration)> {
    let read = |value: &Toml| value.as_str().and_then(|text| number::duration(text).ok());
    let range = match value.get_ref() {
        Toml::Array(times) => match times.as_slice() {
            [least, most] => read(least).zip(read(most)),
            _ => None,
        },
        time => read(time).map(|time| (time, time)),
    };
    let range = range.filter(|(least, most)| least <= most);
    if range.is_none() {
        let expected = "a time such as \"1s\", or the least and the most, as in [\"1s\", \"3s\"]";
        faults.add(value, "step.think", shown(value.get_ref()), expected);
    }
    range
}

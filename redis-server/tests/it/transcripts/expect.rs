//! Judging a reply by what the transcript says.

use std::time::Duration;

use redis_server::protocol::glob;

use super::render::render;
use super::script::{Order, Rules};
use crate::support::resp::Value;

/// Whether a reply is as the transcript says, which has run for `elapsed` so far.
pub(crate) fn fits(value: &Value, expected: &[String], rules: &Rules, elapsed: Duration) -> bool {
    let seconds = elapsed.as_secs_f64();
    if rules.any || rules.name.is_some() {
        return !value.is_error();
    }
    if rules.order == Order::AsWritten {
        return lines_fit(&render(value), expected, rules.like, seconds);
    }
    // The output parses back into the tree that it shows; both trees are then sorted.
    let mut actual = Tree::of(&render(value));
    let mut expected = Tree::of(expected);
    actual.sort(rules.order);
    expected.sort(rules.order);
    lines_fit(&actual.lines(), &expected.lines(), rules.like, seconds)
}

fn lines_fit(actual: &[String], expected: &[String], like: bool, seconds: f64) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((gap, rest)) if like && gap == "..." => {
            (0..=actual.len()).any(|skipped| lines_fit(&actual[skipped..], rest, like, seconds))
        }
        Some((line, rest)) => {
            let Some((first, others)) = actual.split_first() else { return false };
            line_fits(first, line, like, seconds) && lines_fit(others, rest, like, seconds)
        }
    }
}

fn line_fits(actual: &str, expected: &str, like: bool, seconds: f64) -> bool {
    actual == expected
        || like && like_fits(actual.as_bytes(), expected.as_bytes())
        || about(actual, expected, "(integer) ", seconds)
        || about(actual, expected, "(double) ", seconds)
}

/// `*` stands for any text, everything else for itself.
fn like_fits(actual: &[u8], expected: &[u8]) -> bool {
    let mut pattern = Vec::new();
    for &byte in expected {
        if matches!(byte, b'\\' | b'[' | b']' | b'?' | b'^') {
            pattern.push(b'\\');
        }
        pattern.push(byte);
    }
    glob::matches(&pattern, actual, false)
}

/// `(integer) ~100+-5`: roughly. Without a tolerance it may be a time in seconds, which passes while a busy machine runs other programs.
fn about(actual: &str, expected: &str, kind: &str, seconds: f64) -> bool {
    let Some((before, wanted)) = expected.split_once(&format!("{kind}~")) else { return false };
    let Some(actual) = actual.strip_prefix(before).and_then(|rest| rest.strip_prefix(kind)) else { return false };
    let (wanted, tolerance) = wanted.split_once("+-").map_or((wanted, None), |(wanted, by)| (wanted, Some(by)));
    let (Ok(actual), Ok(wanted)) = (actual.parse::<f64>(), wanted.parse::<f64>()) else { return false };
    let tolerance =
        tolerance.and_then(|by| by.parse().ok()).unwrap_or_else(|| (wanted.abs() * 0.02).max(2.0) + seconds);
    (actual - wanted).abs() <= tolerance
}

/// A rendered reply as the tree of its numbered elements.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tree {
    Leaf(String),
    /// An element of a map whose value has elements.
    Pair(String, Box<Self>),
    Node(Vec<Self>),
}

impl Tree {
    fn of(lines: &[String]) -> Self {
        let Some(first) = lines.first() else { return Self::Leaf(String::new()) };
        let Some(width) = numbered(first) else {
            return match first.strip_suffix(" =>") {
                Some(key) => Self::Pair(key.to_owned(), Box::new(Self::of(&lines[1..]))),
                None => Self::Leaf(lines.join("\n")),
            };
        };
        let mut elements: Vec<Vec<String>> = Vec::new();
        for line in lines {
            // A line of the same element is indented by the width of its number.
            let (head, rest) = line.split_at_checked(width).unwrap_or((line, ""));
            match elements.last_mut() {
                Some(element) if head.trim().is_empty() => element.push(rest.to_owned()),
                _ => elements.push(vec![rest.to_owned()]),
            }
        }
        Self::Node(elements.iter().map(|element| Self::of(element)).collect())
    }

    fn sort(&mut self, order: Order) {
        let elements = match self {
            Self::Leaf(_) => return,
            Self::Pair(_, value) => return value.sort(order),
            Self::Node(elements) => elements,
        };
        elements.iter_mut().for_each(|element| element.sort(order));
        if order == Order::AnyPairs && elements.len() % 2 == 0 {
            let mut pairs: Vec<_> = elements.chunks(2).map(<[Self]>::to_vec).collect();
            pairs.sort();
            *elements = pairs.concat();
        } else {
            elements.sort();
        }
    }

    fn lines(&self) -> Vec<String> {
        let below = |head: &str, tree: &Self| {
            let indented = tree.lines().into_iter().map(|line| format!(" {line}"));
            std::iter::once(head.to_owned()).chain(indented).collect::<Vec<_>>()
        };
        match self {
            Self::Leaf(text) => text.lines().map(str::to_owned).collect(),
            Self::Pair(key, value) => below(key, value),
            Self::Node(elements) => elements.iter().flat_map(|tree| below("-", tree)).collect(),
        }
    }
}

/// Width of the number before an element: `12) `, `1# `, `1~ `.
fn numbered(line: &str) -> Option<usize> {
    let text = line.trim_start_matches(' ');
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mark = text[digits..].starts_with([')', '#', '~']) && text[digits + 1..].starts_with(' ');
    (digits > 0 && mark).then_some(line.len() - text.len() + digits + 2)
}

#[test]
fn replies_are_judged() {
    let check = |actual: &str, expected: &str, rules: &Rules, fit: bool| {
        let (value, _) = crate::support::resp::parse(actual.as_bytes()).unwrap().unwrap();
        let expected: Vec<_> = expected.lines().map(str::to_owned).collect();
        assert_eq!(fits(&value, &expected, rules, Duration::ZERO), fit, "{actual:?} against {expected:?}");
    };
    let plain = Rules::default();
    let any = Rules { order: Order::Any, ..Rules::default() };
    let pairs = Rules { order: Order::AnyPairs, ..Rules::default() };
    let like = Rules { like: true, ..Rules::default() };
    check(":99\r\n", "(integer) ~100", &plain, true);
    check(":90\r\n", "(integer) ~100", &plain, false);
    check(":90\r\n", "(integer) ~100+-10", &plain, true);
    check("*2\r\n:1\r\n:99\r\n", "1) (integer) 1\n2) (integer) ~100", &plain, true);
    check("*2\r\n$1\r\na\r\n$1\r\nb\r\n", "1) \"b\"\n2) \"a\"", &any, true);
    check("*2\r\n$1\r\na\r\n$1\r\nb\r\n", "1) \"b\"\n2) \"a\"", &plain, false);
    check(
        "*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n",
        "1) (integer) 3\n2) (integer) 4\n3) (integer) 1\n4) (integer) 2",
        &pairs,
        true,
    );
    check(
        "*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n",
        "1) (integer) 1\n2) (integer) 4\n3) (integer) 3\n4) (integer) 2",
        &pairs,
        false,
    );
    let map = "%2\r\n+a\r\n~2\r\n:1\r\n:2\r\n+b\r\n:3\r\n";
    check(map, "1# b => (integer) 3\n2# a =>\n   1~ (integer) 2\n   2~ (integer) 1", &any, true);
    check("$9\r\nname=x id\r\n", "\"name=*\"", &like, true);
    check("*3\r\n:1\r\n:2\r\n:3\r\n", "1) (integer) 1\n...", &like, true);
}

//! Replies in both protocols as RediSearch 2.10.5 gave them, recorded in `replies.txt`.
//!
//! `REDISEARCH_SOCKET` names the Unix socket of a genuine server, which the test empties: it then replies as recorded, too. With
//! `SEARCH_RECORD=1` the test prints the file anew.

use std::fmt::Write as _;
use std::os::unix::net::UnixStream;

use super::words;
use crate::support::process::ask;
use crate::support::resp::Value;
use crate::support::server::Server;

const RECORDED: &str = include_str!("replies.txt");

/// A reply on one line.
fn shown(value: &Value) -> String {
    let list = |open: &str, items: &[Value], close: &str| {
        format!("{open}{}{close}", items.iter().map(shown).collect::<Vec<_>>().join(" "))
    };
    match value {
        Value::Status(text) => format!("+{}", text.escape_ascii()),
        Value::Error(text) => format!("-{}", text.escape_ascii()),
        Value::Int(number) => number.to_string(),
        Value::Bulk(text) => format!("\"{}\"", text.escape_ascii()),
        Value::NullBulk | Value::NullArray | Value::Null => "null".to_owned(),
        Value::Double(text) => format!(",{text}"),
        Value::Array(items) => list("[", items, "]"),
        Value::Set(items) => list("~[", items, "]"),
        Value::Map(pairs) => {
            let pairs: Vec<String> =
                pairs.iter().map(|(name, value)| format!("{} {}", shown(name), shown(value))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        other => format!("{other:?}"),
    }
}

/// The calls of the file with the recorded replies.
fn recorded() -> Vec<(&'static str, &'static str, &'static str)> {
    let lines: Vec<&str> = RECORDED.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let split = |lines: &[&'static str]| {
        let [call, two, three] = lines else { panic!("three lines for each call: {lines:?}") };
        (&call[2..], &two[2..], &three[2..])
    };
    lines.chunks(3).map(split).collect()
}

/// The replies to all calls, in one protocol.
fn replies(stream: &mut (impl std::io::Read + std::io::Write), protocol: &str) -> Vec<String> {
    ask(stream, &["FLUSHALL"]);
    ask(stream, &["FT.CONFIG", "SET", "TIMEOUT", "0"]);
    ask(stream, &["HELLO", protocol]);
    let reply = |(call, ..): &(&str, &str, &str)| {
        let words = words(call);
        shown(&ask(stream, &words.iter().map(String::as_str).collect::<Vec<_>>()))
    };
    recorded().iter().map(reply).collect()
}

/// Whether two replies are the same; numbers may have more digits than it takes to tell them apart.
fn is_same(one: &str, other: &str) -> bool {
    let number = |word: &str| word.trim_matches(['"', ',', '[', ']']).parse::<f64>().ok();
    let mut words = one.split(' ').zip(other.split(' '));
    one.split(' ').count() == other.split(' ').count()
        && words.all(|(one, other)| one == other || number(one).is_some_and(|one| number(other) == Some(one)))
}

fn compare(two: &[String], three: &[String], of: &str) {
    let mut report = String::new();
    for ((call, expected_two, expected_three), (two, three)) in recorded().into_iter().zip(two.iter().zip(three)) {
        for (expected, given) in [(expected_two, two), (expected_three, three)] {
            if !is_same(expected, given) {
                writeln!(report, "> {call}\n  recorded: {expected}\n  {of}: {given}").unwrap();
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn replies_are_those_of_redisearch() {
    if let Ok(path) = std::env::var("REDISEARCH_SOCKET") {
        let connect = || UnixStream::connect(&path).expect("REDISEARCH_SOCKET is a server's socket");
        let (two, three) = (replies(&mut connect(), "2"), replies(&mut connect(), "3"));
        if std::env::var_os("SEARCH_RECORD").is_some() {
            for ((call, ..), (two, three)) in recorded().iter().zip(two.iter().zip(&three)) {
                println!("> {call}\n2 {two}\n3 {three}");
            }
            return;
        }
        compare(&two, &three, "genuine");
    } else {
        println!("only ours: REDISEARCH_SOCKET names no server with RediSearch");
    }
    let server = Server::start();
    let (two, three) = (replies(&mut server.connect().stream, "2"), replies(&mut server.connect().stream, "3"));
    compare(&two, &three, "ours");
}

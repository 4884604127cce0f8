//! Replies that a genuine server gave, recorded with the calls in a file: a call behind `> `, then its replies in RESP2 behind `2 ` and in RESP3
//! behind `3 `.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use super::process::ask;
use super::resp::Value;
use super::server::Server;

/// Recorded replies, and how to have them anew.
pub(crate) struct Recording {
    /// The file.
    pub(crate) text: &'static str,
    /// The environment variable that names the Unix socket of a genuine server, which the test empties.
    pub(crate) socket: &'static str,
    /// The one with which the test prints the file anew.
    pub(crate) record: &'static str,
    /// Calls in front of all others.
    pub(crate) prepare: &'static [&'static [&'static str]],
    /// The words of a call.
    pub(crate) words: fn(&str) -> Vec<String>,
}

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

/// Whether two replies are the same; numbers may have more digits than it takes to tell them apart.
fn is_same(one: &str, other: &str) -> bool {
    let number = |word: &str| word.trim_matches(['"', ',', '[', ']', '{', '}']).parse::<f64>().ok();
    let mut words = one.split(' ').zip(other.split(' '));
    one.split(' ').count() == other.split(' ').count()
        && words.all(|(one, other)| one == other || number(one).is_some_and(|one| number(other) == Some(one)))
}

impl Recording {
    /// The calls of the file with the recorded replies.
    fn recorded(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        let lines: Vec<&str> = self.text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        let split = |lines: &[&'static str]| {
            let [call, two, three] = lines else { panic!("three lines for each call: {lines:?}") };
            (&call[2..], &two[2..], &three[2..])
        };
        lines.chunks(3).map(split).collect()
    }

    /// The replies to all calls, in one protocol.
    fn replies(&self, stream: &mut (impl Read + Write), protocol: &str) -> Vec<String> {
        ask(stream, &["FLUSHALL"]);
        self.prepare.iter().for_each(|call| _ = ask(stream, call));
        ask(stream, &["HELLO", protocol]);
        let reply = |(call, ..): &(&str, &str, &str)| {
            let words = (self.words)(call);
            shown(&ask(stream, &words.iter().map(String::as_str).collect::<Vec<_>>()))
        };
        self.recorded().iter().map(reply).collect()
    }

    fn compare(&self, two: &[String], three: &[String], of: &str) {
        let mut report = String::new();
        for ((call, expected_two, expected_three), (two, three)) in
            self.recorded().into_iter().zip(two.iter().zip(three))
        {
            for (expected, given) in [(expected_two, two), (expected_three, three)] {
                if !is_same(expected, given) {
                    writeln!(report, "> {call}\n  recorded: {expected}\n  {of}: {given}").unwrap();
                }
            }
        }
        assert!(report.is_empty(), "\n{report}");
    }

    /// Compares with the genuine server, if there is one, and with ours.
    pub(crate) fn check(&self) {
        if let Ok(path) = std::env::var(self.socket) {
            let connect = || UnixStream::connect(&path).expect("the variable names a server's socket");
            let (two, three) = (self.replies(&mut connect(), "2"), self.replies(&mut connect(), "3"));
            if std::env::var_os(self.record).is_some() {
                for ((call, ..), (two, three)) in self.recorded().iter().zip(two.iter().zip(&three)) {
                    println!("> {call}\n2 {two}\n3 {three}");
                }
                return;
            }
            self.compare(&two, &three, "genuine");
        } else {
            println!("only ours: {} names no genuine server", self.socket);
        }
        let server = Server::with(&[("enable-debug-command", "yes")]);
        let (two, three) =
            (self.replies(&mut server.connect().stream, "2"), self.replies(&mut server.connect().stream, "3"));
        self.compare(&two, &three, "ours");
    }
}

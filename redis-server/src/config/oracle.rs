//! The genuine server, where one is installed, as the judge of names, defaults and error texts.

use super::{Caller, Config, Id, Kind};
use crate::protocol::oracle::{Oracle, Reply};

/// The reply of Redis to `CONFIG GET *`, in pairs of name and value.
fn all(genuine: &mut Oracle) -> Vec<(String, String)> {
    let replies = genuine.run(&[vec![b"CONFIG", b"GET", b"*"]]);
    let Reply::Array(words) = &replies[0] else { panic!("{replies:?}") };
    words.chunks_exact(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}

/// A reply of one line as it was sent; of a list, its last element.
fn text(reply: &Reply) -> String {
    match reply {
        Reply::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Reply::Error(text) => text.clone(),
        Reply::Array(words) => words.last().map(text).unwrap_or_default(),
        Reply::Nil => String::new(),
    }
}

/// Defaults that differ on purpose, or because of how the genuine server is started here.
const OTHER_DEFAULTS: &[(&str, &str)] = &[
    ("port", "it listens on a Unix socket"),
    ("unixsocket", "it listens on a Unix socket"),
    ("dir", "it runs in a directory of its own"),
];

#[test]
fn names_and_defaults_are_the_genuine_ones() {
    let Some(mut genuine) = Oracle::with("defaults", &[]) else { return };
    let ours = Config::default().get(&["*"]);
    let mut wrong = Vec::new();
    for (name, default) in all(&mut genuine) {
        match ours.iter().find(|(known, _)| *known == name) {
            None => wrong.push(format!("{name}: unknown to us (genuine: {default})")),
            Some((_, ours)) if *ours != default && !OTHER_DEFAULTS.iter().any(|(known, _)| *known == name) => {
                wrong.push(format!("{name}: ours {ours:?}, genuine {default:?}"));
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Settings whose change has effects that this test could not live with, or that our table cannot know of.
const NOT_SET: &[(&str, &str)] = &[
    ("port", "listens"),
    ("tls-port", "listens"),
    ("bind", "listens"),
    ("maxmemory-clients", "closes the connection that asks"),
    ("maxclients", "depends on the limit of open files"),
    ("activedefrag", "depends on the allocator"),
    ("oom-score-adj", "depends on privileges"),
    ("oom-score-adj-values", "depends on privileges"),
    ("unixsocket", "it is the test's own"),
    ("repl-backlog-size", "its least size in force comes with replication"),
];

/// Values that every setting is asked to take.
const VALUES: &[&str] = &[
    "",
    "zzz",
    "0",
    "-1",
    "1",
    "7",
    "01",
    "+1",
    " 1",
    "1.5",
    "1b",
    "1kb",
    "1K",
    "2MB",
    "1gb",
    "1x",
    "-1kb",
    "50%",
    "101%",
    "yes",
    "NO",
    "local",
    "a b",
    "a/b",
    "\"a",
    "always",
    "allkeys-lru",
    "99999999999999999999",
    "9223372036854775807",
    "4294967296",
    "65536",
    "1048575",
];

/// Values for the settings with a grammar of their own.
#[rustfmt::skip]
const PAIRS: &[(&str, &str)] = &[
    ("notify-keyspace-events", "KEA"), ("notify-keyspace-events", "Kg$lshzxetd"), ("notify-keyspace-events", "mEK$"),
    ("notify-keyspace-events", "AKEm"), ("notify-keyspace-events", "KX"), ("notify-keyspace-events", "dEx"),
    ("save", "3600 1 300 100"), ("save", "1"), ("save", "0 1"), ("save", "1 0"), ("save", "1 -1"), ("save", "a b"),
    ("client-output-buffer-limit", "normal 1mb 2mb 3"), ("client-output-buffer-limit", "replica 1 2 3 pubsub 4 5 6"),
    ("client-output-buffer-limit", "normal 1"), ("client-output-buffer-limit", "foo 1 1 1"),
    ("client-output-buffer-limit", "normal a 1 1"), ("client-output-buffer-limit", "normal 1 1 -1"),
    ("client-output-buffer-limit", "slave 1gb 1k 1"), ("client-output-buffer-limit", "master 1 1 1"),
    ("latency-tracking-info-percentiles", "50 99.9 100"), ("latency-tracking-info-percentiles", "101"),
    ("latency-tracking-info-percentiles", "50 x"), ("latency-tracking-info-percentiles", "0 33.333"),
    ("shutdown-on-sigint", "save now force"), ("shutdown-on-sigint", "save nosave"), ("shutdown-on-sigint", "default"),
    ("shutdown-on-sigterm", "nosave foo"), ("maxmemory-policy", "ALLKEYS-LFU"), ("loglevel", "Debug"),
    ("slave-priority", "5"), ("min-slaves-to-write", "5"), ("foo", "1"), ("rename-command", "a b"), ("include", "x"),
];

/// Values that the genuine server takes by accident.
fn is_another_matter(name: &str, value: &str) -> bool {
    let is_memory = Id::find(name.as_bytes()).is_some_and(|id| matches!(id.setting().kind, Kind::Memory { .. }));
    let is_tls = name.starts_with("tls-");
    // No digits at all are a zero there, and numbers of bytes may fill 64 bits without a sign.
    is_tls || is_memory && (value.is_empty() || value == "zzz" || value == "99999999999999999999")
}

#[test]
fn values_and_errors_are_the_genuine_ones() {
    let Some(mut genuine) = Oracle::with("values", &[]) else { return };
    let known = all(&mut genuine);
    let known = known.iter().filter_map(|(name, _)| Id::find(name.as_bytes()).map(|id| id.setting().name));
    let every = known.flat_map(|name| VALUES.iter().map(move |value| (name, *value)));
    let is_left_out =
        |name: &str, value: &str| is_another_matter(name, value) || NOT_SET.iter().any(|(skipped, _)| *skipped == name);
    let pairs: Vec<_> = every.chain(PAIRS.iter().copied()).filter(|(name, value)| !is_left_out(name, value)).collect();
    let ask = |(name, value): &(&'static str, &'static str)| {
        [
            vec![b"CONFIG", b"SET".as_slice(), name.as_bytes(), value.as_bytes()],
            vec![b"CONFIG", b"GET", name.as_bytes()],
        ]
    };
    let replies = genuine.run(&pairs.iter().flat_map(ask).collect::<Vec<_>>());
    let config = Config::default();
    let mut wrong = Vec::new();
    for ((name, value), theirs) in pairs.into_iter().zip(replies.chunks_exact(2)) {
        let ours = config.set(&[(name, value)], Caller::Remote);
        let ours = ours.map_or_else(|error| format!("ERR {error}"), |_| "OK".to_owned());
        let said = text(&theirs[0]);
        if said != ours {
            wrong.push(format!("{name} {value:?}:\n  ours    {ours}\n  genuine {said}"));
            continue;
        }
        let ours = config.get(&[name]).pop().map(|(_, text)| String::from_utf8_lossy(&text).into_owned());
        let reads = text(&theirs[1]);
        if said == "OK" && ours.as_ref() != Some(&reads) {
            wrong.push(format!("{name} {value:?} reads:\n  ours    {ours:?}\n  genuine {reads:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

//! `kill -9` while documents change and queries run: afterwards every query's answer is that of a scan.

use std::collections::BTreeSet;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::Random;
use crate::support::process::{Process, ask, try_ask};
use crate::support::resp::{Value, take_bare_errors};

/// Kills under each policy, unless `AOF_KILLS` says how many.
const KILLS: usize = 4;
const WRITERS: usize = 3;
const KEYS: usize = 50;
const WORDS: [&str; 4] = ["apple", "pear", "plum", "quince"];

/// Changes documents until the server is gone. Returns what it was told of an index of its own: whether that is there, if it is known.
fn write(mut stream: UnixStream, writer: usize, seed: u64) -> Option<bool> {
    take_bare_errors();
    let mut random = Random::new(seed);
    let mut own_index = None;
    let own = format!("own{writer}");
    loop {
        let key = format!("d:{writer}:{}", random.below(KEYS));
        let (word, number) = (WORDS[random.below(WORDS.len())], random.below(100).to_string());
        let pick = random.below(40);
        let words: Vec<&str> = match pick {
            0..20 => vec!["HSET", &key, "t", word, "n", &number, "g", word],
            20..24 => vec!["DEL", &key],
            24..27 => vec!["HDEL", &key, "g"],
            27..29 => vec!["PEXPIRE", &key, &number],
            29..31 => vec!["HPEXPIRE", &key, &number, "FIELDS", "1", "n"],
            31..33 => {
                vec!["EVAL", "return redis.call('HSET', KEYS[1], 't', ARGV[1], 'n', ARGV[2])", "1", &key, word, &number]
            }
            33..36 => vec!["FT.SEARCH", "i", word, "NOCONTENT"],
            36 => vec!["FT.AGGREGATE", "i", "*", "GROUPBY", "1", "@g", "REDUCE", "COUNT", "0"],
            37 => vec!["FT.CREATE", &own, "PREFIX", "1", "d:", "SCHEMA", "t", "TEXT"],
            38 => vec!["FT.DROPINDEX", &own],
            _ => vec!["BGREWRITEAOF"],
        };
        let reply = try_ask(&mut stream, &words);
        match (pick, &reply) {
            // Whether it was done is not known.
            (37 | 38, Err(_)) => return None,
            (_, Err(_)) => return own_index,
            (37, Ok(_)) => own_index = Some(true),
            (38, Ok(_)) => own_index = Some(false),
            _ => {}
        }
    }
}

/// The documents of a plain scan that a test holds for: words of `t`, `g` and `n`.
fn scan(stream: &mut UnixStream, holds: impl Fn(&[(String, String)]) -> bool) -> BTreeSet<String> {
    let Value::Array(keys) = ask(stream, &["KEYS", "d:*"]) else { panic!("keys") };
    let mut found = BTreeSet::new();
    for key in keys.iter().map(Value::text) {
        let Value::Array(items) = ask(stream, &["HGETALL", &key]) else { panic!("fields") };
        let fields: Vec<_> = items.chunks(2).map(|pair| (pair[0].text(), pair[1].text())).collect();
        if !fields.is_empty() && holds(&fields) {
            found.insert(key);
        }
    }
    found
}

fn find(stream: &mut UnixStream, query: &str) -> BTreeSet<String> {
    super::ids(&ask(stream, &["FT.SEARCH", "i", query, "NOCONTENT", "LIMIT", "0", "10000", "TIMEOUT", "0"]))
}

fn check(process: &Process) {
    let stream = &mut process.connect();
    // Everything with a deadline has expired by then.
    thread::sleep(Duration::from_millis(120));
    let has = |fields: &[(String, String)], name: &str, value: &str| {
        fields.iter().any(|(known, text)| known == name && text == value)
    };
    assert_eq!(find(stream, "*"), scan(stream, |_| true), "all");
    for word in WORDS {
        assert_eq!(find(stream, word), scan(stream, |fields| has(fields, "t", word)), "{word}");
        assert_eq!(
            find(stream, &format!("@g:{{{word}}}")),
            scan(stream, |fields| has(fields, "g", word)),
            "tag {word}"
        );
    }
    let is_low = |fields: &[(String, String)]| {
        fields.iter().any(|(name, text)| name == "n" && text.parse::<u32>().is_ok_and(|number| number < 50))
    };
    assert_eq!(find(stream, "@n:[0 (50]"), scan(stream, is_low), "numbers");
}

#[test]
fn indexes_are_right_after_kills() {
    take_bare_errors();
    let kills = std::env::var("AOF_KILLS").map_or(KILLS, |kills| kills.parse().expect("AOF_KILLS"));
    for policy in ["no", "everysec", "always"] {
        let settings = [("appendonly", "yes"), ("appendfsync", policy), ("save", "")];
        let mut process = Process::start(&format!("search-kills-{policy}"), &settings);
        let made = ask(
            &mut process.connect(),
            &["FT.CREATE", "i", "PREFIX", "1", "d:", "SCHEMA", "t", "TEXT", "n", "NUMERIC", "g", "TAG"],
        );
        assert!(!made.is_error(), "{made:?}");
        let mut random = Random::new(policy.len() as u64);
        for kill in 0..kills {
            let writers = (0..WRITERS).map(|writer| {
                let (stream, seed) = (process.connect(), (kill * WRITERS + writer) as u64 * 7919 + 1);
                thread::spawn(move || write(stream, writer, seed))
            });
            let writers: Vec<_> = writers.collect();
            thread::sleep(Duration::from_millis(50 + random.below(250) as u64));
            process.signal(Signal::KILL);
            process.ended();
            let told: Vec<Option<bool>> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
            process.restart();
            check(&process);
            let list = super::super::cluster::said(&ask(&mut process.connect(), &["FT._LIST"]));
            for (writer, told) in told.iter().enumerate() {
                let is_there = list.split(' ').any(|name| name == format!("own{writer}"));
                assert!(told.is_none_or(|told| told == is_there), "kill {kill}: own{writer} of {list}");
            }
        }
    }
}

//! Random changes and queries: each answer is that of a plain scan of the keys.

use std::collections::BTreeSet;

use super::{find, run};
use crate::support::Random;
use crate::support::resp::Value;
use crate::support::server::{Client, Server};

const STEPS: usize = 1500;
const KEYS: usize = 40;
const WORDS: &[&str] = &["apple", "pear", "plum", "cherry", "quince"];

/// A document as HGETALL shows it.
type Fields = Vec<(String, String)>;

fn scan(client: &mut Client) -> Vec<(String, Fields)> {
    let Value::Array(keys) = run(client, "KEYS d:*") else { panic!("keys") };
    let mut documents = Vec::new();
    for key in keys.iter().map(Value::text) {
        if run(client, &format!("TYPE {key}")).text() != "hash" {
            continue;
        }
        let Value::Array(items) = run(client, &format!("HGETALL {key}")) else { panic!("fields") };
        let fields: Fields = items.chunks(2).map(|pair| (pair[0].text(), pair[1].text())).collect();
        // A number that is none keeps a document out.
        let is_number = |(name, value): &(String, String)| name != "n" || value.parse::<f64>().is_ok();
        if !fields.is_empty() && fields.iter().all(is_number) {
            documents.push((key, fields));
        }
    }
    documents
}

fn value<'f>(fields: &'f Fields, name: &str) -> Option<&'f str> {
    fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn has_word(fields: &Fields, word: &str) -> bool {
    value(fields, "t").is_some_and(|text| text.split(' ').any(|known| known == word))
}

fn has_tag(fields: &Fields, tag: &str) -> bool {
    value(fields, "g").is_some_and(|tags| tags.split(',').any(|known| known == tag))
}

fn in_range(fields: &Fields, low: f64, high: f64) -> bool {
    value(fields, "n").and_then(|n| n.parse::<f64>().ok()).is_some_and(|n| (low..=high).contains(&n))
}

/// Whether a query finds a document.
type Finds = Box<dyn Fn(&Fields) -> bool>;

/// A query, and which documents it finds.
fn query(random: &mut Random) -> (String, Finds) {
    let word = |random: &mut Random| WORDS[random.below(WORDS.len())];
    let (one, other, low) = (word(random), word(random), random.below(20) as f64);
    match random.below(7) {
        0 => ("*".to_owned(), Box::new(|_| true)),
        1 => (one.to_owned(), Box::new(move |fields| has_word(fields, one))),
        2 => (format!("@g:{{{one}}}"), Box::new(move |fields| has_tag(fields, one))),
        3 => (format!("@n:[{low} {}]", low + 5.0), Box::new(move |fields| in_range(fields, low, low + 5.0))),
        4 => (format!("{one} {other}"), Box::new(move |fields| has_word(fields, one) && has_word(fields, other))),
        5 => (
            format!("({one}|@n:[{low} inf])"),
            Box::new(move |fields| has_word(fields, one) || in_range(fields, low, f64::INFINITY)),
        ),
        _ => (
            format!("@g:{{{one}}} -@t:{other}"),
            Box::new(move |fields| has_tag(fields, one) && !has_word(fields, other)),
        ),
    }
}

fn change(random: &mut Random) -> String {
    let key = |random: &mut Random| format!("d:{}", random.below(KEYS));
    let (one, other) = (key(random), key(random));
    let list = |random: &mut Random, separator: &str| {
        (0..1 + random.below(3)).map(|_| WORDS[random.below(WORDS.len())]).collect::<Vec<_>>().join(separator)
    };
    match random.below(22) {
        0..7 => {
            let (text, tags) = (list(random, " "), list(random, ","));
            format!("HSET {one} t '{text}' g {tags} n {}", random.below(25))
        }
        7 => format!("HSET {one} t '{}'", list(random, " ")),
        8 => format!("HDEL {one} {}", ["t", "g", "n"][random.below(3)]),
        9 => format!("DEL {one} {other}"),
        10 => format!("RENAME {one} {other}"),
        11 => format!("COPY {one} {other} REPLACE"),
        12 => format!("SET {one} text"),
        13 => format!("HSET {one} n {}", ["3", "x", "-1"][random.below(3)]),
        14 => format!("PEXPIRE {one} {}", random.below(15)),
        15 => format!("HPEXPIRE {one} {} FIELDS 1 {}", 1 + random.below(15), ["t", "n"][random.below(2)]),
        16 => format!("PERSIST {one}"),
        17 => format!("RENAME {one} y:{}", random.below(5)),
        18 => format!("RENAME y:{} {one}", random.below(5)),
        19 => format!("MOVE {one} 1"),
        20 => format!("HINCRBY {one} n 1"),
        _ => ["SWAPDB 0 1", "DEBUG RELOAD", "PING", "PING", "PING", "PING"][random.below(6)].to_owned(),
    }
}

#[test]
fn answers_are_those_of_a_scan() {
    let server = Server::start();
    let client = &mut server.connect();
    run(client, "FT.CREATE i PREFIX 1 d: SCHEMA t TEXT NOSTEM n NUMERIC g TAG");
    for seed in 0..3 {
        let mut random = Random::new(0x5ea7c4 + seed);
        for step in 0..STEPS {
            // Some changes have nothing to change.
            super::ask(client, &change(&mut random));
            let (text, holds) = query(&mut random);
            // A document that expires between the two looks is in neither or in the first alone: the second scan decides.
            let before = matching(client, &*holds);
            let found = find(client, "i", &text);
            let after = matching(client, &*holds);
            let may: BTreeSet<_> = before.union(&after).cloned().collect();
            let must: BTreeSet<_> = before.intersection(&after).cloned().collect();
            assert!(
                found.is_subset(&may) && found.is_superset(&must),
                "seed {seed}, step {step}: {text}: {found:?}, and a scan finds {after:?}"
            );
        }
    }
}

fn matching(client: &mut Client, holds: &dyn Fn(&Fields) -> bool) -> BTreeSet<String> {
    scan(client).into_iter().filter(|(_, fields)| holds(fields)).map(|(key, _)| key).collect()
}

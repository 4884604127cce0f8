//! Vector sets: replies, restarts, replicas, files and payloads of Redis 8, hostile calls, and Redis' own tests.

mod durable;
mod hostile;
mod recorded;
mod suite;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::support::Random;
use crate::support::genuine::Genuine;
use crate::support::process::ask;
use crate::support::resp::{Value, request};

/// Sets of every form, and a word that none of their elements has.
pub(super) const SETS: &[(&str, &[&str])] = &[
    ("q8", &[]),
    ("noquant", &["NOQUANT", "M", "6"]),
    ("bin", &["BIN"]),
    ("wide", &["NOQUANT", "M", "70"]),
    ("reduced", &["REDUCE"]),
];

/// Dimensions of the vectors of [`fill`].
const DIMENSIONS: usize = 20;

fn vector(random: &mut Random) -> Vec<String> {
    (0..DIMENSIONS).map(|_| format!("{}", random.below(2001) as f64 / 1000.0 - 1.0)).collect()
}

fn add(stream: &mut (impl Read + Write), (key, options): (&str, &[&str]), element: &str, random: &mut Random) {
    let (reduce, options): (&[&str], &[&str]) =
        if options == ["REDUCE"] { (&["REDUCE", "8"], &[]) } else { (&[], options) };
    let values = vector(random);
    let size = DIMENSIONS.to_string();
    let vector: Vec<&str> = ["VALUES", &size].into_iter().chain(values.iter().map(String::as_str)).collect();
    let attributes = format!("{{\"n\":{}}}", random.below(50));
    let attributes: &[&str] = if random.below(2) == 0 { &["SETATTR", &attributes] } else { &[] };
    let words = [&["VADD", key], reduce, &vector, &[element], options, attributes].concat();
    let reply = ask(stream, &words);
    assert!(matches!(reply, Value::Int(_)), "{key}: {reply:?}");
}

/// Fills sets of every form with so many elements, some of which change and go.
fn fill(stream: &mut (impl Read + Write), elements: usize) {
    let random = &mut Random::new(7);
    for set in SETS {
        for number in 0..elements {
            add(stream, *set, &format!("e{number}"), random);
        }
        for _ in 0..elements / 10 {
            add(stream, *set, &format!("e{}", random.below(elements)), random);
            ask(stream, &["VREM", set.0, &format!("e{}", random.below(elements))]);
        }
    }
    ask(stream, &["PEXPIREAT", "bin", "9999999999999"]);
}

/// All visible properties of the sets' elements, exactly.
fn elements(stream: &mut (impl Read + Write), count: usize) -> Vec<Value> {
    let mut seen = Vec::new();
    for (key, _) in SETS {
        seen.push(ask(stream, &["VCARD", key]));
        // MIGRATE sends the time that is left, in milliseconds: it is a moment less at the other end.
        let Value::Int(expires) = ask(stream, &["PEXPIRETIME", key]) else { panic!("no time") };
        seen.push(Value::Int((expires + 500) / 1000));
        for number in (0..count).step_by(7) {
            let element = format!("e{number}");
            seen.push(ask(stream, &["VGETATTR", key, &element]));
            // Digits differ with `compatibility`.
            if let Value::Array(raw) = ask(stream, &["VEMB", key, &element, "RAW"]) {
                seen.push(raw[1].clone());
                let number = |value: &Value| Value::Status(value.text().parse::<f64>().unwrap().to_string().into());
                seen.extend(raw[2..].iter().map(number));
            }
        }
    }
    seen
}

/// The visible links and searches of the sets' graphs.
fn graphs(stream: &mut (impl Read + Write), count: usize) -> Vec<Value> {
    let mut seen = Vec::new();
    for (key, _) in SETS {
        for number in (0..count).step_by(5) {
            seen.push(ask(stream, &["VLINKS", key, &format!("e{number}"), "WITHSCORES"]));
            let near = format!("e{}", number + 1);
            if ask(stream, &["VISMEMBER", key, &near]) == Value::Int(1) {
                seen.push(ask(stream, &["VSIM", key, "ELE", &near, "WITHSCORES", "COUNT", "5"]));
            }
        }
    }
    seen
}

/// A genuine server with vector sets, of those that `OTHER_REDIS_SERVERS` names; with this snapshot.
fn genuine(snapshot: Option<PathBuf>) -> Option<Genuine> {
    let start = |program: &PathBuf, snapshot: Option<&Path>| Genuine::of(program, &[], snapshot);
    let has_sets = |program: &&PathBuf| start(program, None).is_some_and(|server| server.version >= [8, 0]);
    let programs = Genuine::programs();
    let Some(program) = programs.iter().find(has_sets) else {
        println!("skipped: OTHER_REDIS_SERVERS names no server with vector sets");
        return None;
    };
    start(program, snapshot.as_deref())
}

/// A call with words of any bytes.
fn ask_bytes(stream: &mut (impl Read + Write), words: &[&[u8]]) -> Value {
    stream.write_all(&request(words)).unwrap();
    crate::support::process::next_reply(stream).unwrap()
}

#[test]
fn names_come_in_order_and_at_random() {
    let server = crate::support::server::Server::start();
    let mut client = server.connect();
    for name in ["b", "a", "ab", "c"] {
        client.ask(&format!("VADD k VALUES 2 1 2 {name}"));
    }
    let list = |names: &[&str]| Value::Array(names.iter().map(|name| Value::Bulk(name.as_bytes().to_vec())).collect());
    for (range, expected) in [
        ("- +", &["a", "ab", "b", "c"][..]),
        ("- + 2", &["a", "ab"]),
        ("- + -1", &["a", "ab", "b", "c"]),
        ("- + 0", &[]),
        ("[ab [b", &["ab", "b"]),
        ("(a (c", &["ab", "b"]),
        ("(aa +", &["ab", "b", "c"]),
        ("[c [a", &[]),
    ] {
        assert_eq!(client.ask(&format!("VRANGE k {range}")), list(expected), "{range}");
    }
    assert_eq!(client.ask("VRANGE none - +"), list(&[]));
    for (range, error) in [
        ("+ -", "ERR '-' can only be used as first argument, '+' only as second"),
        ("+ +", "ERR '-' can only be used as first argument, '+' only as second"),
        ("a +", "ERR invalid start range format"),
        ("- [", "ERR invalid end range format"),
        ("- + x", "ERR invalid COUNT value"),
    ] {
        assert_eq!(client.ask(&format!("VRANGE k {range}")), Value::Error(error.into()), "{range}");
    }
    let Value::Array(mut members) = client.ask("VRANDMEMBER k 9") else { panic!("no list") };
    members.sort_by_key(Value::text);
    assert_eq!(Value::Array(members), list(&["a", "ab", "b", "c"]));
    let Value::Array(members) = client.ask("VRANDMEMBER k -9") else { panic!("no list") };
    assert_eq!(members.len(), 9);
    let info = client.ask("VINFO k");
    let Value::Array(info) = info else { panic!("{info:?}") };
    let shown: Vec<String> = info.chunks(2).map(|pair| format!("{} {}", pair[0].text(), pair[1].text())).collect();
    assert_eq!(shown[..5], ["quant-type int8", "hnsw-m 16", "vector-dim 2", "projection-input-dim 0", "size 4"]);
    assert_eq!((&*shown[6], &*shown[8]), ("attributes-count 0", "hnsw-max-node-uid 4"));
}

/// As in Redis, a vector set has no events of its own; what watches its key is told.
#[test]
fn only_effective_changes_fail_watching_transactions() {
    let server = crate::support::server::Server::start();
    let (mut one, mut other) = (server.connect(), server.connect());
    one.ask("VADD k VALUES 2 1 2 a");
    for (change, fails) in [
        ("VADD k VALUES 2 1 3 b", true),
        ("VADD k VALUES 2 1 3 a", true),
        ("VSETATTR k a {}", true),
        ("VSETATTR k none {}", false),
        ("VREM k none", false),
        ("VREM k b", true),
        ("VREM k a", true),
    ] {
        one.ask("WATCH k");
        other.ask(change);
        one.ask("MULTI");
        one.ask("PING");
        assert_eq!(one.ask("EXEC") == Value::NullArray, fails, "{change}");
    }
    assert_eq!(one.ask("EXISTS k"), Value::Int(0));
}

/// In transactions and scripts all calls see one moment.
#[test]
fn scripts_and_transactions_use_sets() {
    let server = crate::support::server::Server::start();
    let mut client = server.connect();
    let script = "redis.call('VADD', KEYS[1], 'VALUES', 2, 1, 2, 'a'); redis.call('VADD', KEYS[1], 'VALUES', 2, 2, 1, 'b', 'CAS'); \
                  redis.setresp(3); return {redis.call('VCARD', KEYS[1]), redis.call('VSIM', KEYS[1], 'ELE', 'b', 'COUNT', 1)}";
    client.send(&["EVAL", script, "1", "k"]);
    let expected = Value::Array(vec![Value::Int(2), Value::Array(vec![Value::Bulk(b"b".to_vec())])]);
    assert_eq!(client.reply(), expected);
    client.ask("MULTI");
    for call in ["VREM k a", "VSIM k ELE b", "VREM k b", "EXISTS k"] {
        assert_eq!(client.ask(call).text(), "QUEUED");
    }
    let [one, list, zero] = [Value::Int(1), Value::Array(vec![Value::Bulk(b"b".to_vec())]), Value::Int(0)];
    assert_eq!(client.ask("EXEC"), Value::Array(vec![one.clone(), list, one, zero]));
}

/// A set beyond the memory that data may take is refused, and evicted like other values.
#[test]
fn memory_is_counted() {
    let server = crate::support::process::Process::start("vectors-memory", &[("maxmemory", "16mb")]);
    let stream = &mut server.connect();
    let wide = vec!["1"; 3000].join(" ");
    let mut added = 0;
    let refused = (0..4000).find_map(|number| {
        let call = format!("VADD k VALUES 3000 {wide} e{number} NOQUANT EF 1");
        let reply = ask(stream, &call.split(' ').collect::<Vec<_>>());
        added += usize::from(!reply.is_error());
        reply.is_error().then_some(reply)
    });
    let text = refused.expect("16 MiB hold fewer vectors of 12 KB").text();
    assert!(text.starts_with("OOM"), "{text}");
    assert!((300..1500).contains(&added), "{added}");
    // The refused request itself took the server beyond 16 MiB; by now it may be below.
    ask(stream, &["CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "8mb"]);
    assert!(!ask(stream, &["SET", "other", "x"]).is_error());
    assert_eq!(ask(stream, &["EXISTS", "k"]), Value::Int(0));
}

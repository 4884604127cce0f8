//! Calls and payloads that nobody means well: errors, in bounded time and memory.

use std::time::{Duration, Instant};

use super::{ask_bytes, fill};
use crate::support::Random;
use crate::support::process::{Process, ask};
use crate::support::resp::Value;
use crate::support::server::Server;

/// Longest time of a call, on a machine with other work.
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn numbers_without_measure_are_refused_or_cut() {
    let server = Process::start("vectors-hostile", &[]);
    let stream = &mut server.connect();
    let before = server.resident();
    for number in 0..3000 {
        let angle = f64::from(number);
        let (x, y) = (angle.sin().to_string(), angle.cos().to_string());
        ask(stream, &["VADD", "k", "VALUES", "2", &x, &y, &number.to_string(), "EF", "10"]);
    }
    let huge = i64::MAX.to_string();
    let [two_31, two_32] = [(1_u64 << 31).to_string(), (1_u64 << 32).to_string()];
    let deep = "(".repeat(100_000);
    let nested = format!("{}1{}", "!(".repeat(100_000), ")".repeat(100_000));
    let invalid = "ERR invalid vector specification";
    let is =
        |reply: &Value, expected: &str| matches!(reply, Value::Error(text) if text.starts_with(expected.as_bytes()));
    let calls: &[(&[&str], &str)] = &[
        (&["VADD", "v", "VALUES", &two_31, "1", "a"], invalid),
        (&["VADD", "v", "VALUES", &two_32, "1", "a"], invalid),
        (&["VADD", "v", "VALUES", &huge, "1", "a"], invalid),
        (&["VADD", "v", "REDUCE", &two_31, "VALUES", "1", "1", "a"], invalid),
        (&["VADD", "v", "REDUCE", &huge, "VALUES", "1", "1", "a"], invalid),
        (&["VADD", "v", "VALUES", "1", "1", "a", "M", &huge], "ERR invalid M"),
        (&["VADD", "v", "VALUES", "1", "1", "a", "EF", &huge], "ERR invalid EF"),
        (&["VSIM", "k", "VALUES", &huge, "1"], invalid),
        (&["VSIM", "k", "ELE", "1", "FILTER", &deep], "ERR syntax error in FILTER expression near: (((("),
        (&["VSIM", "k", "ELE", "1", "FILTER", &nested], "ERR syntax error in FILTER expression near: !(!("),
        (&["VRANDMEMBER", "k", "-9223372036854775808"], "ERR value is out of range"),
        (&["VRANDMEMBER", "k", "9223372036854775808"], "ERR COUNT value is not an integer"),
    ];
    for (words, expected) in calls {
        let start = Instant::now();
        let reply = ask(stream, words);
        assert!(is(&reply, expected), "{:?}: {reply:?}", &words[..2]);
        assert!(start.elapsed() < PATIENCE, "{:?}", &words[..2]);
    }
    for words in [
        &["VSIM", "k", "ELE", "1", "COUNT", &huge][..],
        &["VSIM", "k", "ELE", "1", "EF", &huge],
        &["VSIM", "k", "ELE", "1", "COUNT", &huge, "FILTER", "1", "FILTER-EF", &huge],
        &["VSIM", "k", "ELE", "1", "COUNT", &huge, "TRUTH"],
        &["VRANDMEMBER", "k", &huge],
        &["VRANGE", "k", "-", "+", &huge],
        &["VADD", "k", "VALUES", "2", "inf", "-inf", "i", "EF", "1000000"],
        &["VADD", "k", "VALUES", "2", "1e308", "-1e308", "j"],
        &["VADD", "m", "VALUES", "1", "1", "a", "M", "4096", "EF", "1000000"],
    ] {
        let start = Instant::now();
        let reply = ask(stream, words);
        assert!(!reply.is_error(), "{words:?}: {reply:?}");
        assert!(start.elapsed() < PATIENCE, "{words:?}");
    }
    // Vectors that are no numbers are elements like others.
    let odd = [f32::NAN, f32::INFINITY, f32::MAX, f32::MIN_POSITIVE, 0.0];
    for (at, pair) in odd.iter().flat_map(|one| odd.map(|other| [*one, other])).enumerate() {
        let blob = [pair[0].to_le_bytes(), pair[1].to_le_bytes()].concat();
        for (key, option) in [("k", "Q8"), ("odd", "NOQUANT"), ("bits", "BIN")] {
            let name = format!("odd{at}");
            let words = [b"VADD", key.as_bytes(), b"FP32", &blob, name.as_bytes(), option.as_bytes()];
            assert_eq!(ask_bytes(stream, &words), Value::Int(1), "{pair:?}");
            let near = ask_bytes(stream, &[b"VSIM", key.as_bytes(), b"FP32", &blob, b"WITHSCORES"]);
            assert!(matches!(&near, Value::Array(found) if !found.is_empty()), "{near:?}");
        }
    }
    for (key, count) in [("odd", 25), ("bits", 25), ("k", 3027)] {
        assert_eq!(ask(stream, &["VCARD", key]), Value::Int(count), "{key}");
        let found = ask(stream, &["VSIM", key, "VALUES", "2", "1", "1", "COUNT", &huge]);
        assert!(matches!(&found, Value::Array(found) if found.len() == count as usize), "{key}");
    }
    assert!(server.resident() < before + (256 << 20), "{} bytes", server.resident() - before);
}

/// A reduction whose factors fit nowhere.
#[test]
fn a_projection_has_bounds() {
    let server = Server::start();
    let stream = &mut server.connect().stream;
    let wide = vec![0_u8; 65_536 * 4];
    let reply = ask_bytes(stream, &[b"VADD", b"k", b"REDUCE", b"65536", b"FP32", &wide, b"a"]);
    assert_eq!(reply, Value::Error(b"ERR invalid reduction from 65536 to 65536 dimensions".to_vec()));
    assert_eq!(ask_bytes(stream, &[b"VADD", b"k", b"REDUCE", b"1024", b"FP32", &wide, b"a"]), Value::Int(1));
    assert_eq!(ask(stream, &["VDIM", "k"]), Value::Int(1024));
    let wider = vec![0_u8; 65_537 * 4];
    let reply = ask_bytes(stream, &[b"VADD", b"l", b"FP32", &wider, b"a"]);
    assert_eq!(reply, Value::Error(b"ERR invalid vector specification".to_vec()));
    assert_eq!(ask(stream, &["EXISTS", "l"]), Value::Int(0));
}

/// Payloads with changed bytes are refused or make a set that every command can use.
#[test]
fn mutated_payloads_are_no_harm() {
    let server = Server::with(&[("enable-debug-command", "yes")]);
    let stream = &mut server.connect().stream;
    fill(stream, 12);
    let random = &mut Random::new(11);
    let (mut refused, mut restored) = (0, 0);
    for (key, _) in super::SETS {
        let Value::Bulk(payload) = ask(stream, &["DUMP", key]) else { panic!("{key} is there") };
        let body = &payload[..payload.len() - 10];
        for _ in 0..400 {
            let mut changed = body.to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(changed.len());
                match random.below(4) {
                    0 => changed.truncate(at.max(1)),
                    1 => changed[at] = [0, 0xff, 0x81, 0x80][random.below(4)],
                    2 => changed[at] ^= 1 << random.below(8),
                    _ => changed[at] = random.below(256) as u8,
                }
            }
            redis_server::persistence::rdb::sign(&mut changed);
            match ask_bytes(stream, &[b"RESTORE", b"r", b"0", &changed, b"REPLACE"]) {
                Value::Error(text) => {
                    refused += 1;
                    assert!(text == b"ERR Bad data format", "{}", text.escape_ascii());
                }
                reply => {
                    restored += 1;
                    assert_eq!(reply.text(), "OK");
                    uses(stream);
                }
            }
        }
    }
    assert!(refused > 500 && restored > 20, "{refused} refused, {restored} restored");
}

fn uses(stream: &mut (impl std::io::Read + std::io::Write)) {
    for line in [
        "VINFO r",
        "VLINKS r e1 WITHSCORES",
        "VSIM r ELE e1 COUNT 20 WITHSCORES",
        "VEMB r e1",
        "VRANDMEMBER r -5",
        "VREM r e1",
        "VREM r e5",
        "COPY r copy REPLACE",
        "DUMP r",
        "DEBUG DIGEST-VALUE r",
    ] {
        // Elements may have other names; a connection that ends would fail.
        ask(stream, &line.split(' ').collect::<Vec<_>>());
    }
}

//! Every way in which a key changes is seen by the next query.

use super::{ask, find, ids, run, words};
use crate::support::process::Process;
use crate::support::resp::Value;
use crate::support::server::{Client, Server};
use crate::support::until;

const CREATE: &[&str] = &[
    "FT.CREATE h ON HASH PREFIX 1 d: SCHEMA t TEXT n NUMERIC SORTABLE g TAG",
    "FT.CREATE j ON JSON PREFIX 1 d: SCHEMA $.t AS t TEXT $.n AS n NUMERIC $.g AS g TAG",
    "HSET d:1 t hello n 1 g a",
    "HSET d:2 t hello n 2 g b",
    "HSET x:1 t hello n 3 g c",
    r#"JSON.SET d:j $ {"t":"hello","n":4,"g":["a","d"]}"#,
];

/// Makes the indexes and documents anew.
fn fill(client: &mut Client) {
    for db in ["1", "0"] {
        run(client, &format!("SELECT {db}"));
        run(client, "FLUSHALL");
    }
    CREATE.iter().for_each(|line| drop(run(client, line)));
}

#[track_caller]
fn check(client: &mut Client, calls: &[&str], index: &str, query: &str, expected: &[&str]) {
    fill(client);
    // The indexes know the documents before they change.
    assert_eq!((find(client, "h", "*").len(), find(client, "j", "*").len()), (2, 1));
    calls.iter().for_each(|line| drop(run(client, line)));
    let found = find(client, index, query);
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{calls:?}, then {query}");
}

/// Eviction needs the memory of documents that are gone, also that of a small index.
#[test]
fn small_indexes_are_compacted() {
    let server = Server::start();
    let mut client = server.connect();
    run(&mut client, "FT.CREATE i SCHEMA t TEXT n NUMERIC");
    for number in 0..400 {
        run(&mut client, &format!("HSET {number} t word{number} n {number}"));
    }
    let gone: Vec<_> = (0..300).map(|number| number.to_string()).collect();
    run(&mut client, &format!("DEL {}", gone.join(" ")));
    // 100 words and 100 numbers are left, and what fewer than 65 documents have left behind.
    until("the index is compacted", || {
        let Value::Array(info) = run(&mut client, "FT.INFO i") else { panic!("a list") };
        let at = info.iter().position(|item| item.text() == "num_records").unwrap();
        info[at + 1].text().parse::<u32>().unwrap() <= 2 * (100 + 64)
    });
}

#[test]
fn commands_on_hashes() {
    let server = Server::start();
    let client = &mut server.connect();
    check(client, &[], "h", "*", &["d:1", "d:2"]);
    check(client, &["HSET d:3 t world"], "h", "@t:world", &["d:3"]);
    check(client, &["HSET d:1 t world"], "h", "hello", &["d:2"]);
    check(client, &["HINCRBY d:1 n 41"], "h", "@n:[42 42]", &["d:1"]);
    check(client, &["HINCRBYFLOAT d:1 n 0.5"], "h", "@n:[1.5 1.5]", &["d:1"]);
    check(client, &["HSETNX d:3 g z"], "h", "@g:{z}", &["d:3"]);
    check(client, &["HDEL d:1 t"], "h", "hello", &["d:2"]);
    check(client, &["HDEL d:1 t n g"], "h", "*", &["d:2"]);
    check(client, &["DEL d:1"], "h", "*", &["d:2"]);
    check(client, &["UNLINK d:1 d:2"], "h", "*", &[]);
    check(client, &["SET d:1 text"], "h", "*", &["d:2"]);
    check(client, &["HSET d:1 n text"], "h", "*", &["d:2"]);
    check(client, &["HSET d:1 n text", "HSET d:1 n 5"], "h", "@n:[5 5]", &["d:1"]);
    check(client, &["RENAME d:1 d:9"], "h", "*", &["d:2", "d:9"]);
    check(client, &["RENAME d:1 y:1", "RENAME x:1 d:3"], "h", "*", &["d:2", "d:3"]);
    check(client, &["RENAME x:1 d:1"], "h", "@g:{c}", &["d:1"]);
    check(client, &["COPY x:1 d:1 REPLACE"], "h", "@g:{c}", &["d:1"]);
    check(client, &["MOVE d:1 1"], "h", "*", &["d:2"]);
    check(client, &["COPY d:1 d:7 DB 1", "SELECT 1", "MOVE d:7 0", "SELECT 0"], "h", "*", &["d:1", "d:2", "d:7"]);
    check(client, &["PEXPIREAT d:1 1"], "h", "*", &["d:2"]);
    check(client, &["EXPIRE d:1 100", "PERSIST d:1"], "h", "*", &["d:1", "d:2"]);
    check(client, &["EVAL redis.call('HSET',KEYS[1],'t','scripted') 1 d:5"], "h", "scripted", &["d:5"]);
    check(client, &["MULTI", "HSET d:6 t queued", "DEL d:1", "EXEC"], "h", "*", &["d:2", "d:6"]);
    check(client, &["SELECT 1", "HSET d:8 t other", "SWAPDB 0 1", "SELECT 0"], "h", "*", &["d:8"]);
    check(client, &["SELECT 1", "SWAPDB 0 1", "SWAPDB 0 1", "SELECT 0"], "h", "*", &["d:1", "d:2"]);
    check(client, &["DEBUG RELOAD"], "h", "*", &["d:1", "d:2"]);
}

#[test]
fn commands_on_json() {
    let server = Server::start();
    let client = &mut server.connect();
    check(client, &[], "j", "@g:{d}", &["d:j"]);
    check(client, &["JSON.SET d:j $.t '\"world\"'"], "j", "world", &["d:j"]);
    check(client, &["JSON.NUMINCRBY d:j $.n 3"], "j", "@n:[7 7]", &["d:j"]);
    check(client, &["JSON.ARRAPPEND d:j $.g '\"e\"'"], "j", "@g:{e}", &["d:j"]);
    check(client, &["JSON.DEL d:j $.t"], "j", "hello", &[]);
    check(client, &["JSON.DEL d:j"], "j", "*", &[]);
    check(client, &[r#"JSON.MERGE d:j $ '{"t":"merged"}'"#], "j", "merged", &["d:j"]);
    check(client, &[r#"JSON.MSET d:k $ '{"n":9}' d:l $ '{"n":9}'"#], "j", "@n:[9 9]", &["d:k", "d:l"]);
    check(client, &["JSON.SET d:j $.n '\"text\"'"], "j", "*", &[]);
    check(client, &["JSON.CLEAR d:j $.n"], "j", "@n:[0 0]", &["d:j"]);
    check(client, &["JSON.SET d:j $.n null"], "j", "*", &["d:j"]);
}

#[test]
fn restored_values() {
    let server = Server::start();
    let client = &mut server.connect();
    fill(client);
    client.send(&["DUMP", "x:1"]);
    let Value::Bulk(payload) = client.reply() else { panic!("a payload") };
    client.send(&[b"RESTORE".as_slice(), b"d:1", b"0", &payload, b"REPLACE"]);
    assert_eq!(client.reply().text(), "OK");
    assert_eq!(find(client, "h", "@n:[3 3]").into_iter().collect::<Vec<_>>(), ["d:1"]);
}

/// A query does not find what has expired, whether it was removed or not.
#[test]
fn expired_keys_and_fields_are_not_found() {
    let server = Server::start();
    let client = &mut server.connect();
    for active in ["1", "0"] {
        fill(client);
        run(client, &format!("DEBUG SET-ACTIVE-EXPIRE {active}"));
        // Time stands still in a transaction: nothing expires before the search.
        let search = "FT.SEARCH h hello NOCONTENT";
        for line in ["MULTI", "HPEXPIRE d:1 30 FIELDS 1 t", "PEXPIRE d:2 30", "PEXPIRE d:j 30", search] {
            run(client, line);
        }
        let Value::Array(replies) = run(client, "EXEC") else { panic!("replies") };
        assert_eq!(ids(&replies[3]).len(), 2);
        until(&format!("they expire, active: {active}"), || find(client, "h", "hello").is_empty());
        assert_eq!(find(client, "h", "*").into_iter().collect::<Vec<_>>(), ["d:1"]);
        assert_eq!(find(client, "j", "*").len(), 0);
    }
    run(client, "DEBUG SET-ACTIVE-EXPIRE 1");
}

/// A transaction and a script query what they have changed before.
#[test]
fn queries_inside_of_transactions_and_scripts() {
    let server = Server::start();
    let client = &mut server.connect();
    fill(client);
    for line in ["MULTI", "HSET d:3 t fresh", "FT.SEARCH h fresh NOCONTENT", "DEL d:3", "FT.SEARCH h fresh NOCONTENT"] {
        run(client, line);
    }
    let Value::Array(replies) = run(client, "EXEC") else { panic!("replies") };
    assert_eq!((ids(&replies[1]).len(), ids(&replies[3]).len()), (1, 0));
    let script = "redis.call('HSET','d:4','t','scripted') return redis.call('FT.SEARCH','h','scripted','NOCONTENT')";
    client.send(&["EVAL", script, "0"]);
    assert_eq!(ids(&client.reply()).into_iter().collect::<Vec<_>>(), ["d:4"]);
}

#[test]
fn evicted_documents_are_gone() {
    let port = test_peers::free_port().to_string();
    let _process = Process::start("search-evicted", &[("port", &port)]);
    let client = &mut Client::connect(([127, 0, 0, 1], port.parse().unwrap()).into());
    fill(client);
    let value = "x".repeat(10_000);
    for n in 0..300 {
        run(client, &format!("HSET d:e{n} n {n} big {value}"));
    }
    run(client, "CONFIG SET maxmemory-policy allkeys-random");
    let used: u64 = {
        let info = run(client, "INFO memory").text();
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).expect("a figure");
        line.trim().parse().expect("a number")
    };
    run(client, &format!("CONFIG SET maxmemory {}", used - 1_000_000));
    until("something is evicted", || {
        ask(client, "SET y 1");
        run(client, "INFO stats")
            .text()
            .lines()
            .any(|line| line.starts_with("evicted_keys:") && line != "evicted_keys:0")
    });
    run(client, "CONFIG SET maxmemory 0");
    let mut scanned = 0;
    let Value::Array(keys) = run(client, "KEYS d:*") else { panic!("keys") };
    for key in keys {
        scanned += usize::from(run(client, &format!("TYPE {}", key.text())).text() == "hash");
    }
    assert_eq!(find(client, "h", "*").len(), scanned);
}

/// Slow calls borrow what they change; a query waits for what was answered before, and sees the change when it is answered.
#[test]
fn large_hashes() {
    let server = Server::start();
    let client = &mut server.connect();
    fill(client);
    let mut call = words("HSET d:large t huge");
    call.extend((0..5000).flat_map(|n| [format!("f{n}"), "v".to_owned()]));
    client.send(&call);
    assert_eq!(client.reply(), Value::Int(5001));
    assert_eq!(find(client, "h", "huge").len(), 1);
    call[3] = "tiny".to_owned();
    client.send(&call);
    assert_eq!(client.reply(), Value::Int(0));
    assert_eq!((find(client, "h", "huge").len(), find(client, "h", "tiny").len()), (0, 1));
    run(client, "DEL d:large");
    assert_eq!(find(client, "h", "tiny").len(), 0);
}

#[test]
fn flushall_drops_indexes_and_dropindex_documents() {
    let server = Server::start();
    let client = &mut server.connect();
    fill(client);
    run(client, "FT.DROPINDEX h DD");
    assert_eq!(run(client, "EXISTS d:1 d:2 x:1 d:j"), Value::Int(2));
    run(client, "FT.DROPINDEX j");
    assert_eq!(run(client, "EXISTS d:j"), Value::Int(1));
    fill(client);
    run(client, "SELECT 1");
    run(client, "FLUSHDB");
    assert_eq!(run(client, "FT._LIST"), Value::Array(vec![Value::Bulk(b"h".to_vec()), Value::Bulk(b"j".to_vec())]));
    run(client, "SELECT 0");
    run(client, "FLUSHDB");
    assert_eq!(run(client, "FT._LIST"), Value::Array(Vec::new()));
}

/// A scan finds what was there before the index, also while it changes.
#[test]
fn a_new_index_is_filled() {
    let server = Server::start();
    let client = &mut server.connect();
    for n in 0..5000 {
        client.send(&["HSET", &format!("d:{n}"), "n", &n.to_string()]);
    }
    (0..5000).for_each(|_| drop(client.reply()));
    run(client, "FT.CREATE late PREFIX 1 d: SCHEMA n NUMERIC");
    run(client, "DEL d:17");
    run(client, "HSET d:18 n -1");
    assert_eq!(find(client, "late", "*").len(), 4999);
    assert_eq!(find(client, "late", "@n:[-1 -1]").into_iter().collect::<Vec<_>>(), ["d:18"]);
    run(client, "FT.CREATE none PREFIX 1 d: SKIPINITIALSCAN SCHEMA n NUMERIC");
    assert_eq!(find(client, "none", "*").len(), 0);
    run(client, "HSET d:18 n 5");
    assert_eq!(find(client, "none", "*").len(), 1);
    run(client, "FT.ALTER none SCHEMA ADD m NUMERIC");
    run(client, "HSET d:19 m 7");
    assert_eq!(find(client, "none", "@m:[7 7]").len(), 1);
    assert_eq!(find(client, "none", "*").len(), 4999, "the alteration scans all keys");
}

/// Documents with a filter, a language and a score of their own.
#[test]
fn rules_of_documents() {
    let server = Server::start();
    let client = &mut server.connect();
    run(client, "FT.CREATE f FILTER '@n > 5' LANGUAGE_FIELD l SCORE_FIELD s SCHEMA t TEXT n NUMERIC");
    run(client, "HSET a t continuait n 6 l french s 0.5");
    run(client, "HSET b t continuait n 5");
    run(client, "HSET c t continuait");
    assert_eq!(find(client, "f", "*").into_iter().collect::<Vec<_>>(), ["a"]);
    run(client, "HSET b n 60");
    assert_eq!(find(client, "f", "*").len(), 2);
    let Value::Array(answer) = run(client, "FT.SEARCH f continua LANGUAGE french NOCONTENT WITHSCORES SCORER DOCSCORE")
    else {
        panic!("an answer");
    };
    assert_eq!(answer.iter().map(Value::text).collect::<Vec<_>>(), ["1", "a", "0.5"]);
}

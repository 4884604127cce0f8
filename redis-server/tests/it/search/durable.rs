//! Indexes outlive the server, and replicas have them.

use std::io::{Read, Write};

use rustix::process::Signal;

use super::{find, run, words};
use crate::support::process::{Process, ask};
use crate::support::resp::Value;
use crate::support::server::Server;
use crate::support::until;

const MADE: &[&str] = &[
    "HSET d:1 t running n 1",
    "HSET x:1 t running n 1",
    "FT.CREATE h PREFIX 1 d: SCHEMA t TEXT n NUMERIC SORTABLE",
    "FT.CREATE j ON JSON SCHEMA $.t AS t TEXT",
    "FT.CREATE gone SCHEMA t TEXT",
    "FT.ALTER h SCHEMA ADD g TAG",
    "FT.ALIASADD alias h",
    "FT.SYNUPDATE alias group boy child",
    "FT.DICTADD dict one two",
    "FT.SUGADD sug hello 1.5 PAYLOAD p",
    "FT.SUGADD sug help 2",
    "FT.DROPINDEX gone",
    "HSET d:2 t 'a boy' n 2 g red",
    r#"JSON.SET j:1 $ '{"t":"hello"}'"#,
    "DEL d:1",
    "HSET d:3 t runs n 3",
];

const ASKED: &[&str] = &[
    "FT._LIST",
    "FT.SEARCH alias run NOCONTENT",
    "FT.SEARCH h child NOCONTENT",
    "FT.SEARCH h @g:{red} NOCONTENT",
    "FT.SEARCH h * SORTBY n DESC RETURN 1 n",
    "FT.SEARCH j * RETURN 1 t",
    "FT.SYNDUMP h",
    "FT.DICTDUMP dict",
    "FT.SUGGET sug hel WITHPAYLOADS",
    "FT.SUGLEN sug",
];

fn answers(stream: &mut (impl Read + Write)) -> Vec<Value> {
    let ask = |line: &&str| {
        let words = words(line);
        ask(stream, &words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    ASKED.iter().map(ask).collect()
}

fn make(stream: &mut (impl Read + Write)) {
    for line in MADE {
        let words = words(line);
        let reply = ask(stream, &words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(!reply.is_error(), "{line}: {reply:?}");
    }
}

/// `rewrite` is a call before the server is killed.
fn check_restart(name: &str, settings: &[(&str, &str)], rewrite: &[&str]) {
    let mut process = Process::start(name, settings);
    let stream = &mut process.connect();
    make(stream);
    let before = answers(stream);
    assert!(before.iter().all(|answer| !answer.is_error()), "{before:?}");
    if !rewrite.is_empty() {
        let reply = ask(stream, rewrite);
        assert!(!reply.is_error(), "{reply:?}");
        until("the file is written", || {
            let info = ask(stream, &["INFO", "persistence"]).text();
            info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
        });
    }
    ask(stream, &["HSET", "d:4", "t", "running", "n", "4"]);
    ask(stream, &["DEL", "d:4"]);
    if settings.iter().all(|(name, _)| *name != "appendonly") {
        ask(stream, &["SAVE"]);
    }
    process.signal(Signal::KILL);
    process.ended();
    process.restart();
    assert_eq!(answers(&mut process.connect()), before, "{name} {rewrite:?}");
    // It follows the keys as before.
    let stream = &mut process.connect();
    ask(stream, &["HSET", "d:9", "t", "fresh"]);
    let found = ask(stream, &["FT.SEARCH", "h", "fresh", "NOCONTENT"]);
    assert_eq!(found, Value::Array(vec![Value::Int(1), Value::Bulk(b"d:9".to_vec())]));
}

#[test]
fn indexes_outlive_the_server() {
    check_restart("search-rdb", &[], &[]);
    let aof = [("appendonly", "yes"), ("appendfsync", "always")];
    check_restart("search-aof", &aof, &[]);
    check_restart("search-base", &aof, &["BGREWRITEAOF"]);
    let plain = [("appendonly", "yes"), ("appendfsync", "always"), ("aof-use-rdb-preamble", "no")];
    check_restart("search-plain", &plain, &["BGREWRITEAOF"]);
}

#[test]
fn replicas_have_the_indexes() {
    let primary = Server::with(&[("repl-diskless-sync-delay", "0")]);
    let replica = Server::start();
    let (ours, theirs) = (&mut primary.connect(), &mut replica.connect());
    make(&mut ours.stream);
    run(theirs, "FT.CREATE old SCHEMA t TEXT");
    run(theirs, &format!("REPLICAOF 127.0.0.1 {}", primary.addr.port()));
    let before = answers(&mut ours.stream);
    let same = |theirs: &mut _, before: &Vec<Value>| until("the replica has caught up", || answers(theirs) == *before);
    same(&mut theirs.stream, &before);
    for line in [
        "FT.CREATE later PREFIX 1 l: SCHEMA t TEXT",
        "HSET l:1 t new",
        "HSET l:2 t new",
        "FT.DROPINDEX j DD",
        "PEXPIREAT l:2 1",
        "HSET d:7 t running",
    ] {
        run(ours, line);
    }
    let after = answers(&mut ours.stream);
    same(&mut theirs.stream, &after);
    assert_eq!(find(theirs, "later", "new").into_iter().collect::<Vec<_>>(), ["l:1"]);
    assert_eq!(run(theirs, "EXISTS j:1"), Value::Int(0));
    run(theirs, "REPLICAOF NO ONE");
    run(theirs, "HSET l:3 t new");
    assert_eq!(find(theirs, "later", "new").len(), 2);
    run(ours, "FLUSHALL");
    assert_eq!(run(ours, "FT._LIST"), Value::Array(Vec::new()));
}

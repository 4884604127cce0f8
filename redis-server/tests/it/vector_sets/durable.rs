//! Sets outlive the server, replicas have them, and files and payloads are those of Redis 8.

use std::fs;

use rustix::process::Signal;

use super::{SETS, add, ask_bytes, elements, fill, genuine, graphs};
use crate::support::process::{Process, ask};
use crate::support::resp::Value;
use crate::support::server::Server;
use crate::support::{Random, until};

/// Elements of each set, before some go.
const ELEMENTS: usize = 150;

/// `rewrite` is a call before the server is killed.
fn check_restart(name: &str, settings: &[(&str, &str)], rewrite: &[&str]) {
    let mut process = Process::start(name, settings);
    let stream = &mut process.connect();
    fill(stream, ELEMENTS);
    if !rewrite.is_empty() {
        assert!(!ask(stream, rewrite).is_error());
        until("the file is written", || {
            let info = ask(stream, &["INFO", "persistence"]).text();
            info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
        });
    }
    add(stream, SETS[0], "later", &mut Random::new(1));
    ask(stream, &["VSETATTR", "q8", "later", "{\"late\":1}"]);
    ask(stream, &["VREM", "noquant", "e0"]);
    let before = (elements(stream, ELEMENTS), graphs(stream, ELEMENTS));
    if settings.iter().all(|(name, _)| *name != "appendonly") {
        ask(stream, &["SAVE"]);
    }
    process.signal(Signal::KILL);
    process.ended();
    process.restart();
    let stream = &mut process.connect();
    assert!((elements(stream, ELEMENTS), graphs(stream, ELEMENTS)) == before, "{name} {rewrite:?}");
    add(stream, SETS[0], "once more", &mut Random::new(2));
    assert_eq!(ask(stream, &["VGETATTR", "q8", "later"]).text(), "{\"late\":1}");
}

#[test]
fn sets_outlive_the_server() {
    check_restart("vectors-rdb", &[], &[]);
    let aof = [("appendonly", "yes"), ("appendfsync", "always")];
    check_restart("vectors-aof", &aof, &[]);
    check_restart("vectors-base", &aof, &["BGREWRITEAOF"]);
    let plain = [("appendonly", "yes"), ("appendfsync", "always"), ("aof-use-rdb-preamble", "no")];
    check_restart("vectors-plain", &plain, &["BGREWRITEAOF"]);
}

#[test]
fn replicas_have_the_same_graphs() {
    let primary = Server::with(&[("repl-diskless-sync-delay", "0")]);
    let replica = Server::start();
    let (ours, theirs) = (&mut primary.connect(), &mut replica.connect());
    fill(&mut ours.stream, ELEMENTS);
    theirs.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.addr.port()));
    let digest = |client: &mut crate::support::server::Client| client.ask("DEBUG DIGEST").text();
    let expected = digest(ours);
    until("the snapshot is there", || digest(theirs) == expected);
    for (at, set) in SETS.iter().enumerate() {
        add(&mut ours.stream, *set, "new", &mut Random::new(at as u64));
        ours.ask(&format!("VREM {} e3", set.0));
    }
    ours.ask("RENAME q8 renamed");
    ours.ask("COPY renamed q8");
    let expected = digest(ours);
    until("the changes are there", || digest(theirs) == expected);
    assert!(graphs(&mut theirs.stream, ELEMENTS) == graphs(&mut ours.stream, ELEMENTS));
    assert_eq!(theirs.ask("VCARD renamed"), ours.ask("VCARD q8"));
}

#[test]
fn files_and_payloads_are_those_of_redis() {
    let Some(mut theirs) = genuine(None) else { return };
    let stream = &mut theirs.connect();
    fill(stream, ELEMENTS);
    let expected = elements(stream, ELEMENTS);
    let links: Vec<Value> = levels(stream);
    assert_eq!(theirs.ask(&["SAVE"]).text(), "OK");

    let mut ours = Process::start("vectors-files", &[]);
    let own = &mut ours.connect();
    fill(own, ELEMENTS);
    let mine = elements(own, ELEMENTS);
    for (one, other) in mine.iter().zip(&expected) {
        assert_eq!(one, other, "what is made here is the same");
    }
    for (key, _) in SETS {
        let dump = ask(stream, &["DUMP", key]);
        let Value::Bulk(payload) = dump else { panic!("{dump:?}") };
        assert_eq!(ask_bytes(own, &[b"RESTORE", key.as_bytes(), b"0", &payload, b"REPLACE"]).text(), "OK", "{key}");
        let Value::Bulk(payload) = ask(own, &["DUMP", key]) else { panic!("{key} is there") };
        assert_eq!(ask_bytes(stream, &[b"RESTORE", b"restored", b"0", &payload, b"REPLACE"]).text(), "OK", "{key}");
        // A deadline is part of the digest.
        ask(stream, &["PERSIST", key]);
        for command in ["VCARD", "DEBUG DIGEST-VALUE"] {
            let mut words: Vec<&str> = command.split(' ').collect();
            words.push(key);
            let original = ask(stream, &words);
            *words.last_mut().unwrap() = "restored";
            assert_eq!(ask(stream, &words), original, "{key}: {command}");
        }
    }
    ask(stream, &["DEL", "restored"]);
    ours.signal(Signal::KILL);
    ours.ended();
    fs::copy(theirs.folder.join("dump.rdb"), ours.folder.join("dump.rdb")).unwrap();
    ours.restart();
    let own = &mut ours.connect();
    assert!(elements(own, ELEMENTS) == expected && levels(own) == links, "its file is loaded");
    // Changes of what was loaded go on.
    add(own, SETS[1], "later", &mut Random::new(1));
    ask(own, &["VREM", "noquant", "later"]);
    assert_eq!(ask(own, &["SAVE"]).text(), "OK");
    let again = genuine(Some(ours.folder.join("dump.rdb"))).unwrap();
    let stream = &mut again.connect();
    assert!(elements(stream, ELEMENTS) == expected, "our file is loaded there");
    add(stream, SETS[1], "later", &mut Random::new(1));
}

/// A set moves to another server and to another name as a whole.
#[test]
fn sets_move_to_other_keys_and_servers() {
    let (one, other) = (Server::start(), Server::start());
    let (ours, theirs) = (&mut one.connect(), &mut other.connect());
    fill(&mut ours.stream, ELEMENTS);
    let before = (elements(&mut ours.stream, ELEMENTS), graphs(&mut ours.stream, ELEMENTS));
    for (key, _) in SETS {
        assert_eq!(ours.ask(&format!("RENAME {key} other")).text(), "OK");
        assert_eq!(ours.ask(&format!("COPY other {key}")), Value::Int(1));
        let port = other.addr.port();
        assert_eq!(ours.ask(&format!("MIGRATE 127.0.0.1 {port} {key} 0 30000 REPLACE")).text(), "OK");
        ours.ask("DEL other");
    }
    assert!((elements(&mut theirs.stream, ELEMENTS), graphs(&mut theirs.stream, ELEMENTS)) == before);
    assert_eq!(ours.ask("DBSIZE"), Value::Int(0));
    let usage = theirs.ask("MEMORY USAGE q8");
    assert!(matches!(usage, Value::Int(10_000..100_000)), "{usage:?}");
    assert_eq!(theirs.ask("OBJECT ENCODING q8").text(), "raw");
    let Value::Array(found) = theirs.ask("SCAN 0 COUNT 100 TYPE vectorset") else { panic!("no list") };
    assert!(matches!(&found[1], Value::Array(keys) if keys.len() == SETS.len()), "{found:?}");
}

/// The neighbours of elements, in an order of their own.
fn levels(stream: &mut (impl std::io::Read + std::io::Write)) -> Vec<Value> {
    let mut seen = Vec::new();
    for (key, _) in SETS {
        for number in (0..ELEMENTS).step_by(5) {
            let Value::Array(levels) = ask(stream, &["VLINKS", key, &format!("e{number}")]) else { continue };
            for level in levels {
                let Value::Array(mut links) = level else { panic!("{level:?}") };
                links.sort_by_key(Value::text);
                seen.push(Value::Array(links));
            }
        }
    }
    seen
}

//! TEMPORARY indexes end with their documents when no command has named them for long.

use rustix::process::Signal;

use super::{ask, run};
use crate::support::process::Process;
use crate::support::resp::Value;
use crate::support::server::{Client, Server};
use crate::support::until;

fn seconds_left(client: &mut Client) -> i64 {
    match run(client, "FT.DEBUG TTL i") {
        Value::Int(seconds) => seconds,
        other => panic!("no number: {other:?}"),
    }
}

#[test]
fn an_index_ends_with_its_documents() {
    let server = Server::start();
    let client = &mut server.connect();
    run(client, "HSET d:1 t hello");
    run(client, "HSET x:1 t hello");
    run(client, "FT.CREATE i TEMPORARY 1000 PREFIX 1 d: SCHEMA t TEXT");
    run(client, "FT.CREATE stays TEMPORARY -1 SCHEMA t TEXT");
    assert!((990..=1000).contains(&seconds_left(client)));
    assert_eq!(ask(client, "FT.DEBUG TTL stays").text(), "Index is not temporary");
    run(client, "FT.DEBUG TTL_PAUSE i");
    assert_eq!(seconds_left(client), 0);
    assert_eq!(ask(client, "FT.DEBUG TTL_PAUSE i").text(), "Index does not have a timer");
    // A use gives it all of its time again; a look at its time is none.
    for line in
        ["FT.SEARCH i hello", "FT.AGGREGATE i *", "FT.INFO i", "FT.EXPLAIN i x", "FT.ALIASADD a i", "FT.TAGVALS a t"]
    {
        ask(client, "FT.DEBUG TTL_PAUSE i");
        ask(client, line);
        assert!((990..=1000).contains(&seconds_left(client)), "{line}");
    }
    run(client, "FT.DEBUG TTL_EXPIRE a");
    until("the index ends", || run(client, "FT._LIST") == Value::Array(vec![Value::Bulk(b"stays".to_vec())]));
    until("its documents end", || run(client, "EXISTS d:1 x:1") == Value::Int(1));
    assert_eq!(ask(client, "FT.DEBUG TTL i").text(), "Unknown index name");
    // FT.DROPINDEX removes the documents of a temporary index, too.
    for (line, left) in [("FT.DROPINDEX t", 0), ("FT.DROP t KEEPDOCS", 0), ("FT.DROPINDEX t _FORCEKEEPDOCS", 1)] {
        run(client, "HSET t:1 t hello");
        run(client, "FT.CREATE t TEMPORARY 1000 PREFIX 1 t: SCHEMA t TEXT");
        run(client, line);
        assert_eq!(run(client, "EXISTS t:1"), Value::Int(left), "{line}");
    }
    // Nothing is left of one without any time.
    run(client, "FT.CREATE t TEMPORARY 0 PREFIX 1 t: SCHEMA t TEXT");
    until("it ends at once", || run(client, "EXISTS t:1") == Value::Int(0));
}

#[test]
fn its_end_is_replicated() {
    let primary = Server::with(&[("repl-diskless-sync-delay", "0")]);
    let replica = Server::start();
    let (ours, theirs) = (&mut primary.connect(), &mut replica.connect());
    run(theirs, &format!("REPLICAOF 127.0.0.1 {}", primary.addr.port()));
    run(ours, "FT.CREATE i TEMPORARY 1000 SCHEMA t TEXT");
    run(ours, "HSET d t hello");
    until("the replica has it", || ask(theirs, "FT.DEBUG TTL i").text() != "Unknown index name");
    until("the replica has its document", || run(theirs, "EXISTS d") == Value::Int(1));
    // A replica ends nothing by itself.
    run(theirs, "FT.DEBUG TTL_EXPIRE i");
    assert_eq!(run(ours, "EXISTS d"), Value::Int(1));
    run(ours, "FT.DEBUG TTL_EXPIRE i");
    until("the replica follows", || run(theirs, "FT._LIST") == Value::Array(Vec::new()));
    until("the document ends there", || run(theirs, "EXISTS d") == Value::Int(0));
    assert_eq!(run(ours, "DBSIZE"), Value::Int(0));
}

#[test]
fn its_definition_outlives_the_server() {
    let mut server = Process::start("search-temporary", &[("appendonly", "yes"), ("appendfsync", "always")]);
    let client = &mut server.connect();
    let ask = |client: &mut _, words: &[&str]| crate::support::process::ask(client, words);
    assert!(!ask(client, &["FT.CREATE", "i", "TEMPORARY", "1000", "SCHEMA", "t", "TEXT"]).is_error());
    server.signal(Signal::KILL);
    server.ended();
    server.restart();
    let client = &mut server.connect();
    let Value::Int(left) = ask(client, &["FT.DEBUG", "TTL", "i"]) else { panic!("no number") };
    assert!((990..=1000).contains(&left), "{left}");
}

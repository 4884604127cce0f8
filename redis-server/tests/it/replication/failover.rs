//! FAILOVER, both ways with genuine servers: nothing that was answered is lost, and nobody needs a snapshot.

use std::time::{Duration, Instant};

use super::*;
use crate::support::server::until_blocked;

fn ok() -> Value {
    Value::Status("OK".into())
}

/// A genuine server that can be reached by TCP, and follows the one on this port.
fn reachable_follower(port: u16) -> Option<(Genuine, String)> {
    let mut genuine = Genuine::start(&[])?;
    let own = genuine.listen().port().to_string();
    genuine.ask(&["REPLICAOF", "127.0.0.1", &port.to_string()]);
    until("the link is up", || is_up(&mut genuine));
    Some((genuine, own))
}

/// Counts up until the server refuses that; says how far it got.
fn count(client: &mut Client) -> i64 {
    let (mut counted, began) = (0, Instant::now());
    loop {
        // A failover that fails ends the test, too.
        assert!(began.elapsed() < Duration::from_secs(120), "no failover ends the writes");
        match client.ask("INCR counter") {
            Value::Int(count) => counted = count,
            refused => {
                assert_eq!(refused, Value::Error("READONLY You can't write against a read only replica.".into()));
                return counted;
            }
        }
    }
}

fn state(client: &mut Client) -> String {
    field(&client.ask("INFO replication"), "master_failover_state")
}

#[test]
fn a_genuine_replica_takes_over() {
    for names_target in [true, false] {
        let first = primary(&[]);
        let Some((mut genuine, port)) = reachable_follower(first.addr.port()) else { return };
        let counted = thread::scope(|scope| {
            let writers: Vec<_> = (0..3).map(|_| scope.spawn(|| count(&mut first.connect()))).collect();
            let mut client = first.connect();
            until("they write", || client.ask("EXISTS counter") == Value::Int(1));
            let to =
                if names_target { format!("FAILOVER TO 127.0.0.1 {port} TIMEOUT 20000") } else { "FAILOVER".into() };
            assert_eq!(client.ask(&to), ok());
            until("it follows", || field(&client.ask("INFO replication"), "master_link_status") == "up");
            assert_eq!(state(&mut client), "no-failover");
            writers.into_iter().map(|writer| writer.join().unwrap()).max().unwrap()
        });
        let info = genuine.ask(&["INFO", "replication"]);
        assert_eq!(field(&info, "role"), "master");
        assert_eq!(
            genuine.ask(&["GET", "counter"]),
            Value::Bulk(counted.to_string().into_bytes()),
            "all that was answered"
        );
        let stats = genuine.ask(&["INFO", "stats"]);
        assert_eq!((&*field(&stats, "sync_full"), &*field(&stats, "sync_partial_ok")), ("0", "1"));
        genuine.ask(&["SET", "k", "v"]);
        until("what comes later comes here", || first.connect().ask("GET k") == Value::Bulk(b"v".to_vec()));
    }
}

#[test]
fn ours_takes_over_from_a_genuine_primary() {
    let Some(mut genuine) = Genuine::start(&[("repl-diskless-sync-delay".to_owned(), "0".to_owned())]) else { return };
    let addr = genuine.listen();
    let ours = primary(&[]);
    let (mut client, port) = (ours.connect(), ours.addr.port().to_string());
    client.ask(&format!("CONFIG SET replica-announce-port {port}"));
    client.ask(&format!("REPLICAOF 127.0.0.1 {}", addr.port()));
    until("the link is up", || field(&client.ask("INFO replication"), "master_link_status") == "up");
    let counted = thread::scope(|scope| {
        let writers: Vec<_> = (0..3).map(|_| scope.spawn(|| count(&mut Client::connect(addr)))).collect();
        until("they write", || client.ask("EXISTS counter") == Value::Int(1));
        assert_eq!(genuine.ask(&["FAILOVER", "TO", "127.0.0.1", &port]), ok());
        until("it follows", || is_up(&mut genuine));
        writers.into_iter().map(|writer| writer.join().unwrap()).max().unwrap()
    });
    assert_eq!(field(&client.ask("INFO replication"), "role"), "master");
    assert_eq!(client.ask("GET counter"), Value::Bulk(counted.to_string().into_bytes()), "all that was answered");
    let stats = client.ask("INFO stats");
    assert_eq!((&*field(&stats, "sync_full"), &*field(&stats, "sync_partial_ok")), ("0", "1"));
    assert_eq!(client.ask("SET k v"), ok());
    until("what comes later comes there", || genuine.ask(&["GET", "k"]) == Value::Bulk(b"v".to_vec()));
}

/// A replica that does not answer: writes wait, until the failover is taken back, or its time is over.
#[test]
fn a_failover_in_vain_ends_and_writes_go_on() {
    let first = primary(&[]);
    let Some((genuine, port)) = reachable_follower(first.addr.port()) else { return };
    let (mut client, mut writer) = (first.connect(), first.connect());
    until("it is online", || field(&client.ask("INFO replication"), "slave0").contains("state=online"));
    for (timeout, aborts) in [("", true), (" TIMEOUT 200", false)] {
        let mut sleeper = genuine.connect();
        sleeper.write_all(b"DEBUG SLEEP 1.5\r\n").unwrap();
        // Until it sleeps it may have everything.
        thread::sleep(Duration::from_millis(100));
        assert_eq!(client.ask("INCR counter"), Value::Int(if aborts { 1 } else { 3 }));
        assert_eq!(client.ask(&format!("FAILOVER TO 127.0.0.1 {port}{timeout}")), ok());
        assert_eq!(state(&mut client), "waiting-for-sync");
        for (command, answer) in [
            ("FAILOVER", "ERR FAILOVER already in progress."),
            ("REPLICAOF 127.0.0.1 1", "ERR REPLICAOF not allowed while failing over."),
            ("PSYNC ? -1", "NOMASTERLINK Can't SYNC while failing over"),
        ] {
            assert_eq!(client.ask(command), Value::Error(answer.into()));
        }
        assert!(matches!(client.ask("GET counter"), Value::Bulk(_)), "reads go on");
        writer.send(&["INCR", "counter"]);
        if aborts {
            assert_eq!(client.ask("FAILOVER ABORT"), ok());
        }
        until("it has ended", || state(&mut client) == "no-failover");
        assert_eq!(writer.reply(), Value::Int(if aborts { 2 } else { 4 }));
        assert_eq!(field(&client.ask("INFO replication"), "role"), "master");
        until("it is awake", || matches!(client.ask("WAIT 1 10000"), Value::Int(1)));
    }
    // With FORCE the replica takes over without what it has not got; both end with the same data.
    let mut sleeper = genuine.connect();
    sleeper.write_all(b"DEBUG SLEEP 1.5\r\n").unwrap();
    thread::sleep(Duration::from_millis(100));
    client.ask("INCR counter");
    assert_eq!(client.ask(&format!("FAILOVER TO 127.0.0.1 {port} FORCE TIMEOUT 100")), ok());
    until("it is forced", || state(&mut client) == "failover-in-progress");
    until("it follows", || field(&client.ask("INFO replication"), "master_link_status") == "up");
    let mut genuine = genuine;
    assert_eq!(field(&genuine.ask(&["INFO", "replication"]), "role"), "master");
    until("both have the same", || client.ask("DEBUG DIGEST") == genuine.ask(&["DEBUG", "DIGEST"]));
}

/// A target that does not want to: this server stays the primary.
#[test]
fn a_target_that_refuses_leaves_the_primary_what_it_was() {
    let first = primary(&[]);
    let second = Replica::of(first.addr.port(), "refusing");
    until("the link is up", || second.is_up());
    let mut client = first.connect();
    // A genuine primary is none of its replicas: it is where the replica says it is.
    let Some(mut stranger) = Genuine::start(&[]) else { return };
    let port = stranger.listen().port();
    second.server.connect().ask(&format!("CONFIG SET replica-announce-port {port}"));
    client.ask("CLIENT KILL TYPE replica");
    let announced = format!("port={port},state=online");
    until("it has said where it is", || field(&client.ask("INFO replication"), "slave0").contains(&announced));
    assert_eq!(client.ask(&format!("FAILOVER TO 127.0.0.1 {port}")), ok());
    until("it has ended", || state(&mut client) == "no-failover");
    assert_eq!(client.ask("SET k v"), ok(), "writes go on");
    assert_eq!(field(&client.ask("INFO replication"), "role"), "master");
    until("the replica comes back", || client.ask("WAIT 1 100") == Value::Int(1));
}

#[test]
fn failover_errors_match_the_genuine_server() {
    let Some(mut genuine) = Genuine::start(&[]) else { return };
    let server = primary(&[]);
    let mut client = server.connect();
    for command in [
        "FAILOVER",
        "FAILOVER ABORT",
        "FAILOVER ABORT TIMEOUT 10",
        "FAILOVER TO 127.0.0.1",
        "FAILOVER TO 127.0.0.1 text",
        "FAILOVER TO 127.0.0.1 1",
        "FAILOVER TO 127.0.0.1 1 FORCE",
        "FAILOVER FORCE",
        "FAILOVER TIMEOUT 0",
        "FAILOVER TIMEOUT -1",
        "FAILOVER TIMEOUT text",
        "FAILOVER TIMEOUT 10 TIMEOUT 10",
        "FAILOVER SOMETHING",
        "PSYNC 0123456789012345678901234567890123456789 1 FAILOVER",
    ] {
        let words: Vec<_> = command.split(' ').collect();
        assert_eq!(client.ask(command), genuine.ask(&words), "{command}");
    }
}

/// `CLIENT CAPA redirect`: without a cluster, too.
#[test]
fn a_client_that_can_is_sent_to_the_primary() {
    let server = Server::with(&[]);
    let (mut client, mut plain, mut waiting) = (server.connect(), server.connect(), server.connect());
    for client in [&mut client, &mut waiting] {
        assert_eq!(client.ask("CLIENT CAPA redirect"), ok());
    }
    client.ask("SET k v");
    waiting.send(&["BLPOP", "l", "0"]);
    until_blocked(&server.instance, 1);
    client.ask("MULTI");
    client.ask("SET k w");
    let moved = |reply: Value| assert_eq!(reply.text(), "REDIRECT 127.0.0.1:1");
    assert_eq!(plain.ask("REPLICAOF 127.0.0.1 1"), ok());
    moved(waiting.reply());
    moved(client.ask("EXEC"));
    ["GET k", "SET k w", "KEYS *"].iter().for_each(|line| moved(client.ask(line)));
    assert_eq!(client.ask("PING").text(), "PONG");
    assert_eq!(client.ask("EVAL return(1) 0"), Value::Int(1));
    assert_eq!(client.ask("READONLY"), ok());
    assert_eq!(client.ask("GET k").text(), "v");
    moved(client.ask("SET k w"));
    assert_eq!(client.ask("READWRITE"), ok());
    client.ask("MULTI");
    moved(client.ask("GET k"));
    assert!(client.ask("EXEC").text().starts_with("EXECABORT"));
    // A client without the option, or after RESET, gets the usual replies.
    assert_eq!(client.ask("RESET").text(), "RESET");
    for client in [&mut client, &mut plain] {
        assert_eq!(client.ask("GET k").text(), "v");
        assert!(client.ask("SET k w").text().starts_with("READONLY"));
        assert!(client.ask("READONLY").text().starts_with("ERR This instance has cluster support disabled"));
    }
}

//! A replica's connection: where it comes from, and what may be said on it.

use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use test_peers::{read_slowly, slow_reader};

use super::{Client, Value, field, primary};
use crate::support::genuine::Genuine;
use crate::support::server::Server;
use crate::support::{PATIENCE, until};

/// How many replicas the server sees, and the first one's line.
fn replicas(server: &Server) -> (String, String) {
    let info = server.connect().ask("INFO replication");
    (field(&info, "connected_slaves"), field(&info, "slave0"))
}

#[test]
fn a_replica_comes_from_the_address_that_is_set() {
    let (primary, replica) = (primary(&[]), Server::start());
    let mut client = replica.connect();
    client.ask("CONFIG SET bind-source-addr 127.0.0.2");
    client.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.addr.port()));
    until("the link is up", || field(&client.ask("INFO replication"), "master_link_status") == "up");
    let (_, line) = replicas(&primary);
    assert!(line.contains("ip=127.0.0.2"), "{line}");
}

/// The link's thread waits to be alone with the data in the moment in which the next command says something else.
#[test]
fn the_primary_may_change_at_once() {
    let (primary, replica) = (primary(&[]), Server::start());
    let mut client = replica.connect();
    let follow = format!("REPLICAOF 127.0.0.1 {}", primary.addr.port());
    for round in 0..200 {
        for command in [&*follow, "REPLICAOF NO ONE"] {
            assert_eq!(client.ask(command), Value::Status(b"OK".into()), "{command}, round {round}");
        }
    }
}

#[test]
fn a_replica_that_asks_for_something_else_is_cut_off() {
    let primary = primary(&[]);
    for (request, question) in
        [("SYNC", "PING"), ("PSYNC ? -1", "GET foo"), ("PSYNC ? -1", "XINFO HELP"), ("SYNC", "NIX")]
    {
        let mut stream = TcpStream::connect(primary.addr).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("ten seconds are a time");
        stream.write_all(format!("{request}\r\n").as_bytes()).expect("it takes a request");
        let mut first = [0];
        stream.read_exact(&mut first).expect("it is taken for a replica");
        until("it is listed", || replicas(&primary).0 == "1");
        // This is what every replica says.
        stream.write_all(b"REPLCONF ACK 0\r\n").expect("it listens to a replica");
        stream.write_all(format!("{question}\r\n").as_bytes()).expect("it listens to a replica");
        let mut rest = Vec::new();
        match stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{question}: {error}"),
        }
        until("it is listed no more", || replicas(&primary).0 == "0");
    }
}

/// A replica that takes everything and says nothing, with a snapshot of a length or one that a mark ends: `repl-timeout` ends it, as
/// it does a genuine one. One that has said SYNC may be silent.
#[test]
fn a_replica_that_acknowledges_nothing_is_dropped() {
    const TIMEOUT: [(&str, &str); 3] =
        [("repl-timeout", "1"), ("repl-ping-replica-period", "1"), ("repl-diskless-sync-delay", "0")];
    fn check(addr: SocketAddr) {
        let connect = |request: &str| {
            let mut stream = TcpStream::connect(addr).expect("it listens");
            stream.set_read_timeout(Some(PATIENCE)).expect("half a minute is a time");
            stream.write_all(request.as_bytes()).expect("it takes a request");
            stream
        };
        let mut old = connect("SYNC\r\n");
        for capabilities in ["capa psync2", "capa eof capa psync2"] {
            let mut replica = connect(&format!("REPLCONF {capabilities}\r\n"));
            let mut ok = [0; 5];
            replica.read_exact(&mut ok).expect("it is understood");
            replica.write_all(b"PSYNC ? -1\r\n").expect("it takes a request");
            let (mut said, request) = (Vec::new(), capabilities);
            let ended = replica.read_to_end(&mut said);
            let is_reset = |error: &io::Error| error.kind() == ErrorKind::ConnectionReset;
            assert!(ended.as_ref().is_ok_and(|_| true) || ended.as_ref().is_err_and(is_reset), "{request}: {ended:?}");
            assert!(said.windows(5).any(|window| window == b"REDIS"), "{request}: it had its snapshot");
        }
        // By now it has been silent for longer than both.
        let mut ping = [0; 1 << 16];
        let count = old.read(&mut ping).expect("it is still there");
        assert!(count > 0, "SYNC was ended");
        old.set_nonblocking(true).expect("it can");
        let rest = std::iter::repeat_with(|| old.read(&mut ping)).find(|read| !matches!(read, Ok(1..)));
        assert!(rest.expect("it ends").is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "SYNC was ended");
    }
    let server = primary(&TIMEOUT);
    check(server.addr);
    let settings = TIMEOUT.map(|(name, value)| (name.to_owned(), value.to_owned()));
    if let Some(mut genuine) = Genuine::start(&settings) {
        check(genuine.listen());
    }
}

/// A slow line: the socket takes megabytes of the snapshot, and then nothing for longer than `repl-timeout`, while the replica receives what the socket has
/// taken. One that receives nothing more is dropped.
#[test]
fn a_replica_that_receives_its_snapshot_slowly_stays() {
    // Longer than the replica takes for the bytes that it acknowledges at a time.
    let server = primary(&[("repl-timeout", "5"), ("repl-diskless-sync-delay", "0"), ("rdbcompression", "no")]);
    server.connect().ask("SETRANGE big 16000000 x");
    let mut replica = slow_reader(server.addr, PATIENCE).expect("it listens");
    replica.write_all(b"SYNC\r\n").expect("it takes a request");
    read_slowly(&replica, Duration::from_secs(14));
    assert_eq!(replicas(&server).0, "1");
    until("it is dropped", || replicas(&server).0 == "0");
}

#[test]
fn a_replica_whose_clients_are_paused_stands_still() {
    let (primary, replica) = (primary(&[("repl-ping-replica-period", "3600")]), Server::start());
    let (mut writer, mut client) = (primary.connect(), replica.connect());
    client.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.addr.port()));
    let mut of_replica = |name: &str| field(&client.ask("INFO replication"), name);
    until("the link is up", || of_replica("master_link_status") == "up");
    writer.ask("SET key 1");
    let end = |writer: &mut Client| field(&writer.ask("INFO replication"), "master_repl_offset");
    let before = end(&mut writer);
    until("it has the first value", || of_replica("slave_repl_offset") == before);
    let mut other = replica.connect();
    other.ask("CLIENT PAUSE 100000 WRITE");
    writer.ask("SET key 2");
    let after = end(&mut writer);
    until("it has come", || of_replica("slave_read_repl_offset") == after);
    assert_eq!(of_replica("slave_repl_offset"), before, "it stays out");
    writer.ask("SET key 3");
    assert_ne!(other.ask("GET key"), Value::Bulk(b"3".to_vec()));
    other.ask("CLIENT UNPAUSE");
    let after = end(&mut writer);
    until("it has everything", || of_replica("slave_repl_offset") == after);
    assert_eq!(other.ask("GET key"), Value::Bulk(b"3".to_vec()));
}

/// Acknowledged writes reach the replica before its server follows another one, and the transaction with REPLICAOF does not.
#[test]
fn a_replica_that_is_cut_off_has_what_was_acknowledged() {
    let primary = primary(&[]);
    let mut client = primary.connect();
    for round in 0..50 {
        let mut stream = TcpStream::connect(primary.addr).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("ten seconds are a time");
        stream.write_all(b"SYNC\r\n").expect("it takes a request");
        // It has the snapshot, whether the primary has noticed that or not.
        let mut snapshot = BufReader::new(&stream);
        let mut head = String::new();
        while !head.starts_with('$') {
            head.clear();
            snapshot.read_line(&mut head).expect("it is sent a snapshot");
        }
        let length: u64 = head[1..].trim().parse().expect("the snapshot has a length");
        std::io::copy(&mut snapshot.by_ref().take(length), &mut std::io::sink()).expect("it comes");
        let mut sent = snapshot.buffer().to_vec();
        drop(snapshot);
        assert_eq!(client.ask(&format!("SET key {round}-before")), Value::Status(b"OK".to_vec()));
        client.ask("MULTI");
        client.ask(&format!("SET key {round}-within"));
        client.ask("REPLICAOF 127.0.0.1 1");
        let ok = Value::Status(b"OK".to_vec());
        assert_eq!(client.ask("EXEC"), Value::Array(vec![ok.clone(), ok.clone()]), "round {round}");
        stream.read_to_end(&mut sent).expect("it closes the connection");
        let has = |what: &str| sent.windows(what.len()).any(|part| part == what.as_bytes());
        assert!(has(&format!("{round}-before")), "round {round}: {}", sent.escape_ascii());
        assert!(!has(&format!("{round}-within")), "round {round}: {}", sent.escape_ascii());
        assert_eq!(client.ask("REPLICAOF NO ONE"), ok, "round {round}");
    }
}

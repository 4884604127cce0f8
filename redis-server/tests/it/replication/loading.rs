//! Replies of a replica during a full synchronization, and the data after a failed one.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use super::*;

const KEYS: usize = 2000;

/// A replica that takes a while to load what [`filled`] has.
fn slow(stale: &str) -> Server {
    primary(&[
        // Microseconds for each key.
        ("key-load-delay", "500"),
        ("loading-process-events-interval-bytes", "1024"),
        ("replica-serve-stale-data", stale),
    ])
}

fn filled() -> Option<(Genuine, u16)> {
    let settings = [("repl-diskless-sync-delay", "0")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut genuine = Genuine::start(&settings)?;
    let port = genuine.listen().port();
    genuine.ask(&["DEBUG", "POPULATE", &KEYS.to_string()]);
    Some((genuine, port))
}

/// Old data is served until the new comes in its place; meanwhile nobody is held up.
#[test]
fn a_replica_says_that_it_loads() {
    let Some((mut genuine, port)) = filled() else { return };
    for stale in ["yes", "no"] {
        let replica = slow(stale);
        let mut client = replica.connect();
        client.ask("SET old data");
        client.ask(&format!("REPLICAOF 127.0.0.1 {port}"));
        let loads = |client: &mut Client| field(&client.ask("INFO persistence"), "loading") == "1";
        until("it loads", || loads(&mut client));
        let refused = if stale == "yes" { b"LOADING".as_slice() } else { b"MASTERDOWN" };
        for command in ["GET old", "DBSIZE", "TYPE old", "PING"] {
            let answer = client.ask(command);
            assert!(matches!(&answer, Value::Error(text) if text.starts_with(refused)), "{command}: {answer:?}");
        }
        let text = "READONLY You can't write against a read only replica.";
        assert_eq!(client.ask("SET k v"), Value::Error(text.into()));
        let info = client.ask("INFO persistence");
        assert_eq!(field(&info, "async_loading"), "0");
        assert!(field(&info, "loading_total_bytes").parse::<u64>().unwrap() > 10_000, "{}", info.text());
        assert!(field(&info, "loading_start_time").parse::<u64>().unwrap() > 0);
        let info = client.ask("INFO replication");
        assert_eq!((field(&info, "master_link_status").as_str(), field(&info, "role").as_str()), ("down", "slave"));
        assert_eq!(field(&info, "master_sync_in_progress"), "1");
        assert!(loads(&mut client), "all this was while it loaded");
        until("the link is up", || field(&client.ask("INFO replication"), "master_link_status") == "up");
        assert!(!loads(&mut client));
        assert_eq!(client.ask("DEBUG DIGEST"), genuine.ask(&["DEBUG", "DIGEST"]));
    }
}

/// The queue was filled while it could be run.
#[test]
fn a_transaction_that_reads_is_refused_where_data_is_old_by_now() {
    let server = primary(&[("replica-serve-stale-data", "no")]);
    let (mut client, mut other) = (server.connect(), server.connect());
    client.ask("SET k v");
    // The listener never replies.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let follow = format!("REPLICAOF 127.0.0.1 {}", silent.local_addr().unwrap().port());
    for command in ["GET k", "PING"] {
        client.ask("MULTI");
        client.ask(command);
        assert_eq!(other.ask(&follow), Value::Status(b"OK".into()));
        let answer = client.ask("EXEC");
        let refused = b"EXECABORT Transaction discarded because of: MASTERDOWN";
        assert!(matches!(&answer, Value::Error(text) if text.starts_with(refused)), "{command}: {answer:?}");
        assert_eq!(other.ask("REPLICAOF NO ONE"), Value::Status(b"OK".into()));
    }
    client.ask("MULTI");
    client.ask("INFO replication");
    other.ask(&follow);
    assert!(matches!(client.ask("EXEC"), Value::Array(_)), "INFO shows no data");
}

const ID: &str = "0123456789012345678901234567890123456789";

/// A primary that answers the first request for a stream with an empty snapshot, and the second with what is none.
fn answer(stream: TcpStream, snapshot: &[u8]) -> Option<String> {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut words = Vec::new();
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|count| count > 0) {
        let word = std::mem::take(&mut line).trim_end().to_ascii_lowercase();
        match word.as_str() {
            "ping" => (&stream).write_all(b"+PONG\r\n").unwrap(),
            "replconf" => (&stream).write_all(b"+OK\r\n").unwrap(),
            _ => {}
        }
        words.push(word);
        // "psync", and behind it the lengths and the words of what it asks for.
        if words.len() > 4 && words[words.len() - 5] == "psync" {
            let head = format!("+FULLRESYNC {ID} 7\r\n${}\r\n", snapshot.len());
            (&stream).write_all(&[head.as_bytes(), snapshot].concat()).unwrap();
            return Some(format!("{} {}", words[words.len() - 3], words[words.len() - 1]));
        }
    }
    None
}

/// The data that was there is gone then: it must not go on with the old stream, for which it would pass otherwise.
#[test]
fn behind_a_snapshot_that_cannot_be_loaded_nothing_is_known() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let replica = primary(&[]);
    let mut client = replica.connect();
    client.ask(&format!("REPLICAOF 127.0.0.1 {}", listener.local_addr().unwrap().port()));
    // A head, an end, and no checksum.
    let empty = b"REDIS0010\xff\0\0\0\0\0\0\0\0".to_vec();
    for (asked, snapshot) in [("? -1", &empty), (&*format!("{ID} 8"), &b"REDIS0010\x7f".to_vec()), ("? -1", &empty)] {
        let stream = listener.accept().unwrap().0;
        assert_eq!(answer(stream, snapshot).as_deref(), Some(asked));
    }
}

/// A replica that has data looks at a file before it gives that up; it asks for the next one later each time, and says why.
#[test]
fn a_snapshot_that_cannot_be_loaded_costs_no_data() {
    let damaged = b"REDIS0010\xfe\x00\x00\x01k\x01v\x00\x05other\x41".to_vec();
    for load in ["disabled", "swapdb"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let replica = primary(&[("repl-diskless-load", load)]);
        let mut client = replica.connect();
        client.ask("SET old data");
        client.ask(&format!("REPLICAOF 127.0.0.1 {}", listener.local_addr().unwrap().port()));
        let mut waits = Vec::new();
        for failures in ["1", "2"] {
            answer(listener.accept().unwrap().0, &damaged).expect("it asks for a snapshot");
            let info = |client: &mut Client| client.ask("INFO replication");
            until("it says so", || field(&info(&mut client), "master_sync_failures") == failures);
            let info = info(&mut client);
            let why = field(&info, "master_sync_last_error");
            assert!(why.contains("the primary's snapshot cannot be loaded: offset "), "{load}: {why}");
            waits.push(field(&info, "master_sync_retry_in_seconds").parse::<u64>().unwrap());
            assert_eq!(client.ask("GET old"), Value::Bulk(b"data".into()), "{load}");
        }
        assert!(waits[0] <= 2 && waits[1] > 2 && waits[1] <= 4, "{load}: {waits:?}");
        client.ask("REPLICAOF NO ONE");
        assert_eq!(client.ask("GET old"), Value::Bulk(b"data".into()), "{load}");
    }
}

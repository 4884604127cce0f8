//! Replication with genuine servers, both ways, and among ours.

mod copies;
mod cuts;
mod empty;
mod failover;
mod links;
mod loading;
mod restarts;
mod sentinel;
mod valkey;

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use test_peers::skip;

use super::journal::replay;
use super::support::genuine::Genuine;
use super::support::process::{Process, ask, try_ask};
use super::support::resp::Value;
use super::support::server::{Client, Server};
use super::support::{Random, Stopped, until, within};
use super::windows;

/// Commands of a writer.
const COMMANDS: usize = 2000;

/// A primary of ours that does not wait for more replicas.
fn primary(settings: &[(&str, &str)]) -> Server {
    Server::with(&[&[("repl-diskless-sync-delay", "0")], settings].concat())
}

/// A genuine server that follows the one on this port.
fn follower(port: u16, settings: &[(&str, &str)]) -> Option<Genuine> {
    let settings: Vec<_> = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut genuine = Genuine::start(&settings)?;
    genuine.ask(&["REPLICAOF", "127.0.0.1", &port.to_string()]);
    Some(genuine)
}

/// A field of INFO.
fn field(info: &Value, name: &str) -> String {
    let text = info.clone().text();
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap_or_default().to_owned()
}

fn is_up(replica: &mut Genuine) -> bool {
    field(&replica.ask(&["INFO", "replication"]), "master_link_status") == "up"
}

/// Waits until the replica has all that the primary has said, and has both compared.
fn converges(primary: &Server, replica: &mut Genuine) {
    let mut client = primary.connect();
    until("the link is up", || is_up(replica));
    let end = primary.instance.journal.offset();
    until("the replica has everything", || {
        let offset = field(&replica.ask(&["INFO", "replication"]), "slave_repl_offset");
        offset.parse().is_ok_and(|offset: u64| offset >= end)
    });
    let (ours, theirs) = (client.ask("DEBUG DIGEST"), replica.ask(&["DEBUG", "DIGEST"]));
    if ours != theirs {
        for db in ["0", "1"] {
            client.ask(&format!("SELECT {db}"));
            replica.ask(&["SELECT", db]);
            let Value::Array(keys) = client.ask("KEYS *") else { panic!("no keys") };
            for key in keys.iter().map(Value::text) {
                let (ours, theirs) =
                    (client.ask(&format!("DEBUG DIGEST-VALUE {key}")), replica.ask(&["DEBUG", "DIGEST-VALUE", &key]));
                assert_eq!(ours, theirs, "{key} of database {db}");
            }
        }
        panic!("{ours:?} here, {theirs:?} there");
    }
    replica.ask(&["SELECT", "0"]);
    assert_eq!(field(&client.ask("INFO replication"), "connected_slaves"), "1");
}

/// Sends random commands of all sorts, each of which is answered.
fn write(client: &mut Client, seed: u64, commands: usize, stop: &AtomicBool) {
    let templates: Vec<&str> =
        [windows::TEMPLATES, replay::TEMPLATES].concat().iter().flat_map(|line| line.split('|')).collect();
    let mut random = Random::new(seed * 2 + 1);
    for _ in 0..commands {
        client.stream.write_all(&windows::command(&mut random, &templates)).unwrap();
        client.reply();
        if stop.load(Relaxed) {
            break;
        }
    }
    client.ask("DISCARD");
}

/// Full synchronization while others write, directly and by a file; then the stream.
#[test]
fn a_genuine_replica_has_what_its_primary_has() {
    for (seed, diskless) in ["yes", "no"].into_iter().enumerate() {
        let folder = std::env::temp_dir().join(format!("primary-{}-{diskless}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let primary = primary(&[("repl-diskless-sync", diskless), ("dir", folder.to_str().unwrap())]);
        let stop = AtomicBool::new(false);
        let replica = thread::scope(|scope| {
            for writer in 0..3 {
                let (primary, stop) = (&primary, &stop);
                scope.spawn(move || write(&mut primary.connect(), (seed * 3 + writer) as u64, COMMANDS, stop));
            }
            let mut replica = follower(primary.addr.port(), &[])?;
            until("the link is up", || is_up(&mut replica));
            Some(replica)
        });
        let Some(mut replica) = replica else { return };
        converges(&primary, &mut replica);
        let info = primary.connect().ask("INFO stats");
        assert_eq!((field(&info, "sync_full").as_str(), field(&info, "sync_partial_ok").as_str()), ("1", "0"));
        drop(replica);
        until("it has left", || primary.instance.replication.replicas().is_empty());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

/// Links are cut again and again while others write: what was missed comes from the backlog.
#[test]
fn a_cut_link_is_resumed() {
    const CUTS: usize = 20;
    let primary = primary(&[("repl-backlog-size", "64mb")]);
    let Some(mut replica) = follower(primary.addr.port(), &[]) else { return };
    until("the link is up", || is_up(&mut replica));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..2 {
            let (primary, stop) = (&primary, &stop);
            scope.spawn(move || write(&mut primary.connect(), 100 + writer, usize::MAX, stop));
        }
        let _writers = Stopped(&stop);
        let mut client = primary.connect();
        for _ in 0..CUTS {
            until("it is online", || field(&client.ask("INFO replication"), "slave0").contains("state=online"));
            until("it is cut off", || client.ask("CLIENT KILL TYPE replica") == Value::Int(1));
            until("the link is up", || is_up(&mut replica));
        }
    });
    converges(&primary, &mut replica);
    let figure = |name: &str| field(&primary.connect().ask("INFO stats"), name);
    until("it has come back each time", || figure("sync_partial_ok") == CUTS.to_string());
    assert_eq!(figure("sync_full"), "1");
}

/// A replica of a replica has the same data, and continues when the primary is gone.
#[test]
fn chains_have_the_same_stream() {
    let primary = primary(&[]);
    let Some(mut first) = follower(primary.addr.port(), &[]) else { return };
    let Some(mut second) = follower(first.listen().port(), &[]) else { return };
    let stop = AtomicBool::new(false);
    write(&mut primary.connect(), 200, COMMANDS, &stop);
    converges(&primary, &mut first);
    until("the link is up", || is_up(&mut second));
    let digest = first.ask(&["DEBUG", "DIGEST"]);
    until("the second has it too", || second.ask(&["DEBUG", "DIGEST"]) == digest);
}

/// WAIT counts those who have said that they have it; it is answered as soon as enough have, or at its time-out.
#[test]
fn wait_counts_acknowledgements() {
    let primary = primary(&[]);
    let mut client = primary.connect();
    assert_eq!(client.ask("SET k v"), Value::Status("OK".into()));
    assert_eq!(client.ask("WAIT 1 10"), Value::Int(0));
    let Some(mut replica) = follower(primary.addr.port(), &[]) else { return };
    until("the link is up", || is_up(&mut replica));
    until("it is online", || field(&client.ask("INFO replication"), "slave0").contains("state=online"));
    for number in 0..20 {
        client.ask(&format!("SET k {number}"));
        assert_eq!(client.ask("WAIT 1 0"), Value::Int(1));
        assert_eq!(replica.ask(&["GET", "k"]), Value::Bulk(number.to_string().into_bytes()));
    }
    client.ask("SET k more");
    assert_eq!(client.ask("WAIT 2 100"), Value::Int(1), "those who have it at the time-out");
    client.ask("CONFIG SET min-replicas-to-write 2");
    let refused = "NOREPLICAS Not enough good replicas to write.";
    assert_eq!(client.ask("SET k v"), Value::Error(refused.into()));
    assert_eq!(client.ask("GET k"), Value::Bulk(b"more".to_vec()));
    client.ask("CONFIG SET min-replicas-to-write 1");
    assert_eq!(client.ask("SET k v"), Value::Status("OK".into()));
    let Value::Array(role) = client.ask("ROLE") else { panic!("no array") };
    assert_eq!(role[0], Value::Bulk(b"master".to_vec()));
    assert!(matches!(&role[2], Value::Array(replicas) if replicas.len() == 1), "{role:?}");
    assert!(client.ask("CLIENT LIST TYPE replica").text().contains("flags=S"));
}

/// A server of ours with a folder of its own, which follows the one on this port.
struct Replica {
    server: Server,
    folder: PathBuf,
}

impl Replica {
    fn of(port: u16, name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("replica-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let server = primary(&[("dir", folder.to_str().unwrap())]);
        server.connect().ask(&format!("REPLICAOF 127.0.0.1 {port}"));
        Self { server, folder }
    }

    fn field(&self, name: &str) -> String {
        field(&self.server.connect().ask("INFO replication"), name)
    }

    fn is_up(&self) -> bool {
        self.field("master_link_status") == "up"
    }

    /// Waits until it has everything up to an offset of its primary's stream.
    fn reaches(&self, end: u64) {
        until("the link is up", || self.is_up());
        until("the replica has everything", || self.server.instance.journal.offset() >= end);
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // Leftovers of a test are of no use.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn offset_of(genuine: &mut Genuine) -> u64 {
    field(&genuine.ask(&["INFO", "replication"]), "master_repl_offset").parse().unwrap()
}

/// Ours follows a genuine server: a snapshot of either kind while others write, the stream, and links that are cut.
#[test]
fn ours_has_what_its_genuine_primary_has() {
    for diskless in ["yes", "no"] {
        let settings =
            [("repl-diskless-sync", diskless), ("repl-diskless-sync-delay", "0"), ("repl-backlog-size", "64mb")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let Some(mut genuine) = Genuine::start(&settings) else { return };
        let addr = genuine.listen();
        let stop = AtomicBool::new(false);
        let replica = thread::scope(|scope| {
            for writer in 0..2 {
                let stop = &stop;
                // Far more than the cuts take, unless the replica is slow: then it has an end to reach.
                scope.spawn(move || write(&mut Client::connect(addr), 300 + writer, 5 * COMMANDS, stop));
            }
            let _writers = Stopped(&stop);
            let replica = Replica::of(addr.port(), diskless);
            for _ in 0..5 {
                until("the link is up", || replica.is_up());
                until("it is among the clients", || {
                    genuine.ask(&["CLIENT", "KILL", "TYPE", "replica"]) == Value::Int(1)
                });
            }
            replica
        });
        replica.reaches(offset_of(&mut genuine));
        let digest = genuine.ask(&["DEBUG", "DIGEST"]);
        assert_eq!(replica.server.connect().ask("DEBUG DIGEST"), digest);
        until("it has come back each time", || field(&genuine.ask(&["INFO", "stats"]), "sync_partial_ok") == "5");
        assert_eq!(field(&genuine.ask(&["INFO", "stats"]), "sync_full"), "1");
        let refused = Value::Error("READONLY You can't write against a read only replica.".into());
        let mut client = replica.server.connect();
        assert_eq!(client.ask("SET k v"), refused);
        assert!(client.ask("EVAL redis.call('SET','k','v') 0").is_error());
    }
}

/// A genuine primary says how many entries are left, and leaves the limit there that no client may give with that.
#[test]
fn a_genuine_primary_s_limit_of_trimming_is_passed_over() {
    let Some(mut genuine) = Genuine::start(&[("repl-diskless-sync-delay".to_owned(), "0".to_owned())]) else { return };
    let addr = genuine.listen();
    let replica = Replica::of(addr.port(), "yes");
    until("the link is up", || replica.is_up());
    for limit in ["0", "7"] {
        genuine.ask(&["XADD", "stream", "MAXLEN", "~", "1000", "LIMIT", limit, "*", "a", "b"]);
        genuine.ask(&["XTRIM", "stream", "MAXLEN", "~", "1000", "LIMIT", limit]);
    }
    replica.reaches(offset_of(&mut genuine));
    assert_eq!(replica.server.connect().ask("XLEN stream"), Value::Int(2));
}

/// A replica of ours continues with another replica of the same stream, and with ours when it is promoted.
#[test]
fn a_promoted_replica_is_followed_without_a_snapshot() {
    let first = primary(&[]);
    let second = Replica::of(first.addr.port(), "second");
    until("the link is up", || second.is_up());
    let Some(mut third) = follower(second.server.addr.port(), &[]) else { return };
    until("the link is up", || is_up(&mut third));
    write(&mut first.connect(), 400, COMMANDS, &AtomicBool::new(false));
    second.reaches(first.instance.journal.offset());
    let digest = first.connect().ask("DEBUG DIGEST");
    assert_eq!(second.server.connect().ask("DEBUG DIGEST"), digest);
    until("the third has it too", || third.ask(&["DEBUG", "DIGEST"]) == digest);
    let full = |server: &Server| field(&server.connect().ask("INFO stats"), "sync_full");
    assert_eq!((full(&first), full(&second.server)), ("1".to_owned(), "1".to_owned()));

    // The second takes over; the first follows it, and so does the third.
    assert_eq!(second.server.connect().ask("REPLICAOF NO ONE"), Value::Status("OK".into()));
    assert_eq!(second.field("role"), "master");
    let mut client = second.server.connect();
    assert_eq!(client.ask("SET after promotion"), Value::Status("OK".into()));
    first.connect().ask(&format!("REPLICAOF 127.0.0.1 {}", second.server.addr.port()));
    until("the first follows", || field(&first.connect().ask("INFO replication"), "master_link_status") == "up");
    until("the third follows", || is_up(&mut third));
    write(&mut client, 500, COMMANDS, &AtomicBool::new(false));
    assert_eq!(client.ask("SET last one"), Value::Status("OK".into()));
    assert_eq!(client.ask("WAIT 2 30000"), Value::Int(2));
    let digest = client.ask("DEBUG DIGEST");
    assert_eq!(first.connect().ask("DEBUG DIGEST"), digest);
    assert_eq!(third.ask(&["DEBUG", "DIGEST"]), digest);
    assert_eq!(full(&second.server), "1", "all of them went on where they were");
}

/// A replica removes an expired key when the primary says so. Until then, reads treat the key as absent.
#[test]
fn a_replica_removes_nothing_of_its_own_accord() {
    let first = primary(&[]);
    let mut client = first.connect();
    client.ask("DEBUG SET-ACTIVE-EXPIRE 0");
    let replica = Replica::of(first.addr.port(), "expiry");
    until("the link is up", || replica.is_up());
    client.ask("SET k v PX 1");
    client.ask("SET other v");
    replica.reaches(first.instance.journal.offset());
    let mut there = replica.server.connect();
    until("it is over", || there.ask("GET k") == Value::NullBulk);
    assert_eq!(there.ask("DBSIZE"), Value::Int(2), "it is there until the primary says that it goes");
    assert_eq!(client.ask("GET k"), Value::NullBulk);
    replica.reaches(first.instance.journal.offset());
    assert_eq!(there.ask("DBSIZE"), Value::Int(1));
    // Messages go to subscribers there too.
    there.ask("SUBSCRIBE news");
    client.ask("PUBLISH news text");
    let words = ["message", "news", "text"].map(|word| Value::Bulk(word.as_bytes().to_vec()));
    assert_eq!(there.reply(), Value::Array(words.to_vec()));
}

/// A late replica in a chain learns the database of the next command, and gets a snapshot that fits the stream.
#[test]
fn a_late_replica_of_a_replica_has_the_same() {
    let first = primary(&[]);
    let mut client = first.connect();
    client.ask("SELECT 3");
    client.ask("INCR counter");
    let second = Replica::of(first.addr.port(), "middle");
    until("the link is up", || second.is_up());
    client.ask("INCR counter");
    second.reaches(first.instance.journal.offset());
    let stop = AtomicBool::new(false);
    let end = thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                client.ask("INCR counter");
            }
        });
        let _writer = Stopped(&stop);
        // One of ours and a genuine one, while the stream goes on in the database in which it was.
        let third = Replica::of(second.server.addr.port(), "late");
        let fourth = follower(second.server.addr.port(), &[]);
        until("the link is up", || third.is_up());
        let mut fourth = fourth?;
        until("the link is up", || is_up(&mut fourth));
        Some((third, fourth))
    });
    let Some((third, mut fourth)) = end else { return };
    third.reaches(first.instance.journal.offset());
    let digest = first.connect().ask("DEBUG DIGEST");
    assert_eq!(third.server.connect().ask("DEBUG DIGEST"), digest);
    until("the genuine one has it too", || fourth.ask(&["DEBUG", "DIGEST"]) == digest);
    // It goes on with the primary itself, in the same database.
    third.server.connect().ask(&format!("REPLICAOF 127.0.0.1 {}", first.addr.port()));
    let mut client = first.connect();
    client.ask("SELECT 3");
    until("it follows the first", || field(&client.ask("INFO replication"), "connected_slaves") == "2");
    client.ask("INCR counter");
    third.reaches(first.instance.journal.offset());
    assert_eq!(third.server.connect().ask("DEBUG DIGEST"), client.ask("DEBUG DIGEST"));
    assert_eq!(field(&client.ask("INFO stats"), "sync_full"), "1", "the third goes on where it was");
}

//! Snapshots that are written while the server goes on.

use std::fs;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::support::process::{Process, ask};
use super::support::resp::Value;
use super::support::{Stopped, until};

const DUMP: &str = "dump.rdb";
const LONG: usize = 4096;

fn ok(stream: &mut UnixStream, line: &str) {
    let words: Vec<_> = line.split(' ').collect();
    let reply = ask(stream, &words);
    assert!(!reply.is_error(), "{line}: {reply:?}");
}

fn field(stream: &mut UnixStream, name: &str) -> String {
    let info = ask(stream, &["INFO", "persistence"]).text();
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("INFO has no {name}")).to_owned()
}

/// For how many microseconds all have stood still for the last snapshot, rounded up, and how many there were.
fn forks(stream: &mut UnixStream) -> (u64, u64) {
    let info = ask(stream, &["INFO", "stats"]).text();
    let figure = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.parse().ok()).unwrap();
    (figure("latest_fork_usec:"), figure("total_forks:"))
}

/// Files of snapshots that are not whole.
fn temporaries(server: &Process) -> Vec<String> {
    let names = fs::read_dir(&server.folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("temp-")).collect()
}

/// Waits until no snapshot is in the making.
fn saved(stream: &mut UnixStream) {
    until("the snapshot is written", || field(stream, "rdb_bgsave_in_progress") == "0");
}

#[test]
fn a_save_point_that_is_reached_has_a_snapshot_written() {
    let mut server = Process::start("save-point", &[("save", "1 2")]);
    let mut stream = server.connect();
    ok(&mut stream, "SET a 1");
    thread::sleep(Duration::from_millis(2500));
    assert_eq!(field(&mut stream, "rdb_saves"), "0", "one change is not two");
    ok(&mut stream, "SET b 2");
    until("a snapshot is written", || field(&mut stream, "rdb_saves") == "1");
    assert_eq!(field(&mut stream, "rdb_changes_since_last_save"), "0");
    server.signal(Signal::KILL);
    server.ended();
    server.restart();
    assert_eq!(
        ask(&mut server.connect(), &["MGET", "a", "b"]),
        Value::Array(vec![Value::Bulk("1".into()), Value::Bulk("2".into())])
    );
}

#[test]
fn nothing_is_changed_while_snapshots_cannot_be_written() {
    let server = Process::start("misconf", &[("save", "3600 1")]);
    let mut stream = server.connect();
    ok(&mut stream, "SET a 1");
    fs::create_dir_all(server.folder.join(DUMP).join("in-the-way")).unwrap();
    ok(&mut stream, "BGSAVE");
    saved(&mut stream);
    until("it has failed", || field(&mut stream, "rdb_last_bgsave_status") == "err");
    let refused = |stream: &mut UnixStream, words: &[&str]| {
        let reply = ask(stream, words);
        assert!(matches!(&reply, Value::Error(text) if text.starts_with(b"MISCONF ")), "{words:?}: {reply:?}");
    };
    refused(&mut stream, &["SET", "a", "2"]);
    refused(&mut stream, &["PING"]);
    ok(&mut stream, "MULTI");
    refused(&mut stream, &["INCR", "a"]);
    let aborted = ask(&mut stream, &["EXEC"]);
    assert!(matches!(&aborted, Value::Error(text) if text.starts_with(b"EXECABORT ")), "{aborted:?}");
    let scripted = ask(&mut stream, &["EVAL", "return redis.call('SET','a','2')", "0"]);
    assert!(matches!(&scripted, Value::Error(text) if text.starts_with(b"MISCONF ")), "{scripted:?}");
    assert_eq!(ask(&mut stream, &["GET", "a"]).text(), "1");
    ok(&mut stream, "CONFIG SET stop-writes-on-bgsave-error no");
    ok(&mut stream, "SET a 3");
    ok(&mut stream, "CONFIG SET stop-writes-on-bgsave-error yes");
    refused(&mut stream, &["SET", "a", "4"]);
    fs::remove_dir_all(server.folder.join(DUMP)).unwrap();
    ok(&mut stream, "BGSAVE");
    saved(&mut stream);
    ok(&mut stream, "SET a 5");
}

#[test]
fn a_snapshot_in_the_making_is_alone_and_can_be_ended() {
    let mut server = Process::start("in-the-making", &[("save", "3600 1")]);
    let mut stream = server.connect();
    for key in 0..48 {
        ok(&mut stream, &format!("SET key:{key} value"));
    }
    for key in 1..=2 {
        ok(&mut stream, &format!("SET long:{key} {}", "v".repeat(LONG)));
    }
    ok(&mut stream, "SAVE");
    ok(&mut stream, "CONFIG SET rdb-key-save-delay 10000000");
    assert_eq!(forks(&mut stream).1, 0);
    ok(&mut stream, "BGSAVE");
    assert_eq!(field(&mut stream, "rdb_bgsave_in_progress"), "1");
    until("the cut is made", || forks(&mut stream).0 > 0);
    assert_eq!(forks(&mut stream).1, 1);
    assert_eq!(field(&mut stream, "current_save_keys_total"), "50");
    let in_progress = Value::Error("ERR Background save already in progress".into());
    assert_eq!(ask(&mut stream, &["BGSAVE"]), in_progress);
    assert_eq!(ask(&mut stream, &["SAVE"]), in_progress);
    assert_eq!(ask(&mut stream, &["BGSAVE", "LATER"]), Value::Error("ERR syntax error".into()));
    // Old values are kept as they are overwritten, each once, and count in full, however well they compress. One of all keys is saved.
    let size = |stream: &mut UnixStream| field(stream, "current_cow_size").parse::<usize>().unwrap();
    for line in ["SET key:1 other", "SET key:2 other", "SET long:1 other", "SET long:2 other"] {
        ok(&mut stream, line);
    }
    until("it is noticed", || size(&mut stream) >= LONG);
    let before = size(&mut stream);
    ok(&mut stream, "SET long:1 another");
    ok(&mut stream, "SET long:2 another");
    assert!(size(&mut stream) < before + LONG);
    // Data that FLUSHALL removed is in no later file.
    ok(&mut stream, "FLUSHALL");
    until("it is ended", || field(&mut stream, "rdb_bgsave_in_progress") == "0");
    assert_eq!(field(&mut stream, "rdb_last_bgsave_status"), "ok");
    until("its file is removed", || temporaries(&server).is_empty());
    server.signal(Signal::KILL);
    server.ended();
    server.restart();
    assert_eq!(ask(&mut server.connect(), &["DBSIZE"]), Value::Int(0));

    // Inside of a transaction it is put off, and the end of the server does not wait for it.
    let mut stream = server.connect();
    ok(&mut stream, "MSET a 1 b 2 c 3");
    ok(&mut stream, "CONFIG SET rdb-key-save-delay 10000000");
    ok(&mut stream, "MULTI");
    ok(&mut stream, "BGSAVE");
    ok(&mut stream, "SET d 4");
    let replies = ask(&mut stream, &["EXEC"]);
    let status = |text: &str| Value::Status(text.into());
    assert_eq!(replies, Value::Array(vec![status("Background saving scheduled"), status("OK")]));
    until("it begins", || field(&mut stream, "rdb_bgsave_in_progress") == "1");
    ok(&mut stream, "CONFIG SET rdb-key-save-delay 0");
    server.signal(Signal::TERM);
    assert!(server.ended().success());
    assert_eq!(temporaries(&server), [""; 0]);
    server.restart();
    assert_eq!(ask(&mut server.connect(), &["DBSIZE"]), Value::Int(4));
}

#[test]
fn a_vast_value_is_saved_as_it_was_while_others_change_it() {
    const ELEMENTS: usize = 200_000;
    let server = Process::start("vast", &[("save", ""), ("enable-debug-command", "yes")]);
    let mut stream = server.connect();
    for first in (0..ELEMENTS).step_by(10_000) {
        let numbers: Vec<_> = (first..first + 10_000).map(|n| n.to_string()).collect();
        let mut members: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let mut list = members.clone();
        list.splice(0..0, ["RPUSH", "list"]);
        assert!(!ask(&mut stream, &list).is_error());
        members.splice(0..0, ["SADD", "set"]);
        assert!(!ask(&mut stream, &members).is_error());
    }
    ok(&mut stream, "SET small text");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for worker in 0..2 {
            let (server, stop) = (&server, &stop);
            scope.spawn(move || {
                let mut stream = server.connect();
                while !stop.load(Relaxed) {
                    // Both keep their number of elements in every moment.
                    if worker == 0 {
                        assert!(!ask(&mut stream, &["LMOVE", "list", "list", "LEFT", "RIGHT"]).is_error());
                        assert_eq!(ask(&mut stream, &["GET", "small"]).text(), "text");
                    } else {
                        ok(&mut stream, "MULTI");
                        ok(&mut stream, "SREM set 7");
                        ok(&mut stream, "SADD set 7");
                        assert_eq!(ask(&mut stream, &["EXEC"]), Value::Array(vec![Value::Int(1), Value::Int(1)]));
                    }
                }
            });
        }
        for round in 0..4 {
            ok(&mut stream, "BGSAVE");
            saved(&mut stream);
            let mut other = Process::start(&format!("vast-{round}"), &[("save", "")]);
            other.signal(Signal::KILL);
            other.ended();
            fs::copy(server.folder.join(DUMP), other.folder.join(DUMP)).unwrap();
            other.restart();
            let mut copy = other.connect();
            assert_eq!(ask(&mut copy, &["LLEN", "list"]), Value::Int(ELEMENTS as i64));
            assert_eq!(ask(&mut copy, &["SCARD", "set"]), Value::Int(ELEMENTS as i64));
            assert_eq!(ask(&mut copy, &["DBSIZE"]), Value::Int(3));
        }
        stop.store(true, Relaxed);
    });
}

#[test]
fn killing_the_child_process_cancels_its_snapshot() {
    let server = Process::start("stand-in", &[("save", "3600 1"), ("rdb-key-save-delay", "1000000")]);
    let mut stream = server.connect();
    for key in 0..100 {
        ok(&mut stream, &format!("SET {key} value"));
    }
    ok(&mut stream, "BGSAVE");
    let mut child = None;
    until("there is a process", || {
        child = server.children().pop();
        child.is_some()
    });
    until("its file is named after it", || temporaries(&server) == [format!("temp-{}.rdb", child.unwrap())]);
    kill_process(Pid::from_raw(child.unwrap()).unwrap(), Signal::KILL).unwrap();
    saved(&mut stream);
    assert_eq!(field(&mut stream, "rdb_last_bgsave_status"), "err");
    assert!(ask(&mut stream, &["SET", "k", "v"]).is_error(), "writes are refused");
    until("nothing is left of it", || temporaries(&server).is_empty() && server.children().is_empty());
    ok(&mut stream, "CONFIG SET rdb-key-save-delay 0");
    ok(&mut stream, "BGSAVE");
    saved(&mut stream);
    ok(&mut stream, "SET k v");
}

/// The process that stands for a snapshot does not keep the port of a killed server, however little CPU time it gets.
#[test]
fn a_server_that_is_killed_as_it_saves_starts_again() {
    let port = test_peers::free_port().to_string();
    let mut server =
        Process::start("killed-saving", &[("port", &port), ("save", ""), ("rdb-key-save-delay", "1000000")]);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _threads = Stopped(&over);
        for _ in 0..2 * thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        for _ in 0..20 {
            let mut stream = server.connect();
            ok(&mut stream, "SET k v");
            ok(&mut stream, "BGSAVE");
            server.signal(Signal::KILL);
            server.ended();
            server.restart();
        }
    });
}

#[test]
fn debug_pause_cron_lets_a_signal_be_taken_back() {
    let server = Process::start("taken-back", &[("enable-debug-command", "yes")]);
    let mut stream = server.connect();
    ok(&mut stream, "DEBUG PAUSE-CRON 1");
    server.signal(Signal::TERM);
    until("it is taken back", || !ask(&mut stream, &["SHUTDOWN", "ABORT"]).is_error());
    ok(&mut stream, "DEBUG PAUSE-CRON 0");
    assert!(server.log().contains("Shutdown manually aborted"));
    assert!(ask(&mut stream, &["SHUTDOWN", "ABORT"]).is_error());
}

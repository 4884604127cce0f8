//! Effects of configuration changes in a running server.

use std::fs;
use std::io::{Read, Write};
use std::process::Command;

use super::support::process::{OURS, Process, ask};
use super::support::resp::Value;
use super::support::server::Server;
use super::support::until;

/// Asks by one line, words between spaces.
#[track_caller]
fn say(stream: &mut (impl Read + Write), line: &str) -> String {
    ask(stream, &line.split(' ').collect::<Vec<_>>()).text()
}

#[test]
fn the_level_of_the_log_changes() {
    let process = Process::start("loglevel", &[("loglevel", "warning"), ("enable-debug-command", "yes")]);
    let mut client = process.connect();
    assert_eq!(say(&mut client, "RPUSH l a"), "1");
    // DEBUG QUICKLIST logs at the level of `notice` and `verbose`.
    for (level, lines) in [("warning", 0), ("notice", 1), ("warning", 1), ("verbose", 2), ("debug", 3), ("warning", 3)]
    {
        assert_eq!(say(&mut client, &format!("CONFIG SET loglevel {level}")), "OK");
        assert_eq!(say(&mut client, "DEBUG QUICKLIST l"), "Quicklist structure printed on stdout");
        let log = process.log();
        assert_eq!(log.matches("Quicklist of").count(), lines, "{level}: {log}");
    }
    assert!(
        say(&mut client, "CONFIG SET loglevel loud").ends_with("one of the following: debug, verbose, notice, warning")
    );
    assert_eq!(process.log().matches("Quicklist of").count(), 3);
}

/// The texts are those of the genuine server where a port is taken or an address is not the machine's.
#[test]
fn places_to_listen_stay_and_say_so() {
    let server = Server::start();
    let mut client = server.connect();
    let mut check = |name: &str, value: &str, reason: &str| {
        let before = client.ask(&format!("CONFIG GET {name}"));
        let refused = format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}");
        assert_eq!(client.ask(&format!("CONFIG SET {name} {value}")), Value::Error(refused.into_bytes()));
        assert_eq!(client.ask(&format!("CONFIG GET {name}")), before, "{name} is what it was");
        // A change to the present value always succeeds.
        let Value::Array(pair) = before else { panic!("{before:?}") };
        client.send(&["CONFIG", "SET", name, &pair[1].text()]);
        assert_eq!(client.reply(), Value::Status("OK".into()), "{name}");
    };
    check("port", "7000", "Unable to listen on this port. Check server logs.");
    check("tls-port", "7000", "Unable to listen on this port. Check server logs.");
    check("bind", "192.0.2.1", "Failed to bind to specified addresses.");
}

/// `oom-score-adj`, of the process, its role, and the process that stands for a snapshot; and back again.
#[test]
fn oom_score_adj_follows_the_settings() {
    let score = |pid: &str| -> i32 {
        let text = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        text.trim().parse().unwrap()
    };
    let process = Process::start("oom-score", &[("save", "3600 1"), ("rdb-key-save-delay", "1000000")]);
    let own = process.pid().to_string();
    let inherited = score(&own);
    let mut client = process.connect();
    let mut set = |words: &[&str], expected: i32| {
        assert_eq!(ask(&mut client, words).text(), "OK");
        assert_eq!(score(&own), expected, "{words:?}");
    };
    set(&["CONFIG", "SET", "oom-score-adj-values", "10 20 30"], inherited);
    set(&["CONFIG", "SET", "oom-score-adj", "yes"], inherited + 10);
    set(&["CONFIG", "SET", "oom-score-adj-values", "15 20 30"], inherited + 15);
    set(&["REPLICAOF", "127.0.0.1", "1"], inherited + 20);
    set(&["REPLICAOF", "NO", "ONE"], inherited + 15);
    set(&["SET", "key", "value"], inherited + 15);
    assert_eq!(say(&mut process.connect(), "BGSAVE"), "Background saving started");
    until("the child has its score", || process.children().iter().any(|pid| score(&pid.to_string()) == inherited + 30));
    let absolute = inherited + 40;
    let values = format!("{absolute} 0 0");
    set(&["CONFIG", "SET", "oom-score-adj", "absolute", "oom-score-adj-values", &values], absolute);
    set(&["CONFIG", "SET", "oom-score-adj", "no"], inherited);
    let refused = say(&mut process.connect(), "CONFIG SET oom-score-adj-values 1");
    assert!(refused.contains("oom-score-adj-values"), "{refused}");
}

#[test]
fn the_log_is_in_the_folder_of_the_data() {
    let folder = std::env::temp_dir().join(format!("redis-server-log-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    // It ends because there is no such place for its socket.
    let mut command = Command::new(env!("CARGO_BIN_EXE_redis-server"));
    command.args(["--port", "0", "--unixsocket", "missing/socket", "--logfile", "log", "--dir"]).arg(&folder);
    let ended = command.output().unwrap();
    let log = fs::read_to_string(folder.join("log"));
    fs::remove_dir_all(&folder).unwrap();
    assert!(!ended.status.success());
    assert!(log.unwrap().contains("configuration"));
}

#[test]
fn a_smaller_backlog_keeps_less_at_once() {
    let process = Process::start("backlog-size", &[]);
    let (mut client, mut replica) = (process.connect(), process.connect());
    replica.write_all(b"PSYNC ? -1\r\n").unwrap();
    until("there is a backlog", || say(&mut client, "INFO replication").contains("repl_backlog_active:1"));
    assert_eq!(say(&mut client, &format!("SET k {}", "v".repeat(100_000))), "OK");
    // The backlog also has the bytes that were kept for a replica.
    drop(replica);
    until("it has left", || say(&mut client, "INFO replication").contains("connected_slaves:0"));
    assert_eq!(say(&mut client, "CONFIG SET repl-backlog-size 20000"), "OK");
    // A snapshot that was still being made for the replica keeps the stream behind it until it sees that nobody waits.
    until("no more than that is kept", || {
        say(&mut client, "INFO replication").contains("repl_backlog_histlen:20000\r")
    });
}

/// A name may be empty, as it is of a server that keeps nothing.
#[test]
fn a_snapshot_without_a_name_is_none() {
    let process = Process::start("nameless", &[("dbfilename", "")]);
    let mut client = process.connect();
    assert_eq!(ask(&mut client, &["SET", "key", "value"]), Value::Status(b"OK".into()));
    assert!(ask(&mut client, &["SAVE"]).is_error());
    assert_eq!(ask(&mut client, &["GET", "key"]), Value::Bulk(b"value".into()));
}

/// A mistyped command name is an error, so that no operator believes the command to be renamed.
#[test]
fn only_commands_are_renamed_and_to_new_names() {
    for (renames, reason) in [
        (&[["nosuch", "x"]][..], "No such command in rename-command"),
        (&[["get", "x"], ["get", "y"]], "No such command in rename-command"),
        (&[["get", "set"]], "Target command name already exists"),
    ] {
        let flags = renames.iter().flat_map(|[old, new]| ["--rename-command", *old, *new]);
        for program in [OURS, "redis-server"] {
            if program != OURS && !test_peers::is_there(program) {
                continue;
            }
            let mut command = Command::new(program);
            command.args(["--port", "0"]).args(flags.clone());
            let output = test_peers::run_within(60, &command).unwrap();
            let said = [output.stdout, output.stderr].concat();
            assert!(
                !output.status.success() && String::from_utf8_lossy(&said).contains(reason),
                "{program} {renames:?}"
            );
        }
    }
}

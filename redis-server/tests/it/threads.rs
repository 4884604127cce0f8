//! Every thread of the server is made to panic: either its work fails and the server goes on, or the process ends, as
//! docs/internals/redis-server.md says.

use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;

use super::cluster::Node;
use super::moves;
use super::support::process::{Process, ask};
use super::support::resp::request;
use super::support::until;

const DEBUG: (&str, &str) = ("enable-debug-command", "yes");
const SIGABRT: i32 = 6;

/// The threads that the tests below make panic.
const TRIED: [&str; 19] = [
    "aof",
    "cluster",
    "cluster-file",
    "cluster-role",
    "crash-report",
    "failover",
    "load",
    "reaper",
    "replica",
    "search",
    "search-compaction",
    "shutdown",
    "slots-gone",
    "slots-in",
    "slots-out",
    "slow-calls",
    "snapshot",
    "snapshot-file",
    "stand-in",
];

fn say(process: &Process, line: &str) -> String {
    ask(&mut process.connect(), &line.split(' ').collect::<Vec<_>>()).text()
}

/// The thread is going to panic.
fn ask_for_panic(process: &Process, thread: &str) {
    assert_eq!(say(process, &format!("DEBUG PANIC {thread}")), "OK");
}

#[track_caller]
fn has_logged(process: &Process, text: &str) {
    until(text, || process.log().contains(text));
}

/// The log line of such a panic.
fn panic_of(thread: &str) -> String {
    format!("DEBUG PANIC asked the thread {thread} to panic")
}

fn has_panicked(process: &Process, thread: &str) {
    has_logged(process, &panic_of(thread));
}

fn is_aborted(mut process: Process, thread: &str) {
    assert_eq!(process.ended().signal(), Some(SIGABRT), "{}", process.log());
    let log = process.log();
    assert!(log.contains(&panic_of(thread)), "{log}");
    assert!(log.contains(": the process ends"), "{log}");
}

fn shows(process: &Process, section: &str, fields: &[&str]) {
    let is_shown = |field: &&str| say(process, &format!("INFO {section}")).lines().any(|line| line == *field);
    until(&format!("{fields:?}"), || fields.iter().all(&is_shown));
}

#[test]
fn all_threads_are_tried() {
    let process = Process::start("threads-names", &[DEBUG]);
    let reply = say(&process, "DEBUG PANIC nothing");
    let names = reply.strip_prefix("ERR There is no thread `nothing`. Threads: ").unwrap();
    assert_eq!(names.split(", ").collect::<Vec<_>>(), TRIED);
}

#[test]
fn a_snapshot_fails_with_its_thread_and_the_next_one_works() {
    let process = Process::start("threads-snapshot", &[DEBUG, ("appendonly", "yes"), ("save", "")]);
    assert_eq!(say(&process, "SET k v"), "OK");
    for thread in ["snapshot", "snapshot-file"] {
        for (command, section) in [("BGSAVE", "rdb_last_bgsave"), ("BGREWRITEAOF", "aof_last_bgrewrite")] {
            ask_for_panic(&process, thread);
            say(&process, command);
            let running = ["rdb_bgsave_in_progress:0", "aof_rewrite_in_progress:0"];
            shows(&process, "persistence", &[&format!("{section}_status:err"), running[0], running[1]]);
            say(&process, command);
            shows(&process, "persistence", &[&format!("{section}_status:ok"), running[0], running[1]]);
        }
    }
}

#[test]
fn a_snapshot_needs_no_watcher_of_the_process_that_stands_for_it() {
    let process = Process::start("threads-stand-in", &[DEBUG, ("save", "")]);
    ask_for_panic(&process, "stand-in");
    say(&process, "BGSAVE");
    has_panicked(&process, "stand-in");
    shows(&process, "persistence", &["rdb_last_bgsave_status:ok", "rdb_bgsave_in_progress:0", "rdb_saves:1"]);
}

#[test]
fn the_process_ends_with_the_keeper_of_the_append_only_file_and_has_all_that_was_answered() {
    let mut process = Process::start("threads-aof", &[DEBUG, ("appendonly", "yes")]);
    let mut client = process.connect();
    ask_for_panic(&process, "aof");
    let mut answered = 0;
    for value in 1.. {
        let is_sent = client.write_all(&request(&["SET", "k", &value.to_string()])).is_ok();
        let mut reply = [0; 5];
        if !is_sent || client.read_exact(&mut reply).is_err() {
            break;
        }
        answered = value;
    }
    assert_eq!(process.ended().signal(), Some(SIGABRT), "{}", process.log());
    has_logged(&process, "a panic in aof: the process ends");
    process.restart();
    let kept: u64 = say(&process, "GET k").parse().unwrap_or(0);
    assert!(kept == answered || kept == answered + 1, "{answered} answers, and {kept}");
}

#[test]
fn values_are_freed_behind_a_panic_of_the_reaper() {
    let process = Process::start("threads-reaper", &[DEBUG]);
    for key in ["one", "two"] {
        let members: Vec<String> = (0..20_000).map(|member| member.to_string()).collect();
        let words = [&["SADD".to_owned(), key.to_owned()], members.as_slice()].concat();
        ask(&mut process.connect(), &words.iter().map(String::as_str).collect::<Vec<_>>());
    }
    ask_for_panic(&process, "reaper");
    assert_eq!(say(&process, "UNLINK one"), "1");
    has_panicked(&process, "reaper");
    shows(&process, "memory", &["lazyfree_pending_objects:0"]);
    assert_eq!(say(&process, "UNLINK two"), "1");
    shows(&process, "memory", &["lazyfree_pending_objects:0"]);
}

#[test]
fn a_slow_call_that_panics_ends_its_connection_alone() {
    let process = Process::start("threads-slow", &[DEBUG]);
    let members: Vec<String> = (0..50_000).map(|member| member.to_string()).collect();
    let words = [&["SADD".to_owned(), "set".to_owned()], members.as_slice()].concat();
    ask(&mut process.connect(), &words.iter().map(String::as_str).collect::<Vec<_>>());
    ask_for_panic(&process, "slow-calls");
    let mut client = process.connect();
    client.write_all(&request(&["SUNIONSTORE", "copy", "set"])).unwrap();
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"");
    has_panicked(&process, "slow-calls");
    assert_eq!(say(&process, "SUNIONSTORE copy set"), "50000");
}

#[cfg(feature = "search")]
#[test]
fn an_index_is_right_behind_a_panic_in_it() {
    let process = Process::start("threads-search", &[DEBUG]);
    assert_eq!(say(&process, "FT.CREATE index ON HASH SCHEMA title TEXT"), "OK");
    for at in 0..100 {
        say(&process, &format!("HSET doc:{at} title word"));
    }
    for round in 0..3 {
        ask_for_panic(&process, "search");
        say(&process, &format!("HSET more:{round} title word"));
        let panics = || process.log().matches("DEBUG PANIC asked the thread search to panic").count();
        until("the thread panics", || panics() == round + 1);
        has_logged(&process, "a panic while a document was indexed: the index is filled anew");
        let found = ask(&mut process.connect(), &["FT.SEARCH", "index", "word", "NOCONTENT", "LIMIT", "0", "0"]);
        assert_eq!(super::cluster::said(&found), (101 + round).to_string());
        until("all is indexed", || {
            let info = ask(&mut process.connect(), &["FT.INFO", "index"]);
            super::cluster::said(&info).contains("indexing 0")
        });
    }
}

#[cfg(feature = "search")]
#[test]
fn an_index_is_right_behind_a_panic_of_its_compaction() {
    let process = Process::start("threads-compaction", &[DEBUG]);
    let mut client = process.connect();
    assert_eq!(say(&process, "FT.CREATE index ON HASH SCHEMA title TEXT"), "OK");
    for at in 0..3000 {
        ask(&mut client, &["HSET", &format!("doc:{at}"), "title", "word"]);
    }
    let mut found = || {
        let found = ask(&mut client, &["FT.SEARCH", "index", "word", "NOCONTENT", "LIMIT", "0", "0"]);
        super::cluster::said(&found)
    };
    assert_eq!(found(), "3000");
    ask_for_panic(&process, "search-compaction");
    // An index is compacted behind a thousand removed documents.
    let gone: Vec<String> = (0..2000).map(|at| format!("doc:{at}")).collect();
    let words: Vec<&str> = ["DEL"].into_iter().chain(gone.iter().map(String::as_str)).collect();
    ask(&mut process.connect(), &words);
    has_panicked(&process, "search-compaction");
    has_logged(&process, "a panic while an index was compacted: it is filled anew");
    until("all is indexed again", || {
        let info = ask(&mut process.connect(), &["FT.INFO", "index"]);
        super::cluster::said(&info).contains("indexing 0")
    });
    assert_eq!(found(), "1000");
}

#[test]
fn a_shutdown_that_panics_ends_the_process() {
    let process = Process::start("threads-shutdown", &[DEBUG]);
    ask_for_panic(&process, "shutdown");
    let mut client = process.connect();
    client.write_all(&request(&["SHUTDOWN", "SAVE"])).unwrap();
    is_aborted(process, "shutdown");
}

#[test]
fn a_crash_is_reported_as_far_as_it_can_be() {
    let mut process = Process::start("threads-report", &[DEBUG]);
    ask_for_panic(&process, "crash-report");
    let mut client = process.connect();
    client.write_all(&request(&["DEBUG", "PANIC"])).unwrap();
    process.ended();
    let log = process.log();
    assert!(log.contains("crashed by signal: 6") && log.contains("(what is missing here has panicked)"), "{log}");
}

#[test]
fn a_load_that_panics_ends_the_process() {
    let settings = [DEBUG, ("key-load-delay", "1000"), ("loading-process-events-interval-bytes", "1024")];
    let mut process = Process::start("threads-load", &settings);
    say(&process, "DEBUG POPULATE 3000 key 100");
    say(&process, "SAVE");
    process.signal(rustix::process::Signal::KILL);
    process.ended();
    process.restart_loading();
    ask_for_panic(&process, "load");
    assert_eq!(process.ended().code(), Some(1), "{}", process.log());
    has_logged(&process, "Fatal error loading the DB: a panic. Exiting.");
}

/// A primary and its replica.
fn pair(name: &str) -> [Process; 2] {
    let port = test_peers::free_port().to_string();
    let primary = [DEBUG, ("port", port.as_str()), ("repl-diskless-sync-delay", "0"), ("save", "")];
    let primary = Process::start(&format!("threads-{name}-primary"), &primary);
    let port_of_replica = test_peers::free_port().to_string();
    let settings = [DEBUG, ("port", port_of_replica.as_str()), ("save", "")];
    let replica = Process::start(&format!("threads-{name}-replica"), &settings);
    say(&replica, &format!("REPLICAOF 127.0.0.1 {port}"));
    shows(&replica, "replication", &["master_link_status:up"]);
    [primary, replica]
}

#[test]
fn a_replica_connects_again() {
    let [primary, replica] = pair("replica");
    ask_for_panic(&replica, "replica");
    has_panicked(&replica, "replica");
    assert_eq!(say(&primary, "SET k v"), "OK");
    until("the write has come", || say(&replica, "GET k") == "v");
    shows(&replica, "replication", &["master_link_status:up"]);
}

#[test]
fn a_failover_that_panics_is_aborted_and_writes_go_on() {
    let [primary, replica] = pair("failover");
    ask_for_panic(&primary, "failover");
    assert_eq!(say(&primary, "FAILOVER"), "OK");
    has_panicked(&primary, "failover");
    assert_eq!(say(&primary, "SET k v"), "OK");
    shows(&primary, "replication", &["role:master", "master_failover_state:no-failover"]);
    assert_eq!(say(&primary, "FAILOVER"), "OK");
    shows(&replica, "replication", &["role:master"]);
}

#[test]
fn a_node_ends_with_the_threads_of_its_cluster() {
    for (thread, command) in [("cluster", "PING"), ("cluster-file", "CLUSTER ADDSLOTS 1")] {
        let node = Node::start(&format!("threads-{thread}"), &[DEBUG]);
        ask_for_panic(&node.process, thread);
        let mut client = node.connect();
        client.write_all(&request(&command.split(' ').collect::<Vec<_>>())).unwrap();
        is_aborted(node.process, thread);
    }
    let nodes = moves::cluster("threads-role", &[&[DEBUG], &[DEBUG]]);
    let Ok([primary, replica]) = <[Node; 2]>::try_from(nodes) else { unreachable!() };
    ask_for_panic(&replica.process, "cluster-role");
    replica.ask(&format!("CLUSTER REPLICATE {}", primary.id()));
    is_aborted(replica.process, "cluster-role");
}

#[test]
fn a_move_of_slots_fails_with_its_threads_and_the_next_one_works() {
    let settings: &[(&str, &str)] = &[DEBUG, ("compatibility", "valkey-9")];
    let nodes = moves::cluster("threads-moves", &[settings, settings]);
    let [one, two] = &nodes[..] else { unreachable!() };
    for at in 0..100 {
        one.ask(&format!("SET key:{at} v"));
    }
    let go = format!("CLUSTER MIGRATESLOTS SLOTSRANGE 0 16000 NODE {}", two.id());
    for (thread, node) in [("slots-out", one), ("slots-in", two)] {
        ask_for_panic(&node.process, thread);
        // A target that clears up the move before refuses the next one: that fails without the thread.
        until("the thread panics in a move", || {
            if one.ask(&go).text() == "OK" {
                moves::wait_for(one, "state failed");
            }
            node.process.log().contains(&panic_of(thread))
        });
        assert_eq!(one.ask("DBSIZE").text(), "100");
    }
    // Keys of slots that others have now are removed by the next thread.
    ask_for_panic(&one.process, "slots-gone");
    // The target refuses a move while it clears up the one before, and this node one while another is at work.
    until("a move succeeds", || {
        let _ = one.ask(&go);
        moves::state(one).contains("state success")
    });
    has_panicked(&one.process, "slots-gone");
    let count = |node: &Node| node.ask("DBSIZE").text().parse::<usize>().unwrap();
    until("each key is at one node", || count(one) + count(two) == 100);
}

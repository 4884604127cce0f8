//! The append-only file: what is kept over the server's end, however it comes.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use rustix::process::Signal;

use super::snapshots::recipes;
use super::support::genuine::{Genuine, copy_folder};
use super::support::process::{Process, ask};
use super::support::resp::{Value, request};
use super::support::until;

fn info(server: &Process, name: &str) -> String {
    let info = ask(&mut server.connect(), &["INFO", "persistence"]).text();
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned));
    line.unwrap_or_else(|| panic!("{name} in {info}"))
}

fn said(server: &Process, line: &str) -> String {
    ask(&mut server.connect(), &line.split(' ').collect::<Vec<_>>()).text()
}

fn rewrite(server: &Process) {
    ask(&mut server.connect(), &["BGREWRITEAOF"]);
    until("it is rewritten", || info(server, "aof_rewrite_in_progress") == "0");
    assert_eq!(info(server, "aof_last_bgrewrite_status"), "ok");
}

fn digest(server: &Process) -> String {
    ask(&mut server.connect(), &["DEBUG", "DIGEST"]).text()
}

fn files(server: &Process) -> Vec<String> {
    let entries = fs::read_dir(server.folder.join("appendonlydir")).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

const DEBUG: (&str, &str) = ("enable-debug-command", "yes");

#[test]
fn data_survives_a_restart_and_a_rewrite() {
    for preamble in ["yes", "no"] {
        let settings = [("appendonly", "yes"), ("aof-use-rdb-preamble", preamble), DEBUG];
        let mut server = Process::start(&format!("aof-restart-{preamble}"), &settings);
        for line in [
            "SET a 1",
            "RPUSH l x y z",
            "SADD s 1 2 3",
            "SADD words a b c",
            "ZADD z 1.5 a -inf b",
            "HSET h f v",
            "XADD x 1-1 f v",
            "XADD x 2-1 f v",
            "XGROUP CREATE x g 0",
            "XREADGROUP GROUP g ann COUNT 1 STREAMS x >",
            "PFADD hll a b c",
            "SET gone 1 PX 1",
            "SET stays 1 EX 1000",
            "FUNCTION FLUSH",
        ] {
            assert!(!ask(&mut server.connect(), &line.split(' ').collect::<Vec<_>>()).is_error(), "{line}");
        }
        let mut client = server.connect();
        for line in ["SELECT 3", "SET b 2", "MULTI", "INCR a", "INCR b", "EXEC"] {
            ask(&mut client, &line.split(' ').collect::<Vec<_>>());
        }
        until("a key has expired", || said(&server, "EXISTS gone") == "0");
        let before = digest(&server);
        server.signal(Signal::TERM);
        assert!(server.ended().success());
        server.restart();
        assert_eq!(digest(&server), before);
        rewrite(&server);
        let base = if preamble == "yes" { "rdb" } else { "aof" };
        let expected = [
            format!("appendonly.aof.2.base.{base}"),
            "appendonly.aof.2.incr.aof".into(),
            "appendonly.aof.manifest".into(),
        ];
        assert_eq!(files(&server), expected);
        assert_eq!(said(&server, "SET c 3"), "OK");
        let before = digest(&server);
        server.signal(Signal::TERM);
        assert!(server.ended().success());
        server.restart();
        assert_eq!(digest(&server), before);
        assert_eq!(info(&server, "aof_enabled"), "1");
    }
}

/// Clients go on while the commands of a base are written. The file has the values of the cut, and behind them every change.
#[test]
fn a_command_base_does_not_block_writers() {
    let settings = [("appendonly", "yes"), ("aof-use-rdb-preamble", "no"), DEBUG];
    let mut server = Process::start("aof-base-of-commands", &settings);
    let mut client = server.connect();
    let mut said = |line: &str| {
        let reply = ask(&mut client, &line.split(' ').collect::<Vec<_>>());
        assert!(!reply.is_error(), "{line}: {reply:?}");
    };
    (0..100).for_each(|key| said(&format!("SET key:{key} value")));
    let elements: Vec<_> = (0..5000).map(|number| number.to_string()).collect();
    // A value that is encoded outside of locks, and a string of more than a chunk.
    (0..20).for_each(|_| said(&format!("RPUSH large {}", elements.join(" "))));
    said(&format!("SET text {}", "t".repeat(1024 * 1024)));
    said("SELECT 3");
    said("HSET hash a 1 b 2");
    said("HPEXPIRE hash 1000000 FIELDS 1 a");
    said("SET fleeting x PX 1000000");
    // About five seconds for all.
    said("CONFIG SET rdb-key-save-delay 50000");
    said("BGREWRITEAOF");
    until("it has begun", || info(&server, "aof_rewrite_in_progress") == "1");
    until("the cut is made", || files(&server).iter().any(|name| name.ends_with(".2.incr.aof")));
    for line in
        ["DEL hash", "SET fleeting y", "SELECT 0", "APPEND text more", "LPOP large", "DEL key:1 key:2", "INCR new"]
    {
        said(line);
    }
    (10..90).for_each(|key| said(&format!("SET key:{key} other")));
    assert_eq!(info(&server, "aof_rewrite_in_progress"), "1", "it ended before the writes");
    until("it has ended", || info(&server, "aof_rewrite_in_progress") == "0");
    assert_eq!(info(&server, "aof_last_bgrewrite_status"), "ok");
    let base = fs::read(server.folder.join("appendonlydir/appendonly.aof.2.base.aof")).unwrap();
    let count = |words: &[u8]| base.windows(words.len()).filter(|window| *window == words).count();
    assert_eq!(
        (count(b"\r\nvalue\r\n"), count(b"\r\nother\r\n"), count(b"\r\nnew\r\n")),
        (100, 0, 0),
        "values of the cut"
    );
    let before = digest(&server);
    server.signal(Signal::KILL);
    server.ended();
    server.restart();
    assert_eq!(digest(&server), before);
}

/// Commands that fail when they are loaded, such as SELECT of a database that is not there any more, are passed by, as by the genuine
/// server; with `propagation-error-behavior panic` they end the start.
#[test]
fn commands_that_fail_are_passed_by_unless_they_are_not_to_be() {
    fn loaded(start: fn(&str, &[(&str, &str)]) -> Process, name: &str) -> (Process, Vec<String>) {
        let mut server = start(name, &[("appendonly", "yes"), ("save", ""), DEBUG]);
        assert_eq!(said(&server, "SET a 1"), "OK");
        server.signal(Signal::TERM);
        server.ended();
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(server.folder.join(FOLDER).join("appendonly.aof.1.incr.aof"))
            .unwrap();
        for words in
            [&["SELECT", "99"][..], &["SET", "b", "2"], &["LPUSH", "b", "x"], &["SELECT", "3"], &["SET", "c", "3"]]
        {
            file.write_all(&request(words)).unwrap();
        }
        server.restart();
        let mut client = server.connect();
        let lines = ["GET a", "GET b", "DBSIZE", "SELECT 3", "GET c", "DBSIZE"];
        let said = lines.map(|line| ask(&mut client, &line.split(' ').collect::<Vec<_>>()).text());
        (server, said.to_vec())
    }
    let (mut server, ours) = loaded(Process::start, "aof-fails");
    let log = server.log();
    let critical =
        "== CRITICAL == This server is sending an error to its AOF-loading-client: 'ERR DB index is out of range'";
    assert!(log.contains(critical), "{log}");
    assert!(log.contains("WRONGTYPE"), "{log}");
    // A load of a moment has no progress to report; its estimate once counted from 1970.
    assert!(!log.contains("s to go"), "{log}");
    assert!(ask(&mut server.connect(), &["INFO", "stats"]).text().contains("unexpected_error_replies:2\r\n"));
    if test_peers::is_there("redis-server") {
        let (_, genuine) = loaded(Process::genuine, "aof-fails-genuine");
        assert_eq!(ours, genuine);
    }
    server.signal(Signal::TERM);
    server.ended();
    server.add_flags(&["--propagation-error-behavior", "panic"]);
    let (status, said) = server.fail_to_start();
    assert!(!status.success());
    assert!(said.contains("'SELECT' fails: ERR DB index is out of range"), "{said}");
}

/// Redis loses these in a base of commands: XCLAIM takes only what is there.
#[test]
fn pending_ids_of_deleted_entries_survive_a_rewrite() {
    const KEYS: [&str; 3] = ["trimmed", "deleted", "emptied"];
    for preamble in ["yes", "no"] {
        let settings = [("appendonly", "yes"), ("aof-use-rdb-preamble", preamble), DEBUG];
        let mut server = Process::start(&format!("aof-pending-{preamble}"), &settings);
        for key in KEYS {
            for id in 1..=5 {
                said(&server, &format!("XADD {key} {id}-1 f v"));
            }
            said(&server, &format!("XGROUP CREATE {key} g 0"));
            said(&server, &format!("XREADGROUP GROUP g ann COUNT 4 STREAMS {key} >"));
        }
        assert_eq!(said(&server, "XTRIM trimmed MAXLEN 2"), "3");
        assert_eq!(said(&server, "XDEL deleted 2-1 4-1"), "2");
        assert_eq!(said(&server, "XDEL emptied 3-1"), "1");
        assert_eq!(said(&server, "XTRIM emptied MAXLEN 0"), "4");
        let about = |server: &Process| {
            let mut client = server.connect();
            KEYS.map(|key| {
                let mut told = vec![
                    ask(&mut client, &["XPENDING", key, "g"]),
                    ask(&mut client, &["XINFO", "GROUPS", key]),
                    ask(&mut client, &["XRANGE", key, "-", "+"]),
                ];
                let Value::Array(stream) = ask(&mut client, &["XINFO", "STREAM", key]) else { panic!("an array") };
                let fields = stream.chunks(2).filter(|pair| !pair[0].text().starts_with("radix-tree"));
                told.extend(fields.flatten().cloned());
                told
            })
        };
        let before = about(&server);
        assert!(before.iter().all(|told| matches!(&told[0], Value::Array(summary) if summary[0] == Value::Int(4))));
        rewrite(&server);
        server.signal(Signal::TERM);
        assert!(server.ended().success());
        server.restart();
        assert_eq!(about(&server), before, "preamble {preamble}");
    }
}

#[test]
fn messages_that_are_added_once_are_known_after_a_restart_and_a_rewrite() {
    for preamble in ["yes", "no"] {
        let settings = [("appendonly", "yes"), ("aof-use-rdb-preamble", preamble)];
        let mut server = Process::start(&format!("aof-idempotence-{preamble}"), &settings);
        let first = said(&server, "XADD s IDMP ann 1 * f v");
        assert_eq!(said(&server, "XCFGSET t IDMP-DURATION 50"), "ERR no such key");
        rewrite(&server);
        let second = said(&server, "XADD s IDMP ann 2 * f v");
        server.signal(Signal::TERM);
        server.ended();
        server.restart();
        assert_eq!(said(&server, "XADD s IDMP ann 1 * f w"), first, "{preamble}");
        assert_eq!(said(&server, "XADD s IDMP ann 2 * f w"), second, "{preamble}");
        assert_eq!(said(&server, "XLEN s"), "2", "{preamble}");
    }
}

/// FLUSHALL saves a snapshot: once, and not again for each one that is loaded.
#[test]
fn a_loaded_flushall_saves_nothing() {
    let mut server = Process::start("aof-flushall", &[("appendonly", "yes"), DEBUG]);
    let snapshot = server.folder.join("dump.rdb");
    let there = |server: &Process| ask(&mut server.connect(), &["EXISTS", "a", "b"]);
    assert_eq!(said(&server, "SET a 1"), "OK");
    assert_eq!(said(&server, "FLUSHALL"), "OK");
    assert_eq!(said(&server, "SET b 2"), "OK");
    fs::remove_file(&snapshot).expect("FLUSHALL has saved");
    assert_eq!(said(&server, "DEBUG LOADAOF"), "OK");
    assert!(!snapshot.exists(), "by DEBUG LOADAOF");
    assert_eq!(there(&server), Value::Int(1));
    server.signal(Signal::KILL);
    server.ended();
    server.restart();
    assert!(!snapshot.exists(), "by a start");
    assert_eq!(there(&server), Value::Int(1));
}

/// A base that no manifest names, because the server was killed in front of that, goes when its number is used.
#[test]
fn bases_that_no_manifest_names_are_removed() {
    let server = Process::start("aof-left-over", &[("appendonly", "yes")]);
    let folder = server.folder.join("appendonlydir");
    for kind in ["rdb", "aof"] {
        fs::write(folder.join(format!("appendonly.aof.2.base.{kind}")), "left over").unwrap();
    }
    assert_eq!(said(&server, "SET a 1"), "OK");
    rewrite(&server);
    assert!(!folder.join("appendonly.aof.2.base.aof").exists());
    assert!(fs::read(folder.join("appendonly.aof.2.base.rdb")).unwrap().starts_with(b"REDIS"));
}

#[test]
fn it_is_turned_on_and_off_while_the_server_runs() {
    let mut server = Process::start("aof-on", &[("save", ""), DEBUG]);
    assert_eq!(said(&server, "SET a 1"), "OK");
    assert_eq!(said(&server, "CONFIG SET appendonly yes"), "OK");
    until("there is a base", || info(&server, "aof_rewrite_in_progress") == "0");
    assert_eq!(said(&server, "SET b 2"), "OK");
    assert_eq!(said(&server, "CONFIG SET appendonly no"), "OK");
    assert_eq!(said(&server, "SET c 3"), "OK");
    assert_eq!(info(&server, "aof_enabled"), "0");
    server.signal(Signal::TERM);
    server.ended();
    server.add_flags(&["--appendonly", "yes"]);
    server.restart();
    assert_eq!(ask(&mut server.connect(), &["EXISTS", "a", "b", "c"]), Value::Int(2));
}

#[test]
fn truncated_tails_are_cut_and_corruption_prevents_startup() {
    let mut server = Process::start("aof-tail", &[("appendonly", "yes"), ("appendfsync", "always")]);
    assert_eq!(said(&server, "SET a 1"), "OK");
    server.signal(Signal::TERM);
    server.ended();
    let file = server.folder.join("appendonlydir/appendonly.aof.1.incr.aof");
    let whole = fs::read(&file).unwrap();
    let tails: [&[u8]; 4] = [
        b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n2\r",
        b"*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n2\r\n",
        &[0; 4096],
        b"*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n\0\0\0\0\0",
    ];
    for tail in tails {
        fs::write(&file, [&whole, tail].concat()).unwrap();
        server.restart();
        assert_eq!(ask(&mut server.connect(), &["EXISTS", "a", "b"]), Value::Int(1));
        server.signal(Signal::KILL);
        server.ended();
        assert_eq!(fs::read(&file).unwrap(), whole, "what is not whole is gone");
    }
    let fail = |bytes: &[u8], what: &str| {
        fs::write(&file, bytes).unwrap();
        let (status, last) = server.fail_to_start();
        assert!(!status.success() && last.contains(what), "{last}");
    };
    fail(
        &[&whole, &b"!hello"[..]].concat(),
        "Bad file format reading the append only file appendonly.aof.1.incr.aof: offset",
    );
    fail(&[&whole, &b"*1\r\n$3\r\nBLA\r\n"[..]].concat(), "Unknown command 'BLA' reading the append only file");
    fs::remove_file(&file).unwrap();
    let (status, last) = server.fail_to_start();
    assert!(!status.success() && last.contains("appendonly.aof.1.incr.aof") && last.contains("No such file"), "{last}");
}

const FOLDER: &str = "appendonlydir";

fn words(recipe: &[String]) -> Vec<&str> {
    recipe.iter().map(String::as_str).collect()
}

fn genuine_settings(preamble: &str) -> Vec<(String, String)> {
    [("appendonly", "yes"), ("aof-use-rdb-preamble", preamble)].map(|(name, value)| (name.into(), value.into())).into()
}

#[test]
fn files_of_the_genuine_server_load_and_ours_load_there() {
    for program in Genuine::programs() {
        exchange_append_only_files(&program);
    }
}

fn exchange_append_only_files(program: &Path) {
    for preamble in ["yes", "no"] {
        let Some(mut genuine) = Genuine::of(program, &genuine_settings(preamble), None) else { return };
        let all = recipes();
        let (first, second) = all.split_at(all.len() / 2);
        first.iter().for_each(|recipe| _ = genuine.ask(&words(recipe)));
        genuine.ask(&["BGREWRITEAOF"]);
        until("it is rewritten", || genuine.ask(&["INFO", "persistence"]).text().contains("aof_rewrite_in_progress:0"));
        second.iter().for_each(|recipe| _ = genuine.ask(&words(recipe)));
        let expected = genuine.ask(&["DEBUG", "DIGEST"]).text();
        genuine.ask(&["CONFIG", "SET", "appendonly", "no"]);

        let settings = [("appendonly", "yes"), ("aof-use-rdb-preamble", preamble), DEBUG];
        let mut server = Process::start(&format!("aof-genuine-{preamble}"), &settings);
        server.signal(Signal::KILL);
        server.ended();
        fs::remove_dir_all(server.folder.join(FOLDER)).unwrap();
        copy_folder(&genuine.folder.join(FOLDER), &server.folder.join(FOLDER));
        server.restart();
        assert_eq!(digest(&server), expected, "theirs, preamble {preamble}");

        // Ours, of what is said here, in all of its forms.
        let mut client = server.connect();
        ask(&mut client, &["FLUSHALL"]);
        ask(&mut client, &["FUNCTION", "FLUSH"]);
        first.iter().for_each(|recipe| assert!(!ask(&mut client, &words(recipe)).is_error(), "{recipe:?}"));
        rewrite(&server);
        second.iter().for_each(|recipe| assert!(!ask(&mut client, &words(recipe)).is_error(), "{recipe:?}"));
        let expected = values(|words| ask(&mut client, words));
        server.signal(Signal::TERM);
        server.ended();
        let files = server.folder.join(FOLDER);
        let checked = Command::new("redis-check-aof").arg(files.join("appendonly.aof.manifest")).output().unwrap();
        assert!(checked.status.success(), "{}", text(&checked));
        let Some(mut genuine) = Genuine::of(program, &genuine_settings(preamble), Some(&files)) else { return };
        until("it has loaded", || genuine.ask(&["INFO", "persistence"]).text().contains("\nloading:0"));
        assert_eq!(values(|words| genuine.ask(words)), expected, "ours, preamble {preamble}");
        assert_eq!(genuine.ask(&["FCALL", "f", "0"]), Value::Int(7));
    }
}

/// The digests and the expiry of all values of the databases that the recipes fill.
fn values(mut ask: impl FnMut(&[&str]) -> Value) -> Vec<(String, String)> {
    let mut values = Vec::new();
    for db in ["0", "3"] {
        ask(&["SELECT", db]);
        let Value::Array(keys) = ask(&["KEYS", "*"]) else { panic!("KEYS answers an array") };
        for key in keys {
            let Value::Array(digest) = ask(&["DEBUG", "DIGEST-VALUE", &key.text()]) else { panic!("an array") };
            let Value::Int(expires_at) = ask(&["PEXPIRETIME", &key.text()]) else { panic!("a number") };
            values.push((format!("{db} {}", key.text()), format!("{} {expires_at}", digest[0].text())));
        }
    }
    values.sort();
    values
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn run(arguments: &[&str], file: &Path) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redis-server"));
    let output = command.arg(arguments[0]).arg(file).args(&arguments[1..]).output().unwrap();
    (output.status.success(), text(&output))
}

#[test]
fn files_are_checked_and_mended_without_a_server() {
    let mut server = Process::start("aof-check", &[("appendonly", "yes"), ("appendfsync", "always")]);
    assert_eq!(said(&server, "SET a 1"), "OK");
    server.signal(Signal::TERM);
    server.ended();
    let manifest = server.folder.join(FOLDER).join("appendonly.aof.manifest");
    let file = server.folder.join(FOLDER).join("appendonly.aof.1.incr.aof");
    let (is_sound, said) = run(&["--check"], &manifest);
    assert!(is_sound && said.contains("sound: files 2, commands 2, behind a snapshot of keys 0"), "{said}");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, [&whole, &b"*1\r\n$5\r\nMULTI\r\n*2\r\n$3"[..]].concat()).unwrap();
    let (is_sound, said) = run(&["--check"], &manifest);
    let place = format!("what is whole ends at {}: redis-server --fix can cut off the 21 bytes behind it", whole.len());
    assert!(!is_sound && said.contains(&place), "{said}");
    let (is_mended, said) = run(&["--fix", "--yes"], &manifest);
    assert!(is_mended, "{said}");
    assert_eq!(fs::read(&file).unwrap(), whole);
    assert!(run(&["--fix"], &manifest).0, "what is sound needs no answer");
    fs::write(&manifest, "file x seq 1 type ?\n").unwrap();
    let (is_sound, said) = run(&["--check"], &manifest);
    assert!(!is_sound && said.contains("at line 1") && said.contains("Unknown AOF file type"), "{said}");
}

#[test]
fn a_base_is_made_where_nothing_is_kept() {
    let mut server = Process::start("aof-once", &[("save", "")]);
    assert_eq!(said(&server, "SET a 1"), "OK");
    rewrite(&server);
    assert_eq!(said(&server, "SET b 1"), "OK");
    assert_eq!(info(&server, "aof_enabled"), "0");
    server.signal(Signal::TERM);
    server.ended();
    server.add_flags(&["--appendonly", "yes"]);
    server.restart();
    assert_eq!(ask(&mut server.connect(), &["EXISTS", "a", "b"]), Value::Int(1));
}

#[test]
fn transactions_are_loaded_again_while_the_server_runs() {
    let server = Process::start("load-again", &[("appendonly", "yes"), ("enable-debug-command", "yes")]);
    let mut stream = server.connect();
    for line in ["SET k v", "MULTI", "APPEND k w", "RPUSH l 1 2", "EXEC", "DEBUG LOADAOF"] {
        assert!(!ask(&mut stream, &line.split(' ').collect::<Vec<_>>()).is_error(), "{line}");
    }
    assert_eq!(ask(&mut stream, &["GET", "k"]), Value::Bulk(b"vw".to_vec()));
    assert_eq!(ask(&mut stream, &["LLEN", "l"]), Value::Int(2));
}

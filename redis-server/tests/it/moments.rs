//! Each file that is written while the server goes on shows one moment of the journal: its data equals the effect of all commands before
//! the cut.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use std::{fs, thread};

use redis_server::commands::TABLE;
use redis_server::exec::aof;
use redis_server::exec::core::{Instance, Worker};
use redis_server::exec::gate::Alone;
use redis_server::exec::snapshot::{self, Format, Job, Purpose};
use redis_server::journal::User;
use redis_server::persistence::SnapshotFile;
use redis_server::persistence::disk::{Disk, RealDisk};
use redis_server::runtime::embedded::Session;
use rustix::process::Signal;

use super::support::process::{Process, ask};
use super::support::resp::{Value, parse, request};
use super::support::server::{Server, config};
use super::support::{Random, until};
use super::windows;

const ACCOUNTS: usize = 1000;
const BALANCE: usize = 1000;
const TICKETS: usize = 300;

/// A script with the invariants of every moment: the sum of all accounts, the number of tickets, and of wandering names.
const INVARIANT: &str = "local sum = redis.call('HGET', 'shared', 'balance') \
                         for i = 0, ARGV[1] - 1 do sum = sum + redis.call('GET', 'account:' .. i) end \
                         local tickets = 0 \
                         for i = 0, 7 do tickets = tickets + redis.call('LLEN', 'tickets:' .. i) end \
                         return {sum, tickets, #redis.call('KEYS', 'wandering:*')}";

/// How many keys expire within a second.
const EXPIRES_SOON: &str = "local count = 0 \
                            for _, key in ipairs(redis.call('KEYS', 'short:*')) do \
                              if redis.call('PTTL', key) >= 0 then count = count + 1 end \
                            end \
                            return count";

/// All that `DEBUG DIGEST` does not see: when keys expire, and what streams know beside their entries.
const HIDDEN: &str = "local all = {} \
                      for db = 0, 15 do \
                        redis.call('SELECT', db) \
                        for _, key in ipairs(redis.call('KEYS', '*')) do \
                          local about = {db, key, redis.call('PEXPIRETIME', key)} \
                          if redis.call('TYPE', key).ok == 'stream' then \
                            local info = redis.call('XINFO', 'STREAM', key) \
                            for i = 1, #info, 2 do \
                              if string.find('length last-generated-id max-deleted-entry-id entries-added groups', info[i], 1, true) \
                              then table.insert(about, tostring(info[i + 1])) end \
                            end \
                            for _, group in ipairs(redis.call('XINFO', 'GROUPS', key)) do \
                              for i = 2, #group, 2 do table.insert(about, tostring(group[i])) end \
                            end \
                          end \
                          table.insert(all, table.concat(about, ' ')) \
                        end \
                      end \
                      table.sort(all) return all";

fn invariant(stream: &mut (impl Read + Write)) -> Value {
    ask(stream, &["EVAL", INVARIANT, "0", &ACCOUNTS.to_string()])
}

fn field(stream: &mut (impl Read + Write), name: &str) -> String {
    let info = ask(stream, &["INFO", "persistence"]).text();
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("INFO has no {name}")).to_owned()
}

fn open_accounts(stream: &mut (impl Read + Write)) {
    let mut ok = |line: String| {
        let reply = ask(stream, &line.split(' ').collect::<Vec<_>>());
        assert!(!reply.is_error(), "{line}: {reply:?}");
    };
    (0..ACCOUNTS).for_each(|account| ok(format!("SET account:{account} {BALANCE}")));
    ok("HSET shared balance 0".into());
    ok("MSET wandering:0 a wandering:1 b".into());
    (0..TICKETS).for_each(|ticket| ok(format!("RPUSH tickets:{} {ticket}", ticket % 8)));
}

/// Moves money between accounts, and names and tickets about, in every way that is atomic.
fn transfer(stream: &mut (impl Read + Write), random: &mut Random, stop: &AtomicBool) {
    let script = "redis.call('DECRBY',KEYS[1],ARGV[1]) redis.call('HINCRBY',KEYS[2],'balance',ARGV[1]) \
                  redis.call('HINCRBY',KEYS[2],'balance',-ARGV[1]) redis.call('INCRBY',KEYS[3],ARGV[1])";
    while !stop.load(Relaxed) {
        let (from, to) = (format!("account:{}", random.below(ACCOUNTS)), format!("account:{}", random.below(ACCOUNTS)));
        let amount = (1 + random.below(50)).to_string();
        let mut good = |words: &[&str]| {
            let reply = ask(stream, words);
            assert!(!reply.is_error(), "{words:?}: {reply:?}");
        };
        match random.below(6) {
            0 => [&["MULTI"][..], &["DECRBY", &from, &amount], &["INCRBY", &to, &amount], &["EXEC"]]
                .iter()
                .for_each(|words| good(words)),
            1 => good(&["EVAL", script, "3", &from, "shared", &to, &amount]),
            2 => {
                // The one that holds the name takes it to another; who finds none does nothing.
                let (a, b) = (format!("wandering:{}", random.below(4)), format!("wandering:{}", random.below(4)));
                let _ = ask(stream, &["RENAMENX", &a, &b]);
            }
            3 => {
                let (a, b) = (format!("tickets:{}", random.below(8)), format!("tickets:{}", random.below(8)));
                good(&["LMOVE", &a, &b, "LEFT", "RIGHT"]);
            }
            4 => {
                let key = format!("short:{}", random.below(20));
                good(&["SET", &key, "v", "PX", &(1 + random.below(20)).to_string()]);
                good(&["APPEND", &key, "x"]);
            }
            _ => good(&["SET", &format!("long:{}", random.below(20)), &amount, "EX", "100000"]),
        }
    }
}

/// Random commands on keys of all types.
fn wander(stream: &mut (impl Read + Write), random: &mut Random, stop: &AtomicBool) {
    let templates: Vec<&str> = windows::TEMPLATES.iter().flat_map(|line| line.split('|')).collect();
    while !stop.load(Relaxed) {
        stream.write_all(&windows::command(random, &templates)).unwrap();
        let mut input = Vec::new();
        while parse(&input).unwrap().is_none() {
            let mut chunk = [0; 64 * 1024];
            let count = test_peers::read(stream, &mut chunk).expect("a reply in time");
            input.extend_from_slice(&chunk[..count]);
        }
    }
}

/// The state of a server that starts with these files, the first of which is a base or not.
struct Found {
    digest: Value,
    hidden: Value,
    invariant: Value,
}

fn load(has_base: bool, files: &[&Path]) -> Found {
    let folder = tempfile::tempdir().unwrap();
    let parts = folder.path().join("appendonlydir");
    fs::create_dir(&parts).unwrap();
    let mut manifest = String::new();
    for (number, file) in files.iter().enumerate() {
        let name = file.file_name().unwrap().to_str().unwrap();
        fs::copy(file, parts.join(name)).unwrap();
        let kind = if has_base && number == 0 { 'b' } else { 'i' };
        manifest.push_str(&format!("file {name} seq {} type {kind}\n", number + 1));
    }
    fs::write(parts.join("appendonly.aof.manifest"), manifest).unwrap();
    let settings = [("dir", folder.path().to_str().unwrap()), ("appendonly", "yes")];
    let instance =
        Arc::new(Instance::new(Arc::new(config(&settings.map(|(name, value)| (name.into(), value.into())))), &TABLE));
    aof::start(&instance).unwrap_or_else(|error| panic!("{files:?}: {error}"));
    let mut session = Session::new(Rc::new(Worker::new(Arc::clone(&instance))));
    let mut ask = |words: &[&str]| {
        session.receive(&request(words));
        parse(&session.transmit()).unwrap().expect("a reply").0
    };
    let digest = ask(&["DEBUG", "DIGEST"]);
    let hidden = ask(&["EVAL", HIDDEN, "0"]);
    let invariant = ask(&["EVAL", INVARIANT, "0", &ACCOUNTS.to_string()]);
    instance.aof.finish();
    Found { digest, hidden, invariant }
}

#[track_caller]
fn assert_same(ours: &Found, expected: &Found, what: &str) {
    if let (Value::Array(ours), Value::Array(expected)) = (&ours.hidden, &expected.hidden) {
        let differ: Vec<_> = ours.iter().zip(expected).filter(|(one, other)| one != other).take(3).collect();
        assert_eq!((differ, ours.len()), (Vec::new(), expected.len()), "{what}");
    }
    assert_eq!((&ours.hidden, &ours.digest), (&expected.hidden, &expected.digest), "{what}");
}

#[test]
fn a_snapshot_is_what_the_journal_says_up_to_its_cut() {
    const SNAPSHOTS: usize = 12;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::shuffled();
    let instance = &server.instance;
    instance.journal.turn_on(User::Aof, &instance.exclusive.stop().unwrap());
    let mut reader = instance.journal.reader(|| {});
    let mut client = server.connect();
    open_accounts(&mut client.stream);
    let expected = invariant(&mut client.stream);
    let stop = AtomicBool::new(false);
    let path = |number: usize| folder.path().join(format!("{number}.rdb"));
    let cuts: Vec<u64> = thread::scope(|scope| {
        for seed in 1..=6u64 {
            let (mut client, stop) = (server.connect(), &stop);
            scope.spawn(move || {
                let random = &mut Random::new(seed);
                if seed % 2 == 0 {
                    wander(&mut client.stream, random, stop)
                } else {
                    transfer(&mut client.stream, random, stop)
                }
            });
        }
        let mut random = Random::new(99);
        let cuts = (0..SNAPSHOTS).map(|number| {
            // Some are written slowly, so that most of what they save has changed by then.
            client.ask(&format!("CONFIG SET rdb-key-save-delay {}", if number % 2 == 0 { 200 } else { 0 }));
            thread::sleep(Duration::from_millis(random.below(100) as u64));
            let (cut, cuts) = mpsc::channel();
            let (end, ends) = mpsc::channel();
            let path = path(number);
            let create = move |_: &Instance| {
                let disk: Arc<dyn Disk> = Arc::new(RealDisk);
                Ok(Box::new(SnapshotFile::create(&disk, &path, &path, false)?) as Box<dyn snapshot::Target>)
            };
            let at_cut = move |instance: &Instance, _: &Alone| cut.send(instance.journal.offset()).unwrap();
            let ended = move |_: &Instance, written| end.send(written).unwrap();
            let record = Box::new(|_: &Instance, _: &io::Result<()>| {});
            let (create, at_cut, ended) = (Box::new(create), Box::new(at_cut), Box::new(ended));
            let (purpose, format) = (Purpose::AofBase, Format::Rdb);
            snapshot::start(instance, Job { purpose, format, create, at_cut, record, ended }).unwrap();
            ends.recv().unwrap().unwrap();
            cuts.recv().unwrap()
        });
        let cuts = cuts.collect();
        stop.store(true, Relaxed);
        cuts
    });
    until("what expires soon is gone", || ask(&mut client.stream, &["EVAL", EXPIRES_SOON, "0"]) == Value::Int(0));
    let mut stream = Vec::new();
    reader.take(&mut stream, &mut Vec::new());
    for (number, &cut) in cuts.iter().enumerate() {
        let said = folder.path().join("said.aof");
        fs::write(&said, &stream[..cut as usize]).unwrap();
        let (found, replayed) = (load(true, &[&path(number)]), load(false, &[&said]));
        assert_eq!(found.invariant, expected, "snapshot {number}");
        assert_same(&found, &replayed, &format!("snapshot {number} at {cut}"));
    }
    println!("{SNAPSHOTS} snapshots at {cuts:?} of {} bytes", stream.len());
}

/// All files are kept, also those that a new base makes superfluous: each base has to be what the one before it makes with the file
/// that was written behind it.
#[test]
fn a_new_base_is_what_the_old_files_make() {
    const ROUNDS: usize = 6;
    for preamble in ["yes", "no"] {
        let settings = [
            ("appendonly", "yes"),
            ("aof-disable-auto-gc", "yes"),
            ("aof-use-rdb-preamble", preamble),
            ("save", ""),
            ("enable-debug-command", "yes"),
        ];
        let mut server = Process::start(&format!("moments-{preamble}"), &settings);
        let mut stream = server.connect();
        open_accounts(&mut stream);
        let expected = invariant(&mut stream);
        let stop = AtomicBool::new(false);
        let snapshots = thread::scope(|scope| {
            for seed in 1..=4u64 {
                let (mut stream, stop) = (server.connect(), &stop);
                scope.spawn(move || {
                    let random = &mut Random::new(seed);
                    if seed == 4 { wander(&mut stream, random, stop) } else { transfer(&mut stream, random, stop) }
                });
            }
            let snapshots = (0..ROUNDS).map(|number| {
                let delay = if number % 2 == 0 { "200" } else { "0" };
                assert!(!ask(&mut stream, &["CONFIG", "SET", "rdb-key-save-delay", delay]).is_error());
                assert!(!ask(&mut stream, &["BGREWRITEAOF"]).is_error());
                until("the files are rewritten", || field(&mut stream, "aof_rewrite_in_progress") == "0");
                assert_eq!(field(&mut stream, "aof_last_bgrewrite_status"), "ok");
                assert!(!ask(&mut stream, &["BGSAVE"]).is_error());
                until("the snapshot is written", || field(&mut stream, "rdb_bgsave_in_progress") == "0");
                assert_eq!(field(&mut stream, "rdb_last_bgsave_status"), "ok");
                let path = server.folder.join(format!("{number}.rdb"));
                fs::rename(server.folder.join("dump.rdb"), &path).unwrap();
                path
            });
            let snapshots: Vec<_> = snapshots.collect();
            stop.store(true, Relaxed);
            snapshots
        });
        until("what expires soon is gone", || ask(&mut stream, &["EVAL", EXPIRES_SOON, "0"]) == Value::Int(0));
        let digest = ask(&mut stream, &["DEBUG", "DIGEST"]);
        let hidden = ask(&mut stream, &["EVAL", HIDDEN, "0"]);
        server.signal(Signal::TERM);
        assert!(server.ended().success());
        for path in &snapshots {
            assert_eq!(load(true, &[path]).invariant, expected, "{path:?}");
        }
        let file =
            |kind: &str, number: usize| server.folder.join(format!("appendonlydir/appendonly.aof.{number}.{kind}"));
        let base = |number: usize| {
            // The first was made at the start.
            let kind = if preamble == "yes" { "base.rdb" } else { "base.aof" };
            file(kind, number)
        };
        let incr = |number: usize| file("incr.aof", number);
        for number in 1..=ROUNDS {
            let before = load(true, &[&base(number), &incr(number)]);
            let after = load(true, &[&base(number + 1)]);
            assert_eq!(after.invariant, expected, "base {}", number + 1);
            assert_same(&after, &before, &format!("preamble {preamble}, base {}", number + 1));
        }
        let last = Found { digest, hidden, invariant: expected };
        assert_same(&load(true, &[&base(ROUNDS + 1), &incr(ROUNDS + 1)]), &last, "the last");
        let incrs: Vec<_> = (1..=ROUNDS + 1).map(incr).collect();
        assert_same(
            &load(false, &incrs.iter().map(PathBuf::as_path).collect::<Vec<_>>()),
            &last,
            "all that was ever said",
        );
    }
}

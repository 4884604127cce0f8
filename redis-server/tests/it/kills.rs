//! `kill -9` at random moments: what the append-only file still has, and that it is whole.
//!
//! Each writer has keys of its own, of all types, to which it adds its next number in one unit: a transaction or a script. So whatever is
//! found must be the numbers from one to some last one, in all of its keys, and that one was acknowledged last, or came behind it. Others
//! add to a list of their own as fast as they are answered, each in another way.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use rustix::process::Signal;
use test_peers::skip;

use super::support::process::{Process, ask};
use super::support::resp::{Value, parse, request};
use super::support::{Random, until};

const WRITERS: usize = 8;
/// Rounds after which all is thrown away, so that looking at everything stays affordable.
const FRESH: usize = 8;

/// Adds `ARGV[1]` to the keys of a writer: counter, list, set, sorted set, hash, stream, bits, and one that expires some day.
const SCRIPT: &str = "redis.call('INCR', KEYS[1]) redis.call('RPUSH', KEYS[2], ARGV[1]) redis.call('SADD', KEYS[3], ARGV[1]) \
                      redis.call('ZADD', KEYS[4], ARGV[1], ARGV[1]) redis.call('HSET', KEYS[5], ARGV[1], ARGV[1]) \
                      redis.call('XADD', KEYS[6], ARGV[1] .. '-1', 'n', ARGV[1]) redis.call('SETBIT', KEYS[7], ARGV[1], 1) \
                      return redis.call('SET', KEYS[8], ARGV[1], 'EX', 100000)";

/// How the server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Kill,
    Panic,
}

impl End {
    fn of(self, server: &Process) {
        match self {
            Self::Kill => server.signal(Signal::KILL),
            Self::Panic => server.connect().write_all(&request(&["DEBUG", "PANIC"])).unwrap(),
        }
    }

    /// Whether a client is refused because of it: while a panic is reported, its command is a slow call that does not end, and a script
    /// waits for slow calls until `busy-reply-threshold`.
    fn explains(self, refusal: &Value) -> bool {
        self == Self::Panic && refusal.is_error() && refusal.text().starts_with("BUSY")
    }
}

/// A writer, and what it was told.
struct Writer {
    keys: [String; 8],
    db: String,
    /// The last number that is known to be there, or was acknowledged.
    last: i64,
    /// How many were acknowledged since the last start of the server.
    told: i64,
}

impl Writer {
    fn new(number: usize) -> Self {
        let keys = ["c", "l", "s", "z", "h", "x", "b", "e"].map(|kind| format!("{kind}{number}"));
        Self { keys, db: (number % 2).to_string(), last: 0, told: 0 }
    }

    fn unit(&self, number: i64) -> Vec<Vec<u8>> {
        let [counter, list, set, sorted, hash, stream, bits, expiring] = self.keys.each_ref().map(String::as_str);
        let n = &*number.to_string();
        if number % 2 == 0 {
            let keys = self.keys.iter().map(String::as_str);
            let words: Vec<&str> = ["EVAL", SCRIPT, "8"].into_iter().chain(keys).chain([n]).collect();
            return vec![request(&words)];
        }
        let id = &*format!("{n}-1");
        let words: [&[&str]; 10] = [
            &["MULTI"],
            &["INCR", counter],
            &["RPUSH", list, n],
            &["SADD", set, n],
            &["ZADD", sorted, n, n],
            &["HSET", hash, n, n],
            &["XADD", stream, id, "n", n],
            &["SETBIT", bits, n, "1"],
            &["SET", expiring, n, "EX", "100000"],
            &["EXEC"],
        ];
        words.iter().map(|words| request(words)).collect()
    }

    /// Adds numbers until the server is gone.
    fn work(&mut self, mut stream: UnixStream) {
        if replies(&mut stream, &[request(&["SELECT", &self.db])], End::Kill).is_none() {
            return;
        }
        while replies(&mut stream, &self.unit(self.last + 1), End::Kill).is_some() {
            self.last += 1;
            self.told += 1;
        }
    }

    /// Looks at what is there: all numbers up to some last one, in all keys. Returns that one.
    fn found(&self, client: &mut UnixStream) -> i64 {
        let [counter, list, set, sorted, hash, stream, bits, expiring] = self.keys.each_ref().map(String::as_str);
        assert!(!ask(client, &["SELECT", &self.db]).is_error());
        let last = match ask(client, &["GET", counter]) {
            Value::Null | Value::NullBulk => 0,
            value => value.text().parse().unwrap_or_else(|_| panic!("{counter}: {value:?}")),
        };
        let all = || (1..=last).map(|number| number.to_string());
        let texts = |value: Value| match value {
            Value::Array(values) => values.into_iter().map(|value| value.text()).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert!(texts(ask(client, &["LRANGE", list, "0", "-1"])).into_iter().eq(all()));
        assert!(texts(ask(client, &["ZRANGE", sorted, "0", "-1"])).into_iter().eq(all()));
        let mut members = texts(ask(client, &["SMEMBERS", set]));
        let mut fields = texts(ask(client, &["HKEYS", hash]));
        let mut sorted: Vec<_> = all().collect();
        [&mut members, &mut fields, &mut sorted].into_iter().for_each(|names| names.sort());
        assert_eq!((&members, &fields), (&sorted, &sorted));
        let Value::Array(entries) = ask(client, &["XRANGE", stream, "-", "+"]) else { panic!("XRANGE: an array") };
        let ids = entries.into_iter().map(|entry| match entry {
            Value::Array(parts) => parts[0].text(),
            other => panic!("{other:?}"),
        });
        assert!(ids.eq(all().map(|number| format!("{number}-1"))));
        assert_eq!(ask(client, &["BITCOUNT", bits]), Value::Int(last));
        if last > 0 {
            assert_eq!(ask(client, &["GET", expiring]).text(), last.to_string());
            assert!(matches!(ask(client, &["TTL", expiring]), Value::Int(1..)));
        }
        last
    }
}

/// Sends requests and reads a reply for each. None: the server is gone, or its `end` has begun.
fn replies(stream: &mut UnixStream, requests: &[Vec<u8>], end: End) -> Option<()> {
    stream.write_all(&requests.concat()).ok()?;
    receive(stream, requests.len(), end)
}

/// Reads so many replies. None: the server is gone, or its `end` has begun.
fn receive(stream: &mut UnixStream, mut left: usize, end: End) -> Option<()> {
    let mut input = Vec::new();
    let mut at = 0;
    while left > 0 {
        let mut chunk = [0; 4096];
        let count = test_peers::read(stream, &mut chunk).ok().filter(|&count| count > 0)?;
        input.extend_from_slice(&chunk[..count]);
        while let Some((value, len)) = parse(&input[at..]).unwrap() {
            if end.explains(&value) {
                return None;
            }
            assert!(!value.is_error(), "{value:?}");
            (at, left) = (at + len, left - 1);
        }
    }
    Some(())
}

/// Rewrites the files now and then, with a base of either kind.
fn rewrite(mut stream: UnixStream, mut random: Random) {
    loop {
        let preamble = if random.below(2) == 0 { "yes" } else { "no" };
        let words: [&[&str]; 2] = [&["CONFIG", "SET", "aof-use-rdb-preamble", preamble], &["BGREWRITEAOF"]];
        for words in words {
            if stream.write_all(&request(words)).is_err()
                || !matches!(test_peers::read(&mut stream, &mut [0; 256]), Ok(1..))
            {
                return;
            }
        }
        thread::sleep(Duration::from_millis(random.below(60) as u64));
    }
}

/// Whether the genuine tools, where they are installed, find all files sound.
fn assert_sound(server: &Process) {
    let folder = server.folder.join("appendonlydir");
    let text = fs::read_to_string(folder.join("appendonly.aof.manifest")).unwrap();
    // History files may be gone.
    let bases = text.lines().filter(|line| line.ends_with("type b")).map(|line| line.split(' ').nth(1).unwrap());
    let rdb = bases.filter(|name| name.ends_with(".rdb")).map(|name| ("redis-check-rdb", name.to_owned()));
    for (tool, name) in rdb.chain([("redis-check-aof", "appendonly.aof.manifest".to_owned())]) {
        match Command::new(tool).arg(folder.join(name)).output() {
            Err(error) => skip(&format!("there is no {tool}: {error}")),
            Ok(output) => assert!(output.status.success(), "{tool}: {output:?}"),
        }
    }
}

/// How often the server is ended; a `part` of it, where a test has several.
fn rounds(part: usize) -> usize {
    let rounds: usize = std::env::var("AOF_KILLS").map_or(20, |rounds| rounds.parse().expect("AOF_KILLS is a number"));
    rounds.div_ceil(part)
}

/// Ends the server in many moments: of each writer everything is there that was acknowledged.
fn check(appendfsync: &str, seed: u64) {
    let rounds = rounds(1);
    let mut random = Random::new(seed);
    let settings = [("appendonly", "yes"), ("appendfsync", appendfsync)];
    let mut server = Process::start(&format!("kills-{appendfsync}"), &settings);
    let mut writers: Vec<_> = (0..WRITERS).map(Writer::new).collect();
    let mut units = 0;
    for round in 0..rounds {
        thread::scope(|scope| {
            for writer in &mut writers {
                let stream = server.connect();
                scope.spawn(move || writer.work(stream));
            }
            if round % 3 > 0 {
                let (stream, random) = (server.connect(), Random::new(seed + round as u64));
                scope.spawn(move || rewrite(stream, random));
            }
            thread::sleep(Duration::from_millis(1 + random.below(250) as u64));
            server.signal(Signal::KILL);
        });
        server.ended();
        server.restart();
        let mut client = server.connect();
        for writer in &mut writers {
            let found = writer.found(&mut client);
            // One may have come in and not been answered.
            assert!((writer.last..=writer.last + 1).contains(&found), "round {round}: {found} of {}", writer.last);
            units += std::mem::take(&mut writer.told);
            writer.last = found;
        }
        assert_sound(&server);
        if round % FRESH == FRESH - 1 {
            assert!(!ask(&mut client, &["FLUSHALL"]).is_error());
            writers.iter_mut().for_each(|writer| writer.last = 0);
        }
    }
    println!("{appendfsync}: {rounds} kills, {units} units acknowledged, none of which was lost");
    // A rewrite that a kill has ended leaves a file of commands, which holds data until the next rewrite succeeds.
    let mut client = server.connect();
    assert!(!ask(&mut client, &["BGREWRITEAOF"]).is_error());
    until("the rewrite ends", || {
        ask(&mut client, &["INFO", "persistence"]).text().contains("aof_rewrite_in_progress:0")
    });
    let left = || fs::read_dir(server.folder.join("appendonlydir")).unwrap().count();
    until("all that was begun and given up has gone", || left() <= 3);
}

#[test]
fn nothing_that_was_acknowledged_under_always_is_lost() {
    check("always", 11);
}

#[test]
fn nothing_that_was_acknowledged_under_everysec_is_lost_with_the_process() {
    check("everysec", 13);
}

/// How a client adds its next numbers to its list, the last of a request's replies being the last that it is told.
#[derive(Clone, Copy, Debug)]
enum Way {
    One,
    Pipeline,
    Transaction,
    Script,
    /// Another client waits for each number, and moves it to the list.
    Served,
    /// A replica has to have it, too.
    Replicated,
}

const WAYS: [Way; 5] = [Way::One, Way::Pipeline, Way::Transaction, Way::Script, Way::Served];
/// Numbers that a request has at most.
const DEPTH: i64 = 4;
const PUSH: &str = "for i = 1, 4 do redis.call('RPUSH', KEYS[1], ARGV[1] + i - 1) end";

/// A client that adds numbers to its list as fast as it is answered.
struct Adder {
    way: Way,
    list: String,
    last: i64,
    told: i64,
}

impl Adder {
    fn new(number: usize, way: Way) -> Self {
        Self { way, list: format!("list{number}"), last: 0, told: 0 }
    }

    /// The requests that add the next numbers, and how many these are.
    fn requests(&self) -> (Vec<Vec<u8>>, i64) {
        let next = self.last + 1;
        let push = |list: &str, number: i64| request(&["RPUSH", list, &number.to_string()]);
        let pushes = (next..next + DEPTH).map(|number| push(&self.list, number));
        match self.way {
            Way::One => (vec![push(&self.list, next)], 1),
            Way::Replicated => (vec![push(&self.list, next), request(&["WAIT", "1", "0"])], 1),
            Way::Served => (vec![push(&format!("{}-source", self.list), next)], 1),
            Way::Pipeline => (pushes.collect(), DEPTH),
            Way::Transaction => {
                ([request(&["MULTI"])].into_iter().chain(pushes).chain([request(&["EXEC"])]).collect(), DEPTH)
            }
            Way::Script => (vec![request(&["EVAL", PUSH, "1", &self.list, &next.to_string()])], DEPTH),
        }
    }

    /// Adds numbers until the server is gone.
    fn work(&mut self, mut stream: UnixStream, mut waiting: UnixStream, end: End) {
        let wait = request(&["BLMOVE", &format!("{}-source", self.list), &self.list, "LEFT", "RIGHT", "0"]);
        loop {
            let (requests, count) = self.requests();
            let is_served = matches!(self.way, Way::Served);
            if is_served && waiting.write_all(&wait).is_err() || replies(&mut stream, &requests, end).is_none() {
                return;
            }
            if is_served && receive(&mut waiting, 1, end).is_none() {
                return;
            }
            (self.last, self.told) = (self.last + count, self.told + count);
        }
    }

    /// Looks at what is there: everything that was acknowledged, and of the numbers behind it those of one request at most. Returns how many
    /// of the acknowledged ones are not.
    fn lost(&mut self, client: &mut UnixStream) -> i64 {
        let Value::Array(values) = ask(client, &["LRANGE", &self.list, "0", "-1"]) else { panic!("LRANGE: an array") };
        let found = values.len() as i64;
        assert!(values.into_iter().map(|value| value.text()).eq((1..=found).map(|number| number.to_string())));
        assert!(found <= self.last + DEPTH, "{:?}: {found} of {}", self.way, self.last);
        let lost = (self.last - found).max(0);
        self.last = found;
        lost
    }
}

/// Ends a server in many rounds while clients add numbers to lists.
struct Trial {
    server: Process,
    replica: Option<Process>,
    clients: usize,
    random: Random,
    /// The longest time in milliseconds until the end of a round.
    longest: usize,
    told: i64,
    lost: i64,
}

impl Trial {
    fn new(server: Process, clients: usize, seed: u64) -> Self {
        Self { server, replica: None, clients, random: Random::new(seed), longest: 250, told: 0, lost: 0 }
    }

    /// Until the end of the server, which is ended in this way.
    fn round(&mut self, ways: &[Way], end: End) {
        let mut adders: Vec<_> =
            (0..self.clients).map(|number| Adder::new(number, ways[number % ways.len()])).collect();
        let server = &self.server;
        let pause = 20 + self.random.below(self.longest) as u64;
        thread::scope(|scope| {
            for adder in &mut adders {
                let (stream, waiting) = (server.connect(), server.connect());
                scope.spawn(move || adder.work(stream, waiting, end));
            }
            thread::sleep(Duration::from_millis(pause));
            end.of(server);
        });
        self.server.ended();
        self.told += adders.iter().map(|adder| adder.told).sum::<i64>();
        if let Some(replica) = &self.replica {
            let mut client = replica.connect();
            for adder in &adders {
                let Value::Int(len) = ask(&mut client, &["LLEN", &adder.list]) else { panic!("LLEN: a number") };
                assert!(len >= adder.last, "the replica has {len} of {} acknowledged numbers", adder.last);
            }
        }
        self.server.restart();
        let mut client = self.server.connect();
        self.lost += adders.iter_mut().map(|adder| adder.lost(&mut client)).sum::<i64>();
        assert!(!ask(&mut client, &["FLUSHALL"]).is_error());
        // A replica does not follow a primary that has started without data.
        assert!(!ask(&mut client, &["SET", "there", "yes"]).is_error());
    }

    fn finish(self, what: &str) {
        let Self { clients, told, lost, .. } = self;
        println!("{what}, {clients} clients: {told} numbers acknowledged, of which {lost} were lost");
        assert_eq!(lost, 0);
        assert!(told > 0, "nothing was acknowledged");
    }
}

fn settings(appendfsync: &str) -> [(&str, &str); 3] {
    [("appendonly", "yes"), ("appendfsync", appendfsync), ("enable-debug-command", "yes")]
}

/// Ends the server while so many clients add numbers.
fn check_adders(appendfsync: &str, clients: usize, seed: u64, end: End) {
    let server = Process::start(&format!("kills-{appendfsync}-{clients}-{seed}"), &settings(appendfsync));
    let mut trial = Trial::new(server, clients, seed);
    for _ in 0..rounds(5) {
        trial.round(&WAYS, end);
    }
    trial.finish(appendfsync);
}

#[test]
fn nothing_that_was_acknowledged_is_lost_with_the_process() {
    for (seed, appendfsync) in ["no", "everysec", "always"].into_iter().enumerate() {
        for clients in [8, 64] {
            check_adders(appendfsync, clients, seed as u64, End::Kill);
        }
    }
}

/// A write that a replica has acknowledged is there in both, the replica and the primary after its next start.
#[test]
fn nothing_that_a_replica_acknowledged_is_lost_with_the_primary() {
    for (seed, appendfsync) in ["no", "everysec", "always"].into_iter().enumerate() {
        let port = test_peers::free_port().to_string();
        let served = [&settings(appendfsync)[..], &[("port", &port), ("repl-diskless-sync-delay", "0")]].concat();
        let server = Process::start(&format!("kills-primary-{appendfsync}"), &served);
        let following = format!("127.0.0.1 {port}");
        let replica = Process::start(&format!("kills-replica-{appendfsync}"), &[("replicaof", &following)]);
        let mut trial = Trial { replica: Some(replica), ..Trial::new(server, 8, 20 + seed as u64) };
        for _ in 0..rounds(5) {
            let mut client = trial.server.connect();
            until("the replica follows", || ask(&mut client, &["WAIT", "1", "100"]) == Value::Int(1));
            trial.round(&[Way::Replicated], End::Kill);
        }
        trial.finish(&format!("{appendfsync}, with a replica"));
    }
}

/// A library whose fdatasync and fsync take 300 ms.
const SLOW_DISK: &str = "#include <unistd.h>\n#include <sys/syscall.h>\n\
    int fdatasync(int file) { usleep(300000); return (int)syscall(SYS_fdatasync, file); }\n\
    int fsync(int file) { usleep(300000); return (int)syscall(SYS_fsync, file); }\n";

#[test]
fn nothing_that_was_acknowledged_is_lost_while_the_disk_is_slow() {
    let folder = std::env::temp_dir().join(format!("slow-disk-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (source, library) = (folder.join("slow.c"), folder.join("slow.so"));
    fs::write(&source, SLOW_DISK).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    match built {
        Err(error) => return skip(&format!("there is no C compiler: {error}")),
        Ok(status) => assert!(status.success()),
    }
    for (seed, appendfsync) in ["no", "everysec", "always"].into_iter().enumerate() {
        let server = Process::with_library(&format!("kills-slow-{appendfsync}"), &settings(appendfsync), &library);
        // Under always the first acknowledgement comes after two of those.
        let mut trial = Trial { longest: 1500, ..Trial::new(server, 8, 30 + seed as u64) };
        for _ in 0..rounds(5) {
            trial.round(&WAYS, End::Kill);
        }
        trial.finish(&format!("{appendfsync}, on a slow disk"));
    }
    fs::remove_dir_all(folder).unwrap();
}

/// A panic while data can be changed ends the process, in whatever the other threads are doing.
#[test]
fn nothing_that_was_acknowledged_is_lost_by_a_panic() {
    for (seed, appendfsync) in ["no", "everysec"].into_iter().enumerate() {
        check_adders(appendfsync, 8, 10 + seed as u64, End::Panic);
    }
}

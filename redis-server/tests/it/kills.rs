//! `kill -9` at random moments: what the append-only file still has, and that it is whole.
//!
//! Each writer has keys of its own, of all types, to which it adds its next number in one unit: a transaction or a script. So whatever is
//! found must be the numbers from one to some last one, in all of its keys; and how old that one may be is what `appendfsync` promises.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use test_peers::skip;

use super::support::Random;
use super::support::process::{Process, ask};
use super::support::resp::{Value, parse, request};

const WRITERS: usize = 8;
/// What `everysec` may lose.
const PROMISE: Duration = Duration::from_secs(2);
/// Rounds after which all is thrown away, so that looking at everything stays affordable.
const FRESH: usize = 8;

/// Adds `ARGV[1]` to the keys of a writer: counter, list, set, sorted set, hash, stream, bits, and one that expires some day.
const SCRIPT: &str = "redis.call('INCR', KEYS[1]) redis.call('RPUSH', KEYS[2], ARGV[1]) redis.call('SADD', KEYS[3], ARGV[1]) \
                      redis.call('ZADD', KEYS[4], ARGV[1], ARGV[1]) redis.call('HSET', KEYS[5], ARGV[1], ARGV[1]) \
                      redis.call('XADD', KEYS[6], ARGV[1] .. '-1', 'n', ARGV[1]) redis.call('SETBIT', KEYS[7], ARGV[1], 1) \
                      return redis.call('SET', KEYS[8], ARGV[1], 'EX', 100000)";

/// A writer, and what it was told.
struct Writer {
    keys: [String; 8],
    db: String,
    /// The last number that is known to be there, or was acknowledged.
    last: i64,
    /// When each was acknowledged, since the last start of the server.
    told: Vec<(Instant, i64)>,
}

impl Writer {
    fn new(number: usize) -> Self {
        let keys = ["c", "l", "s", "z", "h", "x", "b", "e"].map(|kind| format!("{kind}{number}"));
        Self { keys, db: (number % 2).to_string(), last: 0, told: Vec::new() }
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
        if replies(&mut stream, &[request(&["SELECT", &self.db])]).is_none() {
            return;
        }
        while replies(&mut stream, &self.unit(self.last + 1)).is_some() {
            self.last += 1;
            self.told.push((Instant::now(), self.last));
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

/// Sends requests and reads a reply for each. None: the server is gone.
fn replies(stream: &mut UnixStream, requests: &[Vec<u8>]) -> Option<()> {
    stream.write_all(&requests.concat()).ok()?;
    let mut input = Vec::new();
    let (mut at, mut left) = (0, requests.len());
    while left > 0 {
        let mut chunk = [0; 4096];
        let count = test_peers::read(stream, &mut chunk).ok().filter(|&count| count > 0)?;
        input.extend_from_slice(&chunk[..count]);
        while let Some((value, len)) = parse(&input[at..]).unwrap() {
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
    // What is history may be gone.
    let bases = text.lines().filter(|line| line.ends_with("type b")).map(|line| line.split(' ').nth(1).unwrap());
    let rdb = bases.filter(|name| name.ends_with(".rdb")).map(|name| ("redis-check-rdb", name.to_owned()));
    for (tool, name) in rdb.chain([("redis-check-aof", "appendonly.aof.manifest".to_owned())]) {
        match Command::new(tool).arg(folder.join(name)).output() {
            Err(error) => skip(&format!("there is no {tool}: {error}")),
            Ok(output) => assert!(output.status.success(), "{tool}: {output:?}"),
        }
    }
}

/// Ends the server in many moments. `least` says which number of a writer must be there at least, when the server was killed.
fn check(
    appendfsync: &str,
    seed: u64,
    moment: impl Fn(&mut Random, usize) -> u64,
    least: impl Fn(&Writer, Instant) -> i64,
) {
    let rounds = std::env::var("AOF_KILLS").map_or(20, |rounds| rounds.parse().expect("AOF_KILLS is a number"));
    let mut random = Random::new(seed);
    let settings = [("appendonly", "yes"), ("appendfsync", appendfsync)];
    let mut server = Process::start(&format!("kills-{appendfsync}"), &settings);
    let mut writers: Vec<_> = (0..WRITERS).map(Writer::new).collect();
    let (mut units, mut lost, mut oldest) = (0, 0, Duration::ZERO);
    for round in 0..rounds {
        let killed = thread::scope(|scope| {
            for writer in &mut writers {
                let stream = server.connect();
                scope.spawn(move || writer.work(stream));
            }
            if round % 3 > 0 {
                let (stream, random) = (server.connect(), Random::new(seed + round as u64));
                scope.spawn(move || rewrite(stream, random));
            }
            thread::sleep(Duration::from_millis(moment(&mut random, round)));
            let killed = Instant::now();
            server.signal(Signal::KILL);
            killed
        });
        server.ended();
        server.restart();
        let mut client = server.connect();
        for writer in &mut writers {
            let (found, least) = (writer.found(&mut client), least(writer, killed));
            // One may have come in and not been answered.
            assert!(
                (least..=writer.last + 1).contains(&found),
                "round {round}: {found} of {}, at least {least}",
                writer.last
            );
            units += writer.told.len();
            lost += (writer.last - found).max(0);
            let first = writer.told.iter().find(|(_, number)| *number > found);
            oldest = oldest.max(first.map_or(Duration::ZERO, |(at, _)| killed - *at));
            writer.told.clear();
            writer.last = found;
        }
        assert_sound(&server);
        if round % FRESH == FRESH - 1 {
            assert!(!ask(&mut client, &["FLUSHALL"]).is_error());
            writers.iter_mut().for_each(|writer| writer.last = 0);
        }
    }
    println!(
        "{appendfsync}: {rounds} kills, {units} units acknowledged, of which {lost} were lost; the oldest of them was told {oldest:?} before"
    );
    let left: Vec<_> = fs::read_dir(server.folder.join("appendonlydir")).unwrap().collect();
    assert!(left.len() < 10, "what was begun and given up is not gathered: {left:?}");
}

#[test]
fn nothing_that_was_acknowledged_under_always_is_lost() {
    let moment = |random: &mut Random, _: usize| 1 + random.below(250) as u64;
    check("always", 11, moment, |writer, _| writer.last);
}

#[test]
fn two_seconds_at_most_are_lost_under_everysec() {
    // Some rounds are so long that what was written in their beginning has to be there.
    let moment = |random: &mut Random, round: usize| if round % 10 == 9 { 2300 } else { 1 } + random.below(250) as u64;
    check("everysec", 13, moment, |writer, killed| {
        let old = writer.told.iter().rev().find(|(at, _)| *at + PROMISE <= killed);
        old.map_or_else(|| writer.told.first().map_or(writer.last, |(_, first)| first - 1), |(_, number)| *number)
    });
}

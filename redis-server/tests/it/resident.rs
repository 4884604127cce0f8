//! Memory comes back: what stays resident when data, or clients, have gone, beside the genuine server.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::process::{Process, ask};
use crate::support::resp::{Value, request};
use crate::support::until;

const MB: u64 = 1 << 20;
/// Resident memory that is no file's may be one and a half times what is in use, and this: with the program's own pages, twenty megabytes.
const BESIDE: u64 = 10 * MB;

fn used(client: &mut UnixStream) -> u64 {
    let info = ask(client, &["INFO", "memory"]).text();
    info.lines().find_map(|line| line.strip_prefix("used_memory:")?.parse().ok()).unwrap()
}

fn done(client: &mut UnixStream, words: &[&str]) {
    let reply = ask(client, words);
    assert!(!reply.is_error(), "{words:?}: {reply:?}");
}

/// Stores some 100 MB, by scripts; `set` is what SET is told besides.
fn fill(client: &mut UnixStream, set: &str) {
    let value = "x".repeat(1000);
    for part in 0..10 {
        let script =
            format!("for i = 1, 10000 do redis.call('SET', 'key:' .. (ARGV[1] * 10000 + i), ARGV[2]{set}) end");
        done(client, &["EVAL", &script, "0", &part.to_string(), &value]);
    }
}

/// One after another: what takes memory, and what frees it.
type Work = fn(&Process, &mut UnixStream);

const ROWS: [(&str, Work); 7] = [
    ("at rest", |_, _| ()),
    ("expiry of 100 MB", |_, client| {
        fill(client, ", 'PX', 3000");
        until("all has expired", || ask(client, &["DBSIZE"]) == Value::Int(0));
    }),
    ("eviction of 90 MB", |_, client| {
        fill(client, "");
        done(client, &["CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "12mb"]);
        until("enough is evicted", || used(client) <= 13 * MB);
        done(client, &["CONFIG", "SET", "maxmemory", "0"]);
        done(client, &["FLUSHALL"]);
    }),
    ("DEL of 200 MB", |_, client| {
        done(client, &["SETRANGE", "huge", "100000000", "x"]);
        let value = "x".repeat(1000);
        for _ in 0..10 {
            done(client, &["EVAL", "for i = 1, 10000 do redis.call('RPUSH', 'list', ARGV[1] .. i) end", "0", &value]);
        }
        done(client, &["DEL", "huge", "list"]);
    }),
    ("FLUSHALL of 100 MB", |_, client| {
        fill(client, "");
        done(client, &["FLUSHALL"]);
    }),
    ("a burst of 200 clients", |process, _| {
        let mut clients: Vec<_> = (0..200).map(|_| process.connect()).collect();
        // Half of a request of a megabyte is kept for each.
        let half = &request(&["ECHO", &"x".repeat(1 << 20)])[..1 << 19];
        clients.iter_mut().for_each(|client| client.write_all(half).unwrap());
        drop(clients);
    }),
    ("replies of 100 MB", |_, client| {
        let value = "x".repeat(100_000_000);
        done(client, &["SET", "key", &value]);
        // The second one is changed in place, so that replies have a copy of it each.
        for set in ["SET", "APPEND"] {
            done(client, &["DEL", "key"]);
            done(client, &[set, "key", &value]);
            for _ in 0..3 {
                assert_eq!(ask(client, &["GET", "key"]), Value::Bulk(value.clone().into()));
            }
        }
    }),
];

/// Bytes in use, and resident, of them what is no file's, once it keeps the bound, and at most.
fn measure(process: &Process, work: Work, is_ours: bool) -> [u64; 4] {
    let mut client = process.connect();
    work(process, &mut client);
    let in_use = used(&mut client);
    let keeps = || process.memory("RssAnon:") <= in_use * 3 / 2 + BESIDE;
    if is_ours {
        until("memory has come back", keeps);
    } else {
        // It may take its time, too, and need not keep our bound.
        let end = Instant::now() + Duration::from_secs(10);
        while !keeps() && Instant::now() < end {
            thread::sleep(Duration::from_millis(100));
        }
    }
    [in_use, process.resident(), process.memory("RssAnon:"), process.peak()]
}

#[test]
fn memory_comes_back() {
    println!("MB (lower is better)     in use, resident, of that anonymous, peak: ours | the genuine server's");
    for (number, (name, work)) in ROWS.into_iter().enumerate() {
        let settings = [("save", "")];
        let ours = measure(&Process::start(&format!("resident-{number}"), &settings), work, true);
        let theirs = test_peers::is_there("redis-server")
            .then(|| measure(&Process::genuine(&format!("resident-genuine-{number}"), &settings), work, false));
        println!("{name:24} {:?} | {:?}", ours.map(|bytes| bytes / MB), theirs.map(|all| all.map(|bytes| bytes / MB)));
        if name == "replies of 100 MB" {
            // The value, and a request or a reply beside it.
            assert!(ours[3] < 300 * MB, "replies of 100 MB take {} MB", ours[3] / MB);
        }
    }
}

/// MEMORY PURGE need not wait for the next look.
#[test]
fn memory_comes_back_at_once_when_asked() {
    let process = Process::start("resident-purge", &[("save", "")]);
    let mut client = process.connect();
    fill(&mut client, "");
    done(&mut client, &["FLUSHALL"]);
    let in_use = used(&mut client);
    until("the workers have given back", || {
        done(&mut client, &["MEMORY", "PURGE"]);
        process.memory("RssAnon:") <= in_use * 3 / 2 + BESIDE
    });
}

/// The allocator's figures in INFO add up.
#[test]
fn the_allocators_figures_add_up() {
    let process = Process::start("resident-info", &[]);
    let mut client = process.connect();
    fill(&mut client, "");
    let info = ask(&mut client, &["INFO", "memory"]).text();
    let figure = |name: &str| -> f64 {
        let found = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.parse().ok());
        found.unwrap_or_else(|| panic!("{name} is not in {info}"))
    };
    let [allocated, active, resident, rss] =
        ["allocator_allocated", "allocator_active", "allocator_resident", "used_memory_rss"].map(figure);
    assert!(allocated > 90e6 && active >= allocated && resident <= active && resident <= rss, "{info}");
    assert!((figure("allocator_frag_bytes") - (active - allocated)).abs() < 1.0);
    assert!((figure("allocator_frag_ratio") - active / allocated).abs() < 0.01);
    assert!((figure("allocator_rss_bytes") - (resident - active)).abs() < 1.0);
    assert!((figure("rss_overhead_bytes") - (rss - resident)).abs() < 1.0);
}

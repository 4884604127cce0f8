//! Client-side caches beside writers on other threads: what a client keeps is what the server has, or it will be told.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::resp::Value;
use crate::support::server::{Client, Server};
use crate::support::{PATIENCE, Random};

const KEYS: usize = 40;
const WRITERS: usize = 3;
const READERS: usize = 3;
const PRESSED: Duration = Duration::from_millis(1200);

/// A client that keeps what it has read until it is told that it has changed.
struct Cache {
    client: Client,
    kept: HashMap<String, Value>,
    told: usize,
}

impl Cache {
    /// Asks; what comes before the reply is heeded.
    fn ask(&mut self, line: &str) -> Value {
        self.client.send(&line.split(' ').collect::<Vec<_>>());
        loop {
            match self.client.reply() {
                Value::Push(parts) => self.invalidate(&parts),
                reply => return reply,
            }
        }
    }

    fn invalidate(&mut self, parts: &[Value]) {
        self.told += 1;
        match &parts[1] {
            Value::Null => self.kept.clear(),
            Value::Array(keys) => keys.iter().for_each(|key| _ = self.kept.remove(&key.text())),
            other => panic!("no invalidation: {other:?}"),
        }
    }
}

fn key(random: &mut Random) -> String {
    format!("k:{}", random.below(KEYS))
}

fn write(client: &mut Client, random: &mut Random) {
    let key = key(random);
    let line = match random.below(40) {
        0 => "FLUSHALL".to_owned(),
        1..5 => format!("DEL {key}"),
        5..9 => format!("SET {key} {} PX 1", random.below(1000)),
        9..13 => format!("MSET {key} {0} k:0 {0}", random.below(1000)),
        _ => format!("SET {key} {}", random.below(1000)),
    };
    assert!(!client.ask(&line).is_error(), "{line}");
}

fn read(cache: &mut Cache, random: &mut Random) {
    let key = key(random);
    if !cache.kept.contains_key(&key) {
        let value = cache.ask(&format!("GET {key}"));
        cache.kept.insert(key, value);
    }
    match random.below(10) {
        0 => {
            cache.ask("PING");
        }
        1 => {
            // The invalidation for a client's own change follows the reply.
            let key = format!("k:{}", random.below(KEYS));
            cache.ask(&format!("SET {key} own"));
        }
        _ => {}
    }
}

/// Runs writers and caches against each other, then compares.
fn check(options: &str) {
    let server = Server::shuffled();
    let stop = Arc::new(AtomicBool::new(false));
    let addr = server.addr;
    let spawn = |number: usize, is_writer: bool| {
        let (stop, options) = (Arc::clone(&stop), options.to_owned());
        thread::spawn(move || {
            let mut random = Random::new(0x517c_c1b7 * (number as u64 + 1));
            let mut cache = Cache { client: Client::connect(addr), kept: HashMap::new(), told: 0 };
            if !is_writer {
                cache.ask("HELLO 3");
                assert!(!cache.ask(&format!("CLIENT TRACKING ON{options}")).is_error());
            }
            while !stop.load(Relaxed) {
                if is_writer { write(&mut cache.client, &mut random) } else { read(&mut cache, &mut random) }
            }
            (!is_writer).then_some(cache)
        })
    };
    let threads: Vec<_> = (0..WRITERS + READERS).map(|number| spawn(number, number < WRITERS)).collect();
    thread::sleep(PRESSED);
    stop.store(true, Relaxed);
    let caches: Vec<Cache> = threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect();
    let mut witness = server.connect();
    witness.ask("HELLO 3");
    for mut cache in caches {
        let began = Instant::now();
        // A key may expire at this very moment: then it is told of that.
        while let Some(stale) = first_stale(&mut cache, &mut witness) {
            assert!(began.elapsed() < PATIENCE, "{options}: never told of a change: {stale}");
        }
        assert!(cache.told > 10, "{options}: told {} times only", cache.told);
    }
}

/// A key whose kept value is not the server's.
fn first_stale(cache: &mut Cache, witness: &mut Client) -> Option<String> {
    cache.ask("PING");
    let stale = cache.kept.iter().find(|(key, value)| witness.ask(&format!("GET {key}")) != **value);
    stale.map(|(key, value)| format!("{key} is kept as {value:?}"))
}

#[test]
fn default_tracking_leaves_no_cache_stale() {
    check("");
}

#[test]
fn broadcast_tracking_leaves_no_cache_stale() {
    check(" BCAST PREFIX k:");
}

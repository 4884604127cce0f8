//! **Claim**: one `Mutex<HashMap>` for all connections holds mini-redis back.
//! **Source**: "Rust vs Go vs C, database and IoT" (Redis).
//! **Hypothesis**: with the few threads that a server has, the lock costs less than a system call; it matters once requests
//! are pipelined.
//! **Compared**: `Mutex<HashMap>`, `RwLock<HashMap>`, 64 mutexes, DashMap, papaya and scc, all with foldhash; 1, 2, 4 and 8
//! threads; 50, 90 and 99 % reads; uniform and Zipf popularity; 100,000 keys of 16 bytes, values of 8.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Barrier, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::keys::{Popularity, draws, keys};
use crate::settings::settings;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use foldhash::fast::RandomState;

type Key = Box<[u8]>;

const KEYS: usize = 100_000;

/// A map that threads share.
trait Shared: Sync {
    fn get(&self, key: &Key) -> Option<u64>;
    fn set(&self, key: &Key, value: u64);
}

type Plain = HashMap<Key, u64, RandomState>;

impl Shared for Mutex<Plain> {
    fn get(&self, key: &Key) -> Option<u64> {
        self.lock().expect("no thread panics").get(key).copied()
    }
    fn set(&self, key: &Key, value: u64) {
        self.lock().expect("no thread panics").insert(key.clone(), value);
    }
}

impl Shared for RwLock<Plain> {
    fn get(&self, key: &Key) -> Option<u64> {
        self.read().expect("no thread panics").get(key).copied()
    }
    fn set(&self, key: &Key, value: u64) {
        self.write().expect("no thread panics").insert(key.clone(), value);
    }
}

/// Mutexes side by side, one for each share of the keys.
struct Sharded(Vec<Mutex<Plain>>, RandomState);

impl Sharded {
    fn shard(&self, key: &Key) -> &Mutex<Plain> {
        &self.0[(self.1.hash_one(key) >> 40) as usize % self.0.len()]
    }
}

impl Shared for Sharded {
    fn get(&self, key: &Key) -> Option<u64> {
        Shared::get(self.shard(key), key)
    }
    fn set(&self, key: &Key, value: u64) {
        Shared::set(self.shard(key), key, value);
    }
}

impl Shared for dashmap::DashMap<Key, u64, RandomState> {
    fn get(&self, key: &Key) -> Option<u64> {
        self.get(key).map(|value| *value)
    }
    fn set(&self, key: &Key, value: u64) {
        self.insert(key.clone(), value);
    }
}

impl Shared for papaya::HashMap<Key, u64, RandomState> {
    fn get(&self, key: &Key) -> Option<u64> {
        self.pin().get(key).copied()
    }
    fn set(&self, key: &Key, value: u64) {
        self.pin().insert(key.clone(), value);
    }
}

impl Shared for scc::HashMap<Key, u64, RandomState> {
    fn get(&self, key: &Key) -> Option<u64> {
        self.read_sync(key, |_, value| *value)
    }
    fn set(&self, key: &Key, value: u64) {
        self.upsert_sync(key.clone(), value);
    }
}

fn subjects() -> Vec<(&'static str, Box<dyn Shared>)> {
    let shards = (0..64).map(|_| Mutex::default()).collect();
    vec![
        ("Mutex<HashMap>", Box::new(Mutex::new(Plain::default()))),
        ("RwLock<HashMap>", Box::new(RwLock::new(Plain::default()))),
        ("64 mutexes", Box::new(Sharded(shards, RandomState::default()))),
        ("DashMap", Box::new(dashmap::DashMap::with_hasher(RandomState::default()))),
        ("papaya", Box::new(papaya::HashMap::with_hasher(RandomState::default()))),
        ("scc", Box::new(scc::HashMap::with_hasher(RandomState::default()))),
    ]
}

/// The time that `threads` take for `operations` in all, from the moment when all are ready.
fn race(map: &dyn Shared, keys: &[Key], plans: &[Vec<usize>], writes_in_100: usize, operations: u64) -> Duration {
    let (ready, share) = (Barrier::new(plans.len() + 1), operations.div_ceil(plans.len() as u64) as usize);
    let began = thread::scope(|scope| {
        for plan in plans {
            let ready = &ready;
            scope.spawn(move || {
                ready.wait();
                for (turn, draw) in plan.iter().cycle().take(share).enumerate() {
                    let key = &keys[*draw];
                    if turn % 100 < writes_in_100 {
                        map.set(key, *draw as u64);
                    } else {
                        assert_eq!(map.get(key), Some(*draw as u64), "a key has the value that everybody gives it");
                    }
                }
            });
        }
        ready.wait();
        Instant::now()
    });
    // The scope has ended, and with it all threads.
    began.elapsed()
}

fn contention(c: &mut Criterion) {
    let keys = keys(KEYS, 16);
    for popularity in [Popularity::Uniform, Popularity::Zipf] {
        for reads in [50, 90, 99] {
            let mut group = c.benchmark_group(format!("map contention/{popularity:?}, {reads} % reads"));
            group.throughput(Throughput::Elements(1)).sample_size(10).measurement_time(Duration::from_millis(600));
            for (name, map) in subjects() {
                keys.iter().zip(0..).for_each(|(key, value)| map.set(key, value));
                for threads in [1, 2, 4, 8] {
                    let plans: Vec<_> = (0..threads).map(|seed| draws(popularity, KEYS, 10_000, seed)).collect();
                    group.bench_function(BenchmarkId::new(name, threads), |b| {
                        b.iter_custom(|operations| race(&*map, &keys, &plans, 100 - reads, operations));
                    });
                }
            }
            group.finish();
        }
    }
}

criterion_group! { name = group; config = settings(); targets = contention }

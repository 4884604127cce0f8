//! **Claim**: mini-redis is slow because the standard `HashMap` hashes with SipHash.
//! **Source**: "Rust vs Go vs C, database and IoT" (Redis).
//! **Hypothesis**: the hasher is a visible part of a look-up, but not of a request, which costs some 6 µs unpipelined.
//! **Compared**: `HashMap::get` with SipHash, ahash, foldhash and rapidhash; keys of 3, 16 and 64 bytes; 1,000 keys, which
//! fit into the nearest cache, and 1,000,000, which fit into none.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;

use crate::settings::settings;
use benches::{Popularity, draws, keys};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group};

/// Look-ups of one measured turn.
const TURN: usize = 1024;

fn look_up<S: BuildHasher + Default>(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, keys: &[Box<[u8]>]) {
    let mut map: HashMap<&[u8], u64, S> = HashMap::default();
    map.extend(keys.iter().zip(0..).map(|(key, number)| (&key[..], number)));
    // Copies, so that a look-up compares bytes that are not those of the map.
    let wanted: Vec<Box<[u8]>> =
        draws(Popularity::Uniform, keys.len(), TURN, 1).into_iter().map(|draw| keys[draw].clone()).collect();
    assert!(wanted.iter().all(|key| keys[map[&key[..]] as usize] == *key), "every look-up finds its own key");
    group.bench_function(BenchmarkId::new(name, keys.len()), |b| {
        b.iter(|| wanted.iter().map(|key| map[black_box(&key[..])]).fold(0, u64::wrapping_add));
    });
}

fn hasher(c: &mut Criterion) {
    for (length, counts) in [(3, &[1000_usize][..]), (16, &[1000, 1_000_000]), (64, &[1000, 1_000_000])] {
        let mut group = c.benchmark_group(format!("hasher/{length}-byte keys"));
        group.throughput(Throughput::Elements(TURN as u64));
        for count in counts {
            let keys = keys(*count, length);
            look_up::<RandomState>(&mut group, "SipHash", &keys);
            look_up::<ahash::RandomState>(&mut group, "ahash", &keys);
            look_up::<foldhash::fast::RandomState>(&mut group, "foldhash", &keys);
            look_up::<rapidhash::fast::RandomState>(&mut group, "rapidhash", &keys);
        }
        group.finish();
    }
}

criterion_group! { name = group; config = settings(); targets = hasher }

//! Bytes and nanoseconds per element of the large forms; printed, not judged:
//! `cargo test -p redis-server --release -- --ignored --nocapture footprint`.

use std::hint::black_box;
use std::time::Duration;

use super::testing::Rng;
use super::*;

const COUNT: usize = 1_000_000;

fn members() -> Vec<[u8; 16]> {
    let mut rng = Rng::new(1);
    (0..COUNT).map(|_| *format!("{:016x}", rng.next()).as_bytes().first_chunk().unwrap()).collect()
}

/// Processor time of this thread; wall clocks are for the edges only.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(stat.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

fn timed(what: &str, count: usize, work: impl FnOnce()) {
    let start = cpu();
    work();
    println!("{what:30} {:6} ns", (cpu() - start).as_nanos() / count as u128);
}

#[test]
#[ignore = "prints figures, judges nothing"]
fn footprint() {
    hash_and_set(&members());
    sorted_set(&members());
    list(&members());
}

fn hash_and_set(members: &[[u8; 16]]) {
    let mut hash = Hash::default();
    timed("hash set", COUNT, || members.iter().for_each(|m| _ = black_box(hash.set(m, m, HashLimits::default()))));
    println!("hash: {} bytes per element", hash.memory() / COUNT);
    timed("hash get", COUNT, || members.iter().rev().for_each(|m| _ = black_box(hash.at(0).get(m))));
    timed("hash overwrite", COUNT, || {
        members.iter().for_each(|m| _ = black_box(hash.set(m, b"value", HashLimits::default())));
    });
    let mut set = Set::default();
    timed("set add", COUNT, || members.iter().for_each(|m| _ = black_box(set.add(m, SetLimits::default()))));
    println!("set: {} bytes per element", set.memory() / COUNT);
    let mut rng = Rng::new(2);
    timed("set pop", COUNT, || {
        while !set.is_empty() {
            black_box(set.pop_at(rng.below(set.len()), |_| ()));
        }
    });
}

fn sorted_set(members: &[[u8; 16]]) {
    let limits = SortedSetLimits::default();
    let mut set = SortedSet::default();
    let mut rng = Rng::new(3);
    timed("sorted set add", COUNT, || {
        members.iter().for_each(|m| _ = black_box(set.insert(m, rng.below(1 << 40) as f64, limits)));
    });
    println!("sorted set: {} bytes per element", set.memory() / COUNT);
    timed("sorted set update", COUNT, || {
        members.iter().for_each(|m| _ = black_box(set.insert(m, rng.below(1 << 40) as f64, limits)));
    });
    timed("sorted set rank", COUNT, || members.iter().for_each(|m| _ = black_box(set.rank(m))));
    timed("sorted set walk", COUNT, || set.iter().for_each(|element| _ = black_box(element)));
    timed("sorted set pop", COUNT, || while black_box(set.pop_min(|_, _| ())).is_some() {});
    let mut same = SortedSet::default();
    timed("sorted set add, equal scores", COUNT, || {
        members.iter().for_each(|m| _ = black_box(same.insert(m, 0.0, limits)));
    });
    let mut ascending = SortedSet::default();
    timed("sorted set add, ascending", COUNT, || {
        members.iter().enumerate().for_each(|(i, m)| _ = black_box(ascending.insert(m, i as f64, limits)));
    });
    println!("sorted set, ascending: {} bytes per element", ascending.memory() / COUNT);
}

fn list(members: &[[u8; 16]]) {
    let limits = ListLimits::default();
    let mut list = List::default();
    timed("list push front", COUNT, || members.iter().for_each(|m| list.push_front(m, limits)));
    println!("list: {} bytes per element", list.memory() / COUNT);
    timed("list pop front", COUNT, || while black_box(list.pop_front(limits, |_| ())).is_some() {});
    timed("list push back", COUNT, || members.iter().for_each(|m| list.push_back(m, limits)));
    let mut rng = Rng::new(4);
    timed("list get", COUNT / 10, || (0..COUNT / 10).for_each(|_| _ = black_box(list.get(rng.below(COUNT)))));
    timed("list pop back", COUNT, || while black_box(list.pop_back(limits, |_| ())).is_some() {});
}

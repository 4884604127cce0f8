//! Which keys each policy takes, measured against bounds that chance passes by far.

#[cfg(feature = "search")]
use std::rc::Rc;
use std::sync::Arc;

use super::*;
use crate::config::{Caller, Config};
use crate::keyspace::{Access, Frequency, Usage, Value};
use crate::observe::memory;
#[cfg(feature = "search")]
use crate::runtime::embedded::Session;

const KEYS: u64 = 2000;
/// A day of Unix time, in milliseconds: late enough for every age that the tests give.
const NOW: u64 = 86_400_000 * 365;

fn worker(policy: &str) -> Worker {
    let config = Config::default();
    config.set(&[("maxmemory-policy", policy), ("maxmemory", "1gb")], Caller::Local).expect("a policy");
    Worker::new(Arc::new(Instance::new(Arc::new(config), &crate::commands::TABLE)))
}

/// Stores keys 0, 1, 2 …; `make` says when each expires and what it remembers of its use.
fn fill(worker: &Worker, database: usize, make: impl Fn(u64) -> (Option<u64>, u32)) {
    let database = worker.instance.database(database);
    for number in 0..KEYS {
        let bytes = number.to_string().into_bytes();
        let key = database.key(&bytes);
        let mut view = database.lock([(key.shard(), Access::Write)].into_iter(), NOW);
        let (expire_at, access) = make(number);
        view.set(&key, Value::Int(1), expire_at);
        view.peek(&key).expect("it was just stored").set_access(access);
    }
}

/// The numbers of the keys that go, in order, until `count` of them are gone or none may go.
fn evicted(worker: &Worker, count: usize) -> Vec<u64> {
    let policy = Policy::of(&worker.instance.config).expect("it evicts");
    let mut evictor = worker.evictor.borrow_mut();
    let number = |entry: Entry| std::str::from_utf8(entry.key()).unwrap().parse().unwrap();
    std::iter::from_fn(|| evictor.evict_one(worker, policy)).take(count).map(number).collect()
}

/// A key of number n has been idle for KEYS - n seconds.
fn last_used(number: u64) -> u32 {
    Usage::Time.idle(now_ms(), KEYS - number)
}

/// A key of number n has the counter n / 10.
fn counted(number: u64) -> u32 {
    let frequency = Frequency { log_factor: 10, decay_minutes: 1 };
    Usage::Frequency(frequency).used(now_ms(), (number / 10) as u8)
}

#[test]
fn those_go_first_that_deserve_it_most() {
    let far = now_ms() + 1_000_000_000;
    type Make<'a> = &'a dyn Fn(u64) -> (Option<u64>, u32);
    let cases: [(&str, Make<'_>); 5] = [
        ("allkeys-lru", &|n| (None, last_used(n))),
        ("volatile-lru", &|n| (Some(far), last_used(n))),
        ("allkeys-lfu", &|n| (None, counted(n))),
        ("volatile-lfu", &|n| (Some(far), counted(n))),
        ("volatile-ttl", &|n| (Some(far + 1000 * n), 0)),
    ];
    for (policy, make) in cases {
        let worker = worker(policy);
        fill(&worker, 0, make);
        let gone = evicted(&worker, KEYS as usize / 2);
        assert_eq!(gone.len(), KEYS as usize / 2, "{policy}");
        // With five samples and a pool, one in thirteen of those that go is of the better half, when the worse half comes
        // to an end; by chance it would be one in two. Nothing is seeded here: twice that share is within what happens.
        let wrong = gone.iter().filter(|&&number| number >= KEYS / 2).count();
        assert!(wrong < KEYS as usize / 10, "{policy}: {wrong} of the better half are gone");
        let best = gone.iter().filter(|&&number| number >= KEYS * 3 / 4).count();
        assert!(best < 5, "{policy}: {best} of the best quarter are gone");
    }
}

#[test]
fn random_policies_evict_young_and_old_keys_alike() {
    let far = now_ms() + 1_000_000_000;
    for (policy, expire_at) in [("allkeys-random", None), ("volatile-random", Some(far))] {
        let worker = worker(policy);
        fill(&worker, 0, |number| (expire_at, last_used(number)));
        let gone = evicted(&worker, KEYS as usize / 2);
        let late = gone.iter().filter(|&&number| number >= KEYS / 2).count();
        let expected = KEYS as usize / 4;
        assert!(late.abs_diff(expected) < expected / 4, "{policy}: {late} of the younger half are gone");
    }
}

#[test]
fn keys_without_a_deadline_stay_under_volatile_policies() {
    let far = now_ms() + 1_000_000_000;
    for policy in ["volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"] {
        let worker = worker(policy);
        fill(&worker, 3, |number| (number.is_multiple_of(2).then_some(far), 0));
        let gone = evicted(&worker, KEYS as usize);
        assert_eq!(gone.len(), KEYS as usize / 2, "{policy}: all that may go");
        assert!(gone.iter().all(|number| number.is_multiple_of(2)), "{policy}");
        assert_eq!((worker.instance.database(3).len(), worker.instance.database(3).expiring()), (KEYS as usize / 2, 0));
    }
}

#[test]
fn every_database_gives() {
    for policy in ["allkeys-lru", "allkeys-random"] {
        let worker = worker(policy);
        for database in [0, 5, 15] {
            fill(&worker, database, |number| (None, last_used(number)));
        }
        evicted(&worker, KEYS as usize);
        for database in [0, 5, 15] {
            let left = worker.instance.database(database).len() as u64;
            assert!(left < KEYS * 9 / 10, "{policy}: {left} of {KEYS} are left in database {database}");
        }
        assert_eq!(worker.instance.totals().evicted, KEYS);
    }
}

#[test]
fn stale_pool_entries_do_not_stop_eviction() {
    let worker = worker("allkeys-lru");
    fill(&worker, 0, |number| (None, last_used(number)));
    // Fills the pool with old keys.
    let gone = evicted(&worker, 1);
    fill(&worker, 0, |_| (None, last_used(KEYS)));
    assert_eq!(gone.len(), 1);
    // No key in the pool is as idle as remembered: others are found.
    assert_eq!(evicted(&worker, 10).len(), 10);
}

#[test]
fn time_limits_follow_tenacity() {
    for (tenacity, micros) in [(0, Some(0)), (1, Some(50)), (10, Some(500)), (11, Some(575)), (100, None)] {
        assert_eq!(time_limit(tenacity).map(|nanos| nanos / 1000), micros, "{tenacity}");
    }
    assert!(time_limit(99).is_some_and(|nanos| nanos > 60_000_000_000));
}

#[test]
fn shortages_are_summed() {
    let shortage = Shortage::default();
    for (is_short, now) in [(false, 5), (true, 10), (true, 12), (false, 20), (false, 25), (true, 30)] {
        shortage.note(is_short, now);
    }
    assert_eq!((shortage.present(33), shortage.total(33)), (3, 13));
    shortage.reset();
    assert_eq!((shortage.present(40), shortage.total(40)), (0, 0));
}

/// A thread that makes room from outside, before a command or behind the clients' backs, enters like a command does.
#[test]
fn nothing_goes_while_a_script_is_alone() {
    let worker = worker("allkeys-random");
    let instance = &worker.instance;
    instance.config.set(&[("maxmemory", "1")], Caller::Local).unwrap();
    // Little enough for no other thread to see it.
    memory::count(1000);
    fill(&worker, 0, |_| (None, 0));
    assert!(instance.is_short_of_memory());
    let alone = instance.exclusive.stop().unwrap();
    instance.exclusive.make_busy();
    assert_eq!(make_room(&worker), Room::Coming);
    assert_eq!(instance.database(0).evicted_count(), 0);
    drop(alone);
    make_room(&worker);
    assert!(instance.database(0).evicted_count() > 0);
}

/// The removal of expired keys has time until a script ends.
#[test]
fn nothing_expires_while_a_script_is_alone() {
    let worker = worker("noeviction");
    let instance = &worker.instance;
    fill(&worker, 0, |_| (Some(NOW + 1), 0));
    let alone = instance.exclusive.stop().unwrap();
    crate::runtime::embedded::expire(instance);
    assert_eq!(instance.database(0).expired_count(), 0);
    drop(alone);
    crate::runtime::embedded::expire(instance);
    assert_eq!(instance.database(0).expired_count(), KEYS);
}

/// Bytes that an index is going to give back count as free, so no more keys go than have to while it lags behind.
#[cfg(feature = "search")]
#[test]
fn keys_stay_while_indexes_give_back() {
    const DOCUMENTS: i64 = 20;
    let worker = Rc::new(worker("allkeys-random"));
    let instance = Arc::clone(&worker.instance);
    // No thread feeds the index but this one.
    assert!(instance.search.begin_feeding());
    let mut session = Session::new(worker.clone());
    session.receive(b"FT.CREATE i SCHEMA t TEXT\r\n");
    (0..DOCUMENTS).for_each(|number| session.receive(format!("HSET {number} t word\r\n").as_bytes()));
    assert!(session.transmit().starts_with(b"+OK\r\n:1\r\n"));
    let feed = || while instance.search.work(instance.database(0), now_ms()) {};
    feed();
    let index = instance.search.index(b"i").unwrap();
    // Little enough for no other thread to see it.
    index.with_engine(|_| memory::count(DOCUMENTS * 100));
    let limit = (memory::used_here() - 500).to_string();
    instance.config.set(&[("maxmemory", limit.as_str())], Caller::Local).unwrap();
    assert_eq!(make_room(&worker), Room::Enough);
    assert_eq!((instance.database(0).evicted_count(), instance.search.owed()), (5, 500));
    feed();
    assert_eq!((index.engine().len(), instance.search.owed()), (15, 0));
    index.with_engine(|_| memory::count(-500));
    assert!(!instance.is_short_of_memory());
}

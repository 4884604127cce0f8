//! Eviction: which keys go when `maxmemory` is passed, as `maxmemory-policy` says
//! (<https://redis.io/docs/latest/develop/reference/eviction/>).
//!
//! Like the genuine server, this one keeps no order of its keys. It looks at a few random ones, remembers the best of
//! those that it has met, and takes the best of all. A thread that is about to run a command makes room before it takes
//! any lock, and for a bounded time. Periodic work makes the rest of the room.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use smallvec::SmallVec;

use crate::config::{Config, settings};
use crate::exec::clock::now_ms;
use crate::exec::gate::Busy;
use crate::exec::instance::Instance;
use crate::exec::worker::Worker;
use crate::keyspace::{Database, Entry, Frequency, Garbage, Spot, Usage};

/// Candidates that are remembered: more than are looked at at once, so that good ones of earlier looks count too.
const POOL: usize = 16;
/// Most keys that are looked at at once, whatever `maxmemory-samples` says: beyond ten or so, nothing is gained.
const SAMPLES_MAX: usize = 64;
/// Looks at random keys that may all find only what is gone already.
const LOOKS: usize = 64;
/// Evicted keys between two looks at the clock.
const SLICE: usize = 16;
/// Milliseconds for which it is remembered which databases have keys.
const REFRESH: u64 = 100;

/// The result of making room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// There is enough.
    Enough,
    /// There is not yet, but there are keys to be evicted.
    Coming,
    /// There is no key that may go.
    None,
}

/// By what keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Those that have not been used for the longest time.
    Idle,
    /// Those that were used least often.
    Rare(Frequency),
    /// Those that expire first.
    Deadline,
    /// Any.
    Random,
}

/// A policy other than `noeviction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Policy {
    /// Whether only keys with a deadline go.
    volatile: bool,
    order: Order,
}

/// The parameters by which a policy whose name ends in `-lfu` counts uses.
fn frequency(config: &Config) -> Frequency {
    let number = |setting| config.uint(setting) as u32;
    Frequency { log_factor: number(settings::LFU_LOG_FACTOR), decay_minutes: number(settings::LFU_DECAY_TIME) }
}

/// The usage that entries must record.
pub fn usage(config: &Config) -> Usage {
    match Policy::of(config).map(|policy| policy.order) {
        Some(Order::Rare(frequency)) => Usage::Frequency(frequency),
        Some(Order::Idle | Order::Deadline | Order::Random) | None => Usage::Time,
    }
}

/// Whether each key needs a value of its own, which remembers its use: small integers are not shared then.
pub fn is_by_use(config: &Config) -> bool {
    matches!(Policy::of(config), Some(Policy { order: Order::Idle | Order::Rare(_), .. }))
}

/// Whether the policy is another than `noeviction`.
#[cold]
pub fn evicts(config: &Config) -> bool {
    Policy::of(config).is_some()
}

impl Policy {
    fn of(config: &Config) -> Option<Self> {
        let (keys, order) = config.word(settings::MAXMEMORY_POLICY).split_once('-')?;
        let order = match order {
            "lru" => Order::Idle,
            "lfu" => Order::Rare(frequency(config)),
            "ttl" => Order::Deadline,
            _ => Order::Random,
        };
        Some(Self { volatile: keys == "volatile", order })
    }

    /// How much an entry deserves to go, at `now` in milliseconds of Unix time.
    fn score(self, entry: &Entry, now: u64) -> u64 {
        match self.order {
            Order::Idle => entry.idle_seconds(now).into(),
            Order::Rare(frequency) => u64::from(u8::MAX) - u64::from(frequency.count(entry, now)),
            Order::Deadline => u64::MAX - entry.expire_at().unwrap_or(u64::MAX),
            Order::Random => 0,
        }
    }
}

/// An entry that was looked at.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    score: u64,
    database: usize,
    spot: Spot,
}

/// A worker's state between evictions.
#[derive(Debug, Default)]
pub struct Evictor {
    /// The best candidate stands last.
    pool: SmallVec<[Candidate; POOL]>,
    policy: Option<Policy>,
    /// Databases that have keys, as they were seen at `seen_at`.
    databases: Vec<usize>,
    seen_at: u64,
    /// Random policies go through the databases in turns.
    turn: usize,
    /// Whether an entry would have been evicted that a snapshot has to save first, which takes long.
    awaits_snapshot: bool,
}

/// Evicts keys until `maxmemory` is kept, for no longer than `maxmemory-eviction-tenacity` allows. The caller must hold no
/// lock of a shard, and must not be at work: eviction enters like a command does, so that no key goes in the middle of a
/// script. While a script runs for too long there is no room.
#[cold]
pub fn make_room(worker: &Worker) -> Room {
    with_turns(worker, |policy| match worker.instance.exclusive.enter(&worker.activity) {
        // A server that has become a replica since removes nothing.
        Ok(_inside) if worker.instance.replication.is_replica() => Room::Enough,
        Ok(_inside) => worker.evictor.borrow_mut().run(worker, policy),
        Err(Busy) => Room::Coming,
    })
}

/// [`make_room`] for a thread that is at work.
#[cold]
pub fn make_room_inside(worker: &Worker) -> Room {
    with_turns(worker, |policy| worker.evictor.borrow_mut().run(worker, policy))
}

/// Has `evict` make room, if there is a policy to do it by.
fn with_turns(worker: &Worker, evict: impl FnOnce(Policy) -> Room) -> Room {
    let instance = &*worker.instance;
    // Like everything else that changes data, eviction waits while CLIENT PAUSE lasts.
    let room = if !instance.is_short_of_memory() || instance.paused(now_ms()).is_some() {
        Room::Enough
    } else if let Some(policy) = Policy::of(&instance.config).filter(|_| !instance.is_importing()) {
        if instance.workers.give_turns(now_ms()) { evict(policy) } else { Room::Coming }
    } else {
        Room::None
    };
    instance.shortage.note(room != Room::Enough, now_ms());
    room
}

/// Nanoseconds for which a command may be held up: up to a tenacity of 10 in proportion to it, then 15 % more with each
/// step, and without an end at 100.
fn time_limit(tenacity: u64) -> Option<u64> {
    const STEP: u64 = 50_000;
    match tenacity {
        0..=10 => Some(STEP * tenacity),
        11..=99 => Some((STEP as f64 * 10.0 * 1.15f64.powi(tenacity as i32 - 10)) as u64),
        _ => None,
    }
}

impl Evictor {
    fn run(&mut self, worker: &Worker, policy: Policy) -> Room {
        let instance = &*worker.instance;
        let limit = time_limit(instance.config.uint(settings::MAXMEMORY_EVICTION_TENACITY));
        if self.policy.replace(policy) != Some(policy) {
            self.pool.clear();
        }
        worker.tick();
        let mut nanos = 0;
        let mut evicted = 0;
        let room = loop {
            if !instance.is_short_of_memory() {
                break Room::Enough;
            }
            let Some(entry) = self.evict_one(worker, policy) else {
                // An entry that the snapshot has to save first can go soon.
                break if self.awaits_snapshot { Room::Coming } else { Room::None };
            };
            free(instance, entry);
            evicted += 1;
            if evicted % SLICE == 0 {
                nanos += worker.tick();
                if limit.is_some_and(|limit| nanos > limit) {
                    break Room::Coming;
                }
            }
        };
        nanos += worker.tick();
        let now = now_ms();
        if evicted > 0 {
            instance.workers.note_eviction(now);
        }
        instance.observers.latency(&instance.config, "eviction-cycle", nanos / 1_000_000, now);
        room
    }

    /// Takes out the entry that deserves it most; `None` if no entry may go.
    fn evict_one(&mut self, worker: &Worker, policy: Policy) -> Option<Entry> {
        let instance = &*worker.instance;
        let now = now_ms();
        self.awaits_snapshot = false;
        for _ in 0..LOOKS {
            if !self.look(worker, policy, now) {
                return None;
            }
            while let Some(best) = self.pool.pop() {
                let database = instance.database(best.database);
                let awaits_snapshot = Cell::new(false);
                // A key that was used in the meantime, or is to live longer, stays.
                let is_due = |entry: &Entry| {
                    let is_due =
                        (!policy.volatile || entry.expire_at().is_some()) && policy.score(entry, now) >= best.score;
                    awaits_snapshot.set(is_due && database.saves_vast_first(entry));
                    is_due && !awaits_snapshot.get()
                };
                let evicted = database.evict(best.spot, is_due);
                self.awaits_snapshot |= awaits_snapshot.get();
                if let Some(entry) = evicted {
                    return Some(entry);
                }
            }
        }
        None
    }

    /// Looks at a few random entries of every database; whether there was any that may go.
    fn look(&mut self, worker: &Worker, policy: Policy, now: u64) -> bool {
        let is_fresh = self.seen_at == now;
        // Also when the clock has stepped back.
        if now.abs_diff(self.seen_at) > REFRESH {
            self.see(worker, now);
        }
        if self.look_around(worker, policy, now) {
            return true;
        }
        // There may be keys where there were none before.
        if !is_fresh {
            self.see(worker, now);
        }
        self.look_around(worker, policy, now)
    }

    fn see(&mut self, worker: &Worker, now: u64) {
        let databases = worker.instance.databases();
        self.databases = (0..databases.len()).filter(|&at| !databases[at].is_empty()).collect();
        self.seen_at = now;
    }

    fn look_around(&mut self, worker: &Worker, policy: Policy, now: u64) -> bool {
        let instance = &*worker.instance;
        let mut databases = std::mem::take(&mut self.databases);
        if policy.order == Order::Random {
            self.turn = self.turn.wrapping_add(1);
            let count = databases.len().max(1);
            databases.rotate_left(self.turn % count);
            let found = databases.iter().any(|&at| self.look_at(worker, instance.database(at), at, policy, now));
            databases.rotate_right(self.turn % count);
            self.databases = databases;
            return found;
        }
        databases.retain(|&at| self.look_at(worker, instance.database(at), at, policy, now));
        self.databases = databases;
        !self.databases.is_empty()
    }

    /// Looks at a few random entries of one database; whether there was any.
    fn look_at(&mut self, worker: &Worker, database: &Database, number: usize, policy: Policy, now: u64) -> bool {
        let wanted = match policy.order {
            Order::Random => 1,
            Order::Idle | Order::Rare(_) | Order::Deadline => {
                worker.instance.config.size(settings::MAXMEMORY_SAMPLES).min(SAMPLES_MAX)
            }
        };
        database.sample(policy.volatile, wanted, &mut || worker.random(), &mut |spot, entry| {
            self.remember(Candidate { score: policy.score(entry, now), database: number, spot });
        })
    }

    /// Puts a candidate into the pool, if it is better than one that is there.
    fn remember(&mut self, new: Candidate) {
        self.pool.retain(|old| (old.database, old.spot) != (new.database, new.spot));
        let at = self.pool.partition_point(|old| old.score < new.score);
        if self.pool.len() < POOL {
            self.pool.insert(at, new);
        } else if at > 0 {
            self.pool.remove(0);
            self.pool.insert(at - 1, new);
        }
    }
}

/// Frees what was evicted, a large value on a thread of its own.
fn free(instance: &Instance, entry: Entry) {
    if entry.is_heavy() {
        let bytes = entry.memory();
        instance.reaper.free(Garbage::Evicted(entry, bytes), instance.config.is_on(settings::LAZYFREE_LAZY_EVICTION));
    }
}

/// For how long `maxmemory` has been passed.
#[derive(Debug, Default)]
pub struct Shortage {
    /// Since when, in milliseconds of Unix time; 0: it is kept.
    since: AtomicU64,
    /// Milliseconds of earlier shortages.
    total: AtomicU64,
}

impl Shortage {
    /// Notes whether memory is short, at `now` in milliseconds of Unix time.
    pub fn note(&self, is_short: bool, now: u64) {
        let since = self.since.load(Relaxed);
        if is_short == (since != 0) {
            return;
        }
        let after = if is_short { now } else { 0 };
        // The thread that first sees the change counts it.
        if self.since.compare_exchange(since, after, Relaxed, Relaxed).is_ok() && !is_short {
            self.total.fetch_add(now.saturating_sub(since), Relaxed);
        }
    }

    /// Milliseconds of the present shortage.
    pub fn present(&self, now: u64) -> u64 {
        match self.since.load(Relaxed) {
            0 => 0,
            since => now.saturating_sub(since),
        }
    }

    /// Milliseconds of all shortages.
    pub fn total(&self, now: u64) -> u64 {
        self.total.load(Relaxed) + self.present(now)
    }

    /// Counts from zero again (`CONFIG RESETSTAT`).
    pub fn reset(&self) {
        self.total.store(0, Relaxed);
        self.since.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests;

//! Eviction: which keys go when `maxmemory` is passed, as `maxmemory-policy` says
//! (<https://redis.io/docs/latest/develop/reference/eviction/>).
//!
//! Like the genuine server, this one keeps no order of its keys. It looks at a few random ones, remembers the best of
//! those that it has met, and takes the best of all. A thread that is about to run a command makes room before it takes
//! any lock, and for a bounded time. Periodic work makes the rest of the room.

mod state;

pub use state::{Evictor, Shortage, evicts, is_by_use, usage};

use std::cell::Cell;

use crate::config::settings;
use crate::exec::core::clock::now_ms;
use crate::exec::core::{Instance, Worker};
use crate::exec::gate::Busy;
use crate::keyspace::{Database, Entry, Garbage};
use state::{Candidate, Order, POOL, Policy};

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
                    #[cfg(feature = "search")]
                    if best.database == 0 {
                        instance.search.note_evicted(&entry);
                    }
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

#[cfg(test)]
mod tests;

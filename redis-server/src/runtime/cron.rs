//! The server's periodic work.

use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::commands;
use crate::config::settings;
use crate::exec::core::Worker;
use crate::exec::core::clock::{Tick, now_ms};
use crate::exec::eviction::{self, Room};
use crate::exec::run::slow;
use crate::exec::snapshot;
use crate::keyspace::{Entry, Garbage};

/// Expired keys that one visit to a shard removes: its lock is held for some ten microseconds.
const EXPIRE_SLICE: usize = 64;
/// Share of each period that the removal of expired keys may take, in percent, at the least effort, as in the genuine
/// server; and what each degree of `active-expire-effort` adds.
const EXPIRE_SHARE: u64 = 25;
const EXPIRE_SHARE_STEP: u64 = 2;
/// Shards that are looked at before other work on this thread gets its turn.
const SHARDS_AT_ONCE: usize = 1024;

/// Runs until the server ends.
pub(super) async fn run(worker: Rc<Worker>) {
    let mut expiry = Expiry::default();
    loop {
        let hz = worker.instance.config.uint(settings::HZ).clamp(1, 500);
        server_runtime::sleep(Duration::from_millis(1000 / hz)).await;
        worker.instance.stats.sample(now_ms(), worker.instance.replication.figures.traffic());
        if let Some(supervisor) = worker.instance.supervisor() {
            supervisor.keep_alive();
        }
        if !worker.instance.exclusive.is_loading() {
            snapshot::begin_if_due(&worker.instance);
            worker.instance.replication.run(&worker.instance, now_ms());
            slow::serve_due(&worker);
            #[cfg(feature = "search")]
            commands::look_after_indexes(&worker);
        }
        worker.instance.aof.review(&worker.instance);
        worker.instance.tracking.limit(&worker.instance.config);
        commands::end_hot_keys_if_due(&worker.instance, now_ms());
        let began = Tick::now();
        expiry.run(&worker, Duration::from_millis(1000 / hz)).await;
        worker.instance.stats.expiry.nanos.add(began.elapsed().as_nanos() as u64);
    }
}

/// Evicts what commands have left over `maxmemory`, in slices between which clients get their turn.
pub(super) async fn evict(worker: Rc<Worker>) {
    loop {
        let hz = worker.instance.config.uint(settings::HZ).clamp(1, 500);
        server_runtime::sleep(Duration::from_millis(1000 / hz)).await;
        while worker.instance.is_short_of_memory()
            && !worker.instance.exclusive.is_stopped()
            && eviction::make_room(&worker) == Room::Coming
        {
            server_runtime::yield_now().await;
        }
        if !worker.instance.is_short_of_memory() {
            worker.instance.shortage.note(false, now_ms());
        }
    }
}

/// The active removal of expired keys.
#[derive(Default)]
struct Expiry {
    /// Where the last run stopped, in shards counted over all databases.
    next: usize,
}

impl Expiry {
    /// Goes through all shards once, or until the time is used up; clients of this worker come in between.
    async fn run(&mut self, worker: &Worker, period: Duration) {
        let instance = &worker.instance;
        let effort = instance.config.uint(settings::ACTIVE_EXPIRE_EFFORT).clamp(1, 10);
        let share = EXPIRE_SHARE + EXPIRE_SHARE_STEP * (effort - 1);
        let deadline = Instant::now() + period * share as u32 / 100;
        let shards = instance.databases().first().map_or(0, |database| database.shards());
        let all = shards * instance.databases().len();
        let mut visited = 0;
        while visited < all {
            if instance.replication.is_replica() {
                if let Some(_inside) = instance.exclusive.try_enter(&worker.activity) {
                    instance.replication.expire_local(instance, now_ms());
                }
                return;
            }
            if instance.paused(now_ms()).is_some() || !instance.active_expire() {
                return;
            }
            let (database, shard) = (instance.database(self.next / shards), self.next % shards);
            if !database.has_deadlines() {
                visited += shards - shard;
                self.next = (self.next + shards - shard) % all;
                continue;
            }
            visited += 1;
            loop {
                let began = now_ms();
                // A script is alone with the data: keys that expire meanwhile have time until it ends.
                let Some(inside) = instance.exclusive.try_enter(&worker.activity) else { return };
                if instance.replication.is_replica() {
                    // Since just now: its primary says what expires.
                    return;
                }
                let removed = database.expire_shard(shard, began, EXPIRE_SLICE);
                drop(inside);
                let done = removed.is_done;
                let now = now_ms();
                instance.observers.latency(&instance.config, "expire-cycle", now.saturating_sub(began), now);
                free(worker, removed.entries);
                if done {
                    break;
                }
                server_runtime::yield_now().await;
                if Instant::now() >= deadline {
                    instance.stats.expiry.cut_short.add(1);
                    return;
                }
            }
            self.next = (self.next + 1) % all;
            if visited.is_multiple_of(SHARDS_AT_ONCE) {
                server_runtime::yield_now().await;
            }
        }
    }
}

/// Frees what was removed, large values on a thread of their own.
fn free(worker: &Worker, removed: Vec<Entry>) {
    let instance = &worker.instance;
    let is_counted = instance.config.is_on(settings::LAZYFREE_LAZY_EXPIRE);
    for entry in removed.into_iter().filter(Entry::is_heavy) {
        instance.reaper.free(Garbage::Entry(entry), is_counted);
    }
}

//! The server's periodic work.

use std::time::Duration;

use crate::config::settings;
use crate::worker::{Worker, now_ms};

/// Expired keys that one visit to a shard removes, so that its lock is held briefly.
const EXPIRE_SLICE: usize = 64;

/// Runs until the server ends.
pub(super) async fn run(worker: Worker) {
    loop {
        let hz = worker.instance.config.uint(settings::HZ).clamp(1, 500);
        tokio::time::sleep(Duration::from_millis(1000 / hz)).await;
        worker.instance.stats.sample(now_ms());
        expire(&worker).await;
    }
}

/// Removes what has expired, database by database and shard by shard, letting clients in between.
async fn expire(worker: &Worker) {
    let instance = &worker.instance;
    if instance.paused(now_ms()).is_some() || !instance.active_expire() {
        return;
    }
    for database in instance.databases() {
        for shard in 0..database.shards() {
            loop {
                let began = now_ms();
                let removed = database.expire_shard(shard, began, EXPIRE_SLICE).len();
                let now = now_ms();
                let took = now.saturating_sub(began);
                instance.observers.latency(&instance.config, "expire-cycle", took, now);
                if removed < EXPIRE_SLICE {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
    }
}

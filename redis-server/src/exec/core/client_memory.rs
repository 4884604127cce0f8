//! The memory of all clients together.

use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU64};

use crate::clients::client::{ClientShared, flag};
use crate::config::{Config, settings};

/// The memory of all clients, as far as they have told it.
#[derive(Debug, Default)]
pub struct ClientMemory {
    pub(in crate::exec) sum: AtomicI64,
    /// Of clients that are cut off and have not freed it yet.
    leaving: AtomicU64,
    pub(in crate::exec) evicted: AtomicU64,
    /// Held by the thread that cuts clients off.
    pub(in crate::exec) turn: Mutex<()>,
    /// Until when, in milliseconds of Unix time, no client can be cut off.
    pub(in crate::exec) spared_until: AtomicU64,
}

/// Bytes that all clients may hold together, as the configuration says; 0 is no limit.
#[inline]
pub fn limit(config: &Config) -> u64 {
    match config.int(settings::MAXMEMORY_CLIENTS) {
        percent @ ..0 => {
            let part = u128::from(config.uint(settings::MAXMEMORY)) * u128::from(percent.unsigned_abs()) / 100;
            u64::try_from(part).unwrap_or(u64::MAX)
        }
        bytes => bytes.unsigned_abs(),
    }
}

impl ClientMemory {
    /// Clients cut off, since the start.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    /// Takes note that a client holds so many bytes.
    pub(in crate::exec) fn count(&self, client: &ClientShared, held: u64) {
        let held = if client.has_flag(flag::GONE) { 0 } else { held };
        let before = client.counted.swap(held, Relaxed);
        if held != before {
            self.sum.fetch_add(held as i64 - before as i64, Relaxed);
        }
        // A client that is killed at this moment must not be counted afterwards.
        if held != 0 && client.has_flag(flag::GONE) {
            self.forget(client);
        }
    }

    /// Bytes that clients who are cut off are about to free.
    pub fn leaving(&self) -> u64 {
        self.leaving.load(Relaxed)
    }

    /// Moves the memory of a client that is cut off from the sum to the memory that is freed soon. The client must stay
    /// on the list during the call.
    pub fn dismiss(&self, client: &ClientShared) {
        let bytes = self.forget(client);
        client.leaving.fetch_add(bytes, Relaxed);
        self.leaving.fetch_add(bytes, Relaxed);
    }

    /// A client, which is no longer listed, has freed what it held.
    pub fn freed(&self, client: &ClientShared) {
        self.leaving.fetch_sub(client.leaving.swap(0, Relaxed), Relaxed);
    }

    /// A client is gone, or as good as gone. Returns what was counted of it.
    pub fn forget(&self, client: &ClientShared) -> u64 {
        let before = client.counted.swap(0, Relaxed);
        if before != 0 {
            self.sum.fetch_sub(before as i64, Relaxed);
        }
        before
    }

    /// Ends the pause after a check: a protected client may have lost its protection.
    pub fn look_again(&self) {
        self.spared_until.store(0, Relaxed);
    }

    pub(in crate::exec) fn is_over(&self, limit: u64) -> bool {
        self.sum.load(Relaxed) >= i64::try_from(limit).unwrap_or(i64::MAX)
    }
}

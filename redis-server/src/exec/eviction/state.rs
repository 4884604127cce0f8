//! Policies of eviction, and what is remembered between two evictions.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use smallvec::SmallVec;

use crate::config::{Config, settings};
use crate::keyspace::{Entry, Frequency, Spot, Usage};

/// Candidates that are remembered: more than are looked at at once, so that good ones of earlier looks count too.
pub(super) const POOL: usize = 16;

/// By what keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
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
pub(super) struct Policy {
    /// Whether only keys with a deadline go.
    pub(super) volatile: bool,
    pub(super) order: Order,
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
    pub(super) fn of(config: &Config) -> Option<Self> {
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
    pub(super) fn score(self, entry: &Entry, now: u64) -> u64 {
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
pub(super) struct Candidate {
    pub(super) score: u64,
    pub(super) database: usize,
    pub(super) spot: Spot,
}

/// A worker's state between evictions.
#[derive(Debug, Default)]
pub struct Evictor {
    /// The best candidate stands last.
    pub(super) pool: SmallVec<[Candidate; POOL]>,
    pub(super) policy: Option<Policy>,
    /// Databases that have keys, as they were seen at `seen_at`.
    pub(super) databases: Vec<usize>,
    pub(super) seen_at: u64,
    /// Random policies go through the databases in turns.
    pub(super) turn: usize,
    /// Whether an entry would have been evicted that a snapshot has to save first, which takes long.
    pub(super) awaits_snapshot: bool,
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

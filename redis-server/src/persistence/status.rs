//! The state of a server's snapshots.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

/// The state of a server's snapshots. Times are in seconds of Unix time, changes are counted since the start.
#[derive(Debug)]
pub struct Status {
    /// Whether it loads and saves of its own accord, not only when a client asks for it.
    is_automatic: AtomicBool,
    saved_at: AtomicU64,
    saved_changes: AtomicU64,
    saves: AtomicU64,
    /// Whether the last one that was written in the background has failed, and none was written since.
    has_failed: AtomicBool,
    tried_at: AtomicU64,
    is_scheduled: AtomicBool,
    loaded: AtomicU64,
    expired: AtomicU64,
    last_seconds: AtomicI64,
    /// Whether checksums are not looked at (`DEBUG SET-SKIP-CHECKSUM-VALIDATION`).
    skips_sums: AtomicBool,
}

/// How a load has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Keys that are there now.
    pub loaded: u64,
    /// Keys whose time was over.
    pub expired: u64,
    /// Collections without elements, which were left out.
    pub empty: u64,
}

impl Status {
    /// That of a server that starts now, which counts as its first save.
    pub fn new(now: u64) -> Self {
        Self {
            is_automatic: AtomicBool::new(false),
            saved_at: AtomicU64::new(now),
            saved_changes: AtomicU64::new(0),
            saves: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            tried_at: AtomicU64::new(0),
            is_scheduled: AtomicBool::new(false),
            loaded: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            last_seconds: AtomicI64::new(-1),
            skips_sums: AtomicBool::new(false),
        }
    }

    /// Whether it loads and saves of its own accord.
    pub fn is_automatic(&self) -> bool {
        self.is_automatic.load(Relaxed)
    }

    /// From now on it does.
    pub fn make_automatic(&self) {
        self.is_automatic.store(true, Relaxed);
    }

    /// Whether checksums of files and payloads must be right.
    pub fn checks_sums(&self) -> bool {
        !self.skips_sums.load(Relaxed)
    }

    /// `DEBUG SET-SKIP-CHECKSUM-VALIDATION`.
    pub fn set_skips_sums(&self, on: bool) {
        self.skips_sums.store(on, Relaxed);
    }

    /// A snapshot of all `changes` so far is on disk.
    pub fn saved(&self, now: u64, changes: u64) {
        self.saved_at.store(now, Relaxed);
        self.saved_changes.store(changes, Relaxed);
        self.saves.fetch_add(1, Relaxed);
        self.has_failed.store(false, Relaxed);
    }

    /// One is begun in the background.
    pub fn tries(&self, now: u64) {
        self.tried_at.store(now, Relaxed);
    }

    /// When the last one was begun in the background.
    pub fn tried_at(&self) -> u64 {
        self.tried_at.load(Relaxed)
    }

    /// It could not be written.
    pub fn failed(&self) {
        self.has_failed.store(true, Relaxed);
    }

    /// It has taken so many seconds.
    pub fn took(&self, seconds: u64) {
        self.last_seconds.store(seconds.cast_signed(), Relaxed);
    }

    /// One is to begin in the background when nothing is in its way.
    pub fn schedule(&self) {
        self.is_scheduled.store(true, Relaxed);
    }

    /// Whether one was scheduled, which it is no longer.
    pub fn take_scheduled(&self) -> bool {
        self.is_scheduled.load(Relaxed) && self.is_scheduled.swap(false, Relaxed)
    }

    /// A load has ended.
    pub fn loaded(&self, outcome: Outcome) {
        self.loaded.store(outcome.loaded, Relaxed);
        self.expired.store(outcome.expired, Relaxed);
    }

    /// So many keys of what was loaded were over, and were removed.
    pub fn expired_behind_load(&self, keys: u64) {
        self.loaded.fetch_sub(keys, Relaxed);
        self.expired.fetch_add(keys, Relaxed);
    }

    /// When the last snapshot was written.
    pub fn saved_at(&self) -> u64 {
        self.saved_at.load(Relaxed)
    }

    /// Of so many changes, those that no snapshot has.
    pub fn unsaved(&self, changes: u64) -> u64 {
        changes.saturating_sub(self.saved_changes.load(Relaxed))
    }

    /// Snapshots written.
    pub fn saves(&self) -> u64 {
        self.saves.load(Relaxed)
    }

    /// Whether the last one that was written in the background has failed, and none was written since.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Relaxed)
    }

    /// How the last load has ended.
    pub fn last_load(&self) -> Outcome {
        Outcome { loaded: self.loaded.load(Relaxed), expired: self.expired.load(Relaxed), empty: 0 }
    }

    /// Seconds that the last background save took; -1 if there was none.
    pub fn last_seconds(&self) -> i64 {
        self.last_seconds.load(Relaxed)
    }
}

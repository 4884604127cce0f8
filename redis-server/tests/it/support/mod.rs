//! Helpers of all modules: servers, and clients that check every byte.

pub(crate) mod genuine;
pub(crate) mod process;
pub(crate) mod recorded;
pub(crate) mod resp;
pub(crate) mod server;

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up: long for a busy machine, short for who waits for a result.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for what another thread or process brings about.
#[track_caller]
pub(crate) fn until(what: &str, holds: impl FnMut() -> bool) {
    within(PATIENCE, what, holds);
}

/// As `until`, with the patience that somebody else's periods ask for.
#[track_caller]
pub(crate) fn within(patience: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < patience, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Has threads stop that look at this when it is dropped, by a panic too.
pub(crate) struct Stopped<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A small generator of random numbers (xorshift64*), the same on every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * bound as u128) >> 64) as usize
    }
}

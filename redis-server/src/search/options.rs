//! The settings of FT.CONFIG that have an effect.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use query_engine::{Limits, MAX_WINDOW};

/// Settings of queries, each a number that any thread may change.
#[derive(Debug)]
pub struct Options {
    /// Milliseconds of a query; 0 is without end.
    pub timeout_ms: AtomicU64,
    /// 1 if a query that takes too long fails, 0 if it answers with what it has found.
    pub fails_late: AtomicU64,
    /// The version of the query language.
    pub dialect: AtomicU64,
    /// The shortest prefix of a pattern (bytes).
    pub min_prefix: AtomicU64,
    /// The most words that a pattern stands for.
    pub max_expansions: AtomicU64,
    /// The most documents of FT.SEARCH.
    pub max_results: AtomicU64,
    /// The most rows of FT.AGGREGATE.
    pub max_rows: AtomicU64,
    /// Milliseconds without a use after which a cursor is closed.
    pub cursor_idle_ms: AtomicU64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout_ms: 500.into(),
            fails_late: 0.into(),
            dialect: 1.into(),
            min_prefix: 2.into(),
            max_expansions: 200.into(),
            max_results: (MAX_WINDOW as u64).into(),
            max_rows: u64::MAX.into(),
            cursor_idle_ms: 300_000.into(),
        }
    }
}

impl Options {
    /// How far patterns reach.
    pub fn limits(&self) -> Limits {
        Limits {
            min_prefix: self.min_prefix.load(Relaxed) as usize,
            max_expansions: self.max_expansions.load(Relaxed) as usize,
        }
    }
}

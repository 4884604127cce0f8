//! TEMPORARY indexes: they go with their documents when no command has named them for long.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::{Search, SearchIndex};

/// The deadline of an index without one.
const NEVER: u64 = u64::MAX;

/// How long an index lives without a use, and until when.
#[derive(Debug)]
pub(super) struct Idle {
    /// Milliseconds; `None` for an index that stays.
    ms: Option<u64>,
    /// In milliseconds of a steady clock.
    deadline: AtomicU64,
}

impl Idle {
    /// Without a deadline until the first [`SearchIndex::touch`].
    pub(super) fn new(ms: Option<u64>) -> Self {
        Self { ms, deadline: NEVER.into() }
    }
}

impl SearchIndex {
    /// True if the index ends when it is not used for long.
    pub fn is_temporary(&self) -> bool {
        self.idle.ms.is_some()
    }

    /// A command names it at `now`, in milliseconds of a steady clock: it has all of its time again.
    pub fn touch(&self, now: u64) {
        if let Some(ms) = self.idle.ms {
            self.idle.deadline.store(now.saturating_add(ms), Relaxed);
        }
    }

    /// A temporary index ends at `at`, or never until it is named again.
    pub fn end_at(&self, at: Option<u64>) {
        self.idle.deadline.store(at.unwrap_or(NEVER), Relaxed);
    }

    /// Milliseconds that are left at `now`; `None` if its time stands still.
    pub fn time_left(&self, now: u64) -> Option<u64> {
        let deadline = self.idle.deadline.load(Relaxed);
        (deadline != NEVER).then(|| deadline.saturating_sub(now))
    }
}

impl Search {
    /// The names of indexes whose time is over at `now`. An index that is there all the same at `again` is named again.
    pub fn take_idle(&self, now: u64, again: u64) -> Vec<Box<[u8]>> {
        let is_over = |index: &&SearchIndex| index.idle.deadline.load(Relaxed) <= now;
        self.visit_indexes(|indexes| {
            let over = indexes.filter(is_over);
            over.map(|index| {
                index.end_at(Some(again));
                index.name().into()
            })
            .collect()
        })
    }

    /// All temporary indexes have all of their time again.
    pub fn touch_all(&self, now: u64) {
        self.visit_indexes(|indexes| indexes.for_each(|index| index.touch(now)));
    }
}

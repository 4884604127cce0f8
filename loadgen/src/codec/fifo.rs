//! Requests in flight of protocols that answer in order.

use std::collections::VecDeque;

use crate::clock::Nanos;
use crate::record::{Failure, Tally};

/// A request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) intended: Nanos,
    /// The key that it is about, by which its answer is checked.
    pub(super) key: u64,
    pub(super) operation: u32,
}

/// The requests in flight on a connection, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    queue: VecDeque<Asked>,
}

impl InFlight {
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn push(&mut self, asked: Asked) {
        self.queue.push_back(asked);
    }

    /// The request that is answered next.
    pub(super) fn first(&self) -> Option<&Asked> {
        self.queue.front()
    }

    /// The request that was just answered.
    pub(super) fn pop(&mut self) -> Option<Asked> {
        self.queue.pop_front()
    }

    /// Gives up all if the oldest is too old: an answer that comes late would be taken for another's.
    pub(super) fn expire(&mut self, before: Nanos, tally: &mut Tally) -> bool {
        let is_late = self.queue.front().is_some_and(|asked| asked.intended < before);
        if is_late {
            tally.explain(Failure::TimedOut, "no answer within the time-out".to_owned());
            self.abandon(Failure::TimedOut, tally);
        }
        is_late
    }

    /// Accounts all as failed.
    pub(super) fn abandon(&mut self, failure: Failure, tally: &mut Tally) {
        for asked in self.queue.drain(..) {
            tally.failed(asked.intended, failure, String::new);
        }
    }
}

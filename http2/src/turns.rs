//! The order in which streams send that have more than fits.

use std::collections::VecDeque;

use crate::priority::{Priority, URGENCIES};
use crate::streams::{StreamId, Streams, Waits};

/// The streams that wait for their turn, by urgency.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    queues: [VecDeque<StreamId>; URGENCIES],
    waiting: usize,
    /// Streams in the queues that do not wait any more.
    stale: usize,
}

impl Turns {
    /// One more. A stream that was sending, and whose answer is of no use in parts, goes on as the next.
    pub(crate) fn push(&mut self, id: StreamId, priority: Priority, was_sending: bool) {
        let queue = &mut self.queues[usize::from(priority.urgency)];
        if was_sending && !priority.incremental {
            queue.push_front(id);
        } else {
            queue.push_back(id);
        }
        self.waiting += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// The next one.
    pub(crate) fn pop(&mut self, streams: &Streams) -> Option<StreamId> {
        for queue in &mut self.queues {
            while let Some(id) = queue.pop_front() {
                if is_waiting(streams, id) {
                    self.waiting -= 1;
                    return Some(id);
                }
                self.stale -= 1;
            }
        }
        None
    }

    /// One in the queues has ended.
    pub(crate) fn forget(&mut self, streams: &Streams) {
        self.waiting -= 1;
        self.stale += 1;
        // Looked through only so often that it costs each stream one look or two.
        if self.stale > self.waiting + 16 {
            self.queues.iter_mut().for_each(|queue| queue.retain(|id| is_waiting(streams, *id)));
            self.stale = 0;
        }
    }
}

fn is_waiting(streams: &Streams, id: StreamId) -> bool {
    streams.get(id).is_some_and(|stream| stream.waits == Waits::Turn)
}

//! The iterations of a worker's event loop. A round is a worker's work between two sleeps. Replies of several clients in one
//! round leave together at its end.
//!
//! A reply that is sent wakes its reader. If replies alternate with the commands of other clients, the reader has
//! fallen asleep again before each reply. Waking it costs the server more than a small script. If replies are sent in a
//! row, most of them find the reader awake.

use std::fmt;

use tokio::runtime::{Handle, RuntimeMetrics};

/// Longest replies of a batch that wait for the end of a round: larger ones cost more to copy than they save.
const MAX_KEPT: usize = 1024;
/// Buffers kept for the next round.
const MAX_SPARE: usize = 64;

/// How many clients a worker serves per round.
#[derive(Default)]
pub struct EventLoop {
    /// Tells how often the worker has slept; none outside of a runtime.
    runtime: Option<RuntimeMetrics>,
    sleeps: u64,
    /// Clients served in this round and in the one before.
    served: [u32; 2],
    spare: Vec<Vec<u8>>,
}

impl fmt::Debug for EventLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLoop").field("served", &self.served).finish_non_exhaustive()
    }
}

impl EventLoop {
    /// The event_loop of the runtime on whose thread this is called, if there is one.
    pub fn here() -> Self {
        Self { runtime: Handle::try_current().ok().map(|handle| handle.metrics()), ..Self::default() }
    }

    /// Counts a client that is served; true if others seem to be served in the same round.
    #[inline]
    pub fn is_shared(&mut self) -> bool {
        let Some(runtime) = &self.runtime else { return false };
        let sleeps = runtime.worker_park_count(0);
        if sleeps == self.sleeps {
            self.served[0] = self.served[0].saturating_add(1);
        } else {
            self.sleeps = sleeps;
            self.served = [1, self.served[0]];
        }
        self.served[0].max(self.served[1]) > 1
    }

    /// A copy of replies that are small enough to wait for the end of the round.
    pub fn keep(&mut self, replies: &[u8]) -> Option<Vec<u8>> {
        if replies.is_empty() || replies.len() > MAX_KEPT {
            return None;
        }
        let mut kept = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(MAX_KEPT));
        kept.extend_from_slice(replies);
        Some(kept)
    }

    /// Takes back the buffer of replies that are sent.
    pub fn give_back(&mut self, mut sent: Vec<u8>) {
        if self.spare.len() < MAX_SPARE {
            sent.clear();
            self.spare.push(sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_end_when_the_worker_sleeps() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut event_loop = EventLoop::here();
            let sleep = || tokio::time::sleep(std::time::Duration::from_millis(1));
            for (clients, expected) in
                [(1, vec![false]), (1, vec![false]), (2, vec![false, true]), (1, vec![true]), (1, vec![false])]
            {
                sleep().await;
                let shared: Vec<bool> = (0..clients).map(|_| event_loop.is_shared()).collect();
                assert_eq!(shared, expected, "{clients} in a round behind {:?}", event_loop.served);
            }
        });
        assert!(!EventLoop::here().is_shared(), "nobody sleeps outside of a runtime");
    }

    #[test]
    fn only_small_replies_are_kept() {
        let mut event_loop = EventLoop::default();
        assert_eq!(event_loop.keep(b""), None);
        assert_eq!(event_loop.keep(&[b'x'; MAX_KEPT + 1]), None);
        let kept = event_loop.keep(b"+OK\r\n").unwrap();
        assert_eq!(kept, b"+OK\r\n");
        event_loop.give_back(kept);
        assert_eq!(event_loop.keep(b":1\r\n").unwrap(), b":1\r\n");
        assert!(event_loop.spare.is_empty(), "the buffer was used again");
    }
}

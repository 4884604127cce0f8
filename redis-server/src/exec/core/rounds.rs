//! The rounds of a worker. A round is its work between two sleeps. Replies of several clients in one
//! round leave together at its end.
//!
//! A reply that is sent wakes its reader. If replies alternate with the commands of other clients, the reader has
//! fallen asleep again before each reply. Waking it costs the server more than a small script. If replies are sent in a
//! row, most of them find the reader awake.

use std::fmt;

/// Longest replies of a batch that wait for the end of a round: larger ones cost more to copy than they save.
const MAX_KEPT: usize = 1024;
/// Buffers kept for the next round.
const MAX_SPARE: usize = 64;

/// The number of clients that a worker serves per round.
#[derive(Default)]
pub struct Rounds {
    /// The round that is counted.
    round: u64,
    /// Clients served in this round and in the one before.
    served: [u32; 2],
    spare: Vec<Vec<u8>>,
}

impl fmt::Debug for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rounds").field("served", &self.served).finish_non_exhaustive()
    }
}

impl Rounds {
    /// Counts a client that is served; true if others seem to be served in the same round.
    #[inline]
    pub fn is_shared(&mut self) -> bool {
        server_runtime::rounds().is_some_and(|round| self.serves_in(round))
    }

    fn serves_in(&mut self, round: u64) -> bool {
        if round == self.round {
            self.served[0] = self.served[0].saturating_add(1);
        } else {
            self.round = round;
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
        let mut rounds = Rounds::default();
        let expected = [(1, vec![false]), (1, vec![false]), (2, vec![false, true]), (1, vec![true]), (1, vec![false])];
        for (round, (clients, expected)) in (1..).zip(expected) {
            let shared: Vec<bool> = (0..clients).map(|_| rounds.serves_in(round)).collect();
            assert_eq!(shared, expected, "{clients} in a round behind {:?}", rounds.served);
        }
        assert!(!rounds.is_shared(), "nobody sleeps outside of a worker");
    }

    #[test]
    fn only_small_replies_are_kept() {
        let mut rounds = Rounds::default();
        assert_eq!(rounds.keep(b""), None);
        assert_eq!(rounds.keep(&[b'x'; MAX_KEPT + 1]), None);
        let kept = rounds.keep(b"+OK\r\n").unwrap();
        assert_eq!(kept, b"+OK\r\n");
        rounds.give_back(kept);
        assert_eq!(rounds.keep(b":1\r\n").unwrap(), b":1\r\n");
        assert!(rounds.spare.is_empty(), "the buffer was used again");
    }
}

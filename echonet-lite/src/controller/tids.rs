//! Transaction identifiers: which request each one stands for.

use core::time::Duration;
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use crate::node::Instant;

/// How many outstanding requests a controller can have: half of all identifiers, so that each can be tried anew while the
/// try before can still be answered.
pub(super) const MAX_REQUESTS: usize = 0x7F00;
/// All identifiers but 0, which some devices put into frames of their own accord.
const ALL: usize = 0xFFFF;
/// How many are free at least, so that one is found soon: every 256th. Those that rest give way.
const MIN_FREE: usize = 0x100;
/// How many given-up identifiers rest at most; past it, the one that rested longest is free again.
const MAX_RESTING: usize = 0x7F00;

const FREE: u16 = 0;
const RESTING: u16 = u16::MAX;

/// The identifiers in use.
///
/// They are handed out in turn, so that one is used again as late as can be. One whose request was given up rests: an
/// answer that is late finds nothing instead of another request.
#[derive(Debug)]
pub(super) struct Tids {
    /// By identifier: free, resting, or one more than the slot of its request.
    table: Vec<u16>,
    free: usize,
    last: u16,
    resting: VecDeque<(Instant, u16)>,
    rest: Duration,
}

impl Tids {
    pub(super) fn new(first: u16, rest: Duration) -> Self {
        // All zeros: the pages of the table come from the system when they are first written.
        Self { table: vec![FREE; 1 << 16], free: ALL, last: first, resting: VecDeque::new(), rest }
    }

    /// How many tries each of `requests` may keep, so that a free identifier is never missing.
    pub(super) const fn tries_kept(requests: usize) -> usize {
        (ALL - MIN_FREE) / requests
    }

    /// Takes a free identifier for the request in a slot. No more than [`MAX_REQUESTS`] requests may keep theirs, each
    /// [`tries_kept`](Self::tries_kept) of them.
    pub(super) fn take(&mut self, now: Instant, slot: u32) -> u16 {
        while let Some((until, tid)) = self.resting.front().copied() {
            if until > now && self.resting.len() <= MAX_RESTING && self.free >= MIN_FREE {
                break;
            }
            self.resting.pop_front();
            self.free(tid);
        }
        self.free -= 1;
        loop {
            self.last = self.last.checked_add(1).unwrap_or(1);
            let entry = &mut self.table[usize::from(self.last)];
            if *entry == FREE {
                *entry = slot as u16 + 1;
                return self.last;
            }
        }
    }

    /// The slot of the request that an identifier stands for.
    pub(super) fn find(&self, tid: u16) -> Option<u32> {
        match self.table[usize::from(tid)] {
            FREE | RESTING => None,
            slot => Some(u32::from(slot) - 1),
        }
    }

    /// Whether an identifier was that of a request that has ended without this answer.
    pub(super) fn is_resting(&self, tid: u16) -> bool {
        self.table[usize::from(tid)] == RESTING
    }

    /// Gives back an identifier that was answered.
    pub(super) fn free(&mut self, tid: u16) {
        self.table[usize::from(tid)] = FREE;
        self.free += 1;
    }

    /// Gives back an identifier that was not answered, and may yet be.
    pub(super) fn put_to_rest(&mut self, now: Instant, tid: u16) {
        self.table[usize::from(tid)] = RESTING;
        self.resting.push_back((now + self.rest, tid));
    }

    pub(super) fn footprint(&self) -> usize {
        self.table.len() * size_of::<u16>() + self.resting.capacity() * size_of::<(Instant, u16)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resting_identifiers_are_not_reused_before_their_time() {
        let mut tids = Tids::new(65_530, Duration::from_secs(60));
        let start = Instant::from_micros(0);
        let late = tids.take(start, 7);
        assert_eq!((late, tids.find(late)), (65_531, Some(7)));
        tids.put_to_rest(start, late);
        assert_eq!(tids.find(late), None);
        for _ in 0..100_000 {
            let tid = tids.take(start, 1);
            assert!(tid != late && tid != 0);
            tids.free(tid);
        }
        let later = start + Duration::from_secs(60);
        assert!((0..70_000).any(|_| {
            let tid = tids.take(later, 1);
            tids.free(tid);
            tid == late
        }));
        assert_eq!(tids.resting.len(), 0);
    }

    #[test]
    fn there_is_always_a_free_one() {
        let mut tids = Tids::new(0, Duration::from_secs(60));
        let now = Instant::from_micros(0);
        let held: Vec<u16> = (0..MAX_REQUESTS).map(|slot| tids.take(now, slot as u32)).collect();
        for _ in 0..100_000 {
            let tid = tids.take(now, 0);
            tids.put_to_rest(now, tid);
        }
        assert!(held.iter().enumerate().all(|(slot, tid)| tids.find(*tid) == Some(slot as u32)));
    }
}

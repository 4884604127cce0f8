//! The clients for which a write waits under `always`.
//!
//! ```text
//! disk      ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒     ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒     written
//! clients                     ┆┆┆┆┆                  ┆┆┆┆┆  they are answered, send their next commands, and wait again
//! ```
//!
//! Without a pause, the first clients would get a write of their own. The others would wait for that write and for the next one. Two halves
//! of the clients would then take turns, and a write would serve half as many clients.

use std::time::{Duration, Instant};

/// The next client has to come within this part of the disk's time, or within the maximum below, if that is less; else the write begins. A
/// quarter keeps fifty clients of a busy machine together where the disk takes a millisecond; the maximum bounds the pause after a write
/// that took seconds.
const PAUSE_PART: u32 = 4;
const PAUSE_MAX: Duration = Duration::from_millis(1);

/// The clients and the time of the last write.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Clients that waited at its end, those included that had come meanwhile.
    pub(super) waited: usize,
    /// How long it took.
    pub(super) took: Duration,
}

impl Group {
    /// The number of clients to wait for; `None` if the last write had one client, as no others are to come.
    pub(super) fn awaited(&self) -> Option<usize> {
        (self.waited > 1).then_some(self.waited)
    }

    /// Begins to wait for them.
    pub(super) fn gather(&self, now: Instant) -> Gathering {
        let pause = (self.took / PAUSE_PART).min(PAUSE_MAX);
        Gathering { pause, came: now, end: now + self.took, present: 0 }
    }
}

/// A wait for clients: while they come, and no longer than the disk takes. So no client waits more than twice as long as without it. A
/// client that thinks before its next command costs the others a part of that.
#[derive(Debug)]
pub(super) struct Gathering {
    pause: Duration,
    came: Instant,
    end: Instant,
    present: usize,
}

impl Gathering {
    /// How much longer the wait goes on if no client comes, with `present` clients so far; `None` if it ends.
    pub(super) fn left(&mut self, now: Instant, present: usize) -> Option<Duration> {
        if present > self.present {
            self.came = now;
        }
        self.present = present;
        let left = (self.came + self.pause).min(self.end).saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_alone_is_not_waited_for() {
        let awaited = |waited| Group { waited, took: Duration::from_millis(4) }.awaited();
        assert_eq!([0, 1, 2, 50].map(awaited), [None, None, Some(2), Some(50)]);
    }

    /// Each row: microseconds from the start, clients present, and microseconds that the wait still goes on.
    #[track_caller]
    fn check(took_us: u64, looks: &[(u64, usize, Option<u64>)]) {
        let (us, begin) = (Duration::from_micros, Instant::now());
        let mut gathering = Group { waited: 50, took: us(took_us) }.gather(begin);
        for &(at, present, left) in looks {
            assert_eq!(gathering.left(begin + us(at), present), left.map(us), "{at} us: {present}");
        }
    }

    #[test]
    fn gathering_continues_while_clients_arrive() {
        check(2000, &[(0, 1, Some(500)), (200, 1, Some(300)), (300, 9, Some(500)), (799, 9, Some(1)), (800, 9, None)]);
    }

    #[test]
    fn gathering_lasts_no_longer_than_the_last_write() {
        check(400, &[(0, 1, Some(100)), (90, 2, Some(100)), (180, 3, Some(100)), (350, 4, Some(50)), (400, 5, None)]);
        check(0, &[(0, 1, None)]);
    }

    #[test]
    fn a_write_that_has_taken_long_makes_no_pause_long() {
        check(3_000_000, &[(0, 1, Some(1000)), (999, 1, Some(1)), (1000, 1, None)]);
    }
}

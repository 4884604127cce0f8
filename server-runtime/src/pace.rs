//! The pace at which a client takes an answer.

use std::time::Duration;

/// Time-outs for which the bytes of one step may count. Over loopback a step is up to 128 KiB, for which 500 bytes a second take four minutes: eight time-outs
/// of half a minute.
const STEPS: u64 = 8;

/// The bytes of a connection, as its client's system has acknowledged them ([`Stream::progress`](crate::Stream::progress)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that the client has received since the connection began.
    pub received: u64,
    /// Bytes on their way to it.
    pub under_way: u64,
}

/// A client's pace within a time-out: the bytes that it had received when its time began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace(u64);

impl Pace {
    /// The time of a client begins that has received so many bytes.
    pub fn new(received: u64) -> Self {
        Self(received)
    }

    /// Bytes that a client has to receive within a time-out at this rate, in bytes a second.
    pub fn least(rate: u64, time: Duration) -> u64 {
        (time.as_secs_f64() * rate as f64).max(1.0) as u64
    }

    /// A time begins in which `least` bytes are to be received.
    ///
    /// A system acknowledges what its program reads in steps, of which one may be more than `least`. So bytes beyond these count for the next
    /// times, up to eight in all, if the next step has bytes enough.
    pub fn begin(&mut self, now: Progress, least: u64) {
        let earlier = if now.under_way > least { (STEPS - 1) * least } else { 0 };
        self.0 = self.0.max(now.received.saturating_sub(earlier));
    }

    /// Whether the client has received at least `least` bytes since its time began, those of [earlier steps](Self::begin) included. If so,
    /// the next time begins.
    pub fn has_moved(&mut self, received: u64, least: u64) -> bool {
        let has_moved = received.saturating_sub(self.0) >= least;
        if has_moved {
            self.0 = (self.0 + least).max(received.saturating_sub((STEPS - 1) * least));
        }
        has_moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_once() {
        let mut pace = Pace::new(1000);
        let moves = [1400, 1500, 1900, 2100].map(|received| pace.has_moved(received, 500));
        assert_eq!(moves, [false, true, false, true]);
    }

    #[test]
    fn earlier_steps_count_if_another_is_possible() {
        let moves = |under_way| {
            let mut pace = Pace::default();
            pace.begin(Progress { received: 10_000, under_way }, 500);
            (0..10).filter(|_| pace.has_moved(10_000, 500)).count()
        };
        assert_eq!((moves(17), moves(60_000)), (0, 7));
    }

    #[test]
    fn a_large_step_lasts_for_eight_times() {
        for step in [4000, 1_000_000] {
            let mut pace = Pace::new(0);
            assert_eq!((0..10).filter(|_| pace.has_moved(step, 500)).count(), 8);
        }
    }
}

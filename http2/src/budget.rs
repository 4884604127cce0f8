//! What a peer's frames cost, so that work has a limit as memory has.

use std::time::{Duration, Instant};

use crate::frame::Kind;

/// After this long a peer may send as much again.
const PERIOD: Duration = Duration::from_secs(1);

/// What is sent to a peer lets it send a frame for each so many bytes: windows, acknowledgements, resets.
const WORTH: usize = 512;

/// Weighs frames: requests and their data are worth something, all others cost.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    credit: i64,
    most: i64,
    /// When the credit was full last.
    began: Instant,
}

impl Budget {
    pub(crate) fn new(most: u32, now: Instant) -> Self {
        let most = if most == 0 { i64::MAX / 2 } else { i64::from(most) };
        Self { credit: most, most, began: now }
    }

    #[inline]
    pub(crate) fn weigh(&mut self, kind: Kind) {
        let worth = match kind {
            // What carries no data is charged when that is known; a refused request, too.
            Kind::Data | Kind::Headers => 1,
            // With the request that it ends it costs one.
            Kind::RstStream => -2,
            Kind::Priority
            | Kind::Settings
            | Kind::PushPromise
            | Kind::Ping
            | Kind::GoAway
            | Kind::WindowUpdate
            | Kind::Continuation
            | Kind::PriorityUpdate
            | Kind::Unknown => -1,
        };
        self.credit = (self.credit + worth).min(self.most);
    }

    #[inline]
    pub(crate) fn charge(&mut self, cost: i64) {
        self.credit -= cost;
    }

    #[inline]
    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.credit = (self.credit + (bytes / WORTH) as i64).min(self.most);
    }

    /// Whether the peer has sent too much.
    #[inline]
    pub(crate) fn is_spent(&mut self, now: Instant) -> bool {
        self.credit < 0 && !self.refill(now)
    }

    #[cold]
    fn refill(&mut self, now: Instant) -> bool {
        let is_due = now.saturating_duration_since(self.began) >= PERIOD;
        if is_due {
            (self.began, self.credit) = (now, self.most);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_is_spent_and_comes_back() {
        // What a peer sends 300 times, what is written to it each time, and whether that is too much of 200.
        fn check(kinds: &[Kind], wrote: usize, is_spent: bool) {
            let now = Instant::now();
            let mut budget = Budget::new(200, now);
            for _ in 0..300 {
                kinds.iter().for_each(|kind| budget.weigh(*kind));
                budget.wrote(wrote);
            }
            assert_eq!(budget.is_spent(now + Duration::from_millis(999)), is_spent, "{kinds:?}");
            assert!(!budget.is_spent(now + PERIOD));
        }
        check(&[Kind::Ping], 0, true);
        check(&[Kind::Ping], 512, false);
        check(&[Kind::Headers, Kind::RstStream], 0, true);
        check(&[Kind::Headers, Kind::Data], 0, false);
        check(&[Kind::Headers, Kind::WindowUpdate], 0, false);
        check(&[Kind::Data, Kind::WindowUpdate, Kind::Ping], 100, true);
    }

    #[test]
    fn no_limit() {
        let now = Instant::now();
        let mut budget = Budget::new(0, now);
        (0..100_000).for_each(|_| budget.weigh(Kind::Ping));
        assert!(!budget.is_spent(now));
    }
}

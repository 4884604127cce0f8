//! Gaps in a thread's own clock: the kernel, a hypervisor, or a signal did not let it run.

use super::cpu::thread_nanos;
use crate::clock::Nanos;
use crate::record::Stalls;

/// A shorter gap is ordinary scheduling beside other threads.
const SHORTEST: Nanos = 20_000_000;

/// Finds the stalls of the thread that owns it.
pub(super) struct StallWatch {
    /// When the clock was read last.
    seen: Nanos,
    /// The thread's CPU time when it was read last: what the thread computed is no stall.
    cpu: Nanos,
    stalls: Stalls,
}

impl StallWatch {
    pub(super) fn new(now: Nanos) -> Self {
        Self { seen: now, cpu: thread_nanos(), stalls: Stalls::default() }
    }

    /// The clock was read. Since it was read before, the thread should have waited for `allowed` at most; `counts` says
    /// whether the run is being measured.
    #[inline]
    pub(super) fn look(&mut self, now: Nanos, allowed: Nanos, counts: bool) {
        let due = self.seen.saturating_add(allowed);
        self.seen = now;
        if now > due.saturating_add(SHORTEST) {
            self.account(now - due, counts);
        }
    }

    #[cold]
    fn account(&mut self, gap: Nanos, counts: bool) {
        let computed = thread_nanos().saturating_sub(self.cpu);
        self.tick();
        let lost = gap.saturating_sub(computed);
        if counts && lost > SHORTEST {
            self.stalls.add(lost as f64 / 1e9);
        }
    }

    /// Reads the CPU time. To be called often, so that little of it is old when a gap is found.
    pub(super) fn tick(&mut self) {
        self.cpu = thread_nanos();
    }

    pub(super) fn stalls(&self) -> Stalls {
        self.stalls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gaps_that_nothing_explains_are_stalls() {
        let mut watch = StallWatch::new(0);
        watch.look(100_000_000, 100_000_000, true);
        watch.look(119_000_000, 0, true);
        // Before the measurement.
        watch.look(1_119_000_000, 0, false);
        assert_eq!(watch.stalls(), Stalls::default());
        watch.look(1_519_000_000, 100_000_000, true);
        watch.look(1_719_000_000, 0, true);
        let Stalls { count, seconds, longest } = watch.stalls();
        // Less what the test computed.
        assert!(
            count == 2 && seconds > 0.4 && seconds <= 0.5 && longest > 0.2 && longest <= 0.3,
            "{seconds} {longest}"
        );
    }
}

//! When requests are sent: as soon as there is room (closed loop), or at their intended times (open loop).

use std::time::Duration;

use rand::Rng;
use rand_distr::Exp1;

use crate::clock::{Nanos, nanos};
use crate::workload::Source;

/// When the requests of a run are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// A closed loop: a request follows an answer.
    Closed,
    /// An open loop: requests are sent at intended times, however slowly the server answers.
    Open {
        /// How many.
        rate: Rate,
        /// How they are spread.
        arrivals: Arrivals,
    },
}

/// Requests per second over all threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// The same all the time.
    Fixed(f64),
    /// From one rate to another, linearly, then fixed.
    Ramp {
        /// At the beginning.
        from: f64,
        /// At the end of `over`, and from then on.
        to: f64,
        /// How long the ramp lasts.
        over: Duration,
    },
}

impl Rate {
    /// The rate at a time since the load began, in requests per second.
    #[must_use]
    pub fn at(self, elapsed: Nanos) -> f64 {
        match self {
            Self::Fixed(rate) => rate,
            Self::Ramp { from, to, over } => {
                let share = (elapsed as f64 / nanos(over).max(1) as f64).min(1.0);
                from + (to - from) * share
            }
        }
    }
}

impl Rate {
    /// How many nanoseconds after `elapsed` another `requests` are due: the time over which the rate's integral is that.
    fn gap(self, elapsed: Nanos, requests: f64) -> f64 {
        let now = self.at(elapsed) / 1e9;
        let Self::Ramp { from, to, over } = self else {
            return requests / now;
        };
        let left = nanos(over).saturating_sub(elapsed) as f64;
        let (end, slope) = (to / 1e9, (to - from) / 1e9 / nanos(over).max(1) as f64);
        let within = (now + end) / 2.0 * left;
        if within <= requests {
            return left + (requests - within) / end;
        }
        // now * t + slope * t^2 / 2 = requests, in the form that also holds for a slope of 0.
        2.0 * requests / (now + (now * now + 2.0 * slope * requests).max(0.0).sqrt())
    }
}

/// The longest time between two requests of a thread: an hour, in nanoseconds.
const LONGEST_GAP: f64 = 3.6e12;

/// How the intended times of an open loop are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Evenly.
    Constant,
    /// As independent users arrive: exponential gaps.
    Poisson,
}

/// One thread's schedule of an open loop.
#[derive(Clone, Debug)]
pub struct Schedule {
    rate: Rate,
    arrivals: Arrivals,
    threads: f64,
    began: Nanos,
    next: Nanos,
}

impl Schedule {
    /// The schedule of thread `thread` of `threads`, whose load begins at `began`. The threads' constant schedules
    /// interleave.
    #[must_use]
    pub fn new(rate: Rate, arrivals: Arrivals, thread: usize, threads: usize, began: Nanos) -> Self {
        let threads = threads.max(1) as f64;
        let first = rate.gap(0, thread as f64).clamp(0.0, LONGEST_GAP);
        Self { rate, arrivals, threads, began, next: began + first as Nanos }
    }

    /// When the next request is intended.
    #[must_use]
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// Takes the next intended time if it has come.
    pub fn take(&mut self, now: Nanos, source: &mut Source) -> Option<Nanos> {
        if self.next > now {
            return None;
        }
        let intended = self.next;
        let requests: f64 = match self.arrivals {
            Arrivals::Constant => 1.0,
            Arrivals::Poisson => source.rng.sample(Exp1),
        };
        let gap = self.rate.gap(intended.saturating_sub(self.began), requests * self.threads);
        // A rate of next to nothing must not overflow the clock.
        let gap = gap.clamp(1.0, LONGEST_GAP);
        self.next = intended + gap as Nanos;
        Some(intended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(rate: Rate, arrivals: Arrivals, threads: usize, seconds: u64) -> usize {
        let until = seconds * 1_000_000_000;
        (0..threads)
            .map(|thread| {
                let mut schedule = Schedule::new(rate, arrivals, thread, threads, 0);
                let mut source = Source::new(7, thread, threads);
                std::iter::from_fn(|| schedule.take(until - 1, &mut source)).count()
            })
            .sum()
    }

    #[test]
    fn schedules_offer_their_rate() {
        #[track_caller]
        fn check(rate: Rate, arrivals: Arrivals, threads: usize, expected: f64, tolerance: f64) {
            let found = count(rate, arrivals, threads, 10) as f64;
            assert!((found - expected).abs() <= tolerance, "{rate:?} {arrivals:?} {threads}: {found}");
        }
        check(Rate::Fixed(1000.0), Arrivals::Constant, 1, 10_000.0, 1.0);
        check(Rate::Fixed(1000.0), Arrivals::Constant, 3, 10_000.0, 3.0);
        // Five standard deviations.
        check(Rate::Fixed(1000.0), Arrivals::Poisson, 2, 10_000.0, 500.0);
        let ramp = Rate::Ramp { from: 0.0, to: 2000.0, over: Duration::from_secs(10) };
        check(ramp, Arrivals::Constant, 2, 10_000.0, 20.0);
        let ramp = Rate::Ramp { from: 2000.0, to: 0.0, over: Duration::from_secs(5) };
        check(ramp, Arrivals::Constant, 1, 5_000.0, 20.0);
        let ramp = Rate::Ramp { from: 500.0, to: 1500.0, over: Duration::from_secs(10) };
        check(ramp, Arrivals::Constant, 2, 10_000.0, 20.0);
    }
}

//! When requests are sent: as soon as there is room (closed loop), or at their intended times (open loop).

mod stages;

use std::sync::Arc;
use std::time::Duration;

use rand::Rng;
use rand_distr::Exp1;

use crate::clock::{Nanos, nanos};
use crate::workload::Source;

use stages::LONGEST_GAP;
pub use stages::{Staged, Stages};

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
    fn gap(self, elapsed: f64, requests: f64) -> f64 {
        // Where a ramp begins with a rate of 0, the division below would not be a number.
        if requests <= 0.0 {
            return 0.0;
        }
        let now = self.at(elapsed as Nanos) / 1e9;
        let Self::Ramp { from, to, over } = self else {
            return requests / now;
        };
        let left = (nanos(over) as f64 - elapsed).max(0.0);
        let (end, slope) = (to / 1e9, (to - from) / 1e9 / nanos(over).max(1) as f64);
        let within = (now + end) / 2.0 * left;
        if within <= requests {
            return left + (requests - within) / end;
        }
        // now * t + slope * t^2 / 2 = requests, in the form that also holds for a slope of 0.
        2.0 * requests / (now + (now * now + 2.0 * slope * requests).max(0.0).sqrt())
    }
}

/// How the intended times of an open loop are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Evenly.
    Constant,
    /// As independent users arrive: exponential gaps.
    Poisson,
}

/// Times at which requests were recorded; behind the last one they begin anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    times: Vec<Nanos>,
    /// From the first one to its return.
    span: Nanos,
}

impl Recorded {
    /// Times from the first one, in ascending order, of which there is at least one; sent `speed` times as fast.
    #[must_use]
    pub fn new(times: &[Nanos], speed: f64) -> Self {
        let times: Vec<Nanos> = times.iter().map(|time| (*time as f64 / speed) as Nanos).collect();
        let last = times.last().copied().unwrap_or_default();
        // Between the last one and the first lies what lies between two others, on average.
        let gap = match times.len() as u64 {
            0 | 1 => SECOND,
            _ if last == 0 => SECOND,
            count => (last / (count - 1)).max(1),
        };
        Self { times, span: last + gap }
    }

    /// When the request of that number is due, from the first one.
    fn at(&self, number: u64) -> Nanos {
        let count = (self.times.len() as u64).max(1);
        let time = self.times.get((number % count) as usize).copied().unwrap_or_default();
        (number / count).saturating_mul(self.span).saturating_add(time)
    }

    /// How many there are per second, on average.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.times.len() as f64 * 1e9 / self.span as f64
    }
}

/// The pause between repetitions of a recording without length.
const SECOND: Nanos = 1_000_000_000;

/// One thread's schedule of an open loop.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Where times are not those of a rate: they themselves, and which one is next.
    recorded: Option<(Arc<Recorded>, u64)>,
    /// In place of the rate, where it changes in stages.
    stages: Option<Arc<Stages>>,
    rate: Rate,
    arrivals: Arrivals,
    thread: f64,
    threads: f64,
    began: Nanos,
    /// How many were taken.
    taken: u64,
    /// When the next one is due, in nanoseconds since the load began: fractions add up over a run.
    elapsed: f64,
    next: Nanos,
}

impl Schedule {
    /// The schedule of thread `thread` of `threads`, whose load begins at `began`. The threads' constant schedules
    /// interleave.
    #[must_use]
    pub fn new(rate: Rate, arrivals: Arrivals, thread: usize, threads: usize, began: Nanos) -> Self {
        let (thread, threads) = (thread as f64, threads.max(1) as f64);
        let elapsed = rate.gap(0.0, thread).clamp(0.0, LONGEST_GAP);
        let next = began + elapsed.round() as Nanos;
        Self { recorded: None, stages: None, rate, arrivals, thread, threads, began, taken: 0, elapsed, next }
    }

    /// The same thread's schedule of recorded times, which the threads have in turns.
    #[must_use]
    pub fn of_recorded(self, recorded: Arc<Recorded>, thread: usize) -> Self {
        let number = thread as u64;
        Self { next: self.began.saturating_add(recorded.at(number)), recorded: Some((recorded, number)), ..self }
    }

    /// The same thread's schedule of a rate that changes in stages.
    #[must_use]
    pub fn of_stages(self, stages: Arc<Stages>) -> Self {
        let elapsed = stages.gap(0.0, self.thread).clamp(0.0, LONGEST_GAP);
        let next = self.began.saturating_add(elapsed.round() as Nanos);
        Self { stages: Some(stages), elapsed, next, ..self }
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
        if let Some((recorded, number)) = &mut self.recorded {
            *number += self.threads as u64;
            self.next = self.began.saturating_add(recorded.at(*number));
            return Some(intended);
        }
        let requests: f64 = match self.arrivals {
            Arrivals::Constant => 1.0,
            Arrivals::Poisson => source.rng.sample(Exp1),
        };
        self.taken += 1;
        let gap = match &self.stages {
            Some(stages) => stages.gap(self.elapsed, requests * self.threads),
            None => self.rate.gap(self.elapsed, requests * self.threads),
        };
        // A rate of next to nothing must not overflow the clock.
        let gap = gap.clamp(1.0, LONGEST_GAP);
        self.elapsed = match (self.rate, self.arrivals) {
            // By its number, so that not even rounding adds up.
            (Rate::Fixed(rate), Arrivals::Constant) if self.stages.is_none() && gap < LONGEST_GAP => {
                (self.thread + self.taken as f64 * self.threads) * 1e9 / rate
            }
            _ => self.elapsed + gap,
        };
        self.next = self.began.saturating_add(self.elapsed.round() as Nanos).max(intended);
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
    fn recorded_times_are_kept_and_repeated() {
        let recorded = Arc::new(Recorded::new(&[0, 2_000, 2_000, 6_000], 2.0));
        assert_eq!((recorded.span, recorded.rate()), (4_000, 1e6));
        let schedule = |thread| {
            let schedule = Schedule::new(Rate::Fixed(1.0), Arrivals::Constant, thread, 2, 100);
            let mut schedule = schedule.of_recorded(Arc::clone(&recorded), thread);
            let mut source = Source::new(7, thread, 2);
            std::iter::from_fn(move || schedule.take(5_000, &mut source)).collect::<Vec<_>>()
        };
        assert_eq!((schedule(0), schedule(1)), (vec![100, 1_100, 4_100], vec![1_100, 3_100]));
        // A recording without length is repeated after a second.
        assert_eq!((Recorded::new(&[0], 1.0).rate(), Recorded::new(&[0, 0], 4.0).rate()), (1.0, 2.0));
    }

    #[test]
    fn a_constant_rate_is_exact() {
        #[track_caller]
        fn check(rate: f64, threads: usize, seconds: u64) {
            let expected = (rate * seconds as f64).round() as usize;
            assert_eq!(count(Rate::Fixed(rate), Arrivals::Constant, threads, seconds), expected, "{rate} {threads}");
        }
        // Gaps that are no whole number of nanoseconds.
        check(30_000.0, 1, 10);
        check(30_000.0, 7, 10);
        check(333_333.0, 2, 3);
        check(1.0, 1, 3);
        check(3.0, 2, 3);
        check(0.5, 1, 4);
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

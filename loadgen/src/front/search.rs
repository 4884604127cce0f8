//! The search for the highest rate that meets the objectives (`--rate max`), as decisions only: which rate is tried next.
//!
//! It brackets, bisects, then confirms:
//!
//! ```text
//! Up ──missed──▶ Bisect ──narrow──▶ Confirm ──met often enough──▶ found
//!  └─(first missed)─▶ Down ──met──▶ Bisect      └──missed──▶ Confirm, a step lower
//! ```
//!
//! A miss counts when the next run at the same rate misses too: one slow moment of the machine must not send the search
//! far down.

/// Bisection ends when the bracket is this narrow: 2 % is about what runs of seconds can tell apart.
const NARROW: f64 = 1.02;

/// Runs besides the one that met, before a rate is believed.
const CONFIRMATIONS: u32 = 2;

/// A rate that was not confirmed is lowered by this.
const STEP_DOWN: f64 = 0.95;

/// The lowest rate that is tried, requests per second.
const LEAST: f64 = 1.0;

/// How many runs a search may take, whatever the target does.
const MOST_RUNS: u32 = 60;

/// The next step of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Run at this rate, and tell [`Search::tell`] whether the objectives were met.
    Try(f64),
    /// Run again at this rate: it met them before, and must meet them again.
    Confirm(f64),
    /// The highest rate that met them every time.
    Found(f64),
    /// No rate did.
    NoRate,
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Search {
    step: Step,
    /// The highest rate that met the objectives, and the lowest that did not.
    met: Option<f64>,
    missed: Option<f64>,
    confirmed: u32,
    /// Whether the last run missed, so that the next one at its rate decides.
    doubted: bool,
    runs: u32,
}

impl Search {
    /// A search that begins at a guess.
    #[must_use]
    pub fn new(guess: f64) -> Self {
        Self { step: Step::Try(guess.max(LEAST)), met: None, missed: None, confirmed: 0, doubted: false, runs: 0 }
    }

    /// The step to take now.
    #[must_use]
    pub fn step(&self) -> Step {
        self.step
    }

    /// Takes the result of the run that [`step`](Self::step) asked for.
    pub fn tell(&mut self, met: bool) {
        self.runs += 1;
        self.doubted = !met && !self.doubted;
        if self.runs >= MOST_RUNS && !matches!(self.step, Step::Found(_)) {
            self.step = Step::NoRate;
        }
        if self.doubted {
            return;
        }
        self.step = match self.step {
            Step::Try(rate) if met => self.up(rate),
            Step::Try(rate) => self.down(rate),
            Step::Confirm(rate) if met => self.confirm(rate),
            Step::Confirm(rate) => self.lower(rate),
            ended @ (Step::Found(_) | Step::NoRate) => ended,
        };
    }

    /// Whether the last run missed, and the next one at its rate decides.
    #[must_use]
    pub fn is_doubted(&self) -> bool {
        self.doubted
    }

    fn up(&mut self, rate: f64) -> Step {
        self.met = Some(rate);
        match self.missed {
            Some(missed) => self.between(rate, missed),
            None => Step::Try(rate * 1.5),
        }
    }

    fn down(&mut self, rate: f64) -> Step {
        self.missed = Some(rate);
        match self.met {
            Some(met) => self.between(met, rate),
            None if rate <= LEAST => Step::NoRate,
            None => Step::Try((rate / 2.0).max(LEAST)),
        }
    }

    fn between(&self, met: f64, missed: f64) -> Step {
        if missed / met <= NARROW { Step::Confirm(met) } else { Step::Try((met * missed).sqrt()) }
    }

    fn confirm(&mut self, rate: f64) -> Step {
        self.confirmed += 1;
        if self.confirmed >= CONFIRMATIONS { Step::Found(rate) } else { Step::Confirm(rate) }
    }

    fn lower(&mut self, rate: f64) -> Step {
        self.confirmed = 0;
        if rate <= LEAST { Step::NoRate } else { Step::Confirm((rate * STEP_DOWN).max(LEAST)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches on a target that meets every rate up to a limit, which it may change after some runs.
    fn search(guess: f64, limit: impl Fn(u32) -> f64) -> (Step, u32) {
        let mut search = Search::new(guess);
        loop {
            match search.step() {
                Step::Try(rate) | Step::Confirm(rate) => search.tell(rate <= limit(search.runs)),
                ended @ (Step::Found(_) | Step::NoRate) => return (ended, search.runs),
            }
        }
    }

    #[test]
    fn the_highest_rate_is_found() {
        #[track_caller]
        fn check(guess: f64, limit: f64) {
            let (Step::Found(found), runs) = search(guess, |_| limit) else { panic!("{guess} {limit}: nothing found") };
            assert!(found <= limit && found * NARROW >= limit, "{guess} {limit}: {found}");
            assert!(runs <= 40, "{guess} {limit}: {runs} runs");
        }
        check(1000.0, 1000.0);
        check(1000.0, 81_234.0);
        check(100_000.0, 99_999.0);
        check(100_000.0, 31.0);
        check(0.0, 7.0);
    }

    #[test]
    fn a_rate_that_is_not_confirmed_is_lowered() {
        // From the sixth run on the target is slower.
        let (found, _) = search(1000.0, |runs| if runs < 6 { 1000.0 } else { 700.0 });
        assert!(matches!(found, Step::Found(rate) if (650.0..=700.0).contains(&rate)), "{found:?}");
    }

    #[test]
    fn a_rate_search_ends_within_its_run_limit() {
        assert_eq!(search(1000.0, |_| 0.0).0, Step::NoRate);
        assert_eq!(search(1000.0, |_| f64::INFINITY), (Step::NoRate, MOST_RUNS));
        let (ended, runs) = search(1000.0, |run| if run % 3 == 0 { f64::INFINITY } else { 0.0 });
        assert!(matches!(ended, Step::Found(_) | Step::NoRate));
        assert!(runs <= MOST_RUNS);
    }

    #[test]
    fn one_slow_moment_is_forgiven() {
        // Every fifth run misses whatever its rate.
        let (found, _) = search(1000.0, |runs| if runs % 5 == 0 { 0.0 } else { 900.0 });
        assert!(matches!(found, Step::Found(rate) if (882.0..=900.0).contains(&rate)), "{found:?}");
    }
}

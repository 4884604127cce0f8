//! Verdicts from pairs of runs: whether one subject is better than another, and when no verdict is possible.

use std::collections::BTreeMap;
use std::fmt;

use super::metric::Metric;
use super::stats::{self, ERROR, FEWEST_PAIRS, Ratio, holm};
use super::validity::{is_disturbed, is_generator_bound};
use crate::record::Outcome;

/// A ratio within this share of 1 makes no practical difference.
pub const MARGIN: f64 = 0.05;

/// With a larger share of failed requests a subject has not done what it was asked for.
const MOST_FAILED: f64 = 0.01;

/// The verdict on a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The subject is better than its rival.
    Better,
    /// It is worse.
    Worse,
    /// The whole interval lies within [`MARGIN`] of 1.
    Equivalent,
    /// The interval leaves open which of these it is: more rounds are needed.
    Inconclusive,
    /// No number of such rounds would tell.
    Void(Void),
}

/// Why nothing can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Void {
    /// No round has this figure of both.
    Missing,
    /// Too few rounds have it of both.
    FewPairs,
    /// Too few of those rounds were not disturbed.
    Disturbed,
    /// The generator was the limit, so that rate and latencies are its own.
    GeneratorBound,
    /// An open loop's rate is what was asked for.
    RateWasSet,
    /// Too many requests failed.
    Failures,
}

impl Void {
    /// All, in the order in which reports explain them.
    pub const ALL: [Self; 6] =
        [Self::GeneratorBound, Self::Disturbed, Self::RateWasSet, Self::Failures, Self::FewPairs, Self::Missing];

    /// Its letter in tables.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::GeneratorBound => 'g',
            Self::Disturbed => 'd',
            Self::RateWasSet => 'r',
            Self::Failures => 'f',
            Self::FewPairs => 'n',
            Self::Missing => 'm',
        }
    }
}

impl fmt::Display for Void {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GeneratorBound => {
                f.write_str("the generator was the limit: rate and latencies are its own, the CPU time decides")
            }
            Self::Disturbed => write!(f, "other programs disturbed all but fewer than {FEWEST_PAIRS} rounds"),
            Self::RateWasSet => f.write_str("the rate of an open loop is what was asked for"),
            Self::Failures => write!(f, "more than {:.0} % of the requests failed", MOST_FAILED * 100.0),
            Self::FewPairs => write!(f, "fewer than {FEWEST_PAIRS} rounds have results of both"),
            Self::Missing => f.write_str("there are no results of both"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Better => f.write_str("better"),
            Self::Worse => f.write_str("worse"),
            Self::Equivalent => f.write_str("equivalent"),
            Self::Inconclusive => f.write_str("inconclusive"),
            Self::Void(reason) => write!(f, "void ({})", reason.letter()),
        }
    }
}

/// The pairs of two subjects for one metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The metric.
    pub metric: Metric,
    /// The subject's figure divided by its rival's, from the undisturbed rounds.
    pub ratio: Option<Ratio>,
    /// Why it says nothing, if it does not.
    pub void: Option<Void>,
    /// How many rounds with results of both were disturbed.
    pub disturbed: usize,
}

impl Comparison {
    /// Compares the results of two subjects by round.
    #[must_use]
    pub fn new(metric: Metric, own: &BTreeMap<usize, &Outcome>, rival: &BTreeMap<usize, &Outcome>) -> Self {
        let both = own.iter().filter_map(|(round, own)| Some((*own, *rival.get(round)?)));
        let known = |pair: &(&Outcome, &Outcome)| metric.of(pair.0).is_some() && metric.of(pair.1).is_some();
        let all: Vec<(&Outcome, &Outcome)> = both.filter(known).collect();
        let calm = |pair: &&(&Outcome, &Outcome)| !is_disturbed(pair.0) && !is_disturbed(pair.1);
        let deciding: Vec<_> = all.iter().filter(calm).copied().collect();
        let values = |(own, rival): &(&Outcome, &Outcome)| Some((metric.of(own)?, metric.of(rival)?));
        let ratio = stats::paired_ratio(&deciding.iter().filter_map(values).collect::<Vec<_>>());
        Self { metric, ratio, void: void(metric, &all, &deciding), disturbed: all.len() - deciding.len() }
    }

    /// Pairs that are compared without knowing of the runs more than a figure.
    #[must_use]
    pub fn of_pairs(metric: Metric, pairs: &[(f64, f64)]) -> Self {
        let ratio = stats::paired_ratio(pairs);
        let void = match ratio.map_or(0, |ratio| ratio.pairs) {
            0 => Some(Void::Missing),
            1..FEWEST_PAIRS => Some(Void::FewPairs),
            _ => None,
        };
        Self { metric, ratio, void, disturbed: 0 }
    }
}

fn void(metric: Metric, all: &[(&Outcome, &Outcome)], deciding: &[(&Outcome, &Outcome)]) -> Option<Void> {
    let any = |check: fn(&Outcome) -> bool| deciding.iter().any(|(own, rival)| check(own) || check(rival));
    let failed = |outcomes: &mut dyn Iterator<Item = &Outcome>| {
        let (failed, all) = outcomes.fold((0, 0), |(failed, all), outcome| {
            (failed + outcome.failed(), all + outcome.failed() + outcome.answers())
        });
        failed as f64 > MOST_FAILED * all as f64
    };
    match () {
        () if all.is_empty() => Some(Void::Missing),
        () if metric == Metric::Throughput && any(|outcome| outcome.offered_per_second.is_some()) => {
            Some(Void::RateWasSet)
        }
        () if all.len() < FEWEST_PAIRS => Some(Void::FewPairs),
        () if deciding.len() < FEWEST_PAIRS => Some(Void::Disturbed),
        () if failed(&mut deciding.iter().map(|pair| pair.0)) || failed(&mut deciding.iter().map(|pair| pair.1)) => {
            Some(Void::Failures)
        }
        () if metric.is_of_generator() && any(is_generator_bound) => Some(Void::GeneratorBound),
        () => None,
    }
}

/// Judges a family of comparisons: whatever is asked of one record, or for one finding.
///
/// The chance that any difference in the family is claimed where there is none is 5 % (Holm), and likewise that any two are
/// called equivalent that differ by more than the margin.
#[must_use]
pub fn verdicts(family: &[Comparison]) -> Vec<Verdict> {
    let valid = || family.iter().filter(|one| one.void.is_none()).filter_map(|one| one.ratio);
    let different = holm(&valid().map(|ratio| ratio.improbability_of(1.0)).collect::<Vec<_>>());
    let apart = holm(&valid().map(|ratio| ratio.improbability_of_any_beyond(MARGIN)).collect::<Vec<_>>());
    let mut adjusted = different.into_iter().zip(apart);
    let judge = |one: &Comparison| {
        let (None, Some(ratio)) = (one.void, one.ratio) else {
            return Verdict::Void(one.void.unwrap_or(Void::Missing));
        };
        let (different, apart) = adjusted.next().unwrap_or((1.0, 1.0));
        match () {
            // A difference that is proven to be within the margin does not matter, whether it is proven to exist or not.
            () if apart <= ERROR => Verdict::Equivalent,
            () if different > ERROR => Verdict::Inconclusive,
            () if (ratio.estimate.value > 1.0) == one.metric.more_is_better() => Verdict::Better,
            () => Verdict::Worse,
        }
    };
    family.iter().map(judge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::made_up;

    fn of(values: &[f64]) -> Comparison {
        Comparison::of_pairs(Metric::Cpu, &values.iter().map(|value| (*value, 1.0)).collect::<Vec<_>>())
    }

    #[test]
    fn a_verdict_follows_the_interval() {
        #[track_caller]
        fn check(values: &[f64], expected: Verdict) {
            assert_eq!(verdicts(&[of(values)]), [expected], "{:?}", of(values).ratio);
        }
        check(&[0.8, 0.82, 0.79, 0.81, 0.8], Verdict::Better);
        check(&[1.2, 1.22, 1.19, 1.21, 1.2], Verdict::Worse);
        check(&[1.0, 1.01, 0.99, 1.01, 1.0], Verdict::Equivalent);
        // A difference, but none that matters.
        check(&[1.02, 1.021, 1.019, 1.02, 1.02], Verdict::Equivalent);
        check(&[0.71, 2.03, 1.1, 0.9, 1.2], Verdict::Inconclusive);
        check(&[1.03, 1.08, 1.05, 1.02, 1.06], Verdict::Worse);
        // One that is low could be the first of many.
        check(&[1.03, 1.08, 1.05, 1.0, 1.06], Verdict::Inconclusive);
        check(&[0.8, 0.82, 0.79, 0.81], Verdict::Void(Void::FewPairs));
        check(&[], Verdict::Void(Void::Missing));
        let rate = Comparison { metric: Metric::Throughput, ..of(&[0.8, 0.82, 0.79, 0.81, 0.8]) };
        assert_eq!(verdicts(&[rate]), [Verdict::Worse]);
    }

    #[test]
    fn a_family_is_judged_together() {
        let near = of(&[1.04, 1.17, 1.06, 1.02, 1.13]);
        assert!(near.ratio.unwrap().improbability_of(1.0) < ERROR);
        assert_eq!(verdicts(&[near]), [Verdict::Worse]);
        assert_eq!(verdicts(&[near, near]), [Verdict::Inconclusive; 2]);
        // A void comparison takes nothing from the others, and keeps its place.
        let void = Comparison { void: Some(Void::GeneratorBound), ..near };
        assert_eq!(verdicts(&[void, near]), [Verdict::Void(Void::GeneratorBound), Verdict::Worse]);
    }

    /// Ten rounds, of which the first are changed.
    fn compared(metric: Metric, changed: usize, change: impl Fn(&mut Outcome)) -> Comparison {
        let run = |answers: u64| Outcome { failures: Vec::new(), ..made_up::run_of(answers, 1_000_000) };
        let own: Vec<Outcome> = (0..10).map(|round| run(2000 + 10 * (round % 3))).collect();
        let mut other: Vec<Outcome> = (0..10).map(|round| run(1000 + 10 * (round % 2))).collect();
        other[..changed].iter_mut().for_each(change);
        let by_round = |runs: &'static [Outcome]| runs.iter().enumerate().collect();
        Comparison::new(metric, &by_round(own.leak()), &by_round(other.leak()))
    }

    #[test]
    fn what_runs_cannot_tell_is_void() {
        #[track_caller]
        fn check(found: Comparison, void: Option<Void>, pairs: usize) {
            assert_eq!((found.void, found.ratio.map_or(0, |ratio| ratio.pairs)), (void, pairs), "{found:?}");
        }
        let disturb = |outcome: &mut Outcome| outcome.notes.push("disturbed: others".to_owned());
        check(compared(Metric::Throughput, 0, disturb), None, 10);
        check(compared(Metric::Throughput, 5, disturb), None, 5);
        check(compared(Metric::Throughput, 6, disturb), Some(Void::Disturbed), 4);
        assert_eq!(compared(Metric::Throughput, 5, disturb).disturbed, 5);
        let bound = |outcome: &mut Outcome| outcome.generator.busiest_thread = 0.95;
        check(compared(Metric::Throughput, 1, bound), Some(Void::GeneratorBound), 10);
        check(compared(Metric::P99, 1, bound), Some(Void::GeneratorBound), 10);
        check(compared(Metric::Cpu, 10, bound), None, 10);
        let open = |outcome: &mut Outcome| outcome.offered_per_second = Some(500.0);
        check(compared(Metric::Throughput, 10, open), Some(Void::RateWasSet), 10);
        check(compared(Metric::P99, 10, open), None, 10);
        let failing = |outcome: &mut Outcome| outcome.failures = made_up::refused().failures;
        let failed = compared(Metric::Cpu, 10, |outcome| {
            failing(outcome);
            outcome.failures[0].count = 200;
        });
        check(failed, Some(Void::Failures), 10);
        let unknown = |outcome: &mut Outcome| outcome.server = None;
        check(compared(Metric::Cpu, 10, unknown), Some(Void::Missing), 0);
        check(compared(Metric::Cpu, 6, unknown), Some(Void::FewPairs), 4);
    }
}

//! Verdicts from pairs of runs: whether one subject is better than another, and when no verdict is possible.

use std::collections::BTreeMap;
use std::fmt;

use super::margin::MARGIN;
use super::metric::Metric;
use super::stats::{self, Estimate, FEWEST_PAIRS, Ratio};
use super::validity::{is_disturbed, is_generator_saturated, is_saturated, processors_used};
use crate::record::Outcome;

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
    /// Generator and server were both saturated, so that latencies contain the queue of either.
    BothSaturated,
    /// An open loop's rate is what was asked for.
    RateWasSet,
    /// Too many requests failed.
    Failures,
}

impl Void {
    /// All, in the order in which reports explain them.
    pub const ALL: [Self; 7] = [
        Self::GeneratorBound,
        Self::BothSaturated,
        Self::Disturbed,
        Self::RateWasSet,
        Self::Failures,
        Self::FewPairs,
        Self::Missing,
    ];

    /// Its letter in tables.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::GeneratorBound => 'g',
            Self::BothSaturated => 's',
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
            Self::BothSaturated => {
                f.write_str("server and generator were both saturated: latencies contain the queues of both. A rate with this mark counts: it is the server's own within 5 %")
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

/// The results of a subject in a scenario.
#[derive(Clone, Debug)]
pub struct Side<'a> {
    /// By round.
    pub rounds: BTreeMap<usize, &'a Outcome>,
    /// How many processors it may use.
    pub processors: usize,
}

impl Side<'_> {
    /// The limit of a rate or a latency, if the generator was saturated in any of these runs. The median of the processors that the
    /// server used in such runs tells whether it was saturated, too.
    pub(super) fn limit<'a>(&self, metric: Metric, runs: impl Iterator<Item = &'a Outcome>) -> Option<Void> {
        let saturated: Vec<&Outcome> = runs.filter(|outcome| is_generator_saturated(outcome)).collect();
        if saturated.is_empty() || !metric.is_of_generator() {
            return None;
        }
        let used: Vec<f64> = saturated.into_iter().filter_map(processors_used).collect();
        Some(if is_saturated(stats::median(&used), self.processors) {
            Void::BothSaturated
        } else {
            Void::GeneratorBound
        })
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
    /// The rate is of runs in which generator and server were both saturated.
    pub both_saturated: bool,
    /// How many rounds with results of both were disturbed.
    pub disturbed: usize,
}

/// A comparison as one of its family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// The comparison.
    pub comparison: Comparison,
    /// Its ratio with an interval that holds together with those of the whole family. The verdict follows from it.
    pub estimate: Option<Estimate>,
    /// The verdict.
    pub verdict: Verdict,
}

impl Judged {
    /// The reason that stands beside it as a letter: why it is void, or that it is a rate in spite of a saturated generator.
    #[must_use]
    pub fn reason(&self) -> Option<Void> {
        self.comparison.void.or_else(|| self.comparison.both_saturated.then_some(Void::BothSaturated))
    }
}

/// A run of the subject, and one of its rival in the same round.
type Pair<'a> = (&'a Outcome, &'a Outcome);

impl Comparison {
    /// Compares the results of two subjects by round.
    #[must_use]
    pub fn new(metric: Metric, own: &Side<'_>, rival: &Side<'_>) -> Self {
        let both = own.rounds.iter().filter_map(|(round, own)| Some((*own, *rival.rounds.get(round)?)));
        let known = |pair: &Pair<'_>| metric.of(pair.0).is_some() && metric.of(pair.1).is_some();
        let all: Vec<Pair<'_>> = both.filter(known).collect();
        let calm = |pair: &&Pair<'_>| !is_disturbed(pair.0) && !is_disturbed(pair.1);
        let deciding: Vec<Pair<'_>> = all.iter().filter(calm).copied().collect();
        let values = |(own, rival): &Pair<'_>| Some((metric.of(own)?, metric.of(rival)?));
        let ratio = stats::paired_ratio(&deciding.iter().filter_map(values).collect::<Vec<_>>());
        let limits = [
            own.limit(metric, deciding.iter().map(|pair| pair.0)),
            rival.limit(metric, deciding.iter().map(|pair| pair.1)),
        ];
        let limit =
            limits.into_iter().flatten().reduce(|one, other| if one == Void::GeneratorBound { one } else { other });
        let both_saturated = limit == Some(Void::BothSaturated) && metric == Metric::Throughput;
        let limit = limit.filter(|_| !both_saturated);
        let void = void(metric, &all, &deciding).or(limit);
        Self { metric, ratio, void, both_saturated, disturbed: all.len() - deciding.len() }
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
        Self { metric, ratio, void, both_saturated: false, disturbed: 0 }
    }

    /// The comparison gets a verdict, so that it counts in its family.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.void.is_none() && self.ratio.is_some()
    }

    /// Judges it as one of a family of so many.
    #[must_use]
    pub fn among(&self, family: usize) -> Judged {
        let estimate = self.ratio.map(|ratio| ratio.among(family));
        let verdict = match (self.void, estimate) {
            (Some(reason), _) => Verdict::Void(reason),
            (None, None) => Verdict::Void(Void::Missing),
            (None, Some(estimate)) => self.verdict(&estimate),
        };
        Judged { comparison: *self, estimate, verdict }
    }

    fn verdict(&self, &Estimate { low, high, .. }: &Estimate) -> Verdict {
        match () {
            // A difference that is proven to be within the margin does not matter, whether it is proven to exist or not.
            () if low * (1.0 + MARGIN) > 1.0 && high < 1.0 + MARGIN => Verdict::Equivalent,
            () if low <= 1.0 && high >= 1.0 => Verdict::Inconclusive,
            () if (low > 1.0) == self.metric.more_is_better() => Verdict::Better,
            () => Verdict::Worse,
        }
    }
}

fn void(metric: Metric, all: &[Pair<'_>], deciding: &[Pair<'_>]) -> Option<Void> {
    let is_open = |outcome: &Outcome| outcome.offered_per_second.is_some();
    let failed = |outcomes: &mut dyn Iterator<Item = &Outcome>| {
        let (failed, all) = outcomes.fold((0, 0), |(failed, all), outcome| {
            (failed + outcome.failed(), all + outcome.failed() + outcome.answers())
        });
        failed as f64 > MOST_FAILED * all as f64
    };
    match () {
        () if all.is_empty() => Some(Void::Missing),
        () if metric == Metric::Throughput && deciding.iter().any(|pair| is_open(pair.0) || is_open(pair.1)) => {
            Some(Void::RateWasSet)
        }
        () if all.len() < FEWEST_PAIRS => Some(Void::FewPairs),
        () if deciding.len() < FEWEST_PAIRS => Some(Void::Disturbed),
        () if failed(&mut deciding.iter().map(|pair| pair.0)) || failed(&mut deciding.iter().map(|pair| pair.1)) => {
            Some(Void::Failures)
        }
        () => None,
    }
}

/// Judges a family of comparisons: whatever is asked of one record, or for one report.
///
/// In 95 % of all cases all intervals of the family hold their true ratios at once, and so no verdict in it is wrong, be it a difference
/// or an equivalence.
#[must_use]
pub fn verdicts(family: &[Comparison]) -> Vec<Judged> {
    let valid = family.iter().filter(|one| one.is_valid()).count();
    family.iter().map(|one| one.among(valid)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::made_up;

    fn of(values: &[f64]) -> Comparison {
        Comparison::of_pairs(Metric::Cpu, &values.iter().map(|value| (*value, 1.0)).collect::<Vec<_>>())
    }

    fn found(family: &[Comparison]) -> Vec<Verdict> {
        verdicts(family).into_iter().map(|judged| judged.verdict).collect()
    }

    #[test]
    fn a_verdict_follows_the_interval() {
        #[track_caller]
        fn check(values: &[f64], expected: Verdict) {
            assert_eq!(found(&[of(values)]), [expected], "{:?}", verdicts(&[of(values)]));
        }
        check(&[0.8, 0.82, 0.79, 0.81, 0.8], Verdict::Better);
        check(&[1.2, 1.22, 1.19, 1.21, 1.2], Verdict::Worse);
        check(&[1.0, 1.01, 0.99, 1.01, 1.0], Verdict::Equivalent);
        // A difference, but none that matters.
        check(&[1.02, 1.021, 1.019, 1.02, 1.02], Verdict::Equivalent);
        check(&[0.71, 2.03, 1.1, 0.9, 1.2], Verdict::Inconclusive);
        check(&[1.07, 1.08, 1.05, 1.08, 1.06], Verdict::Worse);
        // One that is low could be the first of many.
        check(&[1.07, 1.08, 1.05, 1.0, 1.06], Verdict::Inconclusive);
        check(&[0.8, 0.82, 0.79, 0.81], Verdict::Void(Void::FewPairs));
        check(&[], Verdict::Void(Void::Missing));
        let rate = Comparison { metric: Metric::Throughput, ..of(&[0.8, 0.82, 0.79, 0.81, 0.8]) };
        assert_eq!(found(&[rate]), [Verdict::Worse]);
    }

    /// Marks and intervals of the documents cannot disagree.
    #[test]
    fn mark_and_interval_agree_in_every_family() {
        let noise = [0.0, 0.02, -0.01, 0.05, 0.01, -0.02, 0.0];
        for (step, size) in (-30..30).flat_map(|step| [1, 2, 7, 40, 300].map(|size| (step, size))) {
            let values = noise.map(|noise: f64| (f64::from(step) / 50.0 + noise * f64::from(step).cos()).exp());
            let Judged { estimate, verdict, .. } = of(&values).among(size);
            let Estimate { low, high, .. } = estimate.unwrap();
            let expected = match () {
                () if low > 1.0 / (1.0 + MARGIN) && high < 1.0 + MARGIN => Verdict::Equivalent,
                () if high < 1.0 => Verdict::Better,
                () if low > 1.0 => Verdict::Worse,
                () => Verdict::Inconclusive,
            };
            assert_eq!(verdict, expected, "{estimate:?} among {size}");
        }
    }

    #[test]
    fn a_family_is_judged_together() {
        let near = of(&[1.07, 1.08, 1.05, 1.08, 1.06]);
        assert_eq!(found(&[near]), [Verdict::Worse]);
        assert_eq!(found(&[near; 8]), [Verdict::Inconclusive; 8]);
        // A void comparison takes nothing from the others, and keeps its place.
        let void = Comparison { void: Some(Void::GeneratorBound), ..near };
        assert_eq!(found(&[void, near]), [Verdict::Void(Void::GeneratorBound), Verdict::Worse]);
    }

    /// Ten rounds, of which the first are changed.
    fn compared(metric: Metric, changed: usize, change: impl Fn(&mut Outcome)) -> Comparison {
        // The server uses 0.5 processors.
        let run = |answers: u64| Outcome { failures: Vec::new(), ..made_up::run_of(answers, 1_000_000) };
        let own: Vec<Outcome> = (0..10).map(|round| run(2000 + 10 * (round % 3))).collect();
        let mut other: Vec<Outcome> = (0..10).map(|round| run(1000 + 10 * (round % 2))).collect();
        other[..changed].iter_mut().for_each(change);
        let side = |runs: &'static [Outcome]| Side { rounds: runs.iter().enumerate().collect(), processors: 1 };
        Comparison::new(metric, &side(own.leak()), &side(other.leak()))
    }

    #[test]
    fn uninformative_runs_give_a_void_verdict() {
        #[track_caller]
        fn check(found: Comparison, void: Option<Void>, pairs: usize) {
            assert_eq!((found.void, found.ratio.map_or(0, |ratio| ratio.pairs)), (void, pairs), "{found:?}");
        }
        let disturb = |outcome: &mut Outcome| outcome.notes.push("disturbed: others".to_owned());
        check(compared(Metric::Throughput, 0, disturb), None, 10);
        check(compared(Metric::Throughput, 5, disturb), None, 5);
        check(compared(Metric::Throughput, 6, disturb), Some(Void::Disturbed), 4);
        assert_eq!(compared(Metric::Throughput, 5, disturb).disturbed, 5);
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

    #[test]
    fn a_saturated_generator_voids_what_the_server_did_not_limit() {
        #[track_caller]
        fn check(metric: Metric, changed: usize, used: f64, void: Option<Void>, both_saturated: bool) {
            let found = compared(metric, changed, |outcome| {
                outcome.generator.busiest_thread = 0.95;
                if let Some(server) = &mut outcome.server {
                    server.cpu = crate::record::Cpu { user: used * outcome.seconds, system: 0.0 };
                }
            });
            assert_eq!((found.void, found.both_saturated), (void, both_saturated), "{found:?}");
        }
        check(Metric::Throughput, 1, 0.5, Some(Void::GeneratorBound), false);
        check(Metric::P99, 1, 0.5, Some(Void::GeneratorBound), false);
        check(Metric::Cpu, 10, 0.5, None, false);
        check(Metric::Throughput, 10, 0.97, None, true);
        check(Metric::P99, 10, 0.97, Some(Void::BothSaturated), false);
        check(Metric::Cpu, 10, 0.97, None, false);
        check(Metric::Throughput, 0, 0.97, None, false);
        // It is not one run that decides.
        check(Metric::Throughput, 1, 0.97, None, true);
    }
}

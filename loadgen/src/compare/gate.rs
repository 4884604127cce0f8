//! Whether something has become worse since a record was made. Judged by intervals, so that noise alone neither fails
//! nor passes a change; where they do not tell, the gate says so.

use std::collections::BTreeMap;
use std::fmt;

use super::analysis;
use super::metric::Metric;
use super::record::Record;
use super::report::factor;
use super::stats::{self, Estimate, FEWEST_PAIRS, Ratio};
use super::validity::is_disturbed;
use super::verdict::{Side, Void};
use crate::number;
use crate::record::Outcome;

/// The rules of judgement, and their strictness.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The share by which a metric may be worse, 0 to 1.
    pub most: f64,
    /// The metrics.
    pub metrics: Vec<Metric>,
    /// The subjects; an empty list means all that the old record has results of.
    pub subjects: Vec<String>,
    /// A subject whose own change is taken for the machine's: the others are judged by their ratios to it.
    pub relative_to: Option<String>,
}

/// The judgement of one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// All of the interval is within the limit.
    Fine,
    /// All of the interval is beyond the limit.
    Regression,
    /// The interval holds the limit, or the runs were disturbed: more rounds are needed to tell.
    Inconclusive,
    /// There is nothing to judge by.
    Missing,
}

/// One line of the result.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The judgement.
    pub judgement: Judgement,
    /// Scenario, subject and metric, with the figures.
    pub text: String,
}

/// The result of a gate.
#[derive(Clone, Debug)]
pub struct Gate {
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Gate {
    /// The gravest of all findings; without any there is nothing to judge by.
    #[must_use]
    pub fn result(&self) -> Judgement {
        let by_gravity = [Judgement::Regression, Judgement::Missing, Judgement::Inconclusive, Judgement::Fine];
        let found = |judgement: &Judgement| self.findings.iter().any(|finding| finding.judgement == *judgement);
        by_gravity.into_iter().find(found).unwrap_or(Judgement::Missing)
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            let judgement = match finding.judgement {
                Judgement::Fine => "fine",
                Judgement::Regression => "REGRESSION",
                Judgement::Inconclusive => "inconclusive",
                Judgement::Missing => "MISSING",
            };
            writeln!(f, "{judgement:<15} {}", finding.text)?;
        }
        let count = |judgement| self.findings.iter().filter(|finding| finding.judgement == judgement).count();
        let (bad, missing, open) =
            (count(Judgement::Regression), count(Judgement::Missing), count(Judgement::Inconclusive));
        let result = match self.result() {
            Judgement::Fine => "passed",
            Judgement::Inconclusive => "INCONCLUSIVE",
            Judgement::Regression | Judgement::Missing => "FAILED",
        };
        write!(
            f,
            "gate {result}: {} judged, {bad} regressions, {missing} missing, {open} inconclusive",
            self.findings.len()
        )
    }
}

/// Judges a new record by an old one.
///
/// # Errors
/// When the rules name a subject that the old record does not have results of.
pub fn judge(old: &Record, new: &Record, rules: &Rules) -> Result<Gate, String> {
    let measured = |name: &String| old.runs.iter().any(|run| run.subject == *name);
    for name in rules.subjects.iter().chain(&rules.relative_to) {
        if !measured(name) {
            return Err(format!("the subject is `{name}`, expected one that the baseline's record has results of"));
        }
    }
    let mut findings = Vec::new();
    let mut compared: Vec<Compared> = Vec::new();
    for scenario in &old.header.scenarios {
        for subject in old.header.subjects.iter().map(|subject| &subject.name) {
            let wanted = rules.subjects.is_empty() || rules.subjects.contains(subject);
            if !wanted || rules.relative_to.as_ref() == Some(subject) {
                continue;
            }
            let [before, after] = [old, new].map(|record| analysis::side(record, &scenario.name, subject));
            if before.rounds.is_empty() {
                continue;
            }
            let what = format!("{}: {subject}", scenario.name);
            if after.rounds.is_empty() {
                let text = format!("{what}: the new record has no results");
                findings.push(Finding { judgement: Judgement::Missing, text });
                continue;
            }
            for metric in &rules.metrics {
                let reference = rules.relative_to.as_ref();
                let references =
                    reference.map(|name| [old, new].map(|record| analysis::side(record, &scenario.name, name)));
                let [before, after] = match &references {
                    None => [Sample::own(*metric, &before), Sample::own(*metric, &after)],
                    Some([old, new]) => {
                        [Sample::relative(*metric, &before, old), Sample::relative(*metric, &after, new)]
                    }
                };
                compared.extend(Compared::new(*metric, &what, before, after));
            }
            findings.push(of_failures(&what, &before.rounds, &after.rounds));
        }
    }
    findings.extend(judged(compared, rules));
    Ok(Gate { findings })
}

/// A metric's values in a record, of the rounds that were not disturbed.
struct Sample {
    values: Vec<f64>,
    /// Whether any round has it.
    known: bool,
    /// Whether it is the generator's rather than the server's.
    of_generator: bool,
}

/// A subject, and its run of a round.
type Ran<'a> = (&'a Side<'a>, &'a Outcome);

impl Sample {
    fn own(metric: Metric, own: &Side<'_>) -> Self {
        Self::of(metric, own.rounds.values().map(|outcome| (metric.of(outcome), vec![(own, *outcome)])))
    }

    /// Shares of the reference's value in the same round.
    fn relative(metric: Metric, own: &Side<'_>, reference: &Side<'_>) -> Self {
        let pairs = own.rounds.iter().filter_map(|(round, own)| Some((*own, *reference.rounds.get(round)?)));
        let runs = pairs.map(|(run, other)| {
            let share = metric.of(run).zip(metric.of(other).filter(|value| *value > 0.0));
            (share.map(|(own, reference)| own / reference), vec![(own, run), (reference, other)])
        });
        Self::of(metric, runs)
    }

    fn of<'a>(metric: Metric, rounds: impl Iterator<Item = (Option<f64>, Vec<Ran<'a>>)>) -> Self {
        let known: Vec<(f64, Vec<Ran<'_>>)> = rounds.filter_map(|(value, runs)| Some((value?, runs))).collect();
        let calm = || known.iter().filter(|(_, runs)| !runs.iter().any(|(_, run)| is_disturbed(run)));
        let of_generator = |place: usize| {
            let mut runs = calm().filter_map(|(_, runs)| runs.get(place)).peekable();
            let side = runs.peek().map(|(side, _)| *side);
            let limit = side.and_then(|side| side.limit(metric, runs.map(|(_, run)| *run)));
            limit == Some(Void::GeneratorBound) || limit == Some(Void::BothSaturated) && metric != Metric::Throughput
        };
        Self {
            values: calm().map(|(value, _)| *value).collect(),
            known: !known.is_empty(),
            of_generator: of_generator(0) || of_generator(1),
        }
    }
}

/// A metric before and after.
struct Compared {
    metric: Metric,
    what: String,
    before: Sample,
    after: Sample,
    ratio: Option<Ratio>,
}

impl Compared {
    /// A metric that the old record does not know is not judged.
    fn new(metric: Metric, what: &str, before: Sample, after: Sample) -> Option<Self> {
        let ratio = stats::unpaired_ratio(&after.values, &before.values);
        before.known.then(|| Self { metric, what: format!("{what}: {}", metric.name()), before, after, ratio })
    }

    /// The ratio, if it says something of the subject.
    fn valid(&self) -> Option<Ratio> {
        let of_generator = self.before.of_generator || self.after.of_generator;
        self.ratio.filter(|ratio| ratio.pairs >= FEWEST_PAIRS && !of_generator)
    }

    /// Why there is none.
    fn remark(&self) -> String {
        match self.ratio.map_or(0, |ratio| ratio.pairs) {
            _ if self.before.of_generator || self.after.of_generator => " (the generator was the limit)".to_owned(),
            pairs @ ..FEWEST_PAIRS => format!(" ({pairs} undisturbed rounds, {FEWEST_PAIRS} are needed)"),
            _ => String::new(),
        }
    }

    fn text(&self, rules: &Rules, estimate: Option<Estimate>) -> String {
        let show = |sample: &Sample| match &rules.relative_to {
            _ if sample.values.is_empty() => "?".to_owned(),
            None => self.metric.text(stats::median(&sample.values)),
            Some(name) => format!("{} of {name}", factor(stats::median(&sample.values))),
        };
        let ratio = estimate.map_or(String::new(), |Estimate { value, low, high }| {
            format!(", ratio {} [{}, {}]", factor(value), factor(low), factor(high))
        });
        let limit = factor(limit(self.metric, rules.most));
        let (before, after) = (show(&self.before), show(&self.after));
        format!("{}: {before} → {after}{ratio}, limit {limit}{}", self.what, self.remark())
    }
}

/// All intervals are one family: in 95 % of all cases all of them hold their true ratios, and no judgement is wrong.
fn judged(compared: Vec<Compared>, rules: &Rules) -> Vec<Finding> {
    let family = compared.iter().filter(|one| one.after.known && one.valid().is_some()).count();
    let judge = |one: Compared| {
        if !one.after.known {
            let text = format!("{}: the new record does not know it", one.what);
            return Finding { judgement: Judgement::Missing, text };
        }
        let limit = limit(one.metric, rules.most);
        let judgement = match one.valid().map(|ratio| ratio.among(family)) {
            Some(Estimate { low, high, .. }) if low > limit || high < limit => {
                if (low > limit) == one.metric.more_is_better() { Judgement::Fine } else { Judgement::Regression }
            }
            _ => Judgement::Inconclusive,
        };
        let estimate = one.ratio.map(|ratio| ratio.among(family));
        Finding { judgement, text: one.text(rules, estimate) }
    };
    compared.into_iter().map(judge).collect()
}

/// The ratio of new to old up to which, or down to which, all is fine.
fn limit(metric: Metric, most: f64) -> f64 {
    if metric.more_is_better() { 1.0 - most } else { 1.0 + most }
}

/// Requests that fail more often than before are a regression, however fast the others are.
fn of_failures(what: &str, before: &BTreeMap<usize, &Outcome>, after: &BTreeMap<usize, &Outcome>) -> Finding {
    let count = |rounds: &BTreeMap<usize, &Outcome>| -> (u64, u64) {
        let failed: u64 = rounds.values().map(|outcome| outcome.failed()).sum();
        (failed, failed + rounds.values().map(|outcome| outcome.answers()).sum::<u64>())
    };
    let ((old_failed, old_all), (failed, all)) = (count(before), count(after));
    // Three standard deviations of a Poisson count above what the old share would give.
    let expected = old_failed as f64 / old_all.max(1) as f64 * all as f64;
    let worse = failed as f64 > expected + 3.0 * expected.sqrt() && failed > 0;
    let [of_old, of_new] = [(old_failed, old_all), (failed, all)]
        .map(|(failed, all)| format!("{} of {}", number::thousands(failed), number::thousands(all)));
    let judgement = if worse { Judgement::Regression } else { Judgement::Fine };
    Finding { judgement, text: format!("{what}: failures: {of_old} → {of_new}") }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::Judgement::{Fine, Inconclusive, Missing, Regression};
    use super::*;

    /// A record of `a` and `b` with so many answers in each of six rounds, plus up to 2 %.
    fn made(a: u64, b: u64) -> Record {
        let noise = [0, 2, 1, 0, 1, 2];
        let runs: Vec<(&str, &str, usize, u64, u64)> = (0..6)
            .flat_map(|round| {
                let of = |answers: u64| answers + answers * noise[round] / 100;
                [("s", "a", round, of(a), 1000), ("s", "b", round, of(b), 1000)]
            })
            .collect();
        let mut record = record(&runs);
        record.runs.iter_mut().for_each(|run| run.outcome.failures.clear());
        record
    }

    fn rules() -> Rules {
        let metrics = vec![Metric::Throughput, Metric::P99, Metric::Cpu];
        Rules { most: 0.05, metrics, subjects: vec!["b".to_owned()], relative_to: None }
    }

    #[track_caller]
    fn check(old: &Record, new: &Record, rules: &Rules, expected: Judgement, parts: &[&str]) {
        let gate = judge(old, new, rules).unwrap();
        let text = gate.to_string();
        assert_eq!(gate.result(), expected, "{text}");
        for part in parts {
            assert!(text.contains(part), "`{part}` is not in:\n{text}");
        }
    }

    #[test]
    fn regressions_beyond_the_limit_fail_the_gate() {
        let old = made(1000, 1000);
        check(&old, &old, &rules(), Fine, &["gate passed: 4 judged, 0 regressions", "ratio 1.000 ["]);
        check(&old, &made(1000, 990), &rules(), Fine, &["fine            s: b: throughput: 505 → 500"]);
        let parts = [
            "REGRESSION      s: b: throughput: 505 → 404, ratio 0.8",
            "limit 0.950",
            "REGRESSION      s: b: cpu:",
            "2 regressions",
        ];
        check(&old, &made(1000, 800), &rules(), Regression, &parts);
        check(&old, &made(1000, 2000), &rules(), Fine, &["fine            s: b: cpu: 990 µs"]);
        // Not of the subjects that are judged.
        check(&old, &made(500, 1000), &rules(), Fine, &[]);
        check(&old, &made(500, 1000), &Rules { subjects: Vec::new(), ..rules() }, Regression, &["s: a: throughput"]);
        check(&old, &made(1000, 800), &Rules { most: 0.3, ..rules() }, Fine, &["limit 0.700"]);
    }

    #[test]
    fn inconclusive_comparisons_do_not_pass_the_gate() {
        let (old, near) = (made(1000, 1000), made(1000, 950));
        check(
            &old,
            &near,
            &rules(),
            Inconclusive,
            &["inconclusive    s: b: throughput", "gate INCONCLUSIVE: 4 judged"],
        );
        let mut few = made(1000, 500);
        few.runs.truncate(8);
        check(&old, &few, &rules(), Inconclusive, &["(4 undisturbed rounds, 5 are needed)"]);
        let mut disturbed = made(1000, 500);
        disturbed.runs.iter_mut().take(4).for_each(|run| run.outcome.notes.push("disturbed: others".to_owned()));
        check(&old, &disturbed, &rules(), Inconclusive, &["(4 undisturbed rounds, 5 are needed)"]);
        // A slow generator's rate is no server's.
        let mut bound = made(1000, 500);
        bound.runs.iter_mut().for_each(|run| run.outcome.generator.busiest_thread = 0.95);
        let parts = ["inconclusive    s: b: throughput", "(the generator was the limit)", "REGRESSION      s: b: cpu"];
        check(&old, &bound, &rules(), Regression, &parts);
    }

    #[test]
    fn a_slower_machine_is_not_a_regression_of_a_subject() {
        let (old, slower) = (made(1000, 1000), made(600, 600));
        check(&old, &slower, &rules(), Regression, &[]);
        let relative = Rules { relative_to: Some("a".to_owned()), ..rules() };
        check(&old, &slower, &relative, Fine, &["throughput: 1.000 of a → 1.000 of a"]);
        check(&old, &made(600, 500), &relative, Regression, &["REGRESSION"]);
    }

    #[test]
    fn failures_and_missing_results_fail() {
        let old = made(1000, 1000);
        let mut wrong = made(1000, 1000);
        let failure = record(&[("s", "b", 0, 100, 1000)]).runs[0].outcome.failures.clone();
        wrong.runs[1].outcome.failures = failure;
        check(&old, &wrong, &rules(), Regression, &["REGRESSION      s: b: failures: 0 of 6,060 → 2 of 6,062"]);
        check(&wrong, &old, &rules(), Fine, &[]);
        check(&old, &record(&[]), &rules(), Missing, &["MISSING         s: b: the new record has no results"]);
        let nothing = judge(&record(&[]), &old, &Rules { subjects: Vec::new(), ..rules() }).unwrap();
        assert_eq!(nothing.result(), Missing, "nothing to judge by is no pass");
        let unknown = Rules { subjects: vec!["z".to_owned()], ..rules() };
        let error = judge(&old, &old, &unknown).unwrap_err();
        assert_eq!(error, "the subject is `z`, expected one that the baseline's record has results of");
        let mut unseen = made(1000, 1000);
        unseen.runs.iter_mut().for_each(|run| run.outcome.server = None);
        check(&old, &unseen, &rules(), Missing, &["MISSING         s: b: cpu: the new record does not know it"]);
        check(&unseen, &old, &rules(), Fine, &["3 judged"]);
    }
}

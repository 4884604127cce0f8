//! Whether something has become worse since a record was made. Judged by intervals, so that noise alone neither fails
//! nor passes a change.

use std::collections::BTreeMap;
use std::fmt;

use super::analysis;
use super::metric::Metric;
use super::record::{Record, Run};
use super::report::factor;
use super::stats::{self, FEWEST_PAIRS, Ratio};
use crate::number;
use crate::record::Outcome;

/// What is judged, and how strictly.
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
    /// Whether what cannot be told fails too.
    pub strict: bool,
}

/// What was found of one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// All of the interval is within the limit.
    Fine,
    /// All of the interval is beyond the limit.
    Regression,
    /// The interval holds the limit: more rounds are needed to tell.
    Open,
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
    /// What was found.
    pub findings: Vec<Finding>,
    strict: bool,
}

impl Gate {
    /// Whether nothing has become worse.
    #[must_use]
    pub fn passes(&self) -> bool {
        let bad = |finding: &Finding| match finding.judgement {
            Judgement::Fine => false,
            Judgement::Regression | Judgement::Missing => true,
            Judgement::Open => self.strict,
        };
        !self.findings.is_empty() && !self.findings.iter().any(bad)
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            let judgement = match finding.judgement {
                Judgement::Fine => "fine",
                Judgement::Regression => "REGRESSION",
                Judgement::Open => "cannot be told",
                Judgement::Missing => "MISSING",
            };
            writeln!(f, "{judgement:<15} {}", finding.text)?;
        }
        let count = |judgement| self.findings.iter().filter(|finding| finding.judgement == judgement).count();
        let (bad, missing, open) = (count(Judgement::Regression), count(Judgement::Missing), count(Judgement::Open));
        let result = if self.passes() { "passed" } else { "FAILED" };
        write!(
            f,
            "gate {result}: {} judged, {bad} regressions, {missing} missing, {open} cannot be told",
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
    for scenario in &old.header.scenarios {
        for subject in old.header.subjects.iter().map(|subject| &subject.name) {
            let wanted = rules.subjects.is_empty() || rules.subjects.contains(subject);
            if !wanted || rules.relative_to.as_ref() == Some(subject) {
                continue;
            }
            let [before, after] = [old, new].map(|record| of_scenario(record, &scenario.name, subject));
            if before.is_empty() {
                continue;
            }
            let what = format!("{}: {subject}", scenario.name);
            if after.is_empty() {
                let text = format!("{what}: the new record has no results");
                findings.push(Finding { judgement: Judgement::Missing, text });
                continue;
            }
            for metric in &rules.metrics {
                let reference = rules.relative_to.as_ref();
                let references =
                    reference.map(|name| [old, new].map(|record| of_scenario(record, &scenario.name, name)));
                let [before, after] = match &references {
                    None => [values(*metric, &before), values(*metric, &after)],
                    Some([old, new]) => [relative(*metric, &before, old), relative(*metric, &after, new)],
                };
                findings.extend(of_metric(*metric, &what, &before, &after, rules, new.header.seed));
            }
            findings.push(of_failures(&what, &before, &after));
        }
    }
    Ok(Gate { findings, strict: rules.strict })
}

fn of_scenario<'a>(record: &'a Record, scenario: &str, subject: &str) -> BTreeMap<usize, &'a Outcome> {
    let runs: Vec<&Run> = record.runs.iter().filter(|run| run.scenario == scenario).collect();
    analysis::rounds(&runs, subject)
}

fn values(metric: Metric, rounds: &BTreeMap<usize, &Outcome>) -> Vec<f64> {
    rounds.values().filter_map(|outcome| metric.of(outcome)).collect()
}

fn relative(metric: Metric, own: &BTreeMap<usize, &Outcome>, reference: &BTreeMap<usize, &Outcome>) -> Vec<f64> {
    let pairs = analysis::pairs(metric, own, reference).into_iter();
    pairs.filter(|(_, reference)| *reference > 0.0).map(|(own, reference)| own / reference).collect()
}

/// A metric that the old record does not know is not judged.
fn of_metric(metric: Metric, what: &str, before: &[f64], after: &[f64], rules: &Rules, seed: u64) -> Option<Finding> {
    if before.is_empty() {
        return None;
    }
    let what = format!("{what}: {}", metric.name());
    let Some(ratio) = stats::unpaired_ratio(after, before, seed) else {
        let text = format!("{what}: the new record does not know it");
        return Some(Finding { judgement: Judgement::Missing, text });
    };
    let show = |values: &[f64]| match &rules.relative_to {
        None => metric.text(stats::median(values)),
        Some(name) => format!("{} of {name}", factor(stats::median(values))),
    };
    let judgement = judgement(metric, &ratio, rules.most);
    let few = if ratio.pairs < FEWEST_PAIRS {
        format!(" ({} rounds, {FEWEST_PAIRS} are needed)", ratio.pairs)
    } else {
        String::new()
    };
    let estimate = ratio.estimate;
    let text = format!(
        "{what}: {} → {}, ratio {} [{}, {}], limit {}{few}",
        show(before),
        show(after),
        factor(estimate.value),
        factor(estimate.low),
        factor(estimate.high),
        factor(limit(metric, rules.most)),
    );
    Some(Finding { judgement, text })
}

/// The ratio of new to old up to which, or down to which, all is fine.
fn limit(metric: Metric, most: f64) -> f64 {
    if metric.more_is_better() { 1.0 - most } else { 1.0 + most }
}

fn judgement(metric: Metric, ratio: &Ratio, most: f64) -> Judgement {
    let limit = limit(metric, most);
    let (best, worst) = if metric.more_is_better() {
        // Turned round, so that more is worse for both.
        (-ratio.estimate.high, -ratio.estimate.low)
    } else {
        (ratio.estimate.low, ratio.estimate.high)
    };
    let limit = if metric.more_is_better() { -limit } else { limit };
    if ratio.pairs < FEWEST_PAIRS {
        Judgement::Open
    } else if best > limit {
        Judgement::Regression
    } else if worst <= limit {
        Judgement::Fine
    } else {
        Judgement::Open
    }
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
        Rules { most: 0.05, metrics, subjects: vec!["b".to_owned()], relative_to: None, strict: false }
    }

    #[track_caller]
    fn check(old: &Record, new: &Record, rules: &Rules, expected: bool, parts: &[&str]) {
        let gate = judge(old, new, rules).unwrap();
        let text = gate.to_string();
        assert_eq!(gate.passes(), expected, "{text}");
        for part in parts {
            assert!(text.contains(part), "`{part}` is not in:\n{text}");
        }
    }

    #[test]
    fn what_is_worse_beyond_the_limit_fails() {
        let old = made(1000, 1000);
        check(&old, &old, &rules(), true, &["gate passed: 4 judged, 0 regressions", "ratio 1.000 ["]);
        check(&old, &made(1000, 990), &rules(), true, &["fine            s: b: throughput: 505 → 500"]);
        let parts = [
            "REGRESSION      s: b: throughput: 505 → 404, ratio 0.8",
            "limit 0.950",
            "REGRESSION      s: b: cpu:",
            "2 regressions",
        ];
        check(&old, &made(1000, 800), &rules(), false, &parts);
        check(&old, &made(1000, 2000), &rules(), true, &["fine            s: b: cpu: 990 µs"]);
        // Not of the subjects that are judged.
        check(&old, &made(500, 1000), &rules(), true, &[]);
        check(&old, &made(500, 1000), &Rules { subjects: Vec::new(), ..rules() }, false, &["s: a: throughput"]);
        check(&old, &made(1000, 800), &Rules { most: 0.3, ..rules() }, true, &["limit 0.700"]);
    }

    #[test]
    fn what_cannot_be_told_fails_only_if_asked() {
        let (old, near) = (made(1000, 1000), made(1000, 950));
        check(&old, &near, &rules(), true, &["cannot be told  s: b: throughput"]);
        check(&old, &near, &Rules { strict: true, ..rules() }, false, &["gate FAILED"]);
        let mut few = made(1000, 500);
        few.runs.truncate(8);
        check(&old, &few, &rules(), true, &["(4 rounds, 5 are needed)"]);
    }

    #[test]
    fn a_slower_machine_is_not_a_regression_of_a_subject() {
        let (old, slower) = (made(1000, 1000), made(600, 600));
        check(&old, &slower, &rules(), false, &[]);
        let relative = Rules { relative_to: Some("a".to_owned()), ..rules() };
        check(&old, &slower, &relative, true, &["throughput: 1.000 of a → 1.000 of a"]);
        check(&old, &made(600, 500), &relative, false, &["REGRESSION"]);
    }

    #[test]
    fn failures_and_missing_results_fail() {
        let old = made(1000, 1000);
        let mut wrong = made(1000, 1000);
        let failure = record(&[("s", "b", 0, 100, 1000)]).runs[0].outcome.failures.clone();
        wrong.runs[1].outcome.failures = failure;
        check(&old, &wrong, &rules(), false, &["REGRESSION      s: b: failures: 0 of 6,060 → 2 of 6,062"]);
        check(&wrong, &old, &rules(), true, &[]);
        check(&old, &record(&[]), &rules(), false, &["MISSING         s: b: the new record has no results"]);
        assert!(!judge(&record(&[]), &old, &Rules { subjects: Vec::new(), ..rules() }).unwrap().passes());
        let unknown = Rules { subjects: vec!["z".to_owned()], ..rules() };
        let error = judge(&old, &old, &unknown).unwrap_err();
        assert_eq!(error, "the subject is `z`, expected one that the baseline's record has results of");
        let mut unseen = made(1000, 1000);
        unseen.runs.iter_mut().for_each(|run| run.outcome.server = None);
        check(&old, &unseen, &rules(), false, &["MISSING         s: b: cpu: the new record does not know it"]);
        check(&unseen, &old, &rules(), true, &["3 judged"]);
    }
}

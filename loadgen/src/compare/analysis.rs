//! The analysis of a record: medians of subjects, and their ratios to the baseline from pairs of the same round.

use std::collections::BTreeMap;

use super::metric::Metric;
use super::record::{Record, Run};
use super::stats::{self, Estimate, FEWEST_PAIRS};
use super::validity::{is_generator_bound, is_note_of_generator};
use super::verdict::{Comparison, Verdict, verdicts};
use crate::number;
use crate::record::{FailureCount, Latencies, Outcome};

/// The results of one scenario.
#[derive(Clone, Debug)]
pub struct ScenarioResult<'a> {
    /// Its place in the record's list.
    pub index: usize,
    /// The subjects that have at least one result, in the order of the file.
    pub subjects: Vec<SubjectResult<'a>>,
}

/// The results of a subject in a scenario.
#[derive(Clone, Debug)]
pub struct SubjectResult<'a> {
    /// Its place in the record's list; its colour.
    pub index: usize,
    /// Its name.
    pub name: &'a str,
    /// Runs that gave a result.
    pub runs: usize,
    /// Medians.
    pub medians: BTreeMap<Metric, Estimate>,
    /// Comparisons with the baseline, all of a record judged as one family; of the baseline itself there are none.
    pub ratios: BTreeMap<Metric, (Comparison, Verdict)>,
    /// All rounds together.
    pub latencies: Latencies,
    /// Right answers of all rounds.
    pub answers: u64,
    /// Failures of all rounds.
    pub failures: Vec<FailureCount>,
    /// Notes for readers, with the number of runs that each is about.
    pub notes: Vec<String>,
}

/// The results of all scenarios.
#[must_use]
pub fn scenarios(record: &Record) -> Vec<ScenarioResult<'_>> {
    let header = &record.header;
    let of_scenario = |index: usize| {
        let name = &header.scenarios[index].name;
        let runs: Vec<&Run> = record.runs.iter().filter(|run| run.scenario == *name).collect();
        let subjects = header.subjects.iter().enumerate().filter_map(|(place, subject)| {
            let own = rounds(&runs, &subject.name);
            (!own.is_empty()).then(|| of_subject(place, &subject.name, &own))
        });
        ScenarioResult { index, subjects: subjects.collect() }
    };
    let mut results: Vec<ScenarioResult<'_>> = (0..header.scenarios.len()).map(of_scenario).collect();
    judge(record, &mut results);
    results
}

/// Compares all subjects with the baseline.
fn judge(record: &Record, results: &mut [ScenarioResult<'_>]) {
    let mut places = Vec::new();
    let mut family = Vec::new();
    for (index, result) in results.iter().enumerate() {
        for (place, subject) in result.subjects.iter().enumerate() {
            if subject.name == record.header.baseline {
                continue;
            }
            let scenario = &record.header.scenarios[result.index].name;
            for metric in Metric::ALL {
                let found = comparison(record, scenario, metric, subject.name, &record.header.baseline);
                if found.ratio.is_some() {
                    places.push((index, place));
                    family.push(found);
                }
            }
        }
    }
    for (((index, place), found), verdict) in places.into_iter().zip(&family).zip(verdicts(&family)) {
        results[index].subjects[place].ratios.insert(found.metric, (*found, verdict));
    }
}

/// The results of one subject in a scenario, without ratios; nothing where there are none.
#[must_use]
pub fn subject<'a>(record: &'a Record, scenario: &str, name: &str) -> Option<SubjectResult<'a>> {
    let index = record.header.subjects.iter().position(|subject| subject.name == name)?;
    let runs: Vec<&Run> = record.runs.iter().filter(|run| run.scenario == scenario).collect();
    let own = rounds(&runs, name);
    (!own.is_empty()).then(|| of_subject(index, &record.header.subjects[index].name, &own))
}

/// A subject's results by round.
pub(crate) fn rounds<'a>(runs: &[&'a Run], subject: &str) -> BTreeMap<usize, &'a Outcome> {
    runs.iter().filter(|run| run.subject == subject).map(|run| (run.round, &run.outcome)).collect()
}

/// Compares a figure of two subjects, by the pairs of a scenario.
#[must_use]
pub fn comparison(record: &Record, scenario: &str, metric: Metric, subject: &str, rival: &str) -> Comparison {
    let runs: Vec<&Run> = record.runs.iter().filter(|run| run.scenario == scenario).collect();
    Comparison::new(metric, &rounds(&runs, subject), &rounds(&runs, rival))
}

fn of_subject<'a>(index: usize, name: &'a str, own: &BTreeMap<usize, &Outcome>) -> SubjectResult<'a> {
    let mut latencies = Latencies::new();
    own.values().for_each(|outcome| latencies.merge(&outcome.latencies()));
    let median = |metric: Metric| {
        let values: Vec<f64> = own.values().filter_map(|outcome| metric.of(outcome)).collect();
        Some((metric, stats::median_estimate(&values)?))
    };
    let failures = failures(own);
    SubjectResult {
        index,
        name,
        runs: own.len(),
        medians: Metric::ALL.into_iter().filter_map(median).collect(),
        ratios: BTreeMap::new(),
        latencies,
        answers: own.values().map(|outcome| outcome.answers()).sum(),
        notes: notes(own, &failures),
        failures,
    }
}

/// Failures of all rounds by kind.
fn failures(own: &BTreeMap<usize, &Outcome>) -> Vec<FailureCount> {
    let mut all: Vec<FailureCount> = Vec::new();
    for failure in own.values().flat_map(|outcome| &outcome.failures) {
        match all.iter_mut().find(|known| known.kind == failure.kind) {
            Some(known) => known.count += failure.count,
            None => all.push(FailureCount { latencies: None, ..failure.clone() }),
        }
    }
    all.sort_by_key(|failure| failure.kind);
    all
}

fn notes(own: &BTreeMap<usize, &Outcome>, failures: &[FailureCount]) -> Vec<String> {
    // By text, in the order in which they came.
    let mut counts: Vec<(String, usize)> = Vec::new();
    let mut add = |text: String| match counts.iter_mut().find(|(known, _)| *known == text) {
        Some((_, count)) => *count += 1,
        None => counts.push((text, 1)),
    };
    for outcome in own.values() {
        // The run's own note of it names figures that differ from run to run.
        let others = outcome.notes.iter().filter(|note| !is_note_of_generator(note));
        if is_generator_bound(outcome) {
            add("generator-bound: the generator was the limit, only the CPU time tells servers apart".to_owned());
        }
        others.for_each(|note| add(note.clone()));
    }
    let of = own.len();
    let mut notes: Vec<String> =
        counts.into_iter().map(|(text, count)| format!("{text} ({count} of {of} runs)")).collect();
    for failure in failures {
        let example = failure.examples.first().map_or(String::new(), |example| format!(", such as: {example}"));
        notes.push(format!("{} {}{example}", number::thousands(failure.count), failure.kind.words()));
    }
    notes
}

/// The limits of the whole record.
#[must_use]
pub fn limits(record: &Record) -> Vec<String> {
    let mut limits = Vec::new();
    let rounds = record.runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
    if rounds < FEWEST_PAIRS {
        limits.push(format!(
            "Rounds made: {rounds}. With fewer than {FEWEST_PAIRS} no difference counts as shown, whatever the intervals"
        ));
    }
    match &record.end {
        Some(end) if end.complete => {}
        Some(_) => limits.push("The comparison was interrupted: these are the results so far".to_owned()),
        None => {
            limits.push("The record has no end: the comparison was ended from outside, or still goes on".to_owned())
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::super::verdict::Void;
    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        // Round 2 has no partner.
        let record = record(&[
            ("s", "a", 0, 100, 1000),
            ("s", "b", 0, 200, 1000),
            ("s", "a", 1, 1000, 1000),
            ("s", "b", 1, 2000, 1000),
            ("s", "b", 2, 9000, 1000),
        ]);
        let found = scenarios(&record);
        let [a, b] = &found[0].subjects[..] else { panic!("two subjects have results") };
        assert_eq!((a.name, a.runs, b.name, b.runs), ("a", 2, "b", 3));
        assert!(a.ratios.is_empty());
        let (compared, verdict) = b.ratios[&Metric::Throughput];
        let ratio = compared.ratio.unwrap();
        assert!((ratio.estimate.value - 2.0).abs() < 1e-9 && ratio.pairs == 2);
        assert_eq!(verdict, Verdict::Void(Void::FewPairs));
        assert!((b.medians[&Metric::Throughput].value - 1000.0).abs() < 1e-9);
        assert_eq!(b.latencies.count(), 11_200);
        let alone = subject(&record, "s", "b").unwrap();
        assert_eq!((alone.medians, alone.answers, alone.ratios.len()), (b.medians.clone(), b.answers, 0));
        assert!(subject(&record, "s", "c").is_none() && subject(&record, "t", "a").is_none());
        let value = |subject, rival| {
            comparison(&record, "s", Metric::Throughput, subject, rival)
                .ratio
                .map(|ratio| (ratio.pairs, ratio.estimate.value.round()))
        };
        assert_eq!((value("b", "a"), value("b", "c"), value("a", "a")), (Some((2, 2.0)), None, Some((2, 1.0))));
    }

    #[test]
    fn notes_are_counted() {
        let mut record = record(&[("s", "a", 0, 100, 1000), ("s", "a", 1, 100, 1000)]);
        record.runs[0].outcome.generator.busiest_thread = 0.95;
        let notes = scenarios(&record)[0].subjects[0].notes.clone();
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[0].starts_with("generator-bound") && notes[0].ends_with("(1 of 2 runs)"));
        assert_eq!(notes[1], "made up (2 of 2 runs)");
        assert_eq!(notes[2], "4 timed out, such as: after 1 s");
        assert!(limits(&record)[0].starts_with("Rounds made: 2."));
        record.end = None;
        assert!(limits(&record)[1].contains("has no end"));
    }
}

//! The analysis of a record: medians of subjects, and their ratios to the baseline from pairs of the same round.

use std::collections::BTreeMap;

use super::cores::Cores;
use super::metric::Metric;
use super::record::{Header, Record};
use super::stats::{self, Estimate, FEWEST_PAIRS};
use super::validity::{is_generator_saturated, is_note_of_generator, is_saturated, processors_used};
use super::verdict::{Comparison, Judged, Side, verdicts};
use crate::number;
use crate::record::{FailureCount, Fairness, Latencies, Outcome};

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
    /// The median of the processors that it used.
    pub processors_used: Option<f64>,
    /// How its connections were served in the round in the middle, if unevenly.
    pub unfair: Option<Fairness>,
    /// Comparisons with the baseline, all of a record judged as one family; of the baseline itself there are none.
    pub ratios: BTreeMap<Metric, Judged>,
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
        let subjects = header.subjects.iter().enumerate().filter_map(|(place, subject)| {
            let own = side(record, &header.scenarios[index].name, &subject.name);
            (!own.rounds.is_empty()).then(|| of_subject(place, &subject.name, &own))
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
    for ((index, place), judged) in places.into_iter().zip(verdicts(&family)) {
        results[index].subjects[place].ratios.insert(judged.comparison.metric, judged);
    }
}

/// The results of one subject in a scenario, without ratios; nothing where there are none.
#[must_use]
pub fn subject<'a>(record: &'a Record, scenario: &str, name: &str) -> Option<SubjectResult<'a>> {
    let index = record.header.subjects.iter().position(|subject| subject.name == name)?;
    let own = side(record, scenario, name);
    (!own.rounds.is_empty()).then(|| of_subject(index, &record.header.subjects[index].name, &own))
}

/// A subject's results in a scenario.
pub(crate) fn side<'a>(record: &'a Record, scenario: &str, subject: &str) -> Side<'a> {
    let runs = record.runs.iter().filter(|run| run.scenario == scenario && run.subject == subject);
    Side {
        rounds: runs.map(|run| (run.round, &run.outcome)).collect(),
        processors: processors(&record.header, subject),
    }
}

/// How many processors a subject may use.
fn processors(header: &Header, name: &str) -> usize {
    let pin = header.subjects.iter().find(|subject| subject.name == name).and_then(|subject| subject.pin.clone());
    pin.and_then(|pin| Cores::try_from(pin).ok()).map_or(header.machine.processors, |cores| cores.count())
}

/// Compares a figure of two subjects, by the pairs of a scenario.
#[must_use]
pub fn comparison(record: &Record, scenario: &str, metric: Metric, subject: &str, rival: &str) -> Comparison {
    Comparison::new(metric, &side(record, scenario, subject), &side(record, scenario, rival))
}

fn of_subject<'a>(index: usize, name: &'a str, side: &Side<'_>) -> SubjectResult<'a> {
    let own = &side.rounds;
    let mut latencies = Latencies::new();
    own.values().for_each(|outcome| latencies.merge(&outcome.latencies()));
    let median = |metric: Metric| {
        let values: Vec<f64> = own.values().filter_map(|outcome| metric.of(outcome)).collect();
        Some((metric, stats::median_estimate(&values)?))
    };
    let used: Vec<f64> = own.values().filter_map(|outcome| processors_used(outcome)).collect();
    let failures = failures(own);
    let unfair = unfair(own);
    SubjectResult {
        index,
        name,
        runs: own.len(),
        medians: Metric::ALL.into_iter().filter_map(median).collect(),
        processors_used: (!used.is_empty()).then(|| stats::median(&used)),
        unfair,
        ratios: BTreeMap::new(),
        latencies,
        answers: own.values().map(|outcome| outcome.answers()).sum(),
        notes: notes(side, &failures, unfair),
        failures,
    }
}

/// A connection with so many times the answers of another one shows uneven service.
const UNFAIR: u64 = 4;

/// The fewest and the most answers of a connection in the round in the middle, if that is unfair.
fn unfair(own: &BTreeMap<usize, &Outcome>) -> Option<Fairness> {
    let mut all: Vec<Fairness> = own.values().map(|outcome| outcome.fairness).filter(|found| found.most > 0).collect();
    all.sort_by(|one, other| {
        (u128::from(one.most) * u128::from(other.least)).cmp(&(u128::from(other.most) * u128::from(one.least)))
    });
    let middle = *all.get(all.len() / 2)?;
    (middle.most >= UNFAIR * middle.least).then_some(middle)
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

fn notes(side: &Side<'_>, failures: &[FailureCount], unfair: Option<Fairness>) -> Vec<String> {
    // By text, in the order in which they came.
    let mut counts: Vec<(String, usize)> = Vec::new();
    let mut add = |text: &str| match counts.iter_mut().find(|(known, _)| *known == text) {
        Some((_, count)) => *count += 1,
        None => counts.push((text.to_owned(), 1)),
    };
    for outcome in side.rounds.values() {
        // The run's own note of it names figures that differ from run to run.
        let others = outcome.notes.iter().filter(|note| !is_note_of_generator(note));
        let used = processors_used(outcome).unwrap_or(f64::NAN);
        match (is_generator_saturated(outcome), is_saturated(used, side.processors)) {
            (true, false) => add("generator-bound: the generator was the limit, only the CPU time tells servers apart"),
            (true, true) => add("server and generator were both saturated"),
            (false, _) => {}
        }
        others.for_each(|note| add(note));
    }
    let of = side.rounds.len();
    let mut notes: Vec<String> =
        counts.into_iter().map(|(text, count)| format!("{text} ({count} of {of} runs)")).collect();
    notes.extend(unfair.map(|found| format!("uneven service makes a tail: {}", in_words(found))));
    for failure in failures {
        let example = failure.examples.first().map_or(String::new(), |example| format!(", such as: {example}"));
        notes.push(format!("{} {}{example}", number::thousands(failure.count), failure.kind.words()));
    }
    notes
}

/// `a connection had 174 to 14,599 answers`.
#[must_use]
pub fn in_words(fairness: Fairness) -> String {
    let (least, most) = (number::thousands(fairness.least), number::thousands(fairness.most));
    format!("a connection had {least} to {most} answers")
}

/// The limits of the whole record.
#[must_use]
pub fn limits(record: &Record) -> Vec<String> {
    let mut limits = Vec::new();
    let rounds = record.runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
    if rounds < FEWEST_PAIRS {
        limits.push(format!("Rounds made: {rounds}. With fewer than {FEWEST_PAIRS} no difference counts as shown"));
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
    use super::super::verdict::{Verdict, Void};
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
        let Judged { comparison: compared, verdict, .. } = b.ratios[&Metric::Throughput];
        let ratio = compared.ratio.unwrap();
        assert!((ratio.value - 2.0).abs() < 1e-9 && ratio.pairs == 2);
        assert_eq!(verdict, Verdict::Void(Void::FewPairs));
        assert!((b.medians[&Metric::Throughput].value - 1000.0).abs() < 1e-9);
        assert_eq!(b.latencies.count(), 11_200);
        let alone = subject(&record, "s", "b").unwrap();
        assert_eq!((alone.medians, alone.answers, alone.ratios.len()), (b.medians.clone(), b.answers, 0));
        assert!(subject(&record, "s", "c").is_none() && subject(&record, "t", "a").is_none());
        let value = |subject, rival| {
            comparison(&record, "s", Metric::Throughput, subject, rival)
                .ratio
                .map(|ratio| (ratio.pairs, ratio.value.round()))
        };
        assert_eq!((value("b", "a"), value("b", "c"), value("a", "a")), (Some((2, 2.0)), None, Some((2, 1.0))));
    }

    #[test]
    fn uneven_service_is_told() {
        #[track_caller]
        fn check(rounds: [(u64, u64); 3], expected: Option<&str>) {
            let mut record = record(&[("s", "a", 0, 100, 1000), ("s", "a", 1, 100, 1000), ("s", "a", 2, 100, 1000)]);
            for (run, (least, most)) in record.runs.iter_mut().zip(rounds) {
                run.outcome.fairness = Fairness { least, most };
            }
            let subject = subject(&record, "s", "a").unwrap();
            assert_eq!(subject.unfair.map(in_words).as_deref(), expected);
            let notes = subject.notes.iter().filter(|note| note.starts_with("uneven service")).count();
            assert_eq!(notes, usize::from(expected.is_some()), "{:?}", subject.notes);
        }
        check([(58, 61), (59, 60), (50, 70)], None);
        // The figures of tonic in F3.
        check([(174, 14_599), (1, 20_000), (900, 1000)], Some("a connection had 174 to 14,599 answers"));
        check([(0, 10), (0, 20), (9, 9)], Some("a connection had 0 to 10 answers"));
        // Another program's connections are unknown.
        check([(0, 0); 3], None);
    }

    #[test]
    fn the_processors_used_are_medians_and_name_what_was_saturated() {
        let runs = [("s", "a", 0, 100, 1000), ("s", "a", 1, 100, 1000), ("s", "a", 2, 100, 1000)];
        #[track_caller]
        fn check(record: &Record, used: f64, note: Option<&str>) {
            let subject = subject(record, "s", "a").unwrap();
            assert!((subject.processors_used.unwrap() - used).abs() < 1e-9);
            assert_eq!(subject.notes.iter().find(|note| note.contains("generator")).map(String::as_str), note);
        }
        let mut record = record(&runs);
        check(&record, 0.5, None);
        record.runs.iter_mut().for_each(|run| run.outcome.generator.busiest_thread = 0.95);
        let bound = "generator-bound: the generator was the limit, only the CPU time tells servers apart (3 of 3 runs)";
        check(&record, 0.5, Some(bound));
        for (run, cpu) in record.runs.iter_mut().zip([1.98, 2.0, 1.96]) {
            run.outcome.server.as_mut().unwrap().cpu = crate::record::Cpu { user: cpu, system: 0.0 };
        }
        check(&record, 0.99, Some("server and generator were both saturated (3 of 3 runs)"));
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

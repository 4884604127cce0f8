//! Verdicts in words. The interval alone decides which words they are.

use std::collections::BTreeMap;

use loadgen::compare::stats::{FEWEST_PAIRS, Ratio};
use loadgen::compare::{Metric, Record, analysis, factor};

use super::findings::{CONTROLLER, Question};
use super::measured::Measured;

/// What an interval says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Better,
    Worse,
    Draw,
    /// There is nothing to judge by.
    Unknown,
}

/// The answer to a question, for one metric.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) kind: Kind,
    /// "Rust is faster here."
    pub(super) short: String,
    /// The figures and the interval behind it.
    pub(super) long: String,
    pub(super) ratio: Option<Ratio>,
}

/// Answers a question.
pub(super) fn verdict(
    measured: &Measured,
    question: &Question,
    metric: Metric,
    languages: &BTreeMap<String, String>,
) -> Verdict {
    let Question { scenario, subject, rival, .. } = question;
    let ratio = measured.ratio(scenario, metric, subject, rival);
    let Some(ratio) = ratio.filter(|ratio| ratio.pairs >= FEWEST_PAIRS) else {
        let long = match ratio {
            Some(ratio) => format!("only {} pairs of runs, at least {FEWEST_PAIRS} are needed", ratio.pairs),
            None => missing(measured, question, metric),
        };
        return Verdict { kind: Kind::Unknown, short: "No verdict:".to_owned(), long: format!("{long}."), ratio: None };
    };
    let estimate = ratio.estimate;
    let kind = match () {
        () if !ratio.shows_difference() => Kind::Draw,
        () if (estimate.value > 1.0) == metric.more_is_better() => Kind::Better,
        () => Kind::Worse,
    };
    let (low, high) = (factor(estimate.low), factor(estimate.high));
    let bound = match kind {
        Kind::Draw => format!("the interval {low} to {high} holds 1"),
        _ => format!("95 % interval {low} to {high}"),
    };
    let long = format!(
        "in \u{201c}{scenario}\u{201d} {subject} {} ({bound}; {} interleaved pairs){}.",
        claim(metric, &factor(estimate.value), rival),
        ratio.pairs,
        limits(measured, question),
    );
    Verdict { kind, short: short(kind, metric, subject, rival, languages), long, ratio: Some(ratio) }
}

/// "Rust is slower here." Of two subjects in the same language only their names tell.
fn short(kind: Kind, metric: Metric, subject: &str, rival: &str, languages: &BTreeMap<String, String>) -> String {
    let language = |name: &str| languages.get(name).map_or("", String::as_str);
    let differ = language(subject) != language(rival);
    let who = if differ { language(subject) } else { subject };
    let [better, worse] = match metric {
        Metric::Throughput => ["faster", "slower"],
        Metric::Cpu => ["cheaper", "dearer"],
        Metric::P50 | Metric::P99 | Metric::P999 => ["quicker to answer", "slower to answer"],
        Metric::Memory => ["smaller", "larger"],
        Metric::Switches => ["calmer", "busier"],
    };
    let than = if differ { format!("{} ({rival})", language(rival)) } else { rival.to_owned() };
    match kind {
        Kind::Better => format!("{who} is {better} here than {than}:"),
        Kind::Worse => format!("{who} is {worse} here than {than}:"),
        Kind::Draw => format!("A draw with {than}:"),
        Kind::Unknown => "No verdict:".to_owned(),
    }
}

fn claim(metric: Metric, factor: &str, rival: &str) -> String {
    match metric {
        Metric::Throughput => format!("answers {factor} times as many requests per second as {rival}"),
        Metric::Cpu => format!("uses {factor} times the CPU time of {rival} per request"),
        Metric::P50 => format!("takes {factor} times as long as {rival} at the median"),
        Metric::P99 => format!("takes {factor} times as long as {rival} at the 99th percentile"),
        Metric::P999 => format!("takes {factor} times as long as {rival} at the 99.9th percentile"),
        Metric::Memory => format!("holds {factor} times the memory of {rival}"),
        Metric::Switches => format!("switches context {factor} times as often as {rival}"),
    }
}

/// Why there is no ratio.
fn missing(measured: &Measured, question: &Question, metric: Metric) -> String {
    let scenario = &question.scenario;
    if scenario.starts_with(CONTROLLER) {
        return format!("there are no runs of both {} and {} as controllers", question.subject, question.rival);
    }
    let Some(record) = &measured.record else { return "it was not measured".to_owned() };
    if !record.header.scenarios.iter().any(|known| known.name == *scenario) {
        return format!("\u{201c}{scenario}\u{201d} was left out of this run");
    }
    for name in [&question.subject, &question.rival] {
        if let Some(reason) = absence(record, scenario, name) {
            return reason;
        }
    }
    format!("{} is not known of both", metric.name())
}

/// Why a subject has no results in a scenario, if it has none.
fn absence(record: &Record, scenario: &str, name: &str) -> Option<String> {
    let Some(subject) = record.header.subjects.iter().find(|subject| subject.name == name) else {
        return Some(format!("{name} was left out of this run"));
    };
    if let Some(reason) = &subject.absent {
        return Some(format!("{name} is absent here ({})", one_line(reason)));
    }
    if record.runs.iter().any(|run| run.scenario == scenario && run.subject == name) {
        return None;
    }
    let failed = record.failed.iter().find(|failed| failed.scenario == scenario && failed.subject == name);
    Some(match failed {
        Some(failed) => format!("every run of {name} failed ({})", one_line(&failed.reason)),
        None => format!("{name} has no results"),
    })
}

/// The first 200 letters, on one line.
pub(super) fn one_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    }
}

/// What a reader of the ratio must know: limits of the generator, requests that failed.
fn limits(measured: &Measured, question: &Question) -> String {
    let Some(record) = &measured.record else { return String::new() };
    let mut text = String::new();
    for name in [&question.subject, &question.rival] {
        let Some(subject) = analysis::subject(record, &question.scenario, name) else { continue };
        let noted = |start: &str| subject.notes.iter().any(|note| note.starts_with(start));
        if noted("generator-bound") {
            text += &format!("; generator-bound with {name}, so that the CPU time tells more than the rate");
        }
        if noted("disturbed") && !text.contains("disturbed") {
            text += "; disturbed by other programs";
        }
        let failed: u64 = subject.failures.iter().map(|failure| failure.count).sum();
        if failed > 0 {
            text += &format!("; {failed} of {} requests to {name} failed", failed + subject.answers);
        }
        let lost = record.failed.iter().filter(|run| run.scenario == question.scenario && run.subject == *name).count();
        if lost > 0 {
            text += &format!("; {lost} runs of {name} gave no result");
        }
    }
    text
}

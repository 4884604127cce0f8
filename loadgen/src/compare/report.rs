//! A record as tables and texts; the same for Markdown and for the page.

use super::analysis::{self, ScenarioResult, SubjectResult};
use super::metric::Metric;
use super::record::{Header, Record};
use super::stats::{ERROR, Estimate};
use super::verdict::{Comparison, MARGIN, Verdict, Void};
use crate::number;

/// A part of a report.
pub(crate) enum Part<'a> {
    Heading(String),
    Text(String),
    Command(&'a str),
    Notes(Vec<String>),
    Table(Table),
    /// Where a page draws what the tables before say.
    Charts(ScenarioResult<'a>),
}

/// A table; its first column is text, and those whose names are in [`TEXTS`].
#[derive(Clone, Debug)]
pub struct Table {
    /// The names of the columns.
    pub header: Vec<String>,
    /// Lines of as many cells.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of these columns.
    #[must_use]
    pub fn new(header: &[&str], rows: Vec<Vec<String>>) -> Self {
        Self { header: header.iter().map(|name| (*name).to_owned()).collect(), rows }
    }
}

/// Columns whose content is text, and not aligned to the right.
pub const TEXTS: [&str; 4] = ["version", "command", "remarks", "bar"];

/// The parts of a report, after its title.
pub(crate) fn parts(record: &Record) -> Vec<Part<'_>> {
    let header = &record.header;
    let mut parts = vec![];
    if !header.description.is_empty() {
        parts.push(Part::Text(header.description.clone()));
    }
    parts.push(Part::Notes(analysis::limits(record)));
    parts.push(Part::Text(setting(header)));
    parts.push(Part::Table(subjects(header)));
    let results = analysis::scenarios(record);
    let legend = legend(&voids(&results));
    for result in results {
        let scenario = &header.scenarios[result.index];
        parts.push(Part::Heading(scenario.name.clone()));
        parts.push(Part::Command(&scenario.command));
        parts.extend(offered(record, &scenario.name).map(Part::Text));
        if result.subjects.is_empty() {
            parts.push(Part::Text("There are no results.".to_owned()));
        } else {
            parts.push(Part::Table(medians(&result)));
            parts.extend(ratios(header, &result).map(Part::Table));
        }
        parts.push(Part::Notes(notes(record, &result)));
        parts.push(Part::Charts(result));
    }
    parts.push(Part::Heading("How to read it".to_owned()));
    parts.push(Part::Text(legend));
    parts
}

/// Where the rate of an open loop comes from.
#[must_use]
pub fn offered(record: &Record, scenario: &str) -> Option<String> {
    let of = record.header.scenarios.iter().find(|known| known.name == scenario)?.rate_of.as_ref()?;
    let words = of.in_words();
    Some(match record.rates.iter().find(|rate| rate.scenario == scenario) {
        Some(rate) => format!(
            "Rate: {} requests/s for all: {words} ({}: {}/s).",
            number::rate(rate.per_second),
            rate.subject,
            number::rate(rate.capacity)
        ),
        None => format!("Rate: {words}, which is not known."),
    })
}

/// The meaning of the verdicts, and how they are found.
#[must_use]
pub fn legend(void: &[Void]) -> String {
    let mut text = format!(
        "Values are medians over the rounds; CPU time, memory and context switches are the server's; of programs that ask the CPU time is their own. A ratio is the geometric mean \
         over pairs of runs of the same round, in brackets its 95 % interval, Student's corrected for skewness; rounds that other \
         programs disturbed do not count. \u{201c}Better\u{201d} and \u{201c}worse\u{201d}: the interval leaves out 1; \
         \u{201c}equivalent\u{201d}: all of it lies within {:.0} % of 1; \u{201c}inconclusive\u{201d}: neither, more rounds are needed. All verdicts are judged as one \
         family (Holm), so that the chance of any wrong one among them is {:.0} %. Latencies count from the time at which a \
         request was intended to be sent.",
        MARGIN * 100.0,
        ERROR * 100.0
    );
    for reason in Void::ALL.iter().filter(|reason| void.contains(reason)) {
        text += &format!(" Void ({}): {reason}.", reason.letter());
    }
    text
}

/// Why verdicts of these scenarios are void.
fn voids(results: &[ScenarioResult<'_>]) -> Vec<Void> {
    let all = results.iter().flat_map(|result| &result.subjects).flat_map(|subject| subject.ratios.values());
    let of = |(_, verdict): &(Comparison, Verdict)| match verdict {
        Verdict::Void(reason) => Some(*reason),
        Verdict::Better | Verdict::Worse | Verdict::Equivalent | Verdict::Inconclusive => None,
    };
    all.filter_map(of).collect()
}

fn setting(header: &Header) -> String {
    let machine = &header.machine;
    let memory = number::bytes(machine.memory_bytes);
    let kept = match header.servers {
        super::plan::Servers::Kept => "servers were kept for all rounds",
        super::plan::Servers::Anew => "servers were started anew for every run",
    };
    let pin = header.generator_pin.as_ref().map_or(String::new(), |pin| format!(", the generator on processors {pin}"));
    let commit = header.commit.as_ref().map_or(String::new(), |commit| format!(", commit {commit}"));
    format!(
        "{}, {} processors, {memory}, {}, {}. {}, loadgen {}{commit}. Up to {} rounds after {} that were thrown away; {kept}{pin}.",
        machine.cpu,
        machine.processors,
        machine.kernel,
        machine.system,
        header.date,
        header.loadgen,
        header.rounds,
        header.warm_up_rounds,
    )
}

fn subjects(header: &Header) -> Table {
    let row = |subject: &super::record::SubjectHeader| {
        let mut remarks = vec![];
        if !subject.about.is_empty() {
            remarks.push(subject.about.clone());
        }
        if subject.name == header.baseline {
            remarks.push("the baseline".to_owned());
        }
        if let Some(reason) = &subject.absent {
            remarks.push(format!("absent: {reason}"));
        }
        let environment =
            subject.environment.iter().map(|(name, value)| format!("{name}={value} ")).collect::<String>();
        vec![
            subject.name.clone(),
            subject.version.clone().unwrap_or_default(),
            format!("{environment}{}", subject.start),
            subject.pin.clone().unwrap_or_default(),
            remarks.join("; "),
        ]
    };
    let columns = ["subject", "version", "command", "processors", "remarks"];
    Table::new(&columns, header.subjects.iter().map(row).collect())
}

/// The metrics that some subject has.
fn known(result: &ScenarioResult<'_>) -> Vec<Metric> {
    let has = |metric: &Metric| result.subjects.iter().any(|subject| subject.medians.contains_key(metric));
    Metric::ALL.into_iter().filter(has).collect()
}

fn medians(result: &ScenarioResult<'_>) -> Table {
    let metrics = known(result);
    let mut header = vec!["subject".to_owned(), "rounds".to_owned()];
    header.extend(metrics.iter().map(|metric| metric.words().to_owned()));
    header.push("failures".to_owned());
    let row = |subject: &SubjectResult<'_>| {
        let mut row = vec![subject.name.to_owned(), subject.runs.to_string()];
        let cell = |metric: &Metric| {
            subject.medians.get(metric).map_or_else(|| "–".to_owned(), |found| metric.text(found.value))
        };
        row.extend(metrics.iter().map(cell));
        let failed: u64 = subject.failures.iter().map(|failure| failure.count).sum();
        row.push(match failed {
            0 => "0".to_owned(),
            _ => format!("{} of {}", number::thousands(failed), number::thousands(failed + subject.answers)),
        });
        row
    };
    Table { rows: result.subjects.iter().map(row).collect(), header }
}

/// Ratios to the baseline, a row for each metric; nothing where no subject has one.
fn ratios(header: &Header, result: &ScenarioResult<'_>) -> Option<Table> {
    let subjects: Vec<&SubjectResult<'_>> =
        result.subjects.iter().filter(|subject| !subject.ratios.is_empty()).collect();
    let row = |metric: Metric| {
        let cell = |subject: &&SubjectResult<'_>| {
            subject.ratios.get(&metric).map_or_else(|| "–".to_owned(), |(found, verdict)| ratio_text(found, *verdict))
        };
        std::iter::once(metric.words().to_owned()).chain(subjects.iter().map(cell)).collect()
    };
    let rows = known(result).into_iter().map(row).collect();
    let names = subjects.iter().map(|subject| subject.name.to_owned());
    let names = std::iter::once(format!("ratio to {}", header.baseline)).chain(names).collect();
    (!subjects.is_empty()).then_some(Table { header: names, rows })
}

/// A ratio, its interval, and the verdict: `0.812 [0.79, 0.83] better`.
#[must_use]
pub fn ratio_text(found: &Comparison, verdict: Verdict) -> String {
    let Some(ratio) = found.ratio else { return verdict.to_string() };
    let Estimate { value, low, high } = ratio.estimate;
    if ratio.pairs < 2 {
        return format!("{} (one pair) {verdict}", factor(value));
    }
    format!("{} [{}, {}] {verdict}", factor(value), factor(low), factor(high))
}

/// A ratio with digits enough to tell it from 1.
#[must_use]
pub fn factor(ratio: f64) -> String {
    match ratio {
        ..10.0 => format!("{ratio:.3}"),
        ..100.0 => format!("{ratio:.2}"),
        _ => format!("{ratio:.1}"),
    }
}

fn notes(record: &Record, result: &ScenarioResult<'_>) -> Vec<String> {
    let name = &record.header.scenarios[result.index].name;
    let mut notes: Vec<String> = result
        .subjects
        .iter()
        .flat_map(|subject| subject.notes.iter().map(|note| format!("{}: {note}", subject.name)))
        .collect();
    for failed in record.failed.iter().filter(|failed| failed.scenario == *name) {
        let when = failed.round.map_or_else(|| "a warm-up round".to_owned(), |round| format!("round {}", round + 1));
        notes.push(format!("{}: {when} failed: {}", failed.subject, failed.reason));
    }
    notes
}

//! A record as tables and texts; the same for Markdown and for the page.

use super::analysis::{self, ScenarioResult, SubjectResult};
use super::margin::MARGIN;
use super::metric::Metric;
use super::record::{Header, Record};
use super::stats::{ERROR, Estimate};
use super::verdict::{Judged, Verdict, Void};
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
    let legend = legend(&reasons(&results));
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
        "Values are medians over the rounds. CPU time, memory, context switches and processors used are the server's; of programs that ask \
         they are their own. A server's CPU time per answer falls as its load grows, so compare it at a similar number of processors used. \
         A ratio is the geometric mean over pairs of runs of the same round; rounds that other programs disturbed do not count. Brackets: \
         its interval (Student's). All intervals of a report hold at once in {:.0} % of all cases (Bonferroni). \u{201c}Better\u{201d} and \
         \u{201c}worse\u{201d}: the interval leaves out 1; \u{201c}equivalent\u{201d}: all of it lies within {:.0} % of 1; \
         \u{201c}inconclusive\u{201d}: neither, more rounds are needed. Latencies count from the time at which a request was intended to \
         be sent.",
        (1.0 - ERROR) * 100.0,
        MARGIN * 100.0,
    );
    for reason in Void::ALL.iter().filter(|reason| void.contains(reason)) {
        text += &format!(" Void ({}): {reason}.", reason.letter());
    }
    text
}

/// The reasons beside these scenarios' ratios.
fn reasons(results: &[ScenarioResult<'_>]) -> Vec<Void> {
    let all = results.iter().flat_map(|result| &result.subjects).flat_map(|subject| subject.ratios.values());
    all.filter_map(Judged::reason).collect()
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
    let is_used = result.subjects.iter().any(|subject| subject.processors_used.is_some());
    header.extend(is_used.then(|| PROCESSORS_USED.to_owned()));
    header.push("failures".to_owned());
    let row = |subject: &SubjectResult<'_>| {
        let mut row = vec![subject.name.to_owned(), subject.runs.to_string()];
        let cell = |metric: &Metric| {
            subject.medians.get(metric).map_or_else(|| "–".to_owned(), |found| metric.text(found.value))
        };
        row.extend(metrics.iter().map(cell));
        row.extend(is_used.then(|| used(subject)));
        let failed: u64 = subject.failures.iter().map(|failure| failure.count).sum();
        row.push(match failed {
            0 => "0".to_owned(),
            _ => format!("{} of {}", number::thousands(failed), number::thousands(failed + subject.answers)),
        });
        row
    };
    Table { rows: result.subjects.iter().map(row).collect(), header }
}

/// The name of the column of [`used`].
pub const PROCESSORS_USED: &str = "processors used";

/// How many processors a subject used while it was measured.
#[must_use]
pub fn used(subject: &SubjectResult<'_>) -> String {
    subject.processors_used.map_or_else(|| "–".to_owned(), |used| format!("{used:.2}"))
}

/// Ratios to the baseline, a row for each metric; nothing where no subject has one.
fn ratios(header: &Header, result: &ScenarioResult<'_>) -> Option<Table> {
    let subjects: Vec<&SubjectResult<'_>> =
        result.subjects.iter().filter(|subject| !subject.ratios.is_empty()).collect();
    let row = |metric: Metric| {
        let cell =
            |subject: &&SubjectResult<'_>| subject.ratios.get(&metric).map_or_else(|| "–".to_owned(), ratio_text);
        std::iter::once(metric.words().to_owned()).chain(subjects.iter().map(cell)).collect()
    };
    let rows = known(result).into_iter().map(row).collect();
    let names = subjects.iter().map(|subject| subject.name.to_owned());
    let names = std::iter::once(format!("ratio to {}", header.baseline)).chain(names).collect();
    (!subjects.is_empty()).then_some(Table { header: names, rows })
}

/// A ratio, its interval, and the verdict: `0.812 [0.79, 0.83] better`. A void ratio has no interval.
#[must_use]
pub fn ratio_text(judged: &Judged) -> String {
    let Judged { comparison, estimate, verdict } = judged;
    let Some(Estimate { value, low, high }) = *estimate else { return verdict.to_string() };
    match verdict {
        Verdict::Void(_) => format!("{} {verdict}", factor(value)),
        Verdict::Better | Verdict::Worse | Verdict::Equivalent | Verdict::Inconclusive => {
            let mark = if comparison.both_saturated { " (s)" } else { "" };
            format!("{} [{}, {}] {verdict}{mark}", factor(value), factor(low), factor(high))
        }
    }
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

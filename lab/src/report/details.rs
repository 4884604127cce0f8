//! The part for the page only: everything that was published and measured.

use loadgen::compare::analysis::{self, ScenarioResult, SubjectResult};
use loadgen::compare::{Header, Judged, Metric, PROCESSORS_USED, Record, Table, offered, ratio_text, used, verdicts};
use loadgen::output::chart::{Bar, BarChart};
use loadgen::output::html::percentile_chart;

use super::document::{Block, points};
use super::findings::{Finding, OURS};
use super::measured::Measured;

/// The metrics of tables, with the names of their columns.
const SHOWN: [(Metric, &str); 5] = [
    (Metric::Throughput, "requests/s"),
    (Metric::Cpu, "server CPU/request"),
    (Metric::P50, "p50"),
    (Metric::P99, "p99"),
    (Metric::Memory, "peak memory"),
];

/// The metrics of ratios.
const COMPARED: [Metric; 4] = [Metric::Throughput, Metric::Cpu, Metric::P99, Metric::Memory];

/// The family of the tables in full.
const FAMILY: &str = "The ratios of the following tables are a family of their own, larger than that of the answers, so their intervals are \
    wider.";

/// All of a finding that the first pages leave out.
pub(super) fn section(finding: &Finding, measured: &Measured) -> Vec<Block> {
    let Some(record) = &measured.record else { return Vec::new() };
    let mut blocks = vec![Block::Heading(2, format!("{} in full", finding.id))];
    blocks.extend(subjects(finding, record));
    let results = analysis::scenarios(record);
    let mut judged = judged(record, &results).into_iter();
    blocks.extend(results.iter().flat_map(|result| scenario(finding, record, result, &mut judged)));
    blocks
}

/// The subjects, where and when they ran.
fn subjects(finding: &Finding, record: &Record) -> Vec<Block> {
    let header = &record.header;
    let row = |subject: &loadgen::compare::SubjectHeader| {
        let environment: String = subject.environment.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        let mut remarks = vec![subject.about.clone()];
        remarks.extend(subject.absent.as_ref().map(|reason| format!("absent: {}", one_line(reason))));
        remarks.retain(|remark| !remark.is_empty());
        vec![
            subject.name.clone(),
            subject.version.as_deref().map(one_line).unwrap_or_default(),
            format!("{environment}{}", subject.start),
            subject.pin.clone().unwrap_or_default(),
            remarks.join("; "),
        ]
    };
    let rows = header.subjects.iter().map(row).collect();
    vec![
        Block::Heading(3, format!("{}: subjects", finding.id)),
        Block::Text(FAMILY.to_owned()),
        Block::Text(header.description.clone()),
        Block::Text(setting(header)),
        points(analysis::limits(record)),
        Block::Table(Table::new(&["subject", "version", "command", "processors", "remarks"], rows)),
    ]
}

fn setting(header: &Header) -> String {
    let machine = &header.machine;
    let gibibytes = machine.memory_bytes as f64 / (1_u64 << 30) as f64;
    let kept = match header.servers {
        loadgen::compare::Servers::Kept => "servers were kept for all rounds",
        loadgen::compare::Servers::Anew => "servers were started anew for every run",
    };
    let pin = header.generator_pin.as_ref().map_or(String::new(), |pin| format!("; the generator on processors {pin}"));
    format!(
        "{}, {} processors, {gibibytes:.1} GiB, {}, {}. {}, commit {}, loadgen {}. {} rounds after {} that were thrown away; {kept}{pin}.",
        machine.cpu,
        machine.processors,
        machine.kernel,
        machine.system,
        header.date,
        header.commit.as_deref().unwrap_or("unknown"),
        header.loadgen,
        header.rounds,
        header.warm_up_rounds,
    )
}

/// A scenario's figures, ratios and remarks.
fn scenario(
    finding: &Finding,
    record: &Record,
    result: &ScenarioResult<'_>,
    judged: &mut impl Iterator<Item = Judged>,
) -> Vec<Block> {
    let of = &record.header.scenarios[result.index];
    let command = if of.target.is_some() { of.command.clone() } else { format!("loadgen {}", of.command) };
    let mut blocks = vec![Block::Heading(3, format!("{}: {}", finding.id, of.name)), Block::Code(command)];
    blocks.extend(offered(record, &of.name).map(Block::Text));
    if !result.subjects.is_empty() {
        blocks.push(Block::Table(medians(result)));
        blocks.extend(ratios(result, judged).map(Block::Table));
        blocks.extend(charts(result).into_iter().map(Block::Chart));
    }
    let mut notes: Vec<String> = result
        .subjects
        .iter()
        .flat_map(|subject| subject.notes.iter().map(|note| format!("{}: {note}", subject.name)))
        .collect();
    notes.extend(failed(record, &of.name));
    if !notes.is_empty() {
        blocks.push(points(notes));
    }
    blocks
}

/// Failed runs, a line for each subject and reason.
fn failed(record: &Record, scenario: &str) -> Vec<String> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for run in record.failed.iter().filter(|run| run.scenario == scenario) {
        let text = format!("{}: {}", run.subject, one_line(&run.reason));
        match counts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => counts.push((text, 1)),
        }
    }
    counts.into_iter().map(|(text, count)| format!("{text} ({count} runs failed)")).collect()
}

fn medians(result: &ScenarioResult<'_>) -> Table {
    let row = |subject: &SubjectResult<'_>| {
        let figure = |(metric, _): &(Metric, &str)| {
            subject.medians.get(metric).map_or_else(|| "–".to_owned(), |found| metric.text(found.value))
        };
        let failed: u64 = subject.failures.iter().map(|failure| failure.count).sum();
        let mut row = vec![subject.name.to_owned()];
        row.extend(SHOWN.iter().map(figure));
        row.push(used(subject));
        row.push(if failed == 0 { "0".to_owned() } else { format!("{failed} of {}", failed + subject.answers) });
        row.push(subject.runs.to_string());
        row
    };
    let mut header = vec!["subject"];
    header.extend(SHOWN.map(|(_, name)| name));
    header.extend([PROCESSORS_USED, "failed", "rounds"]);
    Table::new(&header, result.subjects.iter().map(row).collect())
}

/// Ours, and the rivals that it is divided by; nothing where ours has no results.
fn compared<'a>(result: &ScenarioResult<'a>) -> Option<(&'a str, Vec<&'a str>)> {
    let ours = result.subjects.iter().find(|subject| subject.name.starts_with(OURS))?.name;
    Some((ours, result.subjects.iter().map(|subject| subject.name).filter(|name| *name != ours).collect()))
}

/// All comparisons of a record's full tables, as one family.
fn judged(record: &Record, results: &[ScenarioResult<'_>]) -> Vec<Judged> {
    let mut family = Vec::new();
    for (result, (ours, rivals)) in results.iter().filter_map(|result| Some((result, compared(result)?))) {
        let scenario = &record.header.scenarios[result.index].name;
        for rival in rivals {
            family.extend(COMPARED.map(|metric| analysis::comparison(record, scenario, metric, ours, rival)));
        }
    }
    verdicts(&family)
}

/// The table of a scenario, from its share of all comparisons.
fn ratios(result: &ScenarioResult<'_>, judged: &mut impl Iterator<Item = Judged>) -> Option<Table> {
    let (ours, rivals) = compared(result)?;
    let mut row = |rival: &&str| {
        let cells = judged.by_ref().take(COMPARED.len()).map(|judged| ratio_text(&judged));
        std::iter::once(format!("{ours} / {rival}")).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = rivals.iter().map(&mut row).collect();
    let mut header = vec!["ratio"];
    header.extend(COMPARED.map(|metric| SHOWN.iter().find(|shown| shown.0 == metric).map_or("", |shown| shown.1)));
    (!rows.is_empty()).then(|| Table::new(&header, rows))
}

fn charts(result: &ScenarioResult<'_>) -> Vec<String> {
    let bars = |(metric, name): (Metric, &str)| {
        let bar = |subject: &SubjectResult<'_>| {
            let found = subject.medians.get(&metric)?;
            Some(Bar {
                label: subject.name.to_owned(),
                value: found.value,
                interval: (subject.runs > 1).then_some((found.low, found.high)),
                text: metric.text(found.value),
                colour: subject.index,
            })
        };
        let bars: Vec<Bar> = result.subjects.iter().filter_map(bar).collect();
        let better = if metric.more_is_better() { "more is better" } else { "less is better" };
        (!bars.is_empty()).then(|| BarChart { title: format!("{name} ({better})"), bars }.draw())
    };
    let mut charts: Vec<String> = SHOWN[..2].iter().copied().filter_map(bars).collect();
    let curves: Vec<_> = result
        .subjects
        .iter()
        .filter(|subject| subject.latencies.count() > 0)
        .map(|subject| (subject.index, subject.name, &subject.latencies))
        .collect();
    let curve = percentile_chart("Latency by percentile, all rounds together", &curves);
    charts.extend((!curve.is_empty()).then_some(curve));
    charts
}

/// The first 200 letters, on one line.
fn one_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    }
}

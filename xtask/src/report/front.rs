//! The text of REPORT.md: one page first, then a short section for each finding.

use loadgen::compare::stats::ERROR;
use loadgen::compare::{MARGIN, Metric, Table, Verdict, Void};

use super::answers::{Answer, Reproduced, answers, of, reproduced};
use super::document::{Block, Document};
use super::findings::{Expected, Finding, Findings, Question};
use super::forest;
use super::measured::Measured;
use super::{details, micro};

/// The metrics of verdict tables, with the names of their columns.
const COLUMNS: [(Metric, &str); 5] = [
    (Metric::Throughput, "rate"),
    (Metric::Cpu, "CPU"),
    (Metric::P99, "p99"),
    (Metric::Memory, "memory"),
    (Metric::Switches, "switches"),
];

/// The whole report.
pub(super) fn document(findings: &Findings, measured: &[Measured], causes: &micro::Causes) -> Document {
    let all: Vec<(&Finding, &Measured, Vec<Answer<'_>>)> =
        findings.findings.iter().zip(measured).map(|(finding, own)| (finding, own, answers(finding, own))).collect();
    let mut blocks = vec![Block::Text(in_short(&all)), Block::Table(summary(&all)), Block::Text(legend(&all))];
    for (finding, measured, answers) in &all {
        blocks.extend(section(finding, measured, answers));
    }
    blocks.extend(causes.summary(measured, findings));
    blocks.push(Block::Heading(2, "How it was measured".to_owned()));
    blocks.push(Block::Text(METHOD.to_owned()));
    let mut details: Vec<Block> =
        all.iter().flat_map(|(finding, measured, answers)| details::section(finding, measured, answers)).collect();
    details.extend(causes.blocks(measured, findings));
    Document { title: format!("{} published comparisons, measured again", all.len()), blocks, details }
}

const METHOD: &str = "Written by \u{201c}cargo xtask report --render\u{201d} from the records in benches/record, which \
\u{201c}cargo xtask report\u{201d} measures anew; do not edit. The same command writes a page with every scenario's figures, charts and \
notes, and all verdicts, to target/report/report.html. Published machines were others than ours: only ratios carry over. In each round every subject \
runs every scenario once; a ratio is the geometric mean over pairs of runs of the same round. Rounds that other programs disturbed \
do not decide. CPU time and memory are the server's; of controllers (F2) their own. Latencies count from the time at which a \
request was intended to be sent.";

type All<'a> = [(&'a Finding, &'a Measured, Vec<Answer<'a>>)];

/// The answer to the question whether Rust is slow.
fn in_short(all: &All<'_>) -> String {
    let of_slowness: Vec<(&str, Reproduced)> = all
        .iter()
        .filter(|(finding, ..)| finding.questions.iter().any(|question| question.claimed == Some(Expected::Worse)))
        .map(|(finding, measured, answers)| (finding.id.as_str(), reproduced(measured, answers)))
        .collect();
    let named = |wanted: Reproduced| {
        let names: Vec<&str> = of_slowness.iter().filter(|(_, found)| *found == wanted).map(|(id, _)| *id).collect();
        (!names.is_empty()).then(|| format!("{wanted} for {}", names.join(", ")))
    };
    let results: Vec<String> =
        [Reproduced::Yes, Reproduced::InPart, Reproduced::No, Reproduced::Inconclusive, Reproduced::Unmeasured]
            .into_iter()
            .filter_map(named)
            .collect();
    let costs = all.iter().filter_map(|(finding, _, answers)| {
        let answer = of(answers, &finding.questions[0], Metric::Cpu).filter(|answer| answer.void().is_none())?;
        Some((answer.comparison.ratio?.estimate.value, answer.verdict))
    });
    let costs: Vec<(f64, Verdict)> = costs.collect();
    let cheaper = costs.iter().filter(|(_, verdict)| *verdict == Verdict::Better).count();
    let (least, most) =
        costs.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), (value, _)| (least.min(*value), most.max(*value)));
    let ours = match costs.len() {
        0 => "What ours costs, no record tells.".to_owned(),
        told => format!(
            "Ours costs less CPU time per request than the published rival in {cheaper} of the {told} that tell: {least:.2} to \
             {most:.2} times as much."
        ),
    };
    let claims = if results.is_empty() { "no claim is known".to_owned() } else { results.join("; ") };
    format!(
        "Is Rust slow? {} published comparisons say so of a Rust program. Reproduced today with that program: {claims}. {ours}",
        of_slowness.len()
    )
}

/// A row for each finding. With results on two lines the table would be higher than a screen; the interval of p99 stands below.
fn summary(all: &All<'_>) -> Table {
    let row = |(finding, measured, answers): &(&Finding, &Measured, Vec<Answer<'_>>)| {
        let first = &finding.questions[0];
        let is_measured = measured.record.is_some();
        let on_one_line = |text: String| text.replace(' ', "\u{a0}");
        let cell = |metric, text: &dyn Fn(&Answer<'_>) -> String| {
            let answer = of(answers, first, metric).filter(|_| is_measured);
            on_one_line(answer.map_or_else(|| "–".to_owned(), text))
        };
        vec![
            finding.id.clone(),
            finding.title.clone(),
            on_one_line(reproduced(measured, answers).to_string()),
            first.rival.clone(),
            cell(Metric::Cpu, &|answer| answer.text()),
            cell(Metric::P99, &|answer| answer.without_interval()),
            on_one_line(if is_measured { validity(answers, first) } else { "–".to_owned() }),
        ]
    };
    let header = ["", "published claim", "reproduced", "ours against", "CPU", "p99", "pairs"];
    Table::new(&header, all.iter().map(row).collect())
}

/// How many pairs of runs decide a question, and of how many where some were disturbed; what is void says so in its cell.
fn validity(answers: &[Answer<'_>], question: &Question) -> String {
    let own = || answers.iter().filter(|answer| std::ptr::eq(answer.question, question));
    let pairs = own().filter_map(|answer| answer.comparison.ratio).map(|ratio| ratio.pairs).max().unwrap_or(0);
    match own().map(|answer| answer.comparison.disturbed).max() {
        Some(disturbed @ 1..) => format!("{pairs} of {}", pairs + disturbed),
        _ => pairs.to_string(),
    }
}

fn legend(all: &All<'_>) -> String {
    let mut text = format!(
        "\u{201c}Ours\u{201d} is this workspace's program. A cell is ours divided by its rival, with its 95 % interval, \
         Student's corrected for skewness. ▲ better, ▼ worse: the interval leaves out 1. ≈ equivalent: all of it lies within \
         {:.0} % of 1. ? inconclusive: neither. The verdicts of a finding are one family (Holm): the chance of any wrong one is {:.0} %.",
        MARGIN * 100.0,
        ERROR * 100.0
    );
    let answers = || all.iter().filter(|(_, measured, _)| measured.record.is_some()).flat_map(|(.., answers)| answers);
    let used = |reason: &&Void| answers().any(|answer| answer.void() == Some(**reason));
    for reason in Void::ALL.iter().filter(used) {
        text += &format!(" ({}) void: {reason}.", reason.letter());
    }
    text
}

fn section(finding: &Finding, measured: &Measured, answers: &[Answer<'_>]) -> Vec<Block> {
    let heading = Block::Heading(2, format!("{} {}", finding.id, finding.title));
    let workload = (
        "Workload:".to_owned(),
        format!("{}. {}", finding.workload, when(measured, &validity(answers, &finding.questions[0]))),
    );
    if measured.record.is_none() {
        return vec![heading, Block::Points(vec![workload])];
    }
    let mut lines = vec![
        (format!("The claim is reproduced: {}.", reproduced(measured, answers)), claim(finding, answers)),
        workload,
    ];
    lines.retain(|(_, text)| !text.is_empty());
    let mut blocks = vec![heading, Block::Points(lines)];
    if let Some(svg) = forest::of_answers(&format!("{}: ratios with 95 % intervals", finding.id), answers) {
        blocks.push(Block::Figure { name: finding.id.clone(), svg });
    }
    // The rest of what is asked stands in the figure, and in the page's table.
    let scenario = &finding.questions[0].scenario;
    blocks.push(Block::Text(format!("In the scenario \u{201c}{scenario}\u{201d}:")));
    let is_shown = |question: &&Question| question.scenario == *scenario && question.claimed.is_none();
    blocks.push(Block::Table(verdicts(finding.questions.iter().filter(is_shown), answers)));
    blocks
}

/// A row for each question.
pub(super) fn verdicts<'q>(questions: impl Iterator<Item = &'q Question> + Clone, answers: &[Answer<'_>]) -> Table {
    let asked = |metric: &Metric| questions.clone().any(|question| question.metrics.contains(metric));
    let columns: Vec<(Metric, &str)> = COLUMNS.into_iter().filter(|(metric, _)| asked(metric)).collect();
    let row = |question: &Question| {
        let cell = |(metric, _): &(Metric, &str)| of(answers, question, *metric).map_or_else(String::new, Answer::text);
        let ratio = format!("{} / {}", question.subject, question.rival);
        std::iter::once(ratio).chain(columns.iter().map(cell)).collect()
    };
    let header: Vec<&str> = ["ratio"].into_iter().chain(columns.iter().map(|(_, name)| *name)).collect();
    Table::new(&header, questions.clone().map(row).collect())
}

/// The outcome of the published subjects.
fn claim(finding: &Finding, answers: &[Answer<'_>]) -> String {
    let is_first = |question: &&Question| {
        let same = |other: &&Question| (&other.subject, &other.rival) == (&question.subject, &question.rival);
        let claimed = |question: &&Question| question.claimed.is_some();
        finding.questions.iter().filter(claimed).find(same).is_some_and(|first| std::ptr::eq(first, *question))
    };
    // A pair that is compared in several scenarios stands in the table with all of them.
    finding.questions.iter().filter(is_first).map(|question| pair(question, answers)).collect::<Vec<_>>().join(" ")
}

/// `mini-redis against redis: rate ▼ 0.71 [0.66, 0.75], CPU ▼ 1.45 [1.40, 1.50].`
fn pair(question: &Question, answers: &[Answer<'_>]) -> String {
    let cells =
        COLUMNS.iter().filter_map(|(metric, name)| Some(format!("{name} {}", of(answers, question, *metric)?.text())));
    let cells = cells.collect::<Vec<_>>().join(", ");
    format!("{} against {}: {cells}.", question.subject, question.rival)
}

/// The record behind a finding, and how much of it counts.
fn when(measured: &Measured, validity: &str) -> String {
    let Some(record) = &measured.record else { return "Not measured yet.".to_owned() };
    let header = &record.header;
    let day = header.date.split('T').next().unwrap_or_default();
    let commit = header.commit.as_deref().unwrap_or("unknown");
    format!("Measured {day}, {} rounds, {validity} pairs, commit {commit}.", header.rounds)
}

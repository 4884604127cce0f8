//! The rendered parts of REPORT.md and of each finding's own document.

use loadgen::compare::stats::ERROR;
use loadgen::compare::{MARGIN, Metric, PROCESSORS_USED, Table, Verdict, Void, analysis, used};

use super::answers::{Answer, answers, of, reproduced};
use super::document::{Block, Document, Link, Part, points};
use super::findings::{Finding, Findings, OURS, Question, Reason};
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
    let of_findings = findings.findings.iter().zip(measured).zip(answers(findings, measured));
    let all: Vec<(&Finding, &Measured, Vec<Answer<'_>>)> =
        of_findings.map(|((finding, own), answers)| (finding, own, answers)).collect();
    let answers = || all.iter().filter(|(_, measured, _)| measured.record.is_some()).flat_map(|(.., answers)| answers);
    let mut parts = vec![
        Part::of_report("answer", vec![Block::Text(in_short(&all))]),
        Part::of_report("losses", vec![points(losses(&all))]),
        Part::of_report(
            "summary",
            vec![Block::Text(caption(&all)), Block::Table(summary(&all)), Block::Text(legend(answers()))],
        ),
        Part::of_report("reasons", vec![Block::Points(findings.reasons.iter().map(|one| reason(one, &all)).collect())]),
        Part::of_report("findings", vec![Block::Links(all.iter().map(link).collect())]),
    ];
    for (finding, measured, answers) in &all {
        parts.extend(section(finding, measured, answers));
    }
    parts.extend(causes.summary(measured, findings));
    let method = [Block::Text("The method: docs/performance/method.md.".to_owned())];
    let details = all.iter().flat_map(|(finding, measured, _)| details::section(finding, measured));
    let details = method.into_iter().chain(details).chain(causes.blocks(measured, findings)).collect();
    Document { title: TITLE.to_owned(), parts, details }
}

/// The question, as the title of the page.
const TITLE: &str = "Is Rust slow?";

/// A bar of this many letters is as long as the rival's.
const BAR: f64 = 4.0;

type All<'a> = [(&'a Finding, &'a Measured, Vec<Answer<'a>>)];

/// The answer to the question whether Rust is slow: the CPU time of ours against the rival of each finding.
fn in_short(all: &All<'_>) -> String {
    let cost = |(finding, _, answers): &(&Finding, &Measured, Vec<Answer<'_>>)| {
        let question = &finding.questions[0];
        let answer = of(answers, question, Metric::Cpu).filter(|answer| answer.void().is_none())?;
        let value = answer.value()?;
        let text = format!("{} ({}), {value:.2} times {}", finding.topic(), finding.id, question.rival);
        Some((answer.verdict(), value, text))
    };
    let costs: Vec<(Verdict, f64, String)> = all.iter().filter_map(cost).collect();
    if costs.is_empty() {
        return "Not measured yet.".to_owned();
    }
    let of_verdict = |wanted: Verdict| costs.iter().filter(move |(verdict, ..)| *verdict == wanted);
    let values = || of_verdict(Verdict::Better).map(|(_, value, _)| *value);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let (better, told) = (values().count(), costs.len());
    let worse: Vec<&str> = of_verdict(Verdict::Worse).map(|(.., text)| text.as_str()).collect();
    let equal = of_verdict(Verdict::Equivalent).count();
    let mut text = format!("No in {better} of {told} published comparisons");
    if better > 0 {
        text += &format!(": our Rust program takes {least:.2} to {most:.2} times the rival's CPU time per request");
    }
    text.push('.');
    if !worse.is_empty() {
        text += &format!(" Yes in {}: {}.", worse.len(), worse.join("; "));
    }
    let untold = told - better - worse.len() - equal;
    for (count, words) in [(equal, "Equal in"), (untold, "Inconclusive in")] {
        if count > 0 {
            text += &format!(" {words} {count}.");
        }
    }
    text
}

/// Our losses, a line for each finding and rival: the metrics of the first such scenario, and how many others there are.
fn losses(all: &All<'_>) -> Vec<String> {
    let mut lines: Vec<(String, Vec<String>, Vec<&str>)> = Vec::new();
    for (finding, _, answers) in all {
        let is_lost =
            |answer: &&Answer<'_>| answer.verdict() == Verdict::Worse && answer.question.subject.starts_with(OURS);
        for answer in answers.iter().filter(is_lost) {
            let scenario = answer.question.scenario.as_str();
            let head = format!("{} ({}) against {}", finding.topic(), finding.id, answer.question.rival);
            let column = COLUMNS.iter().find(|(metric, _)| *metric == answer.metric());
            let text = format!("{} {}", column.map_or("", |(_, name)| *name), answer.without_interval());
            match lines.iter_mut().find(|(known, ..)| *known == head) {
                Some((_, texts, scenarios)) if scenarios[0] == scenario => texts.push(text),
                Some((_, _, scenarios)) if scenarios.contains(&scenario) => {}
                Some((_, _, scenarios)) => scenarios.push(scenario),
                None => lines.push((head, vec![text], vec![scenario])),
            }
        }
    }
    let line = |(head, texts, scenarios): (String, Vec<String>, Vec<&str>)| {
        let others = match scenarios.len() {
            0 | 1 => String::new(),
            2 => "; also in another scenario".to_owned(),
            all => format!("; also in {} other scenarios", all - 1),
        };
        format!("{head}: {}{others}.", texts.join(", "))
    };
    if lines.is_empty() {
        return vec!["None: no question about our programs is decided against them.".to_owned()];
    }
    lines.into_iter().map(line).collect()
}

/// The front table's caption, with the days of its records.
fn caption(all: &All<'_>) -> String {
    let mut days: Vec<&str> = all.iter().filter_map(|(_, measured, _)| measured.day()).collect();
    days.sort_unstable();
    let when = match (days.first(), days.last()) {
        (Some(first), Some(last)) => format!("measured from {first} to {last}"),
        _ => "not measured yet".to_owned(),
    };
    let rival = "█".repeat(BAR as usize);
    format!(
        "CPU time per request (the server's; F2: the controller's) and p99: ours / rival, lower is better. Bar: CPU, {rival} is \
         the rival; {when}."
    )
}

/// A reason with the figures that show it.
fn reason(reason: &Reason, all: &All<'_>) -> (String, String) {
    let own = all.iter().find(|(finding, ..)| finding.id == reason.finding);
    let shown = reason.shown.iter().filter_map(|shown| {
        let (finding, _, answers) = own?;
        let answer = of(answers, finding.asked(shown)?, *shown.metrics.first()?)?;
        Some(named(answer.question, &[answer]))
    });
    let texts: Vec<String> = std::iter::once(reason.text.clone()).chain(shown).collect();
    (format!("{} ({}).", reason.name, reason.finding), texts.join(" "))
}

/// A finding's line on the first page.
fn link((finding, measured, answers): &(&Finding, &Measured, Vec<Answer<'_>>)) -> Link {
    let when = measured.day().map_or_else(|| "Not measured yet.".to_owned(), |day| format!("Measured {day}."));
    let claim = measured.record.as_ref().map_or_else(String::new, |_| claim(finding, answers));
    let texts = [finding.answer.clone(), claim, when];
    let texts: Vec<&str> = texts.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    let name = format!("{} {}", finding.id, finding.title);
    Link { name, address: finding.file(), text: texts.join(" ") }
}

/// A row for each finding. With results on two lines the table would be higher than a screen; the interval of p99 stands elsewhere.
fn summary(all: &All<'_>) -> Table {
    let row = |(finding, measured, answers): &(&Finding, &Measured, Vec<Answer<'_>>)| {
        let first = &finding.questions[0];
        let on_one_line = |text: String| text.replace(' ', "\u{a0}");
        let answer = |metric| of(answers, first, metric).filter(|_| measured.record.is_some());
        let cell = |metric, text: &dyn Fn(&Answer<'_>) -> String| {
            on_one_line(answer(metric).map_or_else(|| "–".to_owned(), text))
        };
        vec![
            on_one_line(format!("{} {}", finding.id, finding.topic())),
            on_one_line(reproduced(measured, answers).to_string()),
            on_one_line(first.rival.clone()),
            answer(Metric::Cpu).and_then(bar).unwrap_or_default(),
            cell(Metric::Cpu, &|answer| answer.text()),
            cell(Metric::P99, &|answer| answer.without_interval()),
        ]
    };
    let header = ["claim", "reproduced", "rival", "bar", "CPU", "p99"];
    Table::new(&header, all.iter().map(row).collect())
}

/// A ratio as a bar.
fn bar(answer: &Answer<'_>) -> Option<String> {
    let ratio = answer.value().filter(|_| answer.void().is_none())?;
    let eighths = (ratio.clamp(0.0, 4.0) * BAR * 8.0).round() as usize;
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    Some("█".repeat(eighths / 8) + rest)
}

/// How many pairs of runs decide a question, and of how many where some were disturbed; what is void says so in its cell.
fn validity(answers: &[Answer<'_>], question: &Question) -> String {
    let own = || answers.iter().filter(|answer| std::ptr::eq(answer.question, question));
    let pairs = own().filter_map(|answer| answer.judged.comparison.ratio).map(|ratio| ratio.pairs).max().unwrap_or(0);
    match own().map(|answer| answer.judged.comparison.disturbed).max() {
        Some(disturbed @ 1..) => format!("{pairs} of {}", pairs + disturbed),
        _ => pairs.to_string(),
    }
}

/// The marks of these answers' tables.
fn legend<'a, 'b: 'a>(answers: impl Iterator<Item = &'a Answer<'b>>) -> String {
    let mut text = format!(
        "Cells: ours (or the first name) divided by the second, with its interval. ▲ better, ▼ worse: the interval excludes 1. \
         ≈ equivalent: all of it lies within {:.0} % of 1. ? inconclusive. The report is one family: the chance of any wrong verdict is \
         {:.0} % (Bonferroni), half of it for REPORT.md.",
        MARGIN * 100.0,
        ERROR * 100.0
    );
    let reasons: Vec<Void> = answers.filter_map(|answer| answer.judged.reason()).collect();
    for reason in Void::ALL.iter().filter(|reason| reasons.contains(reason)) {
        text += &format!(" ({}) void: {reason}.", reason.letter());
    }
    text
}

/// The parts of a finding's own document.
fn section(finding: &Finding, measured: &Measured, answers: &[Answer<'_>]) -> [Part; 2] {
    let part = |name, heading: Option<String>, blocks| Part { file: finding.file(), name, heading, blocks };
    let heading = Some(format!("{} {}", finding.id, finding.title));
    [part("published", heading, published(finding)), part("measured", None, results(finding, measured, answers))]
}

/// The published figures, and what contradicts them.
fn published(finding: &Finding) -> Vec<Block> {
    let facts = [("Claim:", &finding.claim), ("Source:", &finding.source), ("Workload:", &finding.workload)];
    let facts = facts.map(|(name, text)| (name.to_owned(), text.clone()));
    let columns: Vec<&str> = finding.published.columns.iter().map(String::as_str).collect();
    let mut blocks =
        vec![Block::Points(facts.to_vec()), Block::Table(Table::new(&columns, finding.published.rows.clone()))];
    if !finding.contradictions.is_empty() {
        blocks.push(Block::Text("Limits and contradictions of these figures:".to_owned()));
        blocks.push(points(finding.contradictions.iter().cloned()));
    }
    blocks
}

/// Our own measurements: a figure, and a table of verdicts for each scenario.
fn results(finding: &Finding, measured: &Measured, answers: &[Answer<'_>]) -> Vec<Block> {
    let mut lines = vec![("Record:".to_owned(), when(finding, measured, &validity(answers, &finding.questions[0])))];
    lines.extend(finding.caveat.iter().map(|caveat| ("Caveat:".to_owned(), caveat.clone())));
    if measured.record.is_none() {
        return vec![Block::Points(lines)];
    }
    let reproduced = (format!("The claim is reproduced: {}.", reproduced(measured, answers)), claim(finding, answers));
    lines.insert(0, reproduced);
    let mut blocks = vec![Block::Points(lines), Block::Text(legend(answers.iter()))];
    if let Some(svg) = forest::of_answers(&format!("{}: ratios with 95 % intervals", finding.id), answers) {
        blocks.push(Block::Figure { name: finding.id.clone(), svg });
    }
    let mut scenarios: Vec<&str> = Vec::new();
    for question in &finding.questions {
        let name = question.scenario.as_str();
        if scenarios.contains(&name) {
            continue;
        }
        scenarios.push(name);
        blocks.push(Block::Text(format!("Scenario \u{201c}{name}\u{201d}:")));
        let asked = finding.questions.iter().filter(|question| question.scenario == name);
        blocks.push(Block::Table(verdicts(asked.clone(), measured, answers)));
        blocks.extend(fairness(asked, measured).map(Block::Text));
    }
    blocks
}

/// The subjects whose connections were served unevenly.
fn fairness<'q>(questions: impl Iterator<Item = &'q Question>, measured: &Measured) -> Option<String> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for question in questions {
        for name in [&question.subject, &question.rival] {
            if !names.iter().any(|(_, known)| known == name) {
                names.push((&question.scenario, name));
            }
        }
    }
    let unfair = |(scenario, name): (&str, &str)| {
        let subject = analysis::subject(measured.record.as_ref()?, scenario, name)?;
        Some(format!("{name}: {}", analysis::in_words(subject.unfair?)))
    };
    let lines: Vec<String> = names.into_iter().filter_map(unfair).collect();
    (!lines.is_empty()).then(|| {
        format!("Uneven service makes tails, and starved connections add few latencies to them. {}.", lines.join("; "))
    })
}

/// A row for each question, with the processors that the two used at these figures.
fn verdicts<'q>(
    questions: impl Iterator<Item = &'q Question> + Clone,
    measured: &Measured,
    answers: &[Answer<'_>],
) -> Table {
    let used_by = |question: &Question, name: &str| {
        let subject = measured.record.as_ref().and_then(|record| analysis::subject(record, &question.scenario, name));
        subject.as_ref().map_or_else(|| "–".to_owned(), used)
    };
    let asked = |metric: &Metric| questions.clone().any(|question| question.metrics.contains(metric));
    let columns: Vec<(Metric, &str)> = COLUMNS.into_iter().filter(|(metric, _)| asked(metric)).collect();
    let row = |question: &Question| {
        let cell = |(metric, _): &(Metric, &str)| of(answers, question, *metric).map_or_else(String::new, Answer::text);
        let ratio = ratio(question);
        let used = [&question.subject, &question.rival].map(|name| used_by(question, name)).join(" / ");
        std::iter::once(ratio).chain(columns.iter().map(cell)).chain([used]).collect()
    };
    let names = columns.iter().map(|(_, name)| *name);
    let header: Vec<&str> = ["ratio"].into_iter().chain(names).chain([PROCESSORS_USED]).collect();
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

/// A question with the answers to its metrics: `mini-redis / redis: rate ▼ 0.71 [0.66, 0.75], CPU ▼ 1.45 [1.40, 1.50].`
fn named(question: &Question, answers: &[&Answer<'_>]) -> String {
    let cell = |(metric, name): &(Metric, &str)| {
        let answer = answers.iter().find(|answer| answer.metric() == *metric)?;
        Some(format!("{name} {}", answer.text()))
    };
    let cells: Vec<String> = COLUMNS.iter().filter_map(cell).collect();
    format!("{}: {}.", ratio(question), cells.join(", "))
}

fn pair(question: &Question, answers: &[Answer<'_>]) -> String {
    let own: Vec<&Answer<'_>> = answers.iter().filter(|answer| std::ptr::eq(answer.question, question)).collect();
    named(question, &own)
}

/// `mini-redis / redis`.
fn ratio(question: &Question) -> String {
    let name =
        |name: &str| name.split_once(", ").map_or_else(|| name.to_owned(), |(name, how)| format!("{name} ({how})"));
    format!("{} / {}", name(&question.subject), name(&question.rival))
}

/// The record behind a finding, its age, and how much of it counts.
fn when(finding: &Finding, measured: &Measured, validity: &str) -> String {
    let (Some(record), Some(day)) = (&measured.record, measured.day()) else { return "Not measured yet.".to_owned() };
    let before = finding.before.as_ref().map_or_else(String::new, |change| format!(", before {change}"));
    let commit = record.header.commit.as_deref().unwrap_or("unknown").replace('+', " with uncommitted changes");
    format!("measured on {day}{before}; {} rounds, {validity} pairs, commit {commit}.", record.header.rounds)
}

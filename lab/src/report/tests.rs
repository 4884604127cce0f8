//! The report of records that were not measured.

use loadgen::compare::{End, FORMAT, Header, Machine, Order, Record, Run, ScenarioHeader, Servers, SubjectHeader};
use loadgen::record::{Cpu, Ending, Fairness, Generator, Latencies, Operation, Outcome, ServerUse};

use super::answers::{Reproduced, answers, reproduced};
use super::document::{Document, REPORT};
use super::findings::{Finding, Findings};
use super::measured::Measured;
use super::{files, front, markdown, micro, page};

const FINDINGS: &str = r#"
    [[finding]]
    id = "F9"
    title = "A \"title\" | <b>"
    claim = "Go is faster."
    source = "an article"
    workload = "a tool"
    answer = "It depends."
    before = "the next change"
    caveat = "A round was cold."
    contradictions = ["It does not add up."]
    build = []
    quick = { scenarios = [], subjects = [] }
    [finding.published]
    columns = ["", "requests/s"]
    rows = [["Go", "2"], ["Rust", "1"]]
    [[finding.question]]
    scenario = "as published: s"
    rival = "go"
    metrics = ["cpu", "p99"]
    [[finding.question]]
    scenario = "as published: s"
    subject = "peer"
    rival = "go"
    claimed = "worse"
    [[reason]]
    name = "A small machine"
    text = "It had one core."
    finding = "F9"
    shown = [{ scenario = "as published: s", subject = "peer", rival = "go", metrics = ["cpu"] }]
"#;

fn findings() -> Findings {
    toml::from_str(FINDINGS).unwrap()
}

/// A second with so many answers of up to a millisecond, for which the server used half of its time.
fn outcome(answers: u64) -> Outcome {
    let mut latencies = Latencies::new();
    (0..answers).for_each(|number| latencies.record(1000 + number * 1_000_000 / answers));
    Outcome {
        description: "made up".to_owned(),
        settings: serde_json::Map::new(),
        ending: Ending::Complete,
        seconds: 1.0,
        operations: vec![Operation { name: "GET".to_owned(), latencies }],
        told: None,
        failures: Vec::new(),
        statuses: Vec::new(),
        offered_per_second: None,
        bytes_received: 0,
        bytes_sent: 0,
        deliveries: None,
        iterations: None,
        redirects: None,
        openings: None,
        fairness: Fairness::default(),
        generator: Generator::default(),
        server: Some(ServerUse {
            cpu: Cpu { user: 0.3, system: 0.2 },
            peak_resident_bytes: 5 << 20,
            ..ServerUse::default()
        }),
        timeline: Vec::new(),
        notes: Vec::new(),
    }
}

/// Rates of `ours` and of the others in six rounds of `as published: s`; a subject without one is absent.
fn record(rates: &[(&str, Option<u64>)]) -> Record {
    record_of(rates, &["as published: s"])
}

/// The same for these scenarios.
fn record_of(rates: &[(&str, Option<u64>)], scenarios: &[&str]) -> Record {
    let subject = |(name, rate): &(&str, Option<u64>)| SubjectHeader {
        name: (*name).to_owned(),
        about: "made up".to_owned(),
        version: Some("1".to_owned()),
        start: "x {port}".to_owned(),
        environment: std::collections::BTreeMap::new(),
        pin: None,
        absent: rate.is_none().then(|| "no compiler\nhere".to_owned()),
    };
    let scenario = |name: &str| ScenarioHeader {
        name: name.to_owned(),
        command: "redis GET a".to_owned(),
        target: None,
        generator_pin: None,
        prepare: None,
        rate_of: None,
    };
    let machine = Machine {
        kernel: "Linux 6".to_owned(),
        cpu: "a processor".to_owned(),
        processors: 2,
        memory_bytes: 8 << 30,
        system: "Debian".to_owned(),
    };
    let header = Header {
        format: FORMAT,
        title: "t".to_owned(),
        description: "d".to_owned(),
        date: "2026-11-21T15:00:00Z".to_owned(),
        loadgen: "0".to_owned(),
        commit: Some("abc".to_owned()),
        machine,
        rounds: 6,
        warm_up_rounds: 1,
        order: Order::Rotate,
        servers: Servers::Kept,
        baseline: "ours".to_owned(),
        seed: 1,
        generator_pin: None,
        subjects: rates.iter().map(subject).collect(),
        scenarios: scenarios.iter().copied().chain(["harder"]).map(scenario).collect(),
    };
    let mut runs = Vec::new();
    for (round, noise) in [0, 3, 1, 2, 0, 3].into_iter().enumerate() {
        for (place, (name, rate)) in rates.iter().enumerate() {
            let Some(rate) = rate else { continue };
            // Not the same noise for all, so that intervals have a width.
            let answers = rate + rate * ((noise + 2 * place as u64) % 4) / 100;
            for scenario in scenarios {
                let (scenario, subject) = ((*scenario).to_owned(), (*name).to_owned());
                runs.push(Run { scenario, subject, round, outcome: outcome(answers) });
            }
        }
    }
    let end = Some(End { complete: true, seconds: 1.0 });
    Record { header, runs, failed: Vec::new(), rates: Vec::new(), end }
}

fn measured(record: Record) -> Measured {
    Measured { record: Some(record) }
}

#[test]
fn a_claim_is_held_against_the_verdicts() {
    #[track_caller]
    fn check(rates: &[(&str, Option<u64>)], change: impl Fn(&mut Record), expected: Reproduced, text: &str) {
        let all = findings();
        let mut record = record(rates);
        change(&mut record);
        let measured = [measured(record)];
        let found = answers(&all, &measured).remove(0);
        assert_eq!((reproduced(&measured[0], &found), found[2].text().as_str()), (expected, text));
    }
    let slow = [("ours", Some(400)), ("go", Some(200)), ("peer", Some(100))];
    check(&slow, |_| {}, Reproduced::Yes, "▼ 0.50 [0.45, 0.56]");
    let fast = [("ours", Some(400)), ("go", Some(100)), ("peer", Some(200))];
    check(&fast, |_| {}, Reproduced::No, "▲ 2.00 [1.79, 2.23]");
    let same = [("ours", Some(400)), ("go", Some(1000)), ("peer", Some(1000))];
    let without_noise = |record: &mut Record| record.runs.iter_mut().for_each(|run| run.outcome = outcome(1000));
    check(&same, without_noise, Reproduced::No, "≈ 1.00 [1.00, 1.00]");
    // Six rounds with noise do not show it in a family of four.
    check(&same, |_| {}, Reproduced::Inconclusive, "? 1.00 [0.89, 1.12]");
    let bound = |record: &mut Record| {
        record.runs.iter_mut().for_each(|run| run.outcome.generator.busiest_thread = 0.95);
    };
    // The CPU time says it all the same.
    check(&slow, bound, Reproduced::Yes, "0.50 (g)");
    let disturbed = |record: &mut Record| {
        record.runs.iter_mut().for_each(|run| run.outcome.notes.push("disturbed: others".to_owned()));
    };
    check(&slow, disturbed, Reproduced::Inconclusive, "– (d)");
    check(&[("ours", Some(400)), ("go", Some(1))], |_| {}, Reproduced::Inconclusive, "– (m)");
}

#[test]
fn a_claim_of_which_a_part_tells_nothing_is_not_reproduced_as_a_whole() {
    let untold = r#"
    [[finding.question]]
    scenario = "as published: s"
    subject = "peer"
    rival = "away"
    claimed = "worse"
"#;
    let (own, reasons) = FINDINGS.split_once("[[reason]]").unwrap();
    let all: Findings = toml::from_str(&format!("{own}{untold}[[reason]]{reasons}")).unwrap();
    for (peer, expected) in [(100, Reproduced::InPart), (400, Reproduced::No)] {
        let measured =
            [measured(record(&[("ours", Some(400)), ("go", Some(200)), ("peer", Some(peer)), ("away", None)]))];
        let found = answers(&all, &measured).remove(0);
        assert_eq!(reproduced(&measured[0], &found), expected, "peer: {peer}");
    }
}

/// The rendered parts of the documents whose paths begin so.
fn parts(document: &Document, file: &str) -> String {
    document.parts.iter().filter(|part| part.file.starts_with(file)).map(markdown::render).collect()
}

#[test]
fn losses_are_named() {
    let (all, causes) = (findings(), micro::Causes::read().unwrap());
    let measured = [measured(record(&[("ours", Some(100)), ("go", Some(200)), ("peer", Some(50))]))];
    let text = parts(&front::document(&all, &measured, &causes), REPORT);
    for part in [
        "No in 0 of 1 published comparisons. Yes in 1: A \"title\" | <b> (F9), 2.00 times go.",
        "- A \"title\" | <b> (F9) against go: CPU ▼ 2.00.\n",
    ] {
        let part = part.replace('|', "\\|").replace('<', "\\<");
        assert!(text.contains(&part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn a_reason_names_what_its_finding_asks() {
    #[track_caller]
    fn check(from: &str, to: &str, expected: &str) {
        let all: Findings = toml::from_str(&FINDINGS.replace(from, to)).unwrap();
        let error = all.reasons[0].check(&all.findings).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    check("finding = \"F9\"", "finding = \"F8\"", "reason A small machine: no finding F8");
    check("metrics = [\"cpu\"] }", "metrics = [\"memory\"] }", "reason A small machine: F9 does not ask for ");
    check("metrics = [\"cpu\"] }", "metrics = [] }", "reason A small machine: F9 does not ask for ");
}

#[test]
fn a_report_is_the_same_twice_and_says_all() {
    let all = findings();
    let mut record = record(&[("ours", Some(200)), ("go", Some(100)), ("peer", Some(50)), ("away", None)]);
    for run in record.runs.iter_mut().filter(|run| run.subject == "go") {
        run.outcome.fairness = Fairness { least: 9, most: 90 };
    }
    let measured = [measured(record)];
    let causes = micro::Causes::read().unwrap();
    let document = front::document(&all, &measured, &causes);
    let (text, page) = (parts(&document, ""), page::render(&document));
    let again = front::document(&all, &measured, &causes);
    assert_eq!((&text, &page), (&parts(&again, ""), &page::render(&again)));
    for part in [
        "No in 1 of 1 published comparisons: our Rust program takes 0.50 to 0.50 times the rival's CPU time per request.\n",
        "ours / rival, lower is better. Bar: CPU, ████ is the rival; measured from 2026-11-21 to 2026-11-21.\n",
        "| F9\u{a0}A\u{a0}\"title\"\u{a0}\\|\u{a0}\\<b> | yes | go | ██ | ▲\u{a0}0.50\u{a0}[0.45,\u{a0}0.56] | ≈\u{a0}1.00 |\n",
        "- **A small machine (F9).** It had one core. peer / go: CPU ▼ 2.01 [",
        "- [F9 A \"title\" \\| \\<b>](docs/performance/f9.md): It depends. peer / go: rate ▼ 0.50 [",
        "measured on 2026-11-21, before the next change; 6 rounds, 6 pairs, commit abc.\n",
        "- **Caveat:** A round was cold.\n",
        "- It does not add up.\n",
        "| Go | 2 |\n",
        "Scenario \u{201c}as published: s\u{201d}:\n",
        "| ratio | rate | CPU | p99 | processors used |\n",
        "Uneven service makes tails, and starved connections add few latencies to them. go: a connection had 9 to 90 answers.\n",
        "![Ratios of F9 with their intervals](../../benches/record/F9.svg)\n",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    for part in ["absent: no compiler here", "<h3 id="] {
        assert!(page.contains(part) && !text.contains(part), "`{part}`");
    }
    for network in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(network), "{network} reaches for the network");
    }
    assert!(page.matches("<svg").count() >= 4 && page.contains("&lt;b&gt;"));
}

#[test]
fn findings_that_were_never_run_are_reported_as_such() {
    let all = findings();
    let measured = [Measured { record: None }];
    let text = parts(&front::document(&all, &measured, &micro::Causes::read().unwrap()), "");
    for part in [
        "Not measured yet.",
        "| F9\u{a0}A\u{a0}\"title\"\u{a0}\\|\u{a0}\\<b> | not\u{a0}measured | go |  | – | – |",
        "; not measured yet.",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    assert!(!text.contains("reproduced: ") && !text.contains("svg"), "{text}");
}

/// A longer report is not read.
const MOST_WORDS: usize = 1500;

#[test]
fn committed_reports_match_the_records() {
    let all = Findings::read().unwrap();
    let measured: Vec<Measured> = all.findings.iter().map(|finding| Measured::read(finding).unwrap()).collect();
    let document = front::document(&all, &measured, &micro::Causes::read().unwrap());
    for (path, text) in files(&document).unwrap() {
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == text, "{}: `cargo xtask report --render` gives another one", path.display());
    }
    // The answer of the first page opens each finding's own.
    for finding in &all.findings {
        let text = std::fs::read_to_string(xtask::workspace::root().join(finding.file())).unwrap();
        assert_eq!(text.lines().nth(2), Some(finding.answer.as_str()), "{}", finding.id);
    }
    // Each mark is of a part.
    for part in &document.parts {
        let text = std::fs::read_to_string(xtask::workspace::root().join(&part.file)).unwrap();
        let marks = text.lines().filter_map(|line| line.strip_prefix("<!-- begin: table ")?.strip_suffix(" -->"));
        let own = document.parts.iter().filter(|other| other.file == part.file).map(|other| other.name);
        assert_eq!(marks.collect::<Vec<_>>(), own.collect::<Vec<_>>(), "{}", part.file);
    }
}

#[test]
fn a_report_of_which_all_is_measured_is_short_enough() {
    let all = Findings::read().unwrap();
    let whole = |finding: &Finding| {
        let mut names: Vec<&str> = finding
            .questions
            .iter()
            .flat_map(|question| [question.subject.as_str(), question.rival.as_str()])
            .collect();
        names.sort_unstable();
        names.dedup();
        let rates: Vec<(&str, Option<u64>)> =
            names.into_iter().zip(1..).map(|(name, rate)| (name, Some(100 * rate))).collect();
        let mut scenarios: Vec<&str> = finding.questions.iter().map(|question| question.scenario.as_str()).collect();
        scenarios.sort_unstable();
        scenarios.dedup();
        measured(record_of(&rates, &scenarios))
    };
    let measured: Vec<Measured> = all.findings.iter().map(whole).collect();
    let document = front::document(&all, &measured, &micro::Causes::read().unwrap());
    let path = xtask::workspace::root().join(REPORT);
    let (_, text) = files(&document).unwrap().into_iter().find(|(file, _)| *file == path).unwrap();
    let words = text.split_whitespace().count();
    assert!(words <= MOST_WORDS, "REPORT.md would have {words} words");
}

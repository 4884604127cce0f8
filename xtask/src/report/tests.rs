//! The report of records that nobody measured.

use loadgen::compare::{
    End, FORMAT, FailedRun, Header, Machine, Metric, Order, Record, Run, ScenarioHeader, Servers, SubjectHeader,
};
use loadgen::record::{Cpu, Ending, Fairness, Generator, Latencies, Operation, Outcome, ServerUse};

use super::findings::{Finding, Findings, Question};
use super::measured::Measured;
use super::verdict::{Kind, verdict};
use super::{markdown, micro, page, sections};
use crate::echonet::ControllerRun;

const FINDINGS: &str = r#"
    [[finding]]
    id = "F9"
    title = "A \"title\" | <b>"
    claim = "Go is faster."
    source = "an article"
    workload = "a tool"
    contradictions = ["It does not add up."]
    build = []
    quick = { scenarios = [], subjects = [] }
    languages = { ours = "Rust", go = "Go", c = "C", peer = "Rust" }
    controllers = true
    [finding.published]
    columns = ["", "requests/s"]
    rows = [["Go", "2"], ["Rust", "1"]]
    [[finding.question]]
    scenario = "as published: s"
    rival = "go"
    [[finding.question]]
    scenario = "controller, apart"
    rival = "go"
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
        failures: Vec::new(),
        offered_per_second: None,
        bytes_received: 0,
        bytes_sent: 0,
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

/// Rates of `ours` and of the others in six rounds; who has none is absent.
fn record(rates: &[(&str, Option<u64>)]) -> Record {
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
        scenarios: vec![scenario("as published: s"), scenario("harder")],
    };
    let mut runs = Vec::new();
    for (round, noise) in [0, 3, 1, 2, 0, 3].into_iter().enumerate() {
        for (place, (name, rate)) in rates.iter().enumerate() {
            let Some(rate) = rate else { continue };
            // Not the same noise for all, so that intervals have a width.
            let answers = rate + rate * ((noise + 2 * place as u64) % 4) / 100;
            let outcome = outcome(answers);
            let scenario = "as published: s".to_owned();
            runs.push(Run { scenario, subject: (*name).to_owned(), round, outcome });
        }
    }
    let end = Some(End { complete: true, seconds: 1.0 });
    Record { header, runs, failed: Vec::new(), rates: Vec::new(), end }
}

fn measured(record: Record) -> Measured {
    Measured { record: Some(record), controllers: Vec::new() }
}

fn question(subject: &str, rival: &str, scenario: &str) -> Question {
    let (subject, rival, scenario) = (subject.to_owned(), rival.to_owned(), scenario.to_owned());
    Question { scenario, subject, rival, metrics: vec![Metric::Throughput] }
}

#[track_caller]
fn check(measured: &Measured, question: &Question, metric: Metric, kind: Kind, parts: [&str; 2]) {
    let finding: &Finding = &findings().findings[0];
    let found = verdict(measured, question, metric, &finding.languages);
    assert_eq!(found.kind, kind, "{} {}", found.short, found.long);
    assert_eq!(found.short, parts[0]);
    assert!(found.long.contains(parts[1]), "{}", found.long);
}

#[test]
fn verdicts_follow_the_interval() {
    let rates = [("ours", Some(200)), ("go", Some(100)), ("c", Some(400)), ("peer", Some(199)), ("away", None)];
    let mut known = measured(record(&rates));
    let ask = |rival: &str| question("ours", rival, "as published: s");
    let rate = Metric::Throughput;
    check(&known, &ask("go"), rate, Kind::Better, ["Rust is faster here than Go (go):", "ours answers 2.0"]);
    check(&known, &ask("go"), rate, Kind::Better, ["Rust is faster here than Go (go):", "6 interleaved pairs)."]);
    check(&known, &ask("c"), rate, Kind::Worse, ["Rust is slower here than C (c):", "ours answers 0.50"]);
    check(
        &known,
        &ask("c"),
        Metric::Cpu,
        Kind::Worse,
        ["Rust is dearer here than C (c):", "the CPU time of c per request"],
    );
    check(&known, &ask("peer"), rate, Kind::Draw, ["A draw with peer:", "holds 1"]);
    check(&known, &ask("c"), Metric::Memory, Kind::Draw, ["A draw with C (c):", "the interval 1.000 to 1.000 holds 1"]);
    let peer = question("peer", "go", "as published: s");
    check(&known, &peer, rate, Kind::Better, ["Rust is faster here than Go (go):", "peer answers"]);

    let none = "No verdict:";
    check(&known, &ask("away"), rate, Kind::Unknown, [none, "away is absent here (no compiler here)."]);
    check(&known, &ask("nobody"), rate, Kind::Unknown, [none, "nobody was left out of this run"]);
    let harder = question("ours", "go", "harder");
    check(&known, &harder, rate, Kind::Unknown, [none, "ours has no results"]);
    let failed = FailedRun {
        scenario: "harder".to_owned(),
        subject: "ours".to_owned(),
        round: Some(0),
        reason: "it\ndied".to_owned(),
    };
    let whole = known.record.as_mut().unwrap();
    whole.failed.push(failed.clone());
    whole.failed.push(FailedRun { scenario: "as published: s".to_owned(), ..failed });
    check(&known, &harder, rate, Kind::Unknown, [none, "every run of ours failed (it died)"]);
    check(
        &known,
        &ask("go"),
        rate,
        Kind::Better,
        ["Rust is faster here than Go (go):", "; 1 runs of ours gave no result"],
    );
    let left_out = question("ours", "go", "another");
    check(&known, &left_out, rate, Kind::Unknown, [none, "“another” was left out"]);
    let whole = known.record.as_mut().unwrap();
    whole.runs.retain(|run| run.round < 4);
    check(&known, &ask("go"), rate, Kind::Unknown, [none, "only 4 pairs of runs, at least 5 are needed."]);
    let nothing = Measured { record: None, controllers: Vec::new() };
    check(&nothing, &ask("go"), rate, Kind::Unknown, [none, "it was not measured"]);
}

#[test]
fn limits_are_told_with_the_verdict() {
    let mut record = record(&[("ours", Some(200)), ("go", Some(100))]);
    record.runs.iter_mut().for_each(|run| run.outcome.generator.busiest_thread = 0.95);
    let ask = question("ours", "go", "as published: s");
    let expected = ["Rust is faster here than Go (go):", "generator-bound with ours"];
    check(&measured(record), &ask, Metric::Throughput, Kind::Better, expected);
}

#[test]
fn a_report_is_the_same_twice_and_says_all() {
    let all = findings();
    let controllers = (0..5).flat_map(|round| {
        [("ours, tokio", 300.0), ("ours", 200.0), ("go", 100.0)].map(|(name, rate)| ControllerRun {
            scenario: "controller, apart".to_owned(),
            subject: name.to_owned(),
            round,
            per_second: rate + round as f64,
            cpu_us: 2.0,
            lost: 0,
        })
    });
    let record = record(&[("ours", Some(200)), ("go", Some(100)), ("away", None)]);
    let measured = [Measured { record: Some(record), controllers: controllers.collect() }];
    let causes = micro::Causes::read().unwrap();
    let document = sections::document(&all, &measured, &causes);
    let (text, page) = (markdown::render(&document), page::render(&document));
    let again = sections::document(&all, &measured, &causes);
    assert_eq!((&text, &page), (&markdown::render(&again), &page::render(&again)));
    for part in [
        "## F9 A \"title\" \\| \\<b>\n",
        "- **Rust is faster here than Go (go):** in “as published: s” ours answers 2.0",
        "| Go | 2 |\n",
        "It does not add up.",
        "absent: no compiler here",
        "| ours / go | 2.0",
        "#### as published: s\n",
        "a processor, 2 processors, 8.0 GiB, Linux 6, Debian. 2026-11-21T15:00:00Z, commit abc",
        "#### controller, apart\n",
        "| ours, tokio / go | ",
        "A draw with Go (go):",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    for network in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.replace("http://www.w3.org/2000/svg", "").contains(network), "{network} reaches for the network");
    }
    assert!(page.matches("<svg").count() >= 4 && page.contains("&lt;b&gt;"));
}

#[test]
fn findings_that_were_never_run_are_reported_as_such() {
    let all = findings();
    let measured = [Measured { record: None, controllers: Vec::new() }];
    let text = markdown::render(&sections::document(&all, &measured, &micro::Causes::read().unwrap()));
    assert!(text.contains("No verdict: it was not measured."), "{text}");
}

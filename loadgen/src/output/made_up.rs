//! Invented results, to test the outputs that are made of them.

use serde_json::{Map, json};

use crate::record::{
    Cpu, Ending, Failure, FailureCount, Fairness, Generator, Interval, Latencies, Operation, Outcome, ServerInterval,
    ServerUse,
};

/// 3000 answers in three seconds by two operations; a few failures.
pub(crate) fn outcome() -> Outcome {
    let mut settings = Map::new();
    settings.insert("protocol".to_owned(), json!("redis"));
    settings.insert("connections".to_owned(), json!(50));
    settings.insert("seed".to_owned(), json!(1));
    let interval = |second: u64| Interval {
        start: second as f64,
        seconds: 1.0,
        latencies: latencies(1000, 100_000 * (second + 1)).into(),
        failures: second,
        server: Some(ServerInterval { processors: 0.25, resident_bytes: 12 << 20 }),
    };
    Outcome {
        description: "redis 127.0.0.1:6379, 50 connections, 1 thread, open loop, 1001 requests/s, 3s: 2:1 GET, SET"
            .to_owned(),
        settings,
        ending: Ending::Complete,
        seconds: 3.0,
        operations: vec![
            Operation { name: "GET".to_owned(), latencies: latencies(2000, 100_000) },
            Operation { name: "SET".to_owned(), latencies: latencies(1000, 300_000) },
        ],
        told: None,
        failures: vec![
            FailureCount {
                kind: Failure::TimedOut,
                count: 2,
                examples: vec!["no answer for 10 s".to_owned()],
                latencies: None,
            },
            FailureCount { kind: Failure::Rejected, count: 1, examples: vec!["-ERR no".to_owned()], latencies: None },
        ],
        statuses: Vec::new(),
        offered_per_second: Some(1001.0),
        bytes_received: 3 << 20,
        bytes_sent: 300_000,
        deliveries: None,
        iterations: None,
        redirects: None,
        openings: None,
        fairness: Fairness { least: 58, most: 61 },
        generator: Generator {
            cpu: Cpu { user: 0.006, system: 0.012 },
            busiest_thread: 0.942,
            resident_bytes: 5 << 20,
            ..Generator::default()
        },
        server: Some(ServerUse {
            pid: 4711,
            others: 0,
            cpu: Cpu { user: 0.015, system: 0.006 },
            resident_bytes: 12 << 20,
            peak_resident_bytes: 13 << 20,
            voluntary_switches: 1500,
            involuntary_switches: 3,
        }),
        timeline: (0..3).map(interval).collect(),
        notes: vec!["generator-bound: a thread of the generator was 94 % busy".to_owned()],
    }
}

/// No server listened.
pub(crate) fn refused() -> Outcome {
    Outcome {
        ending: Ending::Failed("no connection could be opened: connection refused".to_owned()),
        seconds: 0.0,
        operations: vec![Operation { name: "GET".to_owned(), latencies: Latencies::new() }],
        failures: vec![FailureCount {
            kind: Failure::Refused,
            count: 50,
            examples: vec!["127.0.0.1:6379: connection refused".to_owned()],
            latencies: None,
        }],
        offered_per_second: None,
        server: None,
        timeline: Vec::new(),
        notes: Vec::new(),
        ..outcome()
    }
}

/// A run of two seconds with so many answers, of latencies spread from `nanos` to eleven times that, and two failures if there
/// are answers. The server used a second of CPU time.
pub(crate) fn run_of(answers: u64, nanos: u64) -> Outcome {
    let mut latencies = Latencies::new();
    for index in 0..answers {
        latencies.record(nanos + nanos * 10 * (index * index) / (answers * answers).max(1));
    }
    let failure =
        FailureCount { kind: Failure::TimedOut, count: 2, examples: vec!["after 1 s".to_owned()], latencies: None };
    let server = ServerUse {
        pid: 1,
        others: 0,
        cpu: Cpu { user: 0.75, system: 0.25 },
        resident_bytes: 10_000_000,
        peak_resident_bytes: 12_000_000,
        voluntary_switches: 300,
        involuntary_switches: 20,
    };
    Outcome {
        description: "<made up>".to_owned(),
        seconds: 2.0,
        operations: vec![Operation { name: "GET".to_owned(), latencies }],
        failures: if answers > 0 { vec![failure] } else { Vec::new() },
        offered_per_second: None,
        generator: Generator {
            cpu: Cpu { user: 0.5, system: 0.5 },
            busiest_thread: 0.5,
            resident_bytes: 1_000_000,
            ..Generator::default()
        },
        server: Some(server),
        notes: vec!["made up".to_owned()],
        ..outcome()
    }
}

/// So many latencies, evenly from `step` nanoseconds to a hundred times that.
fn latencies(count: u64, step: u64) -> Latencies {
    let mut latencies = Latencies::new();
    for number in 0..count {
        latencies.record((number % 100 + 1) * step / 10);
    }
    latencies
}

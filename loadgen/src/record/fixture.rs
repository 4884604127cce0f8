//! Made-up results for tests.

use super::{
    Cpu, Ending, Failure, FailureCount, Fairness, Generator, Interval, Latencies, Operation, Outcome, ServerInterval,
    ServerUse,
};

/// A run of two seconds with so many answers, of latencies spread from `nanos` to eleven times that.
pub(crate) fn outcome(answers: u64, nanos: u64) -> Outcome {
    let mut latencies = Latencies::new();
    for index in 0..answers {
        latencies.record(nanos + nanos * 10 * (index * index) / (answers * answers).max(1));
    }
    let interval = |start: f64| Interval {
        start,
        seconds: 1.0,
        latencies: latencies.clone(),
        failures: 1,
        server: Some(ServerInterval { processors: 0.5, resident_bytes: 10_000_000 }),
    };
    let failure = FailureCount { kind: Failure::TimedOut, count: 2, examples: vec!["after 1 s".to_owned()] };
    let server = ServerUse {
        pid: 1,
        cpu: Cpu { user: 0.75, system: 0.25 },
        resident_bytes: 10_000_000,
        peak_resident_bytes: 12_000_000,
        voluntary_switches: 300,
        involuntary_switches: 20,
    };
    Outcome {
        description: "<made up>".to_owned(),
        settings: serde_json::Map::from_iter([("seed".to_owned(), serde_json::json!(1))]),
        ending: Ending::Complete,
        seconds: 2.0,
        operations: vec![Operation { name: "GET".to_owned(), latencies: latencies.clone() }],
        failures: if answers > 0 { vec![failure] } else { Vec::new() },
        offered_per_second: None,
        bytes_received: 10,
        bytes_sent: 10,
        fairness: Fairness { least: 10, most: 20 },
        generator: Generator { cpu: Cpu { user: 0.5, system: 0.5 }, busiest_thread: 0.5, resident_bytes: 1_000_000 },
        server: Some(server),
        timeline: vec![interval(0.0), interval(1.0)],
        notes: vec!["made up".to_owned()],
    }
}

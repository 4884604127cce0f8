//! Answers as other tools count them.

use crate::record::{Failure, Latencies, Outcome};

/// Answers of any content: right ones, those with an error, and wrong ones.
pub(super) fn answered(outcome: &Outcome) -> u64 {
    outcome.answers() + outcome.failures_of(Failure::Rejected) + outcome.failures_of(Failure::Wrong)
}

/// The latencies of all [`answered`].
pub(super) fn answered_latencies(outcome: &Outcome) -> Latencies {
    let mut all = outcome.latencies();
    let failed = outcome.failures.iter().filter(|failure| matches!(failure.kind, Failure::Rejected | Failure::Wrong));
    for latencies in failed.filter_map(|failure| failure.latencies.as_ref()) {
        all.merge(latencies);
    }
    all
}

/// How many steps the histograms of hey and ghz have.
const STEPS: u64 = 10;

/// The fastest, and ten equal steps up to the slowest: nanoseconds and how many.
pub(super) fn bars(latencies: &Latencies) -> Vec<(u64, u64)> {
    let (least, most) = (latencies.min().as_nanos() as u64, latencies.max().as_nanos() as u64);
    let mut rows = Vec::new();
    let mut from = 0;
    for step in 0..=STEPS {
        let until = least + (most - least) * step / STEPS;
        // A bucket may span the edge: then it belongs to the bar below.
        let until = latencies.histogram().highest_equivalent(until);
        let count = if until < from { 0 } else { latencies.histogram().count_between(from, until) };
        rows.push((until, count));
        from = until + 1;
    }
    rows
}

/// A percentile in milliseconds.
pub(super) fn millis(latencies: &Latencies, percent: f64) -> f64 {
    latencies.percentile(percent).as_secs_f64() * 1e3
}

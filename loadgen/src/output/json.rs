//! The result for programs.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::objective::Verdict;
use crate::record::{FailureCount, Iterations, Latencies, Openings, Outcome};

/// The result as JSON: the [`Outcome`] itself, with complete histograms, and a `summary` of the usual figures, so that readers need not
/// decode histograms for a percentile. Times are seconds.
#[must_use]
pub fn json(outcome: &Outcome, verdicts: &[Verdict]) -> String {
    #[derive(Serialize)]
    struct Whole<'a> {
        #[serde(flatten)]
        outcome: &'a Outcome,
        summary: Value,
        objectives: &'a [Verdict],
        loadgen_version: &'static str,
    }
    let whole =
        Whole { outcome, summary: summary(outcome), objectives: verdicts, loadgen_version: env!("CARGO_PKG_VERSION") };
    let mut text = serde_json::to_string_pretty(&whole).expect("an outcome has no keys but strings");
    text.push('\n');
    text
}

fn summary(outcome: &Outcome) -> Value {
    let operations = outcome.operations.iter().map(|operation| {
        let mut figures = figures(&operation.latencies, outcome.seconds);
        figures["name"] = json!(operation.name);
        figures
    });
    let deliveries = outcome.deliveries.as_ref();
    json!({
        "all": figures(&outcome.latencies(), outcome.seconds),
        "operations": operations.collect::<Vec<_>>(),
        "deliveries": deliveries.map(|deliveries| figures(&deliveries.latencies, outcome.seconds)),
        "iterations": outcome.iterations.as_ref().map(|iterations| iterations_of(iterations, outcome.seconds)),
        "openings": outcome.openings.as_ref().map(|openings| openings_of(openings)),
        "stalled": outcome.is_stalled(),
        "failed": outcome.failed(),
        "failures": outcome.failures.iter().map(failure_of).collect::<Vec<_>>(),
        "server_cpu_micros_per_answer": outcome.server_cpu_micros(),
        "generator_cpu_micros_per_answer": outcome.generator_cpu_micros(),
    })
}

/// By flow and by step; only failures of steps, as their latencies are those of operations.
fn iterations_of(iterations: &Iterations, seconds: f64) -> Value {
    let flows = iterations.flows.iter().map(|flow| {
        let mut figures = figures(&flow.latencies, seconds);
        figures["name"] = json!(flow.name);
        figures["failed"] = json!(flow.failed.count());
        figures
    });
    let steps = iterations.failed_steps.iter().map(|step| json!({"name": step.name, "failed": step.latencies.count()}));
    json!({"flows": flows.collect::<Vec<_>>(), "steps": steps.collect::<Vec<_>>(), "checks": iterations.checks})
}

/// By part of the opening; a part that did not happen (TLS) is absent.
fn openings_of(openings: &Openings) -> Value {
    let parts = openings.parts().map(|(name, latencies)| {
        let mut figures = latency_figures(latencies);
        figures["connections"] = json!(latencies.count());
        (name.to_lowercase().replace(' ', "_"), figures)
    });
    Value::Object(parts.collect())
}

/// The times until requests failed; null where none of them was a request.
fn failure_of(failure: &FailureCount) -> Value {
    let none = Latencies::new();
    let mut figures = latency_figures(failure.latencies.as_ref().unwrap_or(&none));
    figures["kind"] = json!(failure.kind);
    figures["count"] = json!(failure.count);
    figures
}

fn figures(latencies: &Latencies, seconds: f64) -> Value {
    let mut figures = json!({
        "answers": latencies.count(),
        "per_second": if seconds > 0.0 { latencies.count() as f64 / seconds } else { 0.0 },
    });
    if let (Value::Object(figures), Value::Object(more)) = (&mut figures, latency_figures(latencies)) {
        figures.extend(more);
    }
    figures
}

fn latency_figures(latencies: &Latencies) -> Value {
    // Where nothing was measured, no figure is known: 0 would be the best one.
    let known = |time: Duration| (latencies.count() > 0).then_some(time.as_secs_f64());
    let percentile = |percent: f64| latencies.known_percentile(percent).map(|time| time.as_secs_f64());
    json!({
        "min": known(latencies.min()),
        "mean": known(latencies.mean()),
        "deviation": known(latencies.deviation()),
        "p50": percentile(50.0),
        "p75": percentile(75.0),
        "p90": percentile(90.0),
        "p95": percentile(95.0),
        "p99": percentile(99.0),
        "p99.9": percentile(99.9),
        "p99.99": percentile(99.99),
        "max": known(latencies.max()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::judge;
    use crate::output::made_up;

    #[test]
    fn the_outcome_can_be_read_again() {
        let outcome = made_up::outcome();
        let text = json(&outcome, &judge(&["rate=2000".parse().unwrap()], &outcome));
        assert_eq!(serde_json::from_str::<Outcome>(&text).unwrap(), outcome);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["summary"]["all"]["answers"], 3000);
        assert_eq!(value["summary"]["all"]["per_second"], 1000.0);
        assert_eq!(value["summary"]["operations"][1]["name"], "SET");
        assert_eq!(value["objectives"][0]["met"], false);
        assert_eq!(value["objectives"][0]["objective"], "rate=2000");
    }
}

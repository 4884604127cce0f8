//! A run under way, for Prometheus (text format 0.0.4).

use std::fmt::Write as _;

use crate::record::{Failure, Latencies};
use crate::watch::{Phase, Progress};

/// The quantiles of summaries.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];

/// The figures of a run as it is now. Counters begin with the measurement, as the result's do.
#[must_use]
pub fn prometheus(progress: &Progress<'_>) -> String {
    let mut text = String::new();
    let phases = [Phase::Connecting, Phase::WarmUp, Phase::Measuring, Phase::Draining];
    head(&mut text, "loadgen_phase", "gauge", "Where the run is: 1 for the phase that it is in.");
    for phase in phases {
        let name = match phase {
            Phase::Connecting => "connecting",
            Phase::WarmUp => "warm-up",
            Phase::Measuring => "measuring",
            Phase::Draining => "last-answers",
        };
        line(&mut text, &format!("loadgen_phase{{phase=\"{name}\"}}"), f64::from(u8::from(phase == progress.phase)));
    }
    head(&mut text, "loadgen_connections_open", "gauge", "Connections that are open.");
    line(&mut text, "loadgen_connections_open", progress.open_connections as f64);
    head(&mut text, "loadgen_failures_total", "counter", "Requests and connections that failed, by kind.");
    for kind in Failure::ALL {
        // Their names in results.
        let name =
            serde_json::to_value(kind).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
        line(&mut text, &format!("loadgen_failures_total{{kind=\"{name}\"}}"), progress.failures.count(kind) as f64);
    }
    summary(&mut text, "loadgen_latency_seconds", "Right answers, from the intended time.", progress.latencies);
    if let Some(deliveries) = progress.deliveries {
        summary(&mut text, "loadgen_delivery_seconds", "Messages from publisher to subscriber.", deliveries);
    }
    if let Some(redirects) = progress.redirects {
        head(&mut text, "loadgen_redirects_total", "counter", "Requests that a cluster's servers sent on.");
        line(&mut text, "loadgen_redirects_total{kind=\"moved\"}", redirects.moved as f64);
        line(&mut text, "loadgen_redirects_total{kind=\"asked\"}", redirects.asked as f64);
    }
    if let Some(last) = progress.timeline.last() {
        let rate = last.latencies.count() as f64 / last.seconds.max(f64::MIN_POSITIVE);
        head(&mut text, "loadgen_answers_per_second", "gauge", "Right answers in the last second that is over.");
        line(&mut text, "loadgen_answers_per_second", rate);
        if let Some(server) = last.server {
            head(
                &mut text,
                "loadgen_server_processors",
                "gauge",
                "CPU time of the server by wall time, in that second.",
            );
            line(&mut text, "loadgen_server_processors", server.processors);
            head(&mut text, "loadgen_server_resident_bytes", "gauge", "Memory of the server.");
            line(&mut text, "loadgen_server_resident_bytes", server.resident_bytes as f64);
        }
    }
    text
}

fn summary(text: &mut String, name: &str, help: &str, latencies: &Latencies) {
    head(text, name, "summary", help);
    for quantile in QUANTILES {
        let value =
            if latencies.count() == 0 { f64::NAN } else { latencies.percentile(quantile * 100.0).as_secs_f64() };
        line(text, &format!("{name}{{quantile=\"{quantile}\"}}"), value);
    }
    line(text, &format!("{name}_sum"), latencies.mean().as_secs_f64() * latencies.count() as f64);
    line(text, &format!("{name}_count"), latencies.count() as f64);
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a string takes all");
}

fn line(text: &mut String, name: &str, value: f64) {
    writeln!(text, "{name} {value}").expect("a string takes all");
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::load::Length;
    use crate::output::made_up;
    use crate::record::{Failures, Redirects};

    #[test]
    fn a_run_is_told() {
        let outcome = made_up::outcome();
        let all = outcome.latencies();
        let mut failures = Failures::default();
        failures.add(Failure::TimedOut, String::new);
        let progress = Progress {
            phase: Phase::Measuring,
            elapsed: Duration::from_secs(3),
            length: Length::Requests(9),
            latencies: &all,
            failures: &failures,
            deliveries: Some(&all),
            redirects: Some(Redirects { moved: 3, asked: 4, slots: 0 }),
            timeline: &outcome.timeline,
            open_connections: 50,
        };
        let text = prometheus(&progress);
        for expected in [
            "# TYPE loadgen_phase gauge\nloadgen_phase{phase=\"connecting\"} 0\n",
            "loadgen_phase{phase=\"measuring\"} 1\n",
            "loadgen_connections_open 50\n",
            "loadgen_failures_total{kind=\"timed-out\"} 1\n",
            "loadgen_failures_total{kind=\"wrong\"} 0\n",
            "# TYPE loadgen_latency_seconds summary\nloadgen_latency_seconds{quantile=\"0.5\"} 0.00065",
            "loadgen_latency_seconds_count 3000\n",
            "loadgen_delivery_seconds_count 3000\n",
            "loadgen_redirects_total{kind=\"asked\"} 4\n",
            "loadgen_answers_per_second 1000\n",
            "loadgen_server_processors 0.25\n",
            "loadgen_server_resident_bytes 12582912\n",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        let none = Latencies::new();
        let text =
            prometheus(&Progress { latencies: &none, timeline: &[], deliveries: None, redirects: None, ..progress });
        assert!(text.contains("loadgen_latency_seconds{quantile=\"1\"} NaN\n"), "{text}");
        assert!(!text.contains("redirects") && !text.contains("delivery") && !text.contains("server"), "{text}");
        // Every line is a comment, or a name and a number.
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.rsplit_once(' ').is_some_and(|(_, value)| value.parse::<f64>().is_ok()), "{line}");
        }
    }
}

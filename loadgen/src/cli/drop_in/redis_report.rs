//! Results as redis-benchmark 7.0 prints them.

use std::fmt::Write as _;

use super::answers::{answered, answered_latencies, millis};
use crate::record::{Latencies, Outcome};

/// The head of `--csv`.
pub(super) const CSV_HEAD: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                                   \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"";

/// The parts of a report besides the result.
pub(super) struct Run<'a> {
    pub(super) title: &'a str,
    pub(super) clients: usize,
    pub(super) size: usize,
    pub(super) keep_alive: bool,
    pub(super) threads: Option<usize>,
    /// Decimal places of latencies in milliseconds.
    pub(super) digits: usize,
}

/// Average, minimum, p50, p95, p99 and maximum in milliseconds.
fn figures(latencies: &Latencies) -> [f64; 6] {
    let (mean, least) = (latencies.mean().as_secs_f64() * 1e3, latencies.min().as_secs_f64() * 1e3);
    let [p50, p95, p99] = [50.0, 95.0, 99.0].map(|percent| millis(latencies, percent));
    [mean, least, p50, p95, p99, latencies.max().as_secs_f64() * 1e3]
}

fn per_second(outcome: &Outcome) -> f64 {
    // Where nothing was answered rightly, no time is known.
    if outcome.seconds > 0.0 { answered(outcome) as f64 / outcome.seconds } else { 0.0 }
}

impl Run<'_> {
    /// The line of `--csv`.
    pub(super) fn csv(&self, outcome: &Outcome) -> String {
        let mut text = format!("\"{}\",\"{:.2}\"", self.title, per_second(outcome));
        for figure in figures(&answered_latencies(outcome)) {
            write!(text, ",\"{figure:.3}\"").expect("a string takes all");
        }
        text.push('\n');
        text
    }

    /// The line of `-q`.
    pub(super) fn line(&self, outcome: &Outcome) -> String {
        let p50 = millis(&answered_latencies(outcome), 50.0);
        format!("{}: {:.2} requests per second, p50={p50:.3} msec\n", self.title, per_second(outcome))
    }

    /// The full report.
    pub(super) fn report(&self, outcome: &Outcome) -> String {
        let mut text = format!("====== {} ======\n", self.title);
        let mut push = |line: String| writeln!(text, "{line}").expect("a string takes all");
        push(format!("  {} requests completed in {:.2} seconds", answered(outcome), outcome.seconds));
        push(format!("  {} parallel clients", self.clients));
        push(format!("  {} bytes payload", self.size));
        push(format!("  keep alive: {}", u8::from(self.keep_alive)));
        match self.threads {
            Some(threads) => push(format!("  multi-thread: yes\n  threads: {threads}")),
            None => push("  multi-thread: no".to_owned()),
        }
        let latencies = answered_latencies(outcome);
        push("\nLatency by percentile distribution:".to_owned());
        push(self.percentiles(&latencies));
        push("Cumulative distribution of latencies:".to_owned());
        push(self.cumulative(&latencies));
        push(format!("Summary:\n  throughput summary: {:.2} requests per second", per_second(outcome)));
        push("  latency summary (msec):".to_owned());
        push(format!("    {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}", "avg", "min", "p50", "p95", "p99", "max"));
        let [mean, least, p50, p95, p99, most] = figures(&latencies);
        push(format!("    {mean:>9.3} {least:>9.3} {p50:>9.3} {p95:>9.3} {p99:>9.3} {most:>9.3}\n"));
        text
    }

    /// Percentiles that halve what is left, until nothing is.
    fn percentiles(&self, latencies: &Latencies) -> String {
        let mut text = String::new();
        let mut percent = 0.0;
        let mut last = u64::MAX;
        let histogram = latencies.histogram();
        while latencies.count() > 0 {
            let value = histogram.highest_equivalent(histogram.value_at_percentile(percent));
            let count = histogram.count_between(0, value);
            if count != last {
                self.row(percent, value, count, &mut text);
            }
            if count == latencies.count() {
                self.row(100.0, value, count, &mut text);
                break;
            }
            last = count;
            percent += (100.0 - percent) / 2.0;
        }
        text
    }

    /// How many took up to each tenth of a millisecond, and from 2 ms on up to each millisecond.
    fn cumulative(&self, latencies: &Latencies) -> String {
        let mut text = String::new();
        let (mut edge, mut last) = (100_000, u64::MAX);
        let histogram = latencies.histogram();
        while latencies.count() > 0 {
            let value = histogram.highest_equivalent(edge);
            let count = histogram.count_between(0, value);
            if count != last {
                self.row(count as f64 * 100.0 / latencies.count() as f64, value, count, &mut text);
            }
            if count == latencies.count() {
                break;
            }
            last = count;
            edge += if edge > 2_000_000 { 1_000_000 } else { 100_000 };
        }
        text
    }

    fn row(&self, percent: f64, nanos: u64, count: u64, text: &mut String) {
        let (digits, millis) = (self.digits, nanos as f64 / 1e6);
        writeln!(text, "{percent:.3}% <= {millis:.digits$} milliseconds (cumulative count {count})")
            .expect("a string takes all");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::made_up;

    #[test]
    fn reports_are_redis_benchmarks() {
        let run = Run { title: "SET", clients: 50, size: 3, keep_alive: true, threads: None, digits: 3 };
        let outcome = made_up::outcome();
        #[track_caller]
        fn check(found: &str, expected: &str) {
            assert_eq!(found, expected, "\n{found}");
        }
        check(&run.line(&outcome), "SET: 1000.33 requests per second, p50=0.650 msec\n");
        check(&run.csv(&outcome), "\"SET\",\"1000.33\",\"0.842\",\"0.010\",\"0.650\",\"2.552\",\"2.910\",\"3.000\"\n");
        check(&run.report(&outcome), include_str!("golden/redis-benchmark.txt"));
        // Nothing was measured: nothing is divided by it.
        check(&run.line(&made_up::refused()), "SET: 0.00 requests per second, p50=0.000 msec\n");
        assert!(!run.report(&made_up::refused()).contains("NaN"));
    }
}

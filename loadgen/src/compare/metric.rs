//! The figures by which runs are compared.

use std::str::FromStr;

use crate::number;
use crate::record::Outcome;

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Right answers per second.
    Throughput,
    /// The server's CPU time per right answer.
    Cpu,
    /// The median latency.
    P50,
    /// The latency that 99 of 100 do not exceed.
    P99,
    /// The latency that 999 of 1000 do not exceed.
    P999,
    /// The most resident memory of the server.
    Memory,
    /// The server's context switches per 1000 right answers.
    Switches,
}

impl Metric {
    /// All, in the order of reports.
    pub const ALL: [Self; 7] =
        [Self::Throughput, Self::Cpu, Self::P50, Self::P99, Self::P999, Self::Memory, Self::Switches];

    /// Its name on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Cpu => "cpu",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Memory => "memory",
            Self::Switches => "switches",
        }
    }

    /// Its name, for tables.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Throughput => "answers/s",
            Self::Cpu => "CPU/answer",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Memory => "memory",
            Self::Switches => "switches/1000",
        }
    }

    /// Whether more is better.
    #[must_use]
    pub fn more_is_better(self) -> bool {
        self == Self::Throughput
    }

    /// Whether it is the generator's own where the generator is the limit.
    #[must_use]
    pub fn is_of_generator(self) -> bool {
        matches!(self, Self::Throughput | Self::P50 | Self::P99 | Self::P999)
    }

    /// Its value in a run, if it is known.
    #[must_use]
    pub fn of(self, outcome: &Outcome) -> Option<f64> {
        let answers = outcome.answers();
        if answers == 0 {
            return None;
        }
        let latencies = outcome.main_latencies();
        let percentile = |percent: f64| latencies.known_percentile(percent).map(|latency| latency.as_secs_f64());
        if let Some(told) = outcome.told {
            match self {
                Self::P50 => return told.p50,
                Self::P99 => return told.p99,
                Self::P999 => return None,
                Self::Throughput | Self::Cpu | Self::Memory | Self::Switches => {}
            }
        }
        // Of a program that was started for the run only its CPU time is known.
        let watched = outcome.server.filter(|server| server.peak_resident_bytes > 0);
        match self {
            // The result of pub/sub is the delivered messages.
            Self::Throughput => match &outcome.deliveries {
                Some(deliveries) if outcome.seconds > 0.0 => {
                    Some(deliveries.latencies.count() as f64 / outcome.seconds)
                }
                _ => Some(outcome.per_second()),
            },
            Self::Cpu => outcome.server_cpu_micros(),
            Self::P50 => percentile(50.0),
            Self::P99 => percentile(99.0),
            Self::P999 => percentile(99.9),
            Self::Memory => watched.map(|server| server.peak_resident_bytes as f64),
            Self::Switches => watched.map(|server| {
                (server.voluntary_switches + server.involuntary_switches) as f64 * 1000.0 / answers as f64
            }),
        }
    }

    /// A value with its unit.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Throughput => number::rate(value),
            Self::Cpu => format!("{} µs", number::three_digits(value)),
            Self::P50 | Self::P99 | Self::P999 => {
                number::latency(std::time::Duration::try_from_secs_f64(value).unwrap_or_default())
            }
            Self::Memory => number::bytes(value as u64),
            Self::Switches => number::three_digits(value),
        }
    }
}

impl FromStr for Metric {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|metric| metric.name() == text)
            .ok_or_else(|| format!("the metric is `{text}`, expected one of: {names}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::made_up;

    #[test]
    fn metrics_are_those_of_the_run() {
        let outcome = made_up::run_of(1000, 1_000_000);
        #[track_caller]
        fn check(outcome: &Outcome, metric: Metric, expected: &str) {
            assert_eq!(metric.of(outcome).map(|value| metric.text(value)).as_deref(), Some(expected), "{metric:?}");
            assert_eq!(metric.name().parse(), Ok(metric));
        }
        check(&outcome, Metric::Throughput, "500");
        check(&outcome, Metric::Cpu, "1000 µs");
        check(&outcome, Metric::P50, "3.49 ms");
        check(&outcome, Metric::P99, "10.8 ms");
        check(&outcome, Metric::P999, "11.0 ms");
        check(&outcome, Metric::Memory, "11.4 MiB");
        check(&outcome, Metric::Switches, "320");
        let nothing = made_up::run_of(0, 0);
        assert!(Metric::ALL.iter().all(|metric| metric.of(&nothing).is_none()));
        let error = "p98".parse::<Metric>().unwrap_err();
        assert_eq!(error, "the metric is `p98`, expected one of: throughput, cpu, p50, p99, p99.9, memory, switches");
    }
}

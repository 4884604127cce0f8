//! The objectives of a result (`--slo`).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use crate::number;
use crate::record::Outcome;

/// A condition on a run's result, or on a part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// The flow or the step whose requests count; without it all of the run.
    pub part: Option<String>,
    /// The condition.
    pub limit: Limit,
}

/// One condition. Latencies are those of deliveries where there are some (pub/sub).
///
/// A request that failed is no fast one: in percentiles and the maximum it is slower than every answer, and the mean counts
/// the time until it failed (a time-out at least the time-out).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// This percentile (0 to 100) is at most so long.
    Percentile(f64, Duration),
    /// The longest latency is at most so long.
    Max(Duration),
    /// The mean latency is at most so long.
    Mean(Duration),
    /// Of all requests at most this share (0 to 1) fails.
    Errors(f64),
    /// At least so many right answers per second.
    Rate(f64),
}

impl Limit {
    /// Whether a result meets it. Without a single answer no latency does, and without a request no share of errors.
    #[must_use]
    pub fn is_met(&self, outcome: &Outcome) -> bool {
        let percentile = |percent: f64| outcome.percentile_of_all(percent);
        match *self {
            Self::Percentile(percent, most) => percentile(percent).is_some_and(|found| found <= most),
            Self::Max(most) => percentile(100.0).is_some_and(|found| found <= most),
            Self::Mean(most) => outcome.main_latencies().count() > 0 && mean_of_all(outcome) <= most,
            Self::Errors(most) => failed_share(outcome).is_some_and(|share| share <= most),
            Self::Rate(least) => outcome.per_second() >= least,
        }
    }

    /// The result's figure for this objective, in words: `p99 2.31 ms`.
    #[must_use]
    pub fn found(&self, outcome: &Outcome) -> String {
        let latencies = outcome.main_latencies();
        let failed = failed_share(outcome).filter(|_| latencies.count() > 0 || matches!(self, Self::Errors(_)));
        let Some(failed) = failed else { return "no answers".to_owned() };
        let share = || number::share(failed);
        match *self {
            Self::Percentile(percent, _) => match outcome.percentile_of_all(percent) {
                Some(found) => format!("p{percent} {}", number::latency(found)),
                None => format!("p{percent} is no answer, {} failed", share()),
            },
            Self::Max(_) => match outcome.percentile_of_all(100.0) {
                Some(found) => format!("max {}", number::latency(found)),
                None => format!("max is no answer, {} failed", share()),
            },
            Self::Mean(_) => format!("mean {}", number::latency(mean_of_all(outcome))),
            Self::Errors(_) => format!("errors {}", share()),
            Self::Rate(_) => format!("rate {}/s", number::rate(outcome.per_second())),
        }
    }
}

/// An objective, and whether a result met it.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The objective.
    pub objective: Objective,
    /// Whether it was met.
    pub met: bool,
    /// The result's figure for it, in words.
    pub found: String,
}

/// Holds a result against objectives.
#[must_use]
pub fn judge(objectives: &[Objective], outcome: &Outcome) -> Vec<Verdict> {
    let verdict = |objective: &Objective| {
        let part = objective.part.as_ref().map(|part| outcome.part(part).ok_or(part));
        let (met, found) = match part {
            None => (objective.limit.is_met(outcome), objective.limit.found(outcome)),
            Some(Ok(part)) => (objective.limit.is_met(&part), objective.limit.found(&part)),
            Some(Err(part)) => (false, format!("no flow or step has the name {part}")),
        };
        Verdict { objective: objective.clone(), met, found }
    };
    objectives.iter().map(verdict).collect()
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.objective, if self.met { "met" } else { "MISSED" }, self.found)
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Verdict", 3)?;
        fields.serialize_field("objective", &self.objective.to_string())?;
        fields.serialize_field("met", &self.met)?;
        fields.serialize_field("found", &self.found)?;
        fields.end()
    }
}

/// The mean of all requests, those that failed with the time until they did.
fn mean_of_all(outcome: &Outcome) -> Duration {
    let mut all = outcome.main_latencies();
    all.merge(&outcome.failed_latencies());
    all.mean()
}

/// The share of all requests that failed; nothing without a request.
fn failed_share(outcome: &Outcome) -> Option<f64> {
    let (answers, failed) = (outcome.answers(), outcome.failed());
    (answers + failed > 0).then(|| failed as f64 / (answers + failed) as f64)
}

/// As on the command line.
impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.part {
            Some(part) => write!(f, "{part}:{}", self.limit),
            None => self.limit.fmt(f),
        }
    }
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (part, limit) = match text.rsplit_once(':') {
            Some((part, limit)) => (Some(part.to_owned()), limit),
            None => (None, text),
        };
        Ok(Self { part, limit: limit.parse()? })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Percentile(percent, most) => write!(f, "p{percent}={}", number::duration_text(most)),
            Self::Max(most) => write!(f, "max={}", number::duration_text(most)),
            Self::Mean(most) => write!(f, "mean={}", number::duration_text(most)),
            Self::Errors(most) => write!(f, "errors={}", number::share(most).replace(' ', "")),
            Self::Rate(least) => write!(f, "rate={least}"),
        }
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected p99=2ms (any percentile), max=10ms, mean=1ms, errors=0.1% or rate=10000";
        let (name, limit) = text.split_once('=').ok_or(EXPECTED)?;
        match name {
            "max" => number::duration(limit).map(Self::Max),
            "mean" => number::duration(limit).map(Self::Mean),
            "errors" => number::parse_share(limit).map(Self::Errors),
            "rate" => number::parse_rate(limit).map(Self::Rate),
            _ => {
                let percent = name.strip_prefix('p').and_then(|percent| percent.parse::<f64>().ok()).ok_or(EXPECTED)?;
                if !(0.0..=100.0).contains(&percent) {
                    return Err(format!("the percentile is {percent}, expected 0 to 100"));
                }
                number::duration(limit).map(|most| Self::Percentile(percent, most))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read_as_they_are_shown() {
        #[track_caller]
        fn check(text: &str, expected: Limit) {
            let expected = Objective { part: None, limit: expected };
            assert_eq!(text.parse(), Ok(expected.clone()), "{text}");
            assert_eq!(expected.to_string(), text);
        }
        check("p99=2ms", Limit::Percentile(99.0, Duration::from_millis(2)));
        check("p99.9=1500us", Limit::Percentile(99.9, Duration::from_micros(1500)));
        check("max=1s", Limit::Max(Duration::from_secs(1)));
        check("mean=250us", Limit::Mean(Duration::from_micros(250)));
        check("errors=0.1%", Limit::Errors(0.001));
        check("rate=10000", Limit::Rate(10_000.0));
        let of_step = Objective { part: Some("log in".to_owned()), limit: Limit::Errors(0.01) };
        assert_eq!(("log in:errors=1%".parse(), of_step.to_string()), (Ok(of_step), "log in:errors=1%".to_owned()));
    }

    #[test]
    fn malformed_objectives_are_refused() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            let error = text.parse::<Objective>().unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        check("p99", "expected p99=2ms");
        check("q99=2ms", "expected p99=2ms");
        check("p101=2ms", "the percentile is 101, expected 0 to 100");
        check("p99=fast", "expected a time such as 500us");
        check("errors=lots", "expected a share such as 0.1%");
        check("rate=-1", "expected a number of requests per second");
    }
}

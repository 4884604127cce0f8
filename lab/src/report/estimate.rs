//! How long a run will take, from its plans alone.

use std::fmt;
use std::time::Duration;

use loadgen::compare::{Load, Plan, Servers, Time};

/// The time of a run beside its load, in seconds: a server is started and ended for it, as the records of F1 and F2 show.
const ANEW: f64 = 0.3;

/// The same where servers are kept.
const KEPT: f64 = 0.05;

/// A load that ends after so many requests instead of a time, in seconds; most take less.
const COUNTED: f64 = 1.0;

/// The time of building and installing before a quick run on two cores where nothing is there yet.
pub(super) const FRESH: Duration = Duration::from_secs(13 * 60);

/// How long a comparison measures.
pub(super) fn measuring(plan: &Plan, rounds: usize) -> Duration {
    let beside = match plan.servers {
        Servers::Anew => ANEW,
        Servers::Kept => KEPT,
    };
    let of = |load: &Load| {
        let subjects = plan.subjects.iter().filter(|subject| load.is_for(&subject.name)).count();
        subjects as f64
            * (load.command.as_ref().and_then(|command| seconds(command.words())).unwrap_or(COUNTED) + beside)
    };
    let round: f64 = plan.scenarios.iter().map(of).sum();
    Duration::from_secs_f64(round * (rounds + plan.warm_up_rounds) as f64)
}

/// The duration in a load's words.
fn seconds(words: &[String]) -> Option<f64> {
    let of = |option: &str| {
        let place = words.iter().position(|word| word == option)?;
        Some(Time::try_from(words.get(place + 1)?.clone()).ok()?.0.as_secs_f64())
    };
    Some(of("-d")? + of("--warm-up").unwrap_or(0.0))
}

/// A time in words: "46 s", "7 min 5 s".
pub(super) struct Span(pub(super) Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs_f64().round() as u64 {
            seconds @ ..60 => write!(f, "{seconds} s"),
            seconds if seconds % 60 == 0 => write!(f, "{} min", seconds / 60),
            seconds => write!(f, "{} min {} s", seconds / 60, seconds % 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
        title = "t"
        [[subject]]
        name = "a"
        start = "a {port}"
        [[subject]]
        name = "b"
        start = "b {port}"
        [[scenario]]
        name = "s"
        command = "redis -c 5 -d 1s --warm-up 300ms GET a"
        [[scenario]]
        name = "t"
        command = "redis -n 9 GET a"
        subjects = ["b"]
    "#;

    #[test]
    fn a_plan_tells_its_time() {
        let plan = Plan::parse(PLAN).unwrap();
        // Two runs of 1.3 s and one of a count, each with its server's start; one round more to warm up.
        let round = 2.0 * (1.3 + ANEW) + COUNTED + ANEW;
        assert!((measuring(&plan, 5).as_secs_f64() - 6.0 * round).abs() < 1e-6);
    }

    #[test]
    fn times_have_words() {
        let text = |seconds: f64| Span(Duration::from_secs_f64(seconds)).to_string();
        assert_eq!([text(0.4), text(59.4), text(60.0), text(425.0)], ["0 s", "59 s", "1 min", "7 min 5 s"]);
    }
}

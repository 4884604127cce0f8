//! Other tools' command lines: their usual options become ours, their output is imitated as far as scripts read it.
//!
//! A drop-in is a translation. Its options become the words of `loadgen redis`, `http` or `grpc`, so that there is one way
//! to make load; what a tool has and we do not is refused with a sentence.

mod ghz;
mod hey;
mod redis_benchmark;
mod redis_report;
mod wrk;

pub(super) use ghz::Ghz;
pub(super) use hey::{Hey, with_two_dashes};
pub(super) use redis_benchmark::RedisBenchmark;
pub(super) use wrk::Wrk;

use std::cell::Cell;

use super::scenario;
use crate::front::{self, Exit, Show, Wanted};
use crate::output::Outputs;
use crate::record::{Ending, Failure, Latencies, Outcome};

/// Runs our command line `words`, and shows the result as `render` has it.
fn run(words: &[String], render: &dyn Fn(&Outcome) -> String) -> Exit {
    run_and_write(words, Outputs::default(), render)
}

/// Runs our command line `words`, shows the result as `render` has it, and writes files.
fn run_and_write(words: &[String], outputs: Outputs, render: &dyn Fn(&Outcome) -> String) -> Exit {
    let scenario = match scenario(words) {
        Ok(scenario) => scenario,
        Err(error) => {
            eprintln!("error: {error}");
            return Exit::Usage;
        }
    };
    let wanted = Wanted { outputs, show: Show::OnTerminal, metrics: None };
    let is_answered = Cell::new(false);
    let exit = front::run(scenario, &wanted, &|outcome, _| {
        is_answered.set(outcome.ending == Ending::Complete && answered(outcome) > 0);
        match &outcome.ending {
            Ending::Failed(reason) if outcome.answers() == 0 => {
                eprintln!("error: {reason}");
                String::new()
            }
            Ending::Complete | Ending::Interrupted | Ending::Failed(_) => render(outcome),
        }
    });
    // To the other tools an answer is an answer, whatever it says.
    if exit == Exit::Failed && is_answered.get() { Exit::Fine } else { exit }
}

/// Answers of any content: right ones, those with an error, and wrong ones.
fn answered(outcome: &Outcome) -> u64 {
    outcome.answers() + outcome.failures_of(Failure::Rejected) + outcome.failures_of(Failure::Wrong)
}

/// The latencies of all [`answered`].
fn answered_latencies(outcome: &Outcome) -> Latencies {
    let mut all = outcome.latencies();
    let failed = outcome.failures.iter().filter(|failure| matches!(failure.kind, Failure::Rejected | Failure::Wrong));
    for latencies in failed.filter_map(|failure| failure.latencies.as_ref()) {
        all.merge(latencies);
    }
    all
}

/// The failures on standard error, for tools whose output has no place for them.
fn complain(outcome: &Outcome) {
    for failure in &outcome.failures {
        let example = failure.examples.first().map(|example| format!(": {example}")).unwrap_or_default();
        eprintln!("{} {}{example}", failure.count, failure.kind.words());
    }
}

/// How many steps the histograms of hey and ghz have.
const STEPS: u64 = 10;

/// The fastest, and ten equal steps up to the slowest: nanoseconds and how many.
fn bars(latencies: &Latencies) -> Vec<(u64, u64)> {
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
fn millis(latencies: &Latencies, percent: f64) -> f64 {
    latencies.percentile(percent).as_secs_f64() * 1e3
}

/// Makes words of options, as they are wanted.
struct Words(Vec<String>);

impl Words {
    fn new<const N: usize>(words: [&str; N]) -> Self {
        Self(words.map(str::to_owned).into())
    }

    /// An option without a value.
    fn flag(&mut self, name: &str, wanted: bool) {
        if wanted {
            self.0.push(name.to_owned());
        }
    }

    /// An option with a value, in one word, so that a value may begin with `-`.
    fn option(&mut self, name: &str, value: impl std::fmt::Display) {
        self.0.push(format!("{name}={value}"));
    }

    /// An option with a value, if there is one.
    fn maybe<T: std::fmt::Display>(&mut self, name: &str, value: Option<T>) {
        if let Some(value) = value {
            self.option(name, value);
        }
    }
}

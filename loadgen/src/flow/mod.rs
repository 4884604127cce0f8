//! Scenarios of several steps: what virtual users do, as a TOML file says it.
//!
//! A file has flows. A user picks one by its weight and walks through its steps, one request after the other: that is an
//! iteration. Requests are texts with values, which come from earlier answers of the iteration, from feeders, or are drawn.
//! The whole file is checked before the run, and compiled to [`Plan`]; [`crate::codec::Flows`] speaks HTTP for it.

mod answer;
mod compile;
mod cookies;
mod faults;
mod feeder;
mod file;
mod json_path;
mod names;
mod step;
mod values;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use rand::Rng;

pub(crate) use answer::Answer;
pub(crate) use cookies::Jar;
pub use cookies::Site;
pub(crate) use feeder::Feeder;
pub(crate) use values::Values;

use self::answer::{Check, Extract};
use self::values::Text;
use crate::clock::Nanos;
use crate::objective::Objective;
use crate::pace::Stages;
use crate::workload::{Mix, Source};

/// A file's scenario, checked.
#[derive(Debug)]
pub struct Plan {
    pub(crate) flows: Vec<Flow>,
    mix: Mix,
    numbers: Vec<(u64, u64)>,
    pub(crate) feeders: Vec<Feeder>,
    /// True if each user keeps the cookies that answers set, and sends them back.
    pub(crate) keeps_cookies: bool,
    /// Users or arrivals over time, if the file says so.
    pub stages: Option<Arc<Stages>>,
    /// The objectives of the run, of its flows and of its steps.
    pub objectives: Vec<Objective>,
}

/// One way through an application.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) name: String,
    weight: u32,
    pub(crate) steps: Vec<Step>,
    /// How many values it takes from answers.
    taken: usize,
    /// The feeders that it needs a row of.
    feeders: Vec<usize>,
}

/// One request of a flow.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    /// The number of its first check among all of the file.
    first_check: usize,
    pub(crate) is_head: bool,
    pub(crate) needs_body: bool,
    /// The method and the space behind it.
    method: String,
    path: Text,
    /// Everything behind the path up to the body's length, or the rest of the request if there is no body.
    head: Text,
    body: Option<Text>,
    checks: Vec<Check>,
    takes: Vec<Take>,
    /// The pause behind its answer, nanoseconds.
    think: (Nanos, Nanos),
}

/// A value that a step takes from its answer.
#[derive(Debug)]
struct Take {
    name: String,
    place: usize,
    part: Extract,
}

/// A fault of a scenario's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// The field, its value, and what was expected.
    pub text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.text)
    }
}

impl Plan {
    /// Begins an iteration: picks a flow, and draws its values. Nothing if a feeder has no row left.
    pub(crate) fn begin(&self, values: &mut Values, source: &mut Source) -> Option<usize> {
        let number = self.mix.next(source);
        let flow = &self.flows[number];
        values.begin(&self.numbers, self.feeders.len(), flow.taken, source);
        for feeder in &flow.feeders {
            let row = self.feeders[*feeder].next(&mut values.rng)?;
            values.set_row(*feeder, row);
        }
        Some(number)
    }

    /// The longest that an iteration takes whose requests take `timeout` each.
    pub(crate) fn longest(&self, timeout: Nanos) -> Nanos {
        let of_step = |step: &Step| timeout.saturating_add(step.think.1);
        let of_flow = |flow: &Flow| flow.steps.iter().map(of_step).fold(0, Nanos::saturating_add);
        self.flows.iter().map(of_flow).max().unwrap_or_default()
    }

    /// The flows in words: `3:browse (list, show), 1:buy (log in, order)`.
    pub(crate) fn describe(&self) -> String {
        let flow = |flow: &Flow| {
            let steps: Vec<_> = flow.steps.iter().map(|step| step.name.as_str()).collect();
            let weight = if self.flows.len() > 1 { format!("{}:", flow.weight) } else { String::new() };
            format!("{weight}{} ({})", flow.name, steps.join(", "))
        };
        self.flows.iter().map(flow).collect::<Vec<_>>().join(", ")
    }

    /// The names of all flows and steps.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.flows.iter().map(|flow| flow.name.as_str()).chain(self.steps().map(|step| step.name.as_str()))
    }

    /// Begins at the first row of each feeder again.
    pub(crate) fn rewind(&self) {
        self.feeders.iter().for_each(Feeder::rewind);
    }

    /// All steps, in their order.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.flows.iter().flat_map(|flow| &flow.steps)
    }
}

/// The reason why an answer is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong<'a> {
    /// The status is an error, and no check expects one.
    Status(u16),
    /// This check did not pass.
    Check(&'a str, u16),
    /// There is nothing to be taken for this name.
    Take(&'a str),
}

impl fmt::Display for Wrong<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "status {status}"),
            Self::Check(name, status) => write!(f, "check `{name}` failed, status {status}"),
            Self::Take(name) => write!(f, "the answer has no value for `{name}`"),
        }
    }
}

impl Step {
    /// The names of its checks.
    pub(crate) fn check_names(&self) -> impl Iterator<Item = &str> {
        self.checks.iter().map(|check| check.name.as_str())
    }

    /// Appends the request. `jar` appends the cookies of a user to this path; `scratch` is memory for its body.
    #[inline]
    pub(crate) fn append(
        &self,
        values: &Values,
        feeders: &[Feeder],
        jar: Option<(&mut Jar, &Site, Nanos)>,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(self.method.as_bytes());
        let start = out.len();
        self.path.append(values, feeders, out);
        let end = out.len();
        out.extend_from_slice(b" HTTP/1.1\r\n");
        if let Some((jar, site, now)) = jar {
            scratch.clear();
            jar.append(site, &out[start..end], now, scratch);
            out.extend_from_slice(scratch);
        }
        self.head.append(values, feeders, out);
        if let Some(body) = &self.body {
            scratch.clear();
            body.append(values, feeders, scratch);
            out.extend_from_slice(itoa::Buffer::new().format(scratch.len()).as_bytes());
            out.extend_from_slice(b"\r\n\r\n");
            out.extend_from_slice(scratch);
        }
    }

    /// Checks an answer and takes its values. `count` is told of each check whether it passed.
    pub(crate) fn judge(
        &self,
        answer: Answer<'_>,
        values: &mut Values,
        feeders: &[Feeder],
        scratch: &mut Vec<u8>,
        mut count: impl FnMut(usize, bool),
    ) -> Result<(), Wrong<'_>> {
        let mut wrong = None;
        for (place, check) in self.checks.iter().enumerate() {
            let passes = check.passes(answer, values, feeders, scratch);
            count(self.first_check + place, passes);
            if !passes {
                wrong.get_or_insert(Wrong::Check(&check.name, answer.status));
            }
        }
        if answer.status >= 400 && !self.checks.iter().any(Check::is_status) {
            wrong.get_or_insert(Wrong::Status(answer.status));
        }
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        for take in &self.takes {
            let found = take.part.find(answer, &mut values.rng).ok_or(Wrong::Take(&take.name))?;
            values.take(take.place, &found);
        }
        Ok(())
    }

    /// How long the user pauses behind the answer.
    pub(crate) fn think(&self, values: &mut Values) -> Nanos {
        let (least, most) = self.think;
        if least == most { least } else { values.rng.random_range(least..=most) }
    }
}

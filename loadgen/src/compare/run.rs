//! Making a comparison: starting subjects, interleaving their runs, recording every result.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};

use super::cores;
use super::machine::{self, Machine};
use super::plan::{Load, Plan, Servers, Subject};
use super::record::{End, FORMAT, FailedRun, Header, Line, Run, ScenarioHeader, SubjectHeader, Writer};
use super::server::{self, Server};
use super::words::Words;
use crate::record::{Ending, Outcome};

/// What a comparison needs from its surroundings.
pub trait Surroundings {
    /// Runs a load from a command line without its program's name, `redis 127.0.0.1:7 GET a`.
    ///
    /// # Errors
    /// When the command line is wrong.
    fn run(&mut self, words: &[String]) -> Result<Outcome, String>;

    /// Whether it is to end now.
    fn interrupted(&self) -> bool;

    /// Something that people who wait may want to know.
    fn say(&mut self, text: &str);
}

/// Makes a comparison and records it; `here` is the folder of the plan's file. With `install`, subjects that are absent are
/// installed first.
///
/// What fails is recorded too, and the comparison goes on with what is left.
///
/// # Errors
/// When the record cannot be written.
pub fn run(plan: &Plan, here: &Path, install: bool, writer: &mut Writer, around: &mut dyn Surroundings) -> Result<()> {
    let began = Instant::now();
    let header = header(plan, here, install, around);
    let present: Vec<bool> = header.subjects.iter().map(|subject| subject.absent.is_none()).collect();
    writer.write(&Line::Comparison(header))?;
    let mut comparison = Comparison { plan, here, writer, servers: plan.subjects.iter().map(|_| None).collect() };
    for round in 0..plan.warm_up_rounds + plan.rounds {
        let recorded = round.checked_sub(plan.warm_up_rounds);
        comparison.round(round, recorded, &present, around)?;
    }
    let complete = !around.interrupted();
    // Servers end before it is said that all has ended.
    comparison.servers.clear();
    comparison.writer.write(&Line::End(End { complete, seconds: began.elapsed().as_secs_f64() }))
}

struct Comparison<'a> {
    plan: &'a Plan,
    here: &'a Path,
    writer: &'a mut Writer,
    /// The subjects that run now, each with the prepare commands that it has had.
    servers: Vec<Option<Prepared<'a>>>,
}

struct Prepared<'a> {
    server: Server<'a>,
    with: Vec<String>,
}

impl<'a> Comparison<'a> {
    fn round(
        &mut self,
        round: usize,
        recorded: Option<usize>,
        present: &[bool],
        around: &mut dyn Surroundings,
    ) -> Result<()> {
        let plan = self.plan;
        for scenario in &plan.scenarios {
            for index in plan.order.of_round(round, plan.subjects.len()) {
                let subject = &plan.subjects[index];
                if !present[index] || !scenario.is_for(&subject.name) || around.interrupted() {
                    continue;
                }
                let name = recorded
                    .map_or_else(|| "warm-up".to_owned(), |round| format!("round {}/{}", round + 1, plan.rounds));
                let result = self.one(index, scenario, around);
                if plan.servers == Servers::Anew || result.is_err() {
                    self.servers[index] = None;
                }
                around.say(&format!("{name}: {}: {}: {}", scenario.name, subject.name, in_words(&result)));
                if let Some(line) = line(scenario, subject, recorded, result, around.interrupted()) {
                    self.writer.write(&line)?;
                }
            }
        }
        Ok(())
    }

    /// One run of a scenario against a subject.
    fn one(&mut self, index: usize, scenario: &Load, around: &mut dyn Surroundings) -> Result<Outcome> {
        let plan = self.plan;
        let slot = &mut self.servers[index];
        let prepared = match slot {
            Some(prepared) => prepared,
            None => {
                let server =
                    Server::start(&plan.subjects[index], self.here, plan.pin.as_ref(), &|| around.interrupted())?;
                slot.insert(Prepared { server, with: Vec::new() })
            }
        };
        if let Some(prepare) = &scenario.prepare
            && !prepared.with.contains(&prepare.to_string())
        {
            let outcome = load(plan, prepare, &prepared.server, around).context("prepare")?;
            anyhow::ensure!(outcome.failed() == 0, "prepare: {} requests failed", outcome.failed());
            prepared.with.push(prepare.to_string());
        }
        let outcome = load(plan, &scenario.command, &prepared.server, around)?;
        prepared.server.check()?;
        Ok(outcome)
    }
}

/// Puts a load on a server, from the generator's processors.
fn load(plan: &Plan, words: &Words, server: &Server<'_>, around: &mut dyn Surroundings) -> Result<Outcome> {
    let pid = ["--server-pid".to_owned(), server.pid().to_string()];
    let words = words.aimed("127.0.0.1", server.port(), &pid);
    let outcome = cores::on(plan.generator_pin.as_ref(), || around.run(&words))?;
    let outcome = outcome.map_err(|error| anyhow::anyhow!("`{}`: {}", words.join(" "), error.trim()))?;
    match &outcome.ending {
        Ending::Failed(reason) => anyhow::bail!("{reason}"),
        Ending::Complete | Ending::Interrupted => Ok(outcome),
    }
}

/// What is recorded of a run. A warm-up's failure is, because it may be the only one.
fn line(
    scenario: &Load,
    subject: &Subject,
    round: Option<usize>,
    result: Result<Outcome>,
    interrupted: bool,
) -> Option<Line> {
    let (scenario, subject) = (scenario.name.clone(), subject.name.clone());
    match (result, round) {
        // Its pairs are whole or not at all.
        (_, _) if interrupted => None,
        (Ok(_), None) => None,
        (Ok(outcome), Some(round)) => Some(Line::Run(Run { scenario, subject, round, outcome })),
        (Err(error), round) => Some(Line::Failed(FailedRun { scenario, subject, round, reason: format!("{error:#}") })),
    }
}

fn in_words(result: &Result<Outcome>) -> String {
    match result {
        Ok(outcome) => {
            let cpu =
                outcome.server_cpu_micros().map_or(String::new(), |micros| format!(", server {micros:.2} µs/request"));
            let failed = match outcome.failed() {
                0 => String::new(),
                count => format!(", {count} failed"),
            };
            format!("{}/s{cpu}{failed}", crate::number::rate(outcome.per_second()))
        }
        Err(error) => format!("failed: {error:#}"),
    }
}

fn header(plan: &Plan, here: &Path, install: bool, around: &mut dyn Surroundings) -> Header {
    let subjects = plan.subjects.iter().map(|subject| subject_header(plan, subject, here, install, around)).collect();
    let scenario = |scenario: &Load| ScenarioHeader {
        name: scenario.name.clone(),
        command: scenario.command.to_string(),
        prepare: scenario.prepare.as_ref().map(Words::to_string),
    };
    Header {
        format: FORMAT,
        title: plan.title.clone(),
        description: plan.description.clone(),
        date: machine::now(),
        loadgen: env!("CARGO_PKG_VERSION").to_owned(),
        commit: machine::commit(here),
        machine: Machine::this(),
        rounds: plan.rounds,
        warm_up_rounds: plan.warm_up_rounds,
        order: plan.order,
        servers: plan.servers,
        baseline: plan.baseline().to_owned(),
        seed: plan.seed as u64,
        generator_pin: plan.generator_pin.as_ref().map(ToString::to_string),
        subjects,
        scenarios: plan.scenarios.iter().map(scenario).collect(),
    }
}

fn subject_header(
    plan: &Plan,
    subject: &Subject,
    here: &Path,
    install: bool,
    around: &mut dyn Surroundings,
) -> SubjectHeader {
    let mut absent = server::absence(subject, here, &|| around.interrupted());
    if let (Some(_), true, Some(words)) = (&absent, install, &subject.install) {
        around.say(&format!("installing {}: {words}", subject.name));
        absent = match server::install(subject, words, here, &|| around.interrupted()) {
            Ok(()) => server::absence(subject, here, &|| around.interrupted()),
            Err(error) => Some(format!("cannot be installed: {error:#}")),
        };
    }
    if let Some(reason) = &absent {
        let hint = subject.install.as_ref().map_or(String::new(), |words| format!(" (to install it: {words})"));
        around.say(&format!("{} is absent: {reason}{hint}", subject.name));
    }
    let version = if absent.is_none() { server::version(subject, here, &|| around.interrupted()) } else { None };
    SubjectHeader {
        name: subject.name.clone(),
        about: subject.about.clone(),
        version,
        start: subject.start.to_string(),
        environment: subject.environment.clone(),
        pin: subject.pin.as_ref().or(plan.pin.as_ref()).map(ToString::to_string),
        absent,
    }
}

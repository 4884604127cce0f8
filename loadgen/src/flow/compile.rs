//! From a file to a plan. All of it is checked here, and all faults are collected.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use toml::Spanned;

use super::faults::{Faults, line_of};
use super::file::{FeederFile, File, FlowFile, StageFile};
use super::names::{Names, check_name};
use super::step::StepReader;
use super::{Fault, Feeder, Flow, Plan};
use crate::number;
use crate::objective::Objective;
use crate::pace::{Staged, Stages};
use crate::workload::Mix;

/// The most steps of a flow.
const MOST_STEPS: usize = 1000;

impl Plan {
    /// Reads a scenario's file. `read` reads a file that it names; `headers` are those that each request needs.
    ///
    /// # Errors
    /// All faults of the file.
    pub fn parse(
        text: &str,
        read: &dyn Fn(&str) -> Result<String, String>,
        headers: &[(String, String)],
    ) -> Result<Self, Vec<Fault>> {
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            let message = error.message().trim().replace('\n', ": ");
            vec![Fault { line, text: message }]
        })?;
        let mut faults = Faults { text, list: Vec::new() };
        let plan = compile(&file, read, headers, &mut faults);
        faults.list.sort_by_key(|fault| fault.line);
        match plan {
            Some(plan) if faults.list.is_empty() => Ok(plan),
            _ => Err(faults.list),
        }
    }
}

fn compile(
    file: &File,
    read: &dyn Fn(&str) -> Result<String, String>,
    headers: &[(String, String)],
    faults: &mut Faults<'_>,
) -> Option<Plan> {
    let mut names = Names { keeps_cookies: file.cookies, ..Names::default() };
    let numbers = numbers(file, &mut names, faults);
    let mut feeders = Vec::new();
    for (name, feeder) in &file.feeder {
        check_name(name, "feeder", faults);
        let Some(feeder) = open(name, feeder, read, faults) else {
            names.unread.insert(name.get_ref().clone());
            continue;
        };
        names.feeders.push((name.get_ref().clone(), feeder.columns().to_vec()));
        feeders.push(feeder);
    }
    let mut objectives = objectives(&file.slo, None, faults);
    let mut parts = BTreeSet::new();
    let mut flows = Vec::new();
    let mut checks = 0;
    for flow in &file.flow {
        let flow = flow.get_ref();
        unique(&flow.name, "flow.name", &mut parts, faults);
        objectives.extend(self::objectives(&flow.slo, Some(flow.name.get_ref()), faults));
        for step in flow.step.iter().map(Spanned::get_ref) {
            unique(&step.name, "step.name", &mut parts, faults);
            objectives.extend(self::objectives(&step.slo, Some(step.name.get_ref()), faults));
        }
        flows.push(read_flow(flow, headers, &names, &mut checks, faults));
    }
    if flows.is_empty() {
        faults.list.push(Fault { line: 1, text: "there is no flow, expected at least one".to_owned() });
    }
    let stages = stages(&file.stage, faults);
    let mix = mix(&file.flow, &flows, faults)?;
    Some(Plan { flows, mix, numbers, feeders, keeps_cookies: file.cookies, stages, objectives })
}

/// The ranges of random numbers; their names are known from here on.
fn numbers(file: &File, names: &mut Names, faults: &mut Faults<'_>) -> Vec<(u64, u64)> {
    let mut numbers = Vec::new();
    for (name, range) in &file.random {
        check_name(name, "random", faults);
        match range.get_ref()[..] {
            [least, most] if least <= most => numbers.push((least, most)),
            _ => {
                let (field, found) = (format!("random.{}", name.get_ref()), format!("{:?}", range.get_ref()));
                faults.add(range, &field, found, "the least and the most, as in [1, 100]");
            }
        }
        names.numbers.push(name.get_ref().clone());
    }
    numbers
}

fn read_flow(
    file: &FlowFile,
    headers: &[(String, String)],
    names: &Names,
    checks: &mut usize,
    faults: &mut Faults<'_>,
) -> Flow {
    if !(1..=MOST_STEPS).contains(&file.step.len()) {
        let expected = format_args!("1 to {MOST_STEPS}");
        faults.add(&file.name, "the number of steps", file.step.len(), expected);
    }
    let mut reader = StepReader::new(names, headers, faults);
    let steps = file.step.iter().map(|step| reader.read(step.get_ref(), checks)).collect();
    let (taken, feeders) = reader.used();
    let weight = file.weight.as_ref().map_or(1, |weight| *weight.get_ref());
    Flow { name: file.name.get_ref().clone(), weight, steps, taken, feeders }
}

fn unique<'f>(name: &'f Spanned<String>, field: &str, known: &mut BTreeSet<&'f str>, faults: &mut Faults<'_>) {
    let word = name.get_ref();
    if word.is_empty() || word.contains([':', '\n']) {
        faults.add(name, field, word, "a name without a colon");
    } else if !known.insert(word) {
        faults.add(name, field, word, "a name that no other flow or step has");
    }
}

fn open(
    name: &Spanned<String>,
    feeder: &FeederFile,
    read: &dyn Fn(&str) -> Result<String, String>,
    faults: &mut Faults<'_>,
) -> Option<Feeder> {
    let field = format!("feeder.{}.file", name.get_ref());
    let text = read(feeder.file.get_ref()).map_err(|error| format!("a file that can be read ({error})"));
    let text = faults.get(&feeder.file, &field, text)?;
    let rows = Feeder::parse(&text, feeder.order, feeder.end).map_err(|error| format!("a file of CSV: {error}"));
    faults.get(&feeder.file, &field, rows)
}

fn objectives(texts: &[Spanned<String>], part: Option<&str>, faults: &mut Faults<'_>) -> Vec<Objective> {
    let read = |text: &Spanned<String>| {
        let objective = faults.get(text, "slo", text.get_ref().parse::<Objective>())?;
        if objective.part.is_some() {
            faults.add(text, "slo", text.get_ref(), "an objective without a name: it stands at its flow or step");
        }
        Some(Objective { part: part.map(str::to_owned), ..objective })
    };
    texts.iter().filter_map(read).collect()
}

fn mix(files: &[Spanned<FlowFile>], flows: &[Flow], faults: &mut Faults<'_>) -> Option<Mix> {
    for weight in files.iter().filter_map(|file| file.get_ref().weight.as_ref()).filter(|weight| *weight.get_ref() == 0)
    {
        faults.add(weight, "flow.weight", 0, "a number from 1");
    }
    Mix::new(&flows.iter().map(|flow| flow.weight).collect::<Vec<_>>()).ok()
}

fn stages(files: &[Spanned<StageFile>], faults: &mut Faults<'_>) -> Option<Arc<Stages>> {
    let first = files.first()?;
    let kind = if first.get_ref().users.is_some() { Staged::Users } else { Staged::Rate };
    let (mut stages, faults_before) = (Vec::new(), faults.list.len());
    for place in files {
        let stage = place.get_ref();
        let length = faults.get(&stage.duration, "stage.duration", number::duration(stage.duration.get_ref()));
        let level = match (&stage.users, &stage.rate, kind) {
            (Some(users), None, Staged::Users) => f64::from(*users.get_ref()),
            (None, Some(rate), Staged::Rate) if (0.0..=1e9).contains(rate.get_ref()) => *rate.get_ref(),
            (None, Some(rate), Staged::Rate) => {
                faults.add(rate, "stage.rate", rate.get_ref(), "iterations per second from 0");
                0.0
            }
            _ => {
                let found = [("users", stage.users.is_some()), ("rate", stage.rate.is_some())];
                let found: Vec<_> = found.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| *name).collect();
                let expected = "either users or rate, the same in all stages";
                faults.add(place, "the level of stage", found.join(" and "), expected);
                0.0
            }
        };
        stages.push((length.unwrap_or(Duration::ZERO), level));
    }
    let stages = Stages::new(kind, &stages);
    if faults.list.len() == faults_before && (stages.length().is_zero() || stages.most() <= 0.0) {
        faults.add(first, "the length or the highest level of all stages", 0, "a number above 0");
    }
    Some(Arc::new(stages))
}

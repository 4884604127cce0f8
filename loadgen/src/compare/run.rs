//! Making a comparison: starting subjects, interleaving their runs, recording every result.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};

use super::capacity::Capacities;
use super::cores::{self, Cores};
use super::machine::{self, Machine};
use super::plan::{Load, Plan, Servers, Subject};
use super::program;
use super::record::{End, FORMAT, FailedRun, Header, Line, Run, ScenarioHeader, SubjectHeader, Writer};
use super::server::{self, Server};
use super::steady::{MOST_COLD, cold};
use super::surroundings::Surroundings;
use super::usage::Usage;
use super::words::Words;
use crate::record::{Ending, Outcome};

/// Makes a comparison and records it; `here` is the folder of the plan's file. With `install`, subjects that are absent are
/// installed first.
///
/// A failure is recorded too, and the comparison goes on with the rest.
///
/// # Errors
/// When the record cannot be written.
pub fn run(plan: &Plan, here: &Path, install: bool, writer: &mut Writer, around: &mut dyn Surroundings) -> Result<()> {
    let began = Instant::now();
    let header = header(plan, here, install, around);
    let present: Vec<bool> = header.subjects.iter().map(|subject| subject.absent.is_none()).collect();
    writer.write(&Line::Comparison(header))?;
    let servers = plan.subjects.iter().map(|_| None).collect();
    let mut comparison = Comparison { plan, here, writer, servers, known: Capacities::default() };
    // First what shows capacities, then what is offered a share of them.
    for of_capacity in [false, true] {
        let loads = comparison.loads(of_capacity)?;
        comparison.rounds(&loads, &present, around)?;
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
    /// The rates that subjects have reached.
    known: Capacities,
}

/// A scenario, with the options that its rate needs; without an option where the rate is not known.
type Offered<'a> = (&'a Load, Option<Vec<String>>);

struct Prepared<'a> {
    server: Server<'a>,
    with: Vec<String>,
}

impl<'a> Comparison<'a> {
    /// The scenarios whose rate is, or is not, a share of a capacity.
    fn loads(&mut self, of_capacity: bool) -> Result<Vec<Offered<'a>>> {
        let plan = self.plan;
        let mut loads = Vec::new();
        for scenario in plan.scenarios.iter().filter(|scenario| scenario.rate_of.is_some() == of_capacity) {
            let Some(of) = &scenario.rate_of else {
                loads.push((scenario, Some(Vec::new())));
                continue;
            };
            let rate = self.known.rate(&scenario.name, of, |subject| scenario.is_for(subject));
            let options = rate.as_ref().map(|rate| vec!["--rate".to_owned(), rate.per_second.to_string()]);
            if let Some(rate) = rate {
                self.writer.write(&Line::Rate(rate))?;
            }
            loads.push((scenario, options));
        }
        Ok(loads)
    }

    /// The warm-up's rounds, and those that are recorded. The first one that is recorded is held back until the next one has
    /// shown that it was not a part of the warm-up.
    fn rounds(&mut self, loads: &[Offered<'a>], present: &[bool], around: &mut dyn Surroundings) -> Result<()> {
        let plan = self.plan;
        for round in 0..plan.warm_up_rounds {
            for line in self.round(loads, round, None, present, around)? {
                self.write(line)?;
            }
        }
        let (mut held, mut thrown_away) = (Vec::new(), 0);
        let mut recorded = 0;
        while recorded < plan.rounds {
            let round = plan.warm_up_rounds + thrown_away + recorded;
            let mut lines = self.round(loads, round, Some(recorded), present, around)?;
            let may_be_cold = recorded == 1 && plan.servers == Servers::Kept && thrown_away < MOST_COLD;
            if let Some(cold) = may_be_cold.then(|| cold(&held, &lines)).flatten() {
                around.say(&format!("the first round is thrown away: {cold}"));
                thrown_away += 1;
                recorded = 0;
                lines.iter_mut().for_each(|line| line.set_round(0));
                held.retain(|line| matches!(line, Line::Failed(_)));
            }
            for line in std::mem::replace(&mut held, lines) {
                self.write(line)?;
            }
            recorded += 1;
        }
        held.into_iter().try_for_each(|line| self.write(line))
    }

    /// Keeps what a run has shown.
    fn write(&mut self, line: Line) -> Result<()> {
        if let Line::Run(run) = &line {
            self.known.add(&run.scenario, &run.subject, run.outcome.per_second());
        }
        self.writer.write(&line)
    }

    /// One round, and what is to be recorded of it.
    fn round(
        &mut self,
        loads: &[Offered<'a>],
        round: usize,
        recorded: Option<usize>,
        present: &[bool],
        around: &mut dyn Surroundings,
    ) -> Result<Vec<Line>> {
        let plan = self.plan;
        let mut lines = Vec::new();
        for (place, (scenario, rate)) in loads.iter().enumerate() {
            // Another order for each scenario.
            let seed = (plan.seed as u64) << 8 ^ place as u64;
            for index in plan.order.of_round(round, plan.subjects.len(), seed) {
                let subject = &plan.subjects[index];
                if !present[index] || !scenario.is_for(&subject.name) || around.interrupted() {
                    continue;
                }
                let name = recorded
                    .map_or_else(|| "warm-up".to_owned(), |round| format!("round {}/{}", round + 1, plan.rounds));
                let result = self.one(index, scenario, rate.as_deref(), around);
                if plan.servers == Servers::Anew || result.is_err() {
                    self.servers[index] = None;
                }
                around.say(&format!("{name}: {}: {}: {}", scenario.name, subject.name, in_words(scenario, &result)));
                lines.extend(line(scenario, subject, recorded, result, around.interrupted()));
            }
        }
        Ok(lines)
    }

    /// One run of a scenario by or against a subject.
    fn one(
        &mut self,
        index: usize,
        scenario: &Load,
        rate: Option<&[String]>,
        around: &mut dyn Surroundings,
    ) -> Result<Outcome> {
        let plan = self.plan;
        let rate = rate.context("the capacity that its rate is a share of was not measured")?;
        if let Some(name) = &scenario.target {
            let target = plan.targets.iter().find(|target| target.name == *name).context("there is no such target")?;
            return ask(plan, scenario, &plan.subjects[index], target, self.here, around);
        }
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
            let outcome = load(cores_of(plan, scenario), prepare, &[], &prepared.server, around).context("prepare")?;
            anyhow::ensure!(outcome.failed() == 0, "prepare: {} requests failed", outcome.failed());
            prepared.with.push(prepare.to_string());
        }
        let outcome = match (&scenario.command, &scenario.program) {
            (Some(command), _) => load(cores_of(plan, scenario), command, rate, &prepared.server, around)?,
            (None, program) => {
                let program = program.as_ref().context("it has no load")?;
                let run = program::against(program, None, cores_of(plan, scenario), &prepared.server, around)?;
                run.of_server()
            }
        };
        prepared.server.check()?;
        Ok(outcome)
    }
}

/// The generator's processors, or the target's.
fn cores_of<'a>(plan: &'a Plan, scenario: &'a Load) -> Option<&'a Cores> {
    scenario.generator_pin.as_ref().or(plan.generator_pin.as_ref())
}

/// Lets a subject ask a target, which is started for that.
fn ask(
    plan: &Plan,
    scenario: &Load,
    subject: &Subject,
    target: &Subject,
    here: &Path,
    around: &mut dyn Surroundings,
) -> Result<Outcome> {
    let words = scenario.programs.get(&subject.name).context("it has no program")?;
    let others = cores_of(plan, scenario);
    let mut server = Server::start(target, here, others, &|| around.interrupted()).context("the target")?;
    if let Some(prepare) = &scenario.prepare {
        let outcome = load(others, prepare, &[], &server, around).context("prepare")?;
        anyhow::ensure!(outcome.failed() == 0, "prepare: {} requests failed", outcome.failed());
    }
    let cores = subject.pin.as_ref().or(plan.pin.as_ref());
    let run = program::against(words, Some(subject), cores, &server, around)?;
    server.check()?;
    Ok(run.of_program())
}

/// Puts a load on a server, from the generator's processors.
fn load(
    cores: Option<&Cores>,
    words: &Words,
    rate: &[String],
    server: &Server<'_>,
    around: &mut dyn Surroundings,
) -> Result<Outcome> {
    let more = [&["--server-pid".to_owned(), server.pid().to_string()], rate].concat();
    let words = words.aimed("127.0.0.1", server.port(), &more);
    let before = Usage::now(server.pid());
    let outcome = cores::on(cores, || around.run(&words))?;
    let disturbances = Usage::now(server.pid()).disturbances_since(&before);
    let mut outcome = outcome.map_err(|error| anyhow::anyhow!("`{}`: {}", words.join(" "), error.trim()))?;
    outcome.notes.extend(disturbances);
    match &outcome.ending {
        Ending::Failed(reason) => anyhow::bail!("{reason}"),
        Ending::Complete | Ending::Interrupted => Ok(outcome),
    }
}

/// The record of a run. A warm-up's failure is recorded, because it may be the only one.
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

fn in_words(scenario: &Load, result: &Result<Outcome>) -> String {
    match result {
        Ok(outcome) => {
            let whose = if scenario.target.is_some() { "CPU" } else { "server" };
            let cpu = outcome.server_cpu_micros();
            let cpu = cpu.map_or(String::new(), |micros| format!(", {whose} {micros:.2} µs/request"));
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
        command: scenario.in_words(),
        target: scenario.target.as_ref().and_then(|name| {
            let target = plan.targets.iter().find(|target| target.name == *name)?;
            target.start.as_ref().map(Words::to_string)
        }),
        generator_pin: scenario.generator_pin.as_ref().map(ToString::to_string),
        prepare: scenario.prepare.as_ref().map(Words::to_string),
        rate_of: scenario.rate_of.clone(),
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
        start: subject.start.as_ref().map(Words::to_string).unwrap_or_default(),
        environment: subject.environment.clone(),
        pin: subject.pin.as_ref().or(plan.pin.as_ref()).map(ToString::to_string),
        absent,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::child::Scratch;
    use super::super::record::Record;
    use super::*;
    use crate::output::made_up;
    use crate::process::Process;

    /// Runs nothing, but remembers what was asked of it.
    #[derive(Default)]
    struct Made {
        /// Subcommand, extra words and the server's process of each run.
        runs: Vec<(String, u32)>,
        /// Interrupted after so many runs.
        last: Option<usize>,
        said: Vec<String>,
        /// Which runs of `load s` are cold.
        cold: Vec<usize>,
        /// Whether each run is warmer than the one before.
        falling: bool,
    }

    impl Surroundings for Made {
        fn run(&mut self, words: &[String]) -> Result<Outcome, String> {
            let place = words.iter().position(|word| word == "--server-pid").unwrap();
            let pid: u32 = words[place + 1].parse().unwrap();
            assert!(Process::open(pid).is_ok(), "the server runs");
            self.runs.push((format!("{} {}", words[0], words.last().unwrap()), pid));
            if words[0] == "broken" {
                return Err("no such load".to_owned());
            }
            let own = self.runs.iter().filter(|(words, _)| words == "load s").count();
            let is_cold =
                words[0] == "load" && words.last().is_some_and(|word| word == "s") && self.cold.contains(&(own - 1));
            let answers = if self.falling {
                100 << (own / 2).min(12)
            } else if is_cold {
                50
            } else {
                100
            };
            Ok(Outcome { failures: Vec::new(), ..made_up::run_of(answers, 1000) })
        }

        fn interrupted(&self) -> bool {
            self.last.is_some_and(|last| self.runs.len() >= last)
        }

        fn say(&mut self, text: &str) {
            self.said.push(text.to_owned());
        }
    }

    const PLAN: &str = r#"
        title = "t"
        rounds = 2
        order = "rotate"
        servers = "kept"
        [[subject]]
        name = "a"
        start = "sh -c 'exec sleep 600 # {port}'"
        ready = "command:true"
        [[subject]]
        name = "b"
        start = "sh -c 'exec sleep 600 # {port}'"
        ready = "command:true"
        [[subject]]
        name = "c"
        start = "a-program-that-is-not-there {port}"
        [[scenario]]
        name = "s"
        command = "load s"
        prepare = "fill s"
        [[scenario]]
        name = "t"
        command = "load t"
        prepare = "fill s"
        subjects = ["b", "c"]
    "#;

    fn compare(plan: &str, around: &mut Made) -> Record {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join("record");
        let plan = Plan::parse(plan).unwrap();
        run(&plan, scratch.path(), false, &mut Writer::create(&path).unwrap(), around).unwrap();
        for (_, pid) in &around.runs {
            assert!(Process::open(*pid).is_err(), "the server has ended");
        }
        Record::read(&path).unwrap()
    }

    fn recorded(record: &Record) -> String {
        let runs = record.runs.iter().map(|run| format!("{}{}{}", run.scenario, run.subject, run.round));
        runs.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn runs_are_interleaved_and_warm_ups_thrown_away() {
        let mut around = Made::default();
        let record = compare(PLAN, &mut around);
        // Round 0 is the warm-up; the subjects of the file, with the absent one, rotate.
        assert_eq!(recorded(&record), "sb0 sa0 tb0 sa1 sb1 tb1");
        assert_eq!(
            record.header.subjects[2].absent.as_deref(),
            Some("there is no program a-program-that-is-not-there")
        );
        assert!(record.failed.is_empty() && record.end.is_some_and(|end| end.complete));
        let runs: Vec<&str> = around.runs.iter().map(|(words, _)| words.as_str()).collect();
        let warm_up = ["fill s", "load s", "fill s", "load s", "load t"];
        assert_eq!(runs[..5], warm_up, "each server is filled once");
        let pids: BTreeSet<u32> = around.runs.iter().map(|(_, pid)| *pid).collect();
        assert_eq!((pids.len(), around.runs.len()), (2, 11));
        assert!(around.said.iter().any(|text| text.starts_with("c is absent")));
        assert!(
            around.said.iter().any(|text| text.starts_with("round 2/2: s: a: 50.0/s, server ")),
            "{:?}",
            around.said
        );
    }

    #[test]
    fn cold_rounds_are_no_results() {
        // The third and fourth run of `load s` are the first recorded round: one of them is cold, and so is its successor.
        let mut around = Made { cold: vec![3, 5], ..Made::default() };
        let record = compare(PLAN, &mut around);
        assert_eq!(record.runs.len(), 6, "{:?}", recorded(&record));
        assert!(record.runs.iter().all(|run| run.outcome.answers() == 100), "{:?}", recorded(&record));
        assert_eq!(
            around.said.iter().filter(|text| text.starts_with("the first round is thrown away: s: ")).count(),
            2
        );
        // A subject that never becomes warm is recorded after all.
        let mut around = Made { cold: (0..).step_by(2).take(40).collect(), falling: true, ..Made::default() };
        assert_eq!(compare(PLAN, &mut around).runs.len(), 6);
    }

    #[test]
    fn servers_can_be_started_anew() {
        let mut around = Made::default();
        let plan = PLAN.replace("rounds = 2", "rounds = 1\nwarm-up-rounds = 0").replace("rotate", "fixed");
        let plan = plan.replace("kept", "anew");
        let record = compare(&plan, &mut around);
        assert_eq!(recorded(&record), "sa0 sb0 tb0", "{:?}", record.failed);
        let pids: BTreeSet<u32> = around.runs.iter().map(|(_, pid)| *pid).collect();
        assert_eq!((pids.len(), around.runs.len()), (3, 6), "each is filled and loaded");
    }

    #[test]
    fn open_loops_follow_the_capacity_that_was_measured() {
        let open = |subject: &str| {
            format!(
                "{PLAN}[[scenario]]\nname = \"o\"\ncommand = \"load o\"\nrate-of = {{ scenario = \"s\", share = 0.7{subject} }}"
            )
        };
        let record = compare(&open(""), &mut Made::default());
        // All rounds of the others come first.
        assert_eq!(recorded(&record), "sb0 sa0 tb0 sa1 sb1 tb1 ob0 oa0 oa1 ob1");
        let [rate] = &record.rates[..] else { panic!("{:?}", record.rates) };
        assert_eq!((rate.per_second, rate.capacity, rate.subject.as_str()), (35.0, 50.0, "a"));
        let record = compare(&open(", subject = \"c\""), &mut Made::default());
        assert!(record.rates.is_empty(), "c is absent");
        assert!(
            record.failed.iter().all(|failed| failed.reason.contains("was not measured")) && record.failed.len() == 6
        );
    }

    #[test]
    fn programs_ask_servers_or_are_compared_themselves() {
        let plan = r#"
            title = "t"
            rounds = 1
            warm-up-rounds = 0
            order = "fixed"
            [[subject]]
            name = "a"
            start = "sh -c 'exec sleep 600 # {port}'"
            ready = "command:true"
            [[subject]]
            name = "b"
            check = "true"
            environment = { ANSWERS = "50" }
            [[target]]
            name = "c"
            start = "sh -c 'exec sleep 600 # c {port}'"
            ready = "command:true"
            [[scenario]]
            name = "s"
            program = "sh -c 'test {port} -gt 0 && echo 100 2 1'"
            [[scenario]]
            name = "t"
            target = "c"
            [scenario.programs]
            a = "sh -c 'exit 3'"
            b = "sh -c 'i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo $ANSWERS 2 0'"
        "#;
        let record = compare(plan, &mut Made::default());
        assert_eq!(recorded(&record), "sa0 tb0", "{:?}", record.failed);
        let [of_server, of_program] = [0, 1].map(|place| &record.runs[place].outcome);
        assert_eq!((of_server.per_second(), of_server.failed(), of_program.per_second()), (50.0, 1, 25.0));
        let cpu = |outcome: &Outcome| outcome.server.map(|server| server.cpu.total()).unwrap_or_default();
        assert!(cpu(of_server) < of_server.generator.cpu.total(), "the server sleeps: {of_server:?}");
        assert!(cpu(of_program) > of_program.generator.cpu.total(), "the target sleeps: {of_program:?}");
        assert!(record.failed[0].reason.contains("(exit status: 3)"), "{:?}", record.failed);
        let [asked, asking] = &record.header.scenarios[..] else { panic!("{:?}", record.header.scenarios) };
        assert_eq!(
            (asked.target.as_deref(), asking.target.as_deref()),
            (None, Some("sh -c 'exec sleep 600 # c {port}'"))
        );
    }

    #[test]
    fn failed_runs_are_recorded_and_others_continue() {
        #[track_caller]
        fn check(from: &str, to: &str, expected: &str, reason: &str) {
            assert!(PLAN.contains(from), "{from}");
            let record = compare(&PLAN.replacen(from, to, 1), &mut Made::default());
            assert_eq!(recorded(&record), expected);
            assert!(record.failed.iter().all(|failed| failed.reason.contains(reason)), "{:?}", record.failed);
            assert!(!record.failed.is_empty() && record.end.is_some_and(|end| end.complete));
        }
        check("load s", "broken s", "tb0 tb1", "`broken 127.0.0.1:");
        check("fill s", "broken s", "tb0 tb1", "no such load");
        check("exec sleep 600 #", "echo why; exit 3 #", "sb0 tb0 sb1 tb1", "(exit status: 3): why");
        let silent = "ready-within = \"50ms\"\nready = \"tcp\"\n# ";
        check("ready = ", silent, "sb0 tb0 sb1 tb1", "does not serve within 0.05 s: it printed nothing");
    }

    #[test]
    fn an_interrupted_comparison_keeps_what_it_has() {
        let mut around = Made { last: Some(9), ..Made::default() };
        let record = compare(PLAN, &mut around);
        assert_eq!(recorded(&record), "sb0 sa0 tb0");
        assert!(record.end.is_some_and(|end| !end.complete));
    }
}

//! From a scenario to an exit code.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::ExitCode;

use super::interrupt::{INTERRUPTED, Interrupt};
use super::limits;
use super::metrics::Metrics;
use super::search::{Search, Step};
use super::view::{Show, View};
use crate::load::{Length, Load, Sampled};
use crate::number;
use crate::objective::{Objective, Verdict, judge};
use crate::output::{self, Files, Outputs};
use crate::pace::{Arrivals, Pace, Rate};
use crate::process::Process;
use crate::record::{Ending, Outcome};
use crate::scenario::Scenario;
use crate::watch::Watch;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// As wanted.
    Fine,
    /// The run failed, or a file could not be written.
    Failed,
    /// The command line was wrong.
    Usage,
    /// An objective was missed, or a gate found something worse.
    Missed,
    /// A gate cannot tell.
    Inconclusive,
    /// The user ended it.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Fine => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Missed => 3,
            Exit::Inconclusive => 4,
            Exit::Interrupted => INTERRUPTED,
        })
    }
}

/// The outputs of a run besides its load.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The files that are written.
    pub outputs: Outputs,
    /// The view while it runs.
    pub show: Show,
    /// Where live figures are served for Prometheus.
    pub metrics: Option<SocketAddr>,
}

/// Runs a scenario, shows and writes its result.
///
/// `render` makes the text for people, on the standard output.
#[must_use]
pub fn run(mut scenario: Scenario, wanted: &Wanted, render: &dyn Fn(&Outcome, &[Verdict]) -> String) -> Exit {
    let prepared = Files::open(&wanted.outputs).and_then(|files| {
        limits::allow_connections(scenario.workload.connections(&scenario.load)).map_err(|error| error.to_string())?;
        Ok(files)
    });
    let files = match prepared {
        Ok(files) => files,
        Err(error) => return complain(&error, Exit::Usage),
    };
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return complain(&format!("signals cannot be handled: {error}"), Exit::Failed),
    };
    let servers = scenario.workload.servers(&scenario.load);
    let note = find_servers(&mut scenario.load, &servers);
    let metrics = match serve_metrics(wanted.metrics) {
        Ok(metrics) => metrics,
        Err(error) => return complain(&error, Exit::Usage),
    };
    let runner = Runner { scenario: &scenario, show: wanted.show, interrupt, metrics };
    let (mut outcome, found) =
        if scenario.search { runner.search() } else { (runner.run(&scenario.load, &scenario.description), true) };
    outcome.notes.extend(note.filter(|_| outcome.answers() > 0));
    match deliver(&outcome, files, &scenario.objectives, render) {
        Exit::Fine if !found => Exit::Missed,
        exit => exit,
    }
}

/// Shows and writes a result that is there already.
#[must_use]
pub fn show(
    outcome: &Outcome,
    outputs: &Outputs,
    objectives: &[Objective],
    render: &dyn Fn(&Outcome, &[Verdict]) -> String,
) -> Exit {
    match Files::open(outputs) {
        Ok(files) => deliver(outcome, files, objectives, render),
        Err(error) => complain(&error, Exit::Usage),
    }
}

/// Judges a result, shows it, and writes its files.
fn deliver(
    outcome: &Outcome,
    mut files: Files,
    objectives: &[Objective],
    render: &dyn Fn(&Outcome, &[Verdict]) -> String,
) -> Exit {
    let verdicts = judge(objectives, outcome);
    if !files.json_to_stdout()
        && let Err(error) = output::print(&render(outcome, &verdicts))
    {
        return complain(&format!("not written: {error}"), Exit::Failed);
    }
    if let Err(error) = files.write(outcome, &verdicts) {
        return complain(&format!("not written: {error}"), Exit::Failed);
    }
    exit(outcome, &verdicts)
}

/// Serves live figures where that is wanted, and says where.
fn serve_metrics(address: Option<SocketAddr>) -> Result<Option<Metrics>, String> {
    let Some(address) = address else { return Ok(None) };
    let metrics = Metrics::serve(address)
        .map_err(|error| format!("--metrics is `{address}`, expected an address to listen on ({error})"))?;
    eprintln!("metrics: http://{}/metrics", metrics.address());
    Ok(Some(metrics))
}

fn complain(error: &str, exit: Exit) -> Exit {
    eprintln!("error: {error}");
    exit
}

/// The exit code of a result.
fn exit(outcome: &Outcome, verdicts: &[Verdict]) -> Exit {
    match outcome.ending {
        Ending::Interrupted => Exit::Interrupted,
        Ending::Failed(_) => Exit::Failed,
        Ending::Complete if outcome.answers() == 0 && outcome.failed() > 0 => Exit::Failed,
        Ending::Complete if verdicts.iter().any(|verdict| !verdict.met) => Exit::Missed,
        Ending::Complete => Exit::Fine,
    }
}

/// Finds the servers' processes by their ports, if no option names them. Gives a note for the result where they are here but hidden.
fn find_servers(load: &mut Load, servers: &[Vec<SocketAddr>]) -> Option<String> {
    let are_here = servers.iter().all(|addresses| !addresses.is_empty())
        && servers.iter().flatten().all(|address| address.ip().is_loopback());
    if load.sampled != Sampled::Nobody || !are_here {
        return None;
    }
    let found = |addresses: &Vec<SocketAddr>| addresses.iter().find_map(|address| Process::listening_on(*address));
    let pids: BTreeSet<u32> = servers.iter().filter_map(found).map(|process| process.pid()).collect();
    if pids.is_empty() {
        let note = "the server's process was not found, so its CPU time is not known; --server-pid or --server-cgroup names it";
        return Some(note.to_owned());
    }
    load.sampled = Sampled::Processes(pids.into_iter().collect());
    None
}

struct Runner<'a> {
    scenario: &'a Scenario,
    show: Show,
    interrupt: Interrupt,
    metrics: Option<Metrics>,
}

impl Runner<'_> {
    fn run(&self, load: &Load, title: &str) -> Outcome {
        // The steps of a search have a line each, without those of every second.
        let show = if self.scenario.search && self.show == Show::Auto { Show::OnTerminal } else { self.show };
        let mut view = View::new(show, title);
        let outcome = self.scenario.run_with(load, &mut |progress| {
            view.show(progress);
            if let Some(metrics) = &self.metrics {
                metrics.show(progress);
            }
            if self.interrupt.is_asked() { Watch::Stop } else { Watch::GoOn }
        });
        view.end();
        outcome
    }

    /// Searches the highest rate. The result is that of its last confirmation, and whether there is one.
    fn search(&self) -> (Outcome, bool) {
        let probe = self.run(&probe(&self.scenario.load), "rate max: how fast is a closed loop?");
        if probe.ending != Ending::Complete || probe.answers() == 0 {
            return (probe, false);
        }
        let reached = probe.achieved_per_second();
        self.say(&format!("a closed loop reaches {}/s", number::rate(reached)));
        let mut search = Search::new(reached * FIRST_SHARE);
        let mut last = probe;
        let mut best = None;
        loop {
            let (rate, confirming) = match search.step() {
                Step::Try(rate) => (rate, false),
                Step::Confirm(rate) => (rate, true),
                Step::Found(rate) => return (found(best.unwrap_or(last), rate), true),
                Step::NoRate => return (not_found(last), false),
            };
            let outcome = self.run(&at_rate(&self.scenario.load, rate), &format!("rate max: {}/s", number::rate(rate)));
            if outcome.ending != Ending::Complete {
                return (outcome, false);
            }
            let met =
                keeps_up(&outcome, rate) && judge(&self.scenario.objectives, &outcome).iter().all(|each| each.met);
            self.say(&step_text(rate, confirming, met, &outcome, &judge(&self.scenario.objectives, &outcome)));
            search.tell(met);
            if met {
                best = Some(outcome);
            } else {
                last = outcome;
            }
        }
    }

    fn say(&self, text: &str) {
        if self.show != Show::Nothing {
            eprintln!("rate max: {text}");
        }
    }
}

/// The first rate that is tried, as a share of what a closed loop reaches.
const FIRST_SHARE: f64 = 0.7;

/// The longest that the closed loop before a search is measured.
const PROBE: std::time::Duration = std::time::Duration::from_secs(3);

/// The share of the offered rate that must be achieved, or the rate counts as missed whatever the objectives say.
const KEEPS_UP: f64 = 0.98;

fn probe(load: &Load) -> Load {
    let length = match load.length {
        Length::Duration(duration) => Length::Duration(duration.min(PROBE)),
        requests @ Length::Requests(_) => requests,
    };
    Load { pace: Pace::Closed, length, ..load.clone() }
}

fn at_rate(load: &Load, rate: f64) -> Load {
    let arrivals = match load.pace {
        Pace::Open { arrivals, .. } => arrivals,
        Pace::Closed => Arrivals::Constant,
    };
    Load { pace: Pace::Open { rate: Rate::Fixed(rate), arrivals }, ..load.clone() }
}

fn keeps_up(outcome: &Outcome, rate: f64) -> bool {
    outcome.answers() > 0 && outcome.achieved_per_second() >= rate * KEEPS_UP
}

/// `81,250/s met: p99 1.31 ms`, `83,000/s missed: p99 2.90 ms`
fn step_text(rate: f64, confirming: bool, met: bool, outcome: &Outcome, verdicts: &[Verdict]) -> String {
    let found: Vec<_> = verdicts.iter().map(|verdict| verdict.found.as_str()).collect();
    let word = match (confirming, met) {
        (false, true) => "met",
        (true, true) => "confirmed",
        (false, false) => "missed",
        (true, false) => "not confirmed",
    };
    let mut text = format!("{}/s {word}: {}", number::rate(rate), found.join(", "));
    if !keeps_up(outcome, rate) {
        text.push_str(&format!("; only {}/s were achieved", number::rate(outcome.achieved_per_second())));
    }
    text
}

fn found(mut outcome: Outcome, rate: f64) -> Outcome {
    outcome.notes.insert(0, format!("the highest rate that meets the objectives is {}/s", number::rate(rate)));
    outcome
}

fn not_found(mut outcome: Outcome) -> Outcome {
    outcome.notes.insert(0, "no rate was found that meets the objectives every time".to_owned());
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::made_up;

    #[test]
    fn exit_codes_say_what_happened() {
        #[track_caller]
        fn check(outcome: &Outcome, objectives: &[&str], expected: Exit) {
            let objectives: Vec<_> = objectives.iter().map(|text| text.parse().unwrap()).collect();
            assert_eq!(exit(outcome, &judge(&objectives, outcome)), expected, "{objectives:?}");
        }
        let fine = made_up::outcome();
        check(&fine, &[], Exit::Fine);
        check(&fine, &["p99=3ms", "errors=1%"], Exit::Fine);
        check(&fine, &["p99=2ms", "errors=1%"], Exit::Missed);
        check(&made_up::refused(), &[], Exit::Failed);
        check(&Outcome { ending: Ending::Complete, ..made_up::refused() }, &[], Exit::Failed);
        check(&Outcome { ending: Ending::Interrupted, ..fine }, &[], Exit::Interrupted);
    }

    #[test]
    fn steps_of_a_search_are_told() {
        let outcome = made_up::outcome();
        let verdicts = judge(&["p99=2ms".parse().unwrap()], &outcome);
        #[track_caller]
        fn check(found: &str, expected: &str) {
            assert_eq!(found, expected);
        }
        check(&step_text(1000.0, false, false, &outcome, &verdicts), "1,000/s missed: p99 2.91 ms");
        check(&step_text(1000.0, true, true, &outcome, &verdicts), "1,000/s confirmed: p99 2.91 ms");
        let behind = "2,000/s not confirmed: p99 2.91 ms; only 1,000/s were achieved";
        check(&step_text(2000.0, true, false, &outcome, &verdicts), behind);
    }
}

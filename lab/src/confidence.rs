//! How often the verdicts of `loadgen compare` are wrong on a machine, and how often they find a difference: a server compared with itself and with one
//! that does five per cent more work (`benches/scenarios/confidence.toml`), many times over.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Args;
use loadgen::compare::{Machine, Metric, Record, Verdict, analysis, commit, now, verdicts};
use serde::{Deserialize, Serialize};

use crate::record;

/// In the folder of records.
const RECORD: &str = "confidence.jsonl";

/// The plan's subjects: the server, itself, and the one with more work.
const SERVER: &str = "a";
const SAME: &str = "a again";
const SLOWER: &str = "five per cent more";

/// Options of `cargo xtask confidence`.
#[derive(Args)]
pub(crate) struct Options {
    /// How often the plan is run.
    #[arg(long, default_value_t = 100)]
    runs: usize,
    /// Rounds of each run, instead of the default of `loadgen compare`.
    #[arg(long)]
    rounds: Option<usize>,
    /// Keeps the outcome in benches/record/confidence.jsonl.
    #[arg(long)]
    record: bool,
}

/// One run of the plan.
#[derive(Debug, Default, Deserialize, PartialEq, Serialize)]
struct Run {
    /// Metrics in which the server was called better or worse than itself.
    wrong: Vec<String>,
    /// The CPU time of the slower server was found to be more.
    found: bool,
    /// Metrics of the server beside itself that got a verdict.
    judged: usize,
}

/// All runs.
#[derive(Debug, Deserialize, Serialize)]
struct Outcome {
    date: String,
    commit: Option<String>,
    machine: Machine,
    rounds: usize,
    runs: Vec<Run>,
}

/// Measures and prints; keeps the outcome if asked to.
///
/// # Errors
/// The plan cannot be run.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.runs > 0, "--runs 0: expected at least one run");
    build()?;
    let folder = xtask::workspace::target_dir().join("confidence");
    fs::create_dir_all(&folder)?;
    let (mut runs, mut rounds) = (Vec::new(), 0);
    for number in 1..=options.runs {
        let path = folder.join(format!("{number}.jsonl"));
        let _ = fs::remove_file(&path);
        let mut compare = Command::new(xtask::workspace::shipped("loadgen"));
        compare.args(["compare", "benches/scenarios/confidence.toml", "--output"]).arg(path.with_extension(""));
        compare.args(options.rounds.iter().flat_map(|rounds| ["--rounds".to_owned(), rounds.to_string()]));
        compare.current_dir(xtask::workspace::root()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = compare.status().context("cannot start loadgen")?;
        ensure!(status.success(), "run {number}: loadgen compare failed ({status})");
        let record = Record::read(&path)?;
        rounds = record.header.rounds;
        let run = judge(&record);
        println!(
            "run {number}: wrong {:?} of {}, the slower one {}",
            run.wrong,
            run.judged,
            if run.found { "found" } else { "not found" }
        );
        runs.push(run);
    }
    let machine = Machine::this();
    let outcome = Outcome { date: now(), commit: commit(xtask::workspace::root()), machine, rounds, runs };
    print!("{}", written(&outcome));
    if options.record { record::write(RECORD, &[outcome]) } else { Ok(()) }
}

/// Builds the generator and the server that answers a constant, as they are shipped.
fn build() -> Result<()> {
    let mut cargo = xtask::workspace::cargo();
    cargo.args([
        "build",
        "--quiet",
        "--profile",
        xtask::workspace::SHIPPED,
        "--package",
        "loadgen",
        "--bin",
        "loadgen",
    ]);
    let status = cargo.args(["--example", "constant"]).status().context("cannot start cargo")?;
    ensure!(status.success(), "loadgen cannot be built ({status})");
    Ok(())
}

/// Judges all metrics of a run as one family.
fn judge(record: &Record) -> Run {
    let scenario = record.header.scenarios.first().map_or("", |scenario| scenario.name.as_str());
    let compared =
        |subject: &str| Metric::ALL.map(|metric| analysis::comparison(record, scenario, metric, subject, SERVER));
    let judged = verdicts(&[compared(SAME), compared(SLOWER)].concat());
    let (same, slower) = judged.split_at(Metric::ALL.len());
    let is_difference = |verdict: Verdict| matches!(verdict, Verdict::Better | Verdict::Worse);
    let wrong = same.iter().filter(|one| is_difference(one.verdict)).map(|one| one.comparison.metric.name().to_owned());
    Run {
        wrong: wrong.collect(),
        found: slower.iter().any(|one| one.comparison.metric == Metric::Cpu && one.verdict == Verdict::Worse),
        judged: same.iter().filter(|one| !matches!(one.verdict, Verdict::Void(_))).count(),
    }
}

/// The sentences of docs/performance/method.md, from the record.
///
/// # Errors
/// The record cannot be read.
pub(crate) fn table() -> Result<String> {
    let outcomes: Vec<Outcome> = record::read(RECORD)?;
    Ok(outcomes.last().map_or_else(|| "Not measured.\n".to_owned(), written))
}

fn written(outcome: &Outcome) -> String {
    let Outcome { date, commit, machine, rounds, runs } = outcome;
    let count = |is: fn(&Run) -> bool| runs.iter().filter(|run| is(run)).count();
    let (all, wrong, found) = (runs.len(), count(|run| !run.wrong.is_empty()), count(|run| run.found));
    let mut metrics = BTreeMap::new();
    for metric in runs.iter().flat_map(|run| &run.wrong) {
        *metrics.entry(metric).or_insert(0) += 1;
    }
    let day = date.split('T').next().unwrap_or_default();
    let commit = commit.as_deref().unwrap_or("unknown");
    let mut text = format!(
        "Runs: {all}, each of {rounds} rounds ({day}, commit {commit}, {}, {} processors). The server was called better or worse than itself in \
         {wrong} of them; 5 of 100 are promised, over all metrics of a run.",
        machine.cpu, machine.processors
    );
    if !metrics.is_empty() {
        let named: Vec<_> = metrics.iter().map(|(metric, count)| format!("{metric} {count}")).collect();
        let _ = write!(text, " The metrics: {}.", named.join(", "));
    }
    let _ = writeln!(text, " The server with five per cent more work was found by its CPU time in {found}.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outcome_counts_runs_and_metrics() {
        let run = |wrong: &[&str], found| Run {
            wrong: wrong.iter().map(|name| (*name).to_owned()).collect(),
            found,
            judged: 7,
        };
        let outcome = Outcome {
            date: "2026-12-01T08:00:00Z".to_owned(),
            commit: Some("abc".to_owned()),
            machine: Machine::this(),
            rounds: 20,
            runs: vec![run(&[], true), run(&["p99", "cpu"], true), run(&["p99"], false)],
        };
        let text = written(&outcome);
        assert!(text.contains("Runs: 3, each of 20 rounds (2026-12-01, commit abc"), "{text}");
        assert!(text.contains("than itself in 2 of them") && text.contains("cpu 1, p99 2."), "{text}");
        assert!(text.ends_with("by its CPU time in 2.\n"), "{text}");
    }
}

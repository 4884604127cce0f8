//! Measuring: our own programs are built, peers installed, and each finding's plan run by `loadgen compare`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use loadgen::compare::{Plan, Record};
use rustix::process::{Pid, Signal, kill_process_group};
use xtask::process::run_quietly;

use super::estimate::{FRESH, Span, measuring};
use super::findings::{Finding, OURS};
use super::measured;
use super::options::Options;
use crate::interrupt::Interrupt;

/// How long a finding may take; what it has until then is kept.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// How long `loadgen compare` may take to end its servers.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a build or an installation may take.
const BUILD_LIMIT: Duration = Duration::from_secs(3600);

/// Rounds of a quick run: the fewest that an interval means something for.
const QUICK_ROUNDS: usize = 5;

/// A finding that is to be measured.
struct Work<'a> {
    finding: &'a Finding,
    plan: Plan,
    rounds: usize,
    quick: bool,
    commit: Option<&'a str>,
}

/// The time that a finding took.
struct Spent {
    installing: Duration,
    measuring: Duration,
}

/// Measures some findings, one after the other. A failure of one does not keep the others from being measured.
///
/// # Errors
/// When our own programs cannot be built, a finding has no results, or the user wants it to end.
pub(super) fn findings(findings: &[&Finding], options: &Options, interrupt: &Interrupt) -> Result<()> {
    let commit = commit();
    let mut due = Vec::new();
    for finding in findings {
        let work = Work::new(finding, options, commit.as_deref())?;
        if options.resume && work.is_done() {
            eprintln!("{}: measured before, at this commit", finding.id);
        } else {
            due.push(work);
        }
    }
    if !due.is_empty() {
        tell(&due, options);
    }
    let began = Instant::now();
    // Of all, also if some are measured already: the same packages together are the same build.
    if !options.no_build && !due.is_empty() {
        build(findings, interrupt)?;
    }
    let mut lines = vec![format!("our programs built in {}", Span(began.elapsed()))];
    fs::create_dir_all(measured::folder())?;
    let mut failed = Vec::new();
    for work in &due {
        let id = work.finding.id.as_str();
        match work.run(interrupt) {
            Ok(Spent { installing, measuring }) => {
                lines.push(format!("{id}: peers installed in {}, measured in {}", Span(installing), Span(measuring)));
                eprintln!("{}", lines[lines.len() - 1]);
            }
            Err(error) => {
                interrupt.check()?;
                eprintln!("{id}: {error:#}");
                failed.push(id);
            }
        }
    }
    eprintln!("\n{}", lines.join("\n"));
    ensure!(failed.is_empty(), "no results of {}", failed.join(", "));
    Ok(())
}

/// Says what will be done, and how long that takes.
fn tell(due: &[Work<'_>], options: &Options) {
    let mut all = Duration::ZERO;
    for work in due {
        let Work { finding, plan, rounds, .. } = work;
        let time = work.time();
        let [scenarios, subjects] = [plan.scenarios.len(), plan.subjects.len()];
        eprintln!("{}: scenarios {scenarios}, subjects {subjects}, rounds {rounds}: about {}", finding.id, Span(time));
        all += time;
    }
    let fresh =
        if options.quick { format!(" (about {} from a fresh clone on two cores)", Span(FRESH)) } else { String::new() };
    eprintln!(
        "Measuring takes about {}. Before it ours are built and peers installed that are not there yet{fresh}.",
        Span(all)
    );
}

/// Builds loadgen and our servers as they are shipped. One build of all: what they share is compiled once, and their links,
/// each of minutes on one core, run side by side.
fn build(findings: &[&Finding], interrupt: &Interrupt) -> Result<()> {
    let mut wanted = vec!["loadgen"];
    wanted.extend(findings.iter().flat_map(|finding| finding.build.iter().map(String::as_str)));
    wanted.sort_unstable();
    wanted.dedup();
    let mut words = vec![std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())];
    words.extend(["build", "--quiet", "--profile", xtask::workspace::SHIPPED].map(str::to_owned));
    for wanted in &wanted {
        let (package, targets) = wanted.split_once(' ').unwrap_or((wanted, ""));
        words.extend(["--package", package].map(str::to_owned));
        match targets {
            "" => words.extend(["--bin", package].map(str::to_owned)),
            targets => words.extend(targets.split_whitespace().map(str::to_owned)),
        }
    }
    eprintln!("building {}", wanted.join(", "));
    quietly(&words, xtask::workspace::root(), interrupt)
}

/// Runs a command to its end, or to the user's; no process of its group outlives that.
fn quietly(words: &[String], folder: &Path, interrupt: &Interrupt) -> Result<()> {
    loadgen::compare::output(words, folder, &BTreeMap::new(), BUILD_LIMIT, &|| interrupt.came()).map(|_| ())
}

/// The commit, with `+` behind it if there are changes other than a report's own, and those of texts.
fn commit() -> Option<String> {
    let git = |words: &[&str]| run_quietly(Command::new("git").args(words).current_dir(xtask::workspace::root())).ok();
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?.trim().to_owned();
    let made = [":!*.md", ":!benches/record", ":!benches/micro"];
    let changed = git(&[&["status", "--porcelain", "--untracked-files=no", "--", "."], &made[..]].concat())?;
    Some(if changed.trim().is_empty() { commit } else { format!("{commit}+") })
}

impl<'a> Work<'a> {
    fn new(finding: &'a Finding, options: &Options, commit: Option<&'a str>) -> Result<Self> {
        let mut plan = finding.plan()?;
        let quick = &finding.quick;
        if options.quick {
            plan.restrict(&quick.subjects, &quick.scenarios).map_err(anyhow::Error::msg)?;
        }
        let rounds = if options.quick { QUICK_ROUNDS } else { options.rounds.unwrap_or(plan.rounds) };
        Ok(Self { finding, plan, rounds, quick: options.quick, commit })
    }

    /// How long it will measure.
    fn time(&self) -> Duration {
        measuring(&self.plan, self.rounds)
    }

    /// Whether its record is whole, of this commit, and of as much as is wanted.
    fn is_done(&self) -> bool {
        let Ok(record) = Record::read(&measured::path(self.finding.record())) else { return false };
        let header = &record.header;
        // A file that was changed since a commit may have changed again.
        let is_same =
            self.commit.is_some_and(|commit| !commit.ends_with('+')) && header.commit.as_deref() == self.commit;
        is_same
            && record.end.is_some_and(|end| end.complete)
            && header.rounds >= self.rounds
            && self.plan.scenarios.iter().all(|own| header.scenarios.iter().any(|known| known.name == own.name))
            && self.plan.subjects.iter().all(|own| header.subjects.iter().any(|known| known.name == own.name))
    }

    fn run(&self, interrupt: &Interrupt) -> Result<Spent> {
        let Self { finding, plan, commit, .. } = self;
        let began = Instant::now();
        install(plan, interrupt)?;
        let installing = began.elapsed();
        let folder = xtask::workspace::target_dir().join("report");
        fs::create_dir_all(&folder)?;
        let output = folder.join(finding.record());
        // An older one must not pass for this one's.
        let raw = output.with_extension("jsonl");
        if raw.exists() {
            fs::remove_file(&raw)?;
        }
        let status = wait(self.compare(&output).spawn().context("cannot start loadgen")?, interrupt)?;
        // Half a record does not take the place of a whole one.
        interrupt.check()?;
        let kept =
            if raw.exists() { keep(Record::read(&raw)?, &measured::path(finding.record()), *commit)? } else { 0 };
        ensure!(kept > 0, "loadgen compare gave no results ({status})");
        Ok(Spent { installing, measuring: began.elapsed() - installing })
    }

    /// `loadgen compare` for a finding.
    fn compare(&self, output: &Path) -> Command {
        let Self { finding, plan, .. } = self;
        let loadgen = xtask::workspace::shipped("loadgen");
        let mut command = if finding.network.is_empty() {
            Command::new(&loadgen)
        } else {
            let mut command = xtask::process::unshare();
            let setup: String = finding.network.iter().map(|line| format!("ip {line} && ")).collect();
            command.args(["sh", "-c", &format!("{setup}exec \"$@\""), "sh"]).arg(&loadgen);
            command
        };
        let file = format!("benches/scenarios/{}.toml", finding.record());
        // A peer that could not be installed fails once more, and the record gets the reason.
        command.current_dir(xtask::workspace::root()).args(["compare", &file, "--install", "--output"]).arg(output);
        command.args(["--rounds", &self.rounds.to_string()]);
        if self.quick {
            for scenario in &plan.scenarios {
                command.args(["--scenario", &scenario.name]);
            }
            for subject in &plan.subjects {
                command.args(["--only", &subject.name]);
            }
        }
        // Its tables are rendered again, with all others. A Ctrl-C at the terminal reaches this program alone.
        command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        command
    }
}

/// Installs the peers of a plan; a missing one is recorded as absent later.
fn install(plan: &Plan, interrupt: &Interrupt) -> Result<()> {
    let here = xtask::workspace::root().join("benches/scenarios");
    // Ours were built before.
    for subject in plan.subjects.iter().filter(|subject| !subject.name.starts_with(OURS)) {
        let Some(words) = &subject.install else { continue };
        eprintln!("installing {}", subject.name);
        let mut words: Vec<String> =
            words.words().iter().map(|word| word.replace("{here}", &here.display().to_string())).collect();
        if words[0].contains('/') {
            words[0] = here.join(&words[0]).display().to_string();
        }
        if let Err(error) = quietly(&words, &here, interrupt) {
            interrupt.check()?;
            eprintln!("{} cannot be installed: {error:#}", subject.name);
        }
    }
    Ok(())
}

/// Waits for the comparison, and tells it to end when it takes too long or the user wants that.
fn wait(mut child: Child, interrupt: &Interrupt) -> Result<ExitStatus> {
    let began = Instant::now();
    let mut told: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let is_late = began.elapsed() > LIMIT;
        if told.is_none() && (is_late || interrupt.came()) {
            if is_late {
                eprintln!("it takes more than {} and is ended", Span(LIMIT));
            }
            kill_process_group(Pid::from_child(&child), Signal::TERM).context("loadgen cannot be ended")?;
            told = Some(Instant::now());
        }
        if told.is_some_and(|told| told.elapsed() > PATIENCE) {
            child.kill()?;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Keeps a compact form of the record of a plan that answers no finding, under its own name.
///
/// # Errors
/// When it cannot be read or written.
pub(super) fn keep_plan(raw: &Path) -> Result<()> {
    let name = raw.file_stem().and_then(OsStr::to_str).with_context(|| format!("{} has no name", raw.display()))?;
    let (record, path) = (Record::read(raw)?, measured::path(name));
    let commit = record.header.commit.clone();
    let kept = keep(record, &path, commit.as_deref())?;
    println!("kept: {kept} runs, {}", path.display());
    Ok(())
}

/// Keeps a compact form of a record; gives its number of runs. One without any does not take the place of an older one.
fn keep(mut record: Record, path: &Path, commit: Option<&str>) -> Result<usize> {
    if record.runs.is_empty() && path.exists() {
        return Ok(0);
    }
    record.compact();
    // loadgen takes the records of findings before this one for changes.
    record.header.commit = commit.map(str::to_owned);
    record.write(path)?;
    // The path of the workspace is private.
    let text = fs::read_to_string(path)?;
    fs::write(path, text.replace(&format!("{}/", xtask::workspace::root().display()), ""))?;
    Ok(record.runs.len())
}

//! Redis' own test suite, run against our server: against one that is there (its external mode), or with ours in the place of
//! the server that it starts, or as the nodes of its clusters. Valkey's likewise, in its external mode.
//!
//! The suite is fetched as Debian's source package into the target folder and never committed. The genuine server
//! runs the same files first: the tests that it passes are the tests that ours must reach, so that a file which breaks
//! off half-way cannot look good. `lab/suite/known.txt` (and `known-valkey.txt`) says which tests need what is not supported, and why.

mod baseline;
mod known;
mod nodes;
mod options;
mod output;
mod python;
mod report;
mod runner;
mod search;
mod source;
mod start;
mod units;
mod unlocked;
mod valkey_search;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use anyhow::{Result, anyhow, bail};
use xtask::process::{Server, answers};

use baseline::Baseline;
use known::Known;
use options::LANES_MAX;
pub(crate) use options::Options;
use output::Outcome;
use report::Report;
use runner::{Against, Runner};
use source::Of;
use start::command;

/// Runs the suite and prints its table.
///
/// # Errors
/// When a test hangs, or fewer than 97 % of the tests that concern supported commands pass.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.search {
        return search::run(options);
    }
    if options.valkey_search {
        return valkey_search::run(options);
    }
    let cache = xtask::workspace::target_dir().join(if options.of == Of::Valkey { "suite-valkey" } else { "suite" });
    fs::create_dir_all(&cache)?;
    let tree = source::fetch(options.of, &cache)?;
    let units = units_of(options, &tree)?;
    let known = Known::read(&xtask::workspace::root().join(options.of.known()))?;
    let subject = Subject::new(options, &tree, cache.clone())?;
    let lanes = if options.port.is_some() || options.nodes().is_some() { 1 } else { options.jobs };
    let lane = |number| Lane::new(&tree, &cache, &subject, options, number);
    // Sentinels' files may be run beside all others.
    let first = if options.sentinel { LANES_MAX } else { 0 };
    let lanes = (first..first + lanes).map(lane).collect::<Result<Vec<_>>>()?;
    // The genuine server supports everything: it runs them all.
    let left_out = if options.genuine { Vec::new() } else { known.waiting() };
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Ran>>> = Mutex::new(units.iter().map(|_| None).collect());
    let work = |lane: Lane| -> Result<()> {
        loop {
            let at = next.fetch_add(1, Relaxed);
            let Some(unit) = units.get(at) else { return Ok(()) };
            let ran = lane.run(unit, &subject, options, &left_out)?;
            results.lock().expect("nobody panics with it")[at] = Some(ran);
        }
    };
    let work = &work;
    thread::scope(|scope| {
        let lanes: Vec<_> = lanes.into_iter().map(|lane| scope.spawn(move || work(lane))).collect();
        lanes.into_iter().try_for_each(|lane| lane.join().map_err(|_| anyhow!("a run of the suite panicked"))?)
    })?;
    let mut report = Report::default();
    let results = results.into_inner().expect("nobody panics with it");
    for (unit, ran) in units.iter().zip(results) {
        let (expected, outcome) = ran.expect("every file was run");
        report.add(unit, &outcome, expected.as_ref(), &known);
    }
    report.print(options.compare_genuine);
    // Of a few files about what is not done everywhere, a share says little.
    let is_good = if options.gate { report.is_as_known() } else { report.is_acceptable() };
    if !is_good {
        bail!("the suite does not pass");
    }
    Ok(())
}

/// The files that are to be run.
fn units_of(options: &Options, tree: &Path) -> Result<Vec<String>> {
    if let Some(nodes) = options.nodes() {
        return nodes::files(tree, nodes, &options.files);
    }
    let all = match options.files.as_slice() {
        [] if options.gate => units::GATE,
        [] if options.spawn => units::STARTED,
        [] if options.of == Of::Valkey => units::VALKEY,
        [] => units::EXTERNAL,
        files => return Ok(files.to_vec()),
    };
    Ok(all.iter().map(|unit| (*unit).to_owned()).collect())
}

/// The outcome of the genuine server with a file, where that is known, and that of ours.
type Ran = (Option<Baseline>, Outcome);

/// Where files are run one after the other; others do so beside it, in trees of their own, because the suite writes beside
/// its files.
struct Lane {
    genuine: Runner,
    genuine_program: PathBuf,
    subject: Runner,
}

impl Lane {
    fn new(tree: &Path, cache: &Path, subject: &Subject, options: &Options, number: u32) -> Result<Self> {
        let runner = |name: &str, program: &Path| {
            let place = cache.join(format!("{name}-{number}"));
            let copy = source::copy(options.of, tree, &place, program)?;
            if options.sentinel {
                nodes::move_ports(&copy)?;
            }
            anyhow::Ok(Runner::new(copy, cache.to_owned(), options.time_limit, number))
        };
        let genuine_program = options.of.genuine(tree);
        let genuine = runner("genuine", &genuine_program)?;
        let mut program = subject.program();
        if options.mixed {
            program = nodes::mixed(cache, &program, number)?;
        }
        Ok(Self { genuine, genuine_program, subject: runner("subject", &program)? })
    }

    fn run(&self, unit: &str, subject: &Subject, options: &Options, left_out: &[String]) -> Result<Ran> {
        let started = match options.nodes() {
            Some(nodes) => Some(Against::Nodes(nodes)),
            None => (options.spawn || units::ALONE.contains(&unit)).then_some(Against::Started),
        };
        let expected = baseline::of(&self.genuine, &self.genuine_program, unit, started, options.compare_genuine)?;
        let outcome = match started {
            Some(against) => self.subject.run(unit, against, left_out)?,
            None => subject.run(&self.subject, unit, left_out)?,
        };
        Ok((expected, outcome))
    }
}

/// The server under test: one that another program runs, or a fresh one for every file, because files leave settings behind.
enum Subject {
    Running(u16),
    Fresh { program: PathBuf, settings: &'static [&'static str], folder: PathBuf },
}

impl Subject {
    fn new(options: &Options, tree: &Path, folder: PathBuf) -> Result<Self> {
        if let Some(port) = options.port {
            return Ok(Self::Running(port));
        }
        let program = match &options.ours {
            _ if options.genuine => options.of.genuine(tree),
            // It is started in other folders than this one.
            Some(program) => std::path::absolute(program)?,
            None => xtask::workspace::shipped_server(),
        };
        if !program.exists() {
            bail!("no {}: `cargo build --profile dist -p redis-server` first", program.display());
        }
        let settings = if options.genuine { &[] } else { options.of.settings() };
        Ok(Self::Fresh { program, settings, folder })
    }

    /// Runs one file; a server that does not answer afterwards counts as a test that hangs.
    fn run(&self, runner: &Runner, unit: &str, left_out: &[String]) -> Result<Outcome> {
        let (port, _server) = match self {
            Self::Running(port) => (*port, None),
            Self::Fresh { program, settings, folder } => {
                let port = test_peers::free_port();
                (port, Some(Server::start(&command(program, port, settings), port, folder)?))
            }
        };
        let mut outcome = runner.run(unit, Against::Port(port), left_out)?;
        if !answers(port) {
            outcome.hung.push("(the server does not answer after this file)".to_owned());
        }
        Ok(outcome)
    }

    /// The program, for files that start it.
    fn program(&self) -> PathBuf {
        match self {
            Self::Running(_) => xtask::workspace::shipped_server(),
            Self::Fresh { program, .. } => program.clone(),
        }
    }
}

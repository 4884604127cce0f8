//! Redis' own test suite, run in its external mode against our server.
//!
//! The suite is fetched as Debian's source package `redis` into the target folder and never committed. Debian's own server
//! runs the same files first: the tests that it passes are the tests that ours must reach, so that a file which breaks
//! off half-way cannot look good. `xtask/suite/known.txt` says which tests need what is not supported, and why.

mod baseline;
mod known;
mod output;
mod report;
mod runner;
mod source;
mod unlocked;

use std::path::PathBuf;
use std::thread;

use anyhow::{Result, anyhow, bail};
use clap::Args;

use crate::process::{Server, answers, free_port};
use known::Known;
use output::Outcome;
use report::Report;
use runner::{Against, Runner};

/// The files that concern what this server supports.
const UNITS: &[&str] = &[
    "unit/type/string",
    "unit/type/incr",
    "unit/type/hash",
    "unit/type/list",
    "unit/type/list-2",
    "unit/type/list-3",
    "unit/type/set",
    "unit/type/zset",
    "unit/type/stream",
    "unit/type/stream-cgroups",
    "unit/expire",
    "unit/keyspace",
    "unit/scan",
    "unit/sort",
    "unit/dump",
    "unit/protocol",
    "unit/pubsub",
    "unit/multi",
    "unit/bitops",
    "unit/bitfield",
    "unit/hyperloglog",
    "unit/geo",
    "unit/quit",
    "unit/querybuf",
    "unit/slowlog",
    "unit/latency-monitor",
    "unit/lazyfree",
    "unit/pause",
    "unit/other",
    "unit/acl",
    "unit/acl-v2",
    "unit/auth",
    "unit/maxmemory",
    "unit/client-eviction",
    "unit/memefficiency",
    "unit/tracking",
    "unit/introspection",
    "unit/introspection-2",
    "unit/info-command",
    "unit/replybufsize",
    "unit/violations",
    "unit/info",
    "unit/limits",
    "unit/pubsubshard",
    "unit/obuf-limits",
    "unit/scripting",
    "unit/functions",
];

/// Of them, those that start servers with settings of their own.
const ALONE: &[&str] = &["unit/acl", "unit/acl-v2", "unit/auth"];

/// Options of `cargo xtask suite`.
#[derive(Args)]
pub(crate) struct Options {
    /// Test a server that already runs on this port of the loopback interface (default: starts the release build).
    #[arg(long)]
    port: Option<u16>,
    /// Only this file of the suite, such as unit/type/string; may be repeated.
    #[arg(long = "file", value_name = "UNIT")]
    files: Vec<String>,
    /// Print what Debian's own redis-server does beside ours, freshly run.
    #[arg(long)]
    compare_genuine: bool,
    /// Test Debian's redis-server in place of ours: a check of this command itself.
    #[arg(long)]
    genuine: bool,
    /// Seconds for one file, all its retries included.
    #[arg(long, default_value_t = 300)]
    time_limit: u64,
}

/// Runs the suite and prints its table.
///
/// # Errors
/// When a test hangs, or fewer than 95 % of the tests that concern supported commands pass.
pub(crate) fn run(options: &Options) -> Result<()> {
    let cache = crate::target_dir().join("suite");
    let tree = source::fetch(&cache)?;
    let units: Vec<&str> = match options.files.as_slice() {
        [] => UNITS.to_vec(),
        files => files.iter().map(String::as_str).collect(),
    };
    let known = Known::read(&crate::root().join("xtask/suite/known.txt"))?;
    // A fresh machine runs every file with both servers, which mostly wait: side by side, in a tree each, because the
    // suite writes beside its files.
    let genuine = Runner::new(source::copy(&tree, &cache.join("genuine"))?, cache.clone(), options.time_limit, 0);
    let runner = Runner::new(tree, cache.clone(), options.time_limit, 1);
    let subject = Subject::new(options, cache)?;
    // The genuine server supports everything: it runs them all.
    let left_out = if options.genuine { Vec::new() } else { known.waiting() };
    let mut report = Report::default();
    for unit in units {
        let (expected, outcome) = thread::scope(|scope| {
            let expected = scope.spawn(|| baseline::of(&genuine, unit, options.compare_genuine));
            let outcome = subject.run(&runner, unit, &left_out);
            (expected.join(), outcome)
        });
        let (expected, outcome) = (expected.map_err(|_| anyhow!("the genuine server's run panicked"))??, outcome?);
        report.add(unit, &outcome, expected.as_ref(), &known);
    }
    report.print(options.compare_genuine);
    if !report.is_acceptable() {
        bail!("the suite does not pass");
    }
    Ok(())
}

/// The server under test: one that somebody else runs, or a fresh one for every file, because files leave settings behind.
enum Subject {
    Running(u16),
    Fresh { command: fn(u16) -> Vec<String>, folder: PathBuf },
}

impl Subject {
    fn new(options: &Options, folder: PathBuf) -> Result<Self> {
        if let Some(port) = options.port {
            return Ok(Self::Running(port));
        }
        if options.genuine {
            return Ok(Self::Fresh { command: baseline::command, folder });
        }
        let server = crate::release_server();
        if !server.exists() {
            bail!("no {}: `cargo build --release -p redis-server` first", server.display());
        }
        Ok(Self::Fresh { command: our_command, folder })
    }

    /// Runs one file; a server that does not answer afterwards counts as a test that hangs.
    fn run(&self, runner: &Runner, unit: &str, left_out: &[String]) -> Result<Outcome> {
        if ALONE.contains(&unit) {
            return runner.run(unit, Against::Program(&self.program()?), left_out);
        }
        let (port, _server) = match self {
            Self::Running(port) => (*port, None),
            Self::Fresh { command, folder } => {
                let port = free_port()?;
                (port, Some(Server::start(&command(port), port, folder)?))
            }
        };
        let mut outcome = runner.run(unit, Against::Port(port), left_out)?;
        if !answers(port) {
            outcome.hung.push("(the server does not answer after this file)".to_owned());
        }
        Ok(outcome)
    }
}

impl Subject {
    /// The program, for files that start it.
    fn program(&self) -> Result<PathBuf> {
        match self {
            Self::Running(_) => bail!("this file starts servers itself: leave out --port"),
            // The port does not matter: the program alone is wanted.
            Self::Fresh { command, .. } => Ok(PathBuf::from(&command(0)[0])),
        }
    }
}

/// How our server is started for the suite.
fn our_command(port: u16) -> Vec<String> {
    let server = crate::release_server().display().to_string();
    let port = port.to_string();
    let memory_only = ["--save", "", "--appendonly", "no", "--enable-debug-command", "yes"];
    let command = [&[server.as_str(), "--bind", "127.0.0.1", "--port", &port], memory_only.as_slice()].concat();
    command.into_iter().map(String::from).collect()
}

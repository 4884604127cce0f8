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

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use crate::process::{Server, free_port};
use known::Known;
use report::Report;
use runner::Runner;

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
    "unit/expire",
    "unit/keyspace",
    "unit/scan",
    "unit/protocol",
    "unit/pubsub",
    "unit/multi",
    "unit/bitops",
    "unit/bitfield",
    "unit/quit",
    "unit/querybuf",
    "unit/slowlog",
    "unit/latency-monitor",
    "unit/lazyfree",
    "unit/pause",
    "unit/other",
];

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
    let runner = Runner::new(tree, cache.clone(), options.time_limit);
    let mut subject = Subject::new(options, cache)?;
    let mut report = Report::default();
    for unit in units {
        let expected = baseline::of(&runner, unit, options.compare_genuine)?;
        let port = subject.port()?;
        let mut result = runner.run(unit, port)?;
        if !crate::process::answers(port) {
            result.hung.push(format!("(the server does not answer after {unit})"));
            subject.restart()?;
        }
        report.add(unit, &result, expected.as_ref(), &known);
    }
    report.print(options.compare_genuine);
    if !report.is_acceptable() {
        bail!("the suite does not pass");
    }
    Ok(())
}

/// The server under test: one that somebody else runs, or one of our own that is started again when it dies.
struct Subject {
    command: Option<Vec<String>>,
    folder: PathBuf,
    server: Option<Server>,
    port: u16,
}

impl Subject {
    fn new(options: &Options, folder: PathBuf) -> Result<Self> {
        if let Some(port) = options.port {
            return Ok(Self { command: None, folder, server: None, port });
        }
        let port = free_port()?;
        let command = if options.genuine {
            baseline::command(port)
        } else {
            let server = crate::release_server();
            if !server.exists() {
                bail!("no {}: `cargo build --release -p redis-server` first", server.display());
            }
            let arguments = ["--port", &port.to_string(), "--enable-debug-command", "yes"].map(String::from);
            [vec![server.display().to_string()], arguments.to_vec()].concat()
        };
        Ok(Self { command: Some(command), folder, server: None, port })
    }

    fn port(&mut self) -> Result<u16> {
        if self.command.is_some() && !self.server.as_mut().is_some_and(Server::is_running) {
            self.restart()?;
        }
        Ok(self.port)
    }

    fn restart(&mut self) -> Result<()> {
        let Some(command) = &self.command else {
            bail!("the server on port {} does not answer", self.port);
        };
        // The old one must be gone before the new one can have its port.
        self.server = None;
        self.server = Some(Server::start(command, self.port, &self.folder)?);
        Ok(())
    }
}

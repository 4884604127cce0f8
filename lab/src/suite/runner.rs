//! Runs one file of the suite against one port, with a limit on its time.

use std::borrow::Cow;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::nodes::{self, Nodes};
use super::output::{Outcome, parse};
use super::unlocked;

/// Seconds without any progress after which the suite itself reports the test that hangs.
const STALL_SECONDS: u64 = 150;

/// A file in which more tests than this hang is given up.
const HANGS_PER_FILE: usize = 3;

/// The suite's own tags leave out tests of replication and of the disk, for every server alike.
const EXTERNAL_TAGS: &str = "-needs:repl -needs:save";

/// Left out for every server: kills the child process of a BGSAVE, which an external run cannot know, and when it fails
/// half-way it leaves settings behind that break the tests after it.
const UNFIT: &str = "SRANDMEMBER with a dict containing long chain";

/// The subject that a file of the suite runs against.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Against {
    /// The server that listens on this port.
    Port(u16),
    /// Servers that the file itself starts and configures, of the tree's program.
    Started,
    /// Nodes of a cluster, or servers that Sentinels watch, likewise.
    Nodes(Nodes),
}

/// Runs files of the suite.
pub(super) struct Runner {
    tree: PathBuf,
    cache: PathBuf,
    time_limit: Duration,
    lane: u32,
}

impl Runner {
    /// A runner for the suite in `tree`, with logs below `cache`. Runners that work at the same time differ in `lane`, and in
    /// their tree.
    pub(super) fn new(tree: PathBuf, cache: PathBuf, time_limit_seconds: u64, lane: u32) -> Self {
        Self { tree, cache, time_limit: Duration::from_secs(time_limit_seconds), lane }
    }

    /// Where results are kept between runs.
    pub(super) fn cache(&self) -> &PathBuf {
        &self.cache
    }

    /// Runs one file without the tests `left_out`; after a test that hangs, again without it, so that the rest is counted
    /// too.
    ///
    /// # Errors
    /// When the suite cannot be started.
    pub(super) fn run(&self, unit: &str, against: Against, left_out: &[String]) -> Result<Outcome> {
        let deadline = Instant::now() + self.time_limit;
        let mut hung: Vec<String> = Vec::new();
        loop {
            let mut outcome = self.run_once(unit, against, &[left_out, &hung].concat(), deadline)?;
            let stalled = std::mem::take(&mut outcome.hung);
            let repeated = stalled.iter().all(|name| hung.contains(name));
            hung.extend(stalled);
            // These files can leave out nothing.
            let is_fixed = matches!(against, Against::Nodes(_));
            if repeated || is_fixed || hung.len() >= HANGS_PER_FILE || Instant::now() >= deadline {
                outcome.hung = hung;
                return Ok(outcome);
            }
        }
    }

    fn run_once(&self, unit: &str, against: Against, skipped: &[String], deadline: Instant) -> Result<Outcome> {
        let logs = self.cache.join("logs");
        fs::create_dir_all(&logs)?;
        let log = logs.join(format!("{}-{}-{}.log", unit.replace('/', "-"), std::process::id(), self.lane));
        let output = File::create(&log)?;
        let (mut command, read) = match against {
            Against::Nodes(kind) => (nodes::command(kind, unit), nodes::parse as fn(&str) -> Outcome),
            Against::Port(_) | Against::Started => {
                (self.command(unit, against, skipped)?, parse as fn(&str) -> Outcome)
            }
        };
        command.current_dir(&self.tree);
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).process_group(0);
        let mut child = command.spawn().context("cannot start the suite")?;
        let in_time = wait(&mut child, deadline)?;
        let mut outcome = read(&String::from_utf8_lossy(&fs::read(&log)?));
        if !in_time {
            outcome.hung.push(format!("({unit}: over its time limit)"));
        }
        Ok(outcome)
    }

    /// The command that runs a file of all others.
    fn command(&self, unit: &str, against: Against, skipped: &[String]) -> Result<Command> {
        let mut command = Command::new("./runtest");
        command.args(["--baseport", &base_port(self.lane).to_string(), "--portcount", &PORTS.to_string()]);
        let mut unit: Cow<'_, str> = unit.into();
        let mut skip = |name: &str| {
            command.args(["--skiptest", name]);
        };
        skipped.iter().for_each(|name| skip(name));
        match against {
            Against::Port(port) => {
                let (prepared, unfit) = unlocked::prepare(&self.tree, &unit)?;
                unfit.iter().chain([&UNFIT]).for_each(|name| skip(name));
                command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--tags", EXTERNAL_TAGS]);
                unit = prepared.into_owned().into();
            }
            Against::Started | Against::Nodes(_) => {
                command.args(["--clients", "1"]);
            }
        }
        // Durable: an exception ends one test, not the file.
        command.args(["--single", &unit, "--durable", "--timeout", &STALL_SECONDS.to_string()]);
        Ok(command)
    }
}

/// Ports of one runner's servers.
const PORTS: u32 = 800;

/// The suite's own processes meet at one of the 32 ports below this one; runs at the same time need different ones.
/// Its servers take those behind it, which must stay below Linux' range for clients, 32,768 and above: there a client may
/// have a port already.
fn base_port(lane: u32) -> u32 {
    10_100 + (PORTS + 100) * ((4 * std::process::id() + lane) % 24)
}

/// Waits for the suite until the deadline, then ends its process group; false when it had to.
pub(super) fn wait(child: &mut Child, deadline: Instant) -> Result<bool> {
    while Instant::now() < deadline {
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        thread::sleep(Duration::from_millis(50));
    }
    end_group(child.id())?;
    child.wait()?;
    Ok(false)
}

/// Kills all processes of a group. Without `--`, kill takes a negative number for a signal, and kills every process that there is.
pub(super) fn end_group(group: u32) -> Result<()> {
    Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).stderr(Stdio::null()).status()?;
    Ok(())
}

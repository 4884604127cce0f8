//! What Debian's own server passes: the list of tests that a file holds.

use std::fs;
use std::path::Path;

use anyhow::Result;

use super::runner::{Against, Runner};
use crate::process::{Server, free_port};

/// Where Debian installs the genuine server.
pub(super) const GENUINE: &str = "/usr/bin/redis-server";

/// How the genuine server is started for the suite.
pub(super) fn command(port: u16) -> Vec<String> {
    let port = port.to_string();
    let memory_only = ["--save", "", "--appendonly", "no", "--enable-debug-command", "yes"];
    let command = [&[GENUINE, "--bind", "127.0.0.1", "--port", &port], memory_only.as_slice()].concat();
    command.into_iter().map(String::from).collect()
}

/// Names of the tests of `unit` that the genuine server passes and fails: from the cache, or run now.
/// `None`, and a line that says so, where it is not installed.
pub(super) fn of(runner: &Runner, unit: &str, is_started: bool, fresh: bool) -> Result<Option<Baseline>> {
    let folder = runner.cache().join(if is_started { "baseline-started" } else { "baseline" });
    let file = folder.join(unit.replace('/', "-"));
    if !fresh && let Ok(text) = fs::read_to_string(&file) {
        return Ok(Some(Baseline { passed: text.lines().map(String::from).collect(), failed: Vec::new() }));
    }
    if !Path::new(GENUINE).exists() {
        println!("no {GENUINE}: tests of {unit} that are never reached cannot be counted");
        return Ok(None);
    }
    let outcome = if is_started {
        runner.run(unit, Against::Started, &[])?
    } else {
        let port = free_port()?;
        let server = Server::start(&command(port), port, runner.cache())?;
        runner.run(unit, Against::Port(server.port()), &[])?
    };
    fs::create_dir_all(folder)?;
    fs::write(file, outcome.passed.join("\n"))?;
    let failed = outcome.failed.into_iter().map(|(name, _)| name).chain(outcome.hung).collect();
    Ok(Some(Baseline { passed: outcome.passed, failed }))
}

/// The result of the genuine server for one file.
pub(super) struct Baseline {
    /// Names of the tests it passed.
    pub(super) passed: Vec<String>,
    /// Names of the tests it failed; known only right after a run.
    pub(super) failed: Vec<String>,
}

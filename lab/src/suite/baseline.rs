//! The tests that the genuine server passes: a list in a file.

use std::fs;
use std::path::Path;

use anyhow::Result;
use xtask::process::Server;

use super::runner::{Against, Runner};
use super::start::command;

/// Names of the tests of `unit` that the genuine server passes and fails: from the cache, or run now.
/// `None`, and a line that says so, where it is not installed.
/// `started` says how a file runs that starts it.
pub(super) fn of(
    runner: &Runner,
    program: &Path,
    unit: &str,
    started: Option<Against>,
    fresh: bool,
) -> Result<Option<Baseline>> {
    let folder = runner.cache().join(match started {
        Some(Against::Nodes(nodes)) => format!("baseline-{}", nodes.name()),
        Some(Against::Started | Against::Port(_)) => "baseline-started".to_owned(),
        None => "baseline".to_owned(),
    });
    let file = folder.join(unit.replace('/', "-"));
    if !fresh && let Ok(text) = fs::read_to_string(&file) {
        return Ok(Some(Baseline { passed: text.lines().map(String::from).collect(), failed: Vec::new() }));
    }
    if !program.exists() {
        println!("no {}: tests of {unit} that are never reached cannot be counted", program.display());
        return Ok(None);
    }
    let outcome = if let Some(against) = started {
        runner.run(unit, against, &[])?
    } else {
        let port = test_peers::free_port();
        let server = Server::start(&command(program, port, &[]), port, runner.cache())?;
        runner.run(unit, Against::Port(server.port()), &[])?
    };
    // Where nothing passes, something is missing here that may be there the next time.
    if !outcome.passed.is_empty() {
        fs::create_dir_all(folder)?;
        fs::write(file, outcome.passed.join("\n"))?;
    }
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

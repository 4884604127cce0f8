//! Shared by both suites in Python: tests from a git repository, an environment of Python, lanes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use anyhow::{Result, anyhow, bail};
use xtask::process::run_quietly;

use super::known::Known;
use super::options::Options;
use super::output::Outcome;
use super::report::Report;

/// Our program.
pub(super) fn program(options: &Options) -> Result<PathBuf> {
    let program = match &options.ours {
        Some(program) => std::path::absolute(program)?,
        None => xtask::workspace::shipped_server(),
    };
    if !program.exists() {
        bail!("no {}: `cargo build --profile dist -p redis-server` first", program.display());
    }
    Ok(program)
}

/// A folder that [`complete`] has not marked with these words is made anew; returns whether it was.
pub(super) fn is_new(cache: &Path, mark: &str) -> Result<bool> {
    if fs::read_to_string(cache.join("complete")).is_ok_and(|by| by == mark) {
        return Ok(false);
    }
    if cache.exists() {
        fs::remove_dir_all(cache)?;
    }
    fs::create_dir_all(cache)?;
    Ok(true)
}

/// Marks a folder as whole.
pub(super) fn complete(cache: &Path, mark: &str) -> Result<()> {
    Ok(fs::write(cache.join("complete"), mark)?)
}

/// Lays these paths of a revision into a folder.
pub(super) fn lay(repository: &Path, revision: &str, paths: &[&str], folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let archive = folder.join("tests.tar");
    let mut git = Command::new("git");
    git.arg("-C").arg(repository).args(["archive", "--output"]).arg(&archive).args([revision, "--"]).args(paths);
    run_quietly(&mut git)?;
    run_quietly(Command::new("tar").arg("xf").arg(&archive).arg("-C").arg(folder))?;
    Ok(fs::remove_file(archive)?)
}

/// Makes an environment of Python with these packages in `venv`.
pub(super) fn environment(folder: &Path, requirements: &[&str]) -> Result<()> {
    run_quietly(Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv")))?;
    run_quietly(Command::new(folder.join("venv/bin/pip")).args(["install", "--quiet"]).args(requirements))?;
    Ok(())
}

/// Writes a program.
pub(super) fn script(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text)?;
    Ok(fs::set_permissions(file, fs::Permissions::from_mode(0o755))?)
}

/// Runs all files, some at the same time, and prints their table. `run` has a file and the number of its lane.
///
/// # Errors
/// When a file cannot be run, or a test fails that is not known to.
pub(super) fn report(
    files: &[String],
    options: &Options,
    known: &Known,
    run: impl Fn(&str, u32) -> Result<Outcome> + Sync,
) -> Result<()> {
    let (waiting, outcomes) = (Mutex::new(files.iter().rev().collect::<Vec<_>>()), Mutex::new(Vec::new()));
    let lane = |lane: u32| -> Result<()> {
        loop {
            let next = waiting.lock().map_err(|_| anyhow!("a run panicked"))?.pop();
            let Some(file) = next else { return Ok(()) };
            let outcome = run(file, lane)?;
            outcomes.lock().map_err(|_| anyhow!("a run panicked"))?.push((file, outcome));
        }
    };
    let lane = &lane;
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..options.jobs).map(|number| scope.spawn(move || lane(number))).collect();
        lanes.into_iter().try_for_each(|lane| lane.join().map_err(|_| anyhow!("a run of the tests panicked"))?)
    })?;
    let mut report = Report::default();
    let mut outcomes = outcomes.into_inner().map_err(|_| anyhow!("a run panicked"))?;
    outcomes.sort_by_key(|(file, _)| *file);
    outcomes.iter().for_each(|(file, outcome)| report.add(file, outcome, None, known));
    report.print(false);
    if !report.is_as_known() {
        bail!("tests fail that are not known to");
    }
    Ok(())
}

//! The programs that do gates as processes of their own.

use std::cell::Cell;
use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use xtask::workspace::{cargo, root, target_dir};

/// This program.
pub(super) struct Xtask(PathBuf);

impl Xtask {
    /// # Errors
    /// The system does not know its path.
    pub(super) fn this() -> Result<Self> {
        Ok(Self(env::current_exe().context("this program has no path")?))
    }

    pub(super) fn task(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.0);
        command.args(arguments).current_dir(root());
        command
    }
}

/// The program of the package `lab`, which is built for its first task.
pub(super) struct Lab {
    /// Arguments of cargo.
    build: &'static [&'static str],
    is_built: Cell<bool>,
}

impl Lab {
    /// With all gates to run, the build is that of all programs: the tests need them, and cargo would build half of the libraries of lab
    /// alone with other features.
    pub(super) fn new(are_all_to_run: bool) -> Self {
        let build: &[&str] = if are_all_to_run { &["everything"] } else { &["build", "--package", "lab"] };
        Self { build, is_built: Cell::new(false) }
    }

    /// The command that builds it, the first time.
    pub(super) fn build(&self) -> Option<Command> {
        let is_first = !self.is_built.replace(true);
        is_first.then(|| {
            let mut build = cargo();
            build.args(self.build);
            build
        })
    }

    pub(super) fn task(arguments: &[&str]) -> Command {
        let mut command = Command::new(target_dir().join("debug/lab"));
        command.args(arguments).current_dir(root());
        command
    }
}

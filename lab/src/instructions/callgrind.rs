//! Servers under callgrind, and its dumps.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use xtask::process::{Server, run_quietly};

/// A file for the counts, and how a command for this port begins.
pub(super) fn command(folder: &Path, port: u16) -> (PathBuf, Vec<String>) {
    let output = folder.join(format!("callgrind.{port}"));
    let flags = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--collect-bus=yes"];
    let mut command: Vec<String> = flags.map(String::from).into();
    command.push(format!("--callgrind-out-file={}", output.display()));
    (output, command)
}

/// Sends a command to the running callgrind.
pub(super) fn control(server: &Server, arguments: &[&str]) -> Result<()> {
    run_quietly(Command::new("callgrind_control").args(arguments).arg(server.pid().to_string())).map(drop)
}

/// The dump of this number that callgrind has written; they begin with 1.
pub(super) fn dumped(output: &Path, number: usize) -> Result<String> {
    let path = format!("{}.{number}", output.display());
    fs::read_to_string(&path).with_context(|| format!("no dump {path}"))
}

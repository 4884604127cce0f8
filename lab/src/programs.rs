//! The programs that are measured: ours, built as they are shipped, and peers, by `benches/peers/install`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;
use xtask::process::run_quietly;
use xtask::workspace::cargo;

/// The options of a comparison of redis-server with a genuine one, under loadgen's load.
#[derive(clap::Args)]
pub(crate) struct Compared {
    /// Our server; built when not given.
    #[arg(long)]
    ours: Option<PathBuf>,
    /// The genuine server.
    #[arg(long, default_value = "/usr/bin/redis-server")]
    pub(crate) genuine: PathBuf,
    /// The load generator; built when not given.
    #[arg(long)]
    loadgen: Option<PathBuf>,
}

impl Compared {
    /// Our server, built if need be.
    ///
    /// # Errors
    /// When it cannot be built.
    pub(crate) fn ours(&self) -> Result<PathBuf> {
        self.ours.clone().map_or_else(|| ours("redis-server"), Ok)
    }

    /// The load generator, built if need be.
    ///
    /// # Errors
    /// When it cannot be built.
    pub(crate) fn loadgen(&self) -> Result<PathBuf> {
        self.loadgen.clone().map_or_else(|| ours("loadgen"), Ok)
    }
}

/// Runs the load generator, as a command has it; its result (`--json`), by way of a file in a folder.
///
/// # Errors
/// When it fails.
pub(crate) fn result_of(loadgen: &mut Command, folder: &Path) -> Result<Value> {
    let record = folder.join(format!("record-{}.json", test_peers::free_port()));
    run_quietly(loadgen.arg("--json").arg(&record))?;
    let result = serde_json::from_str(&fs::read_to_string(&record)?).context("the generator's result")?;
    fs::remove_file(&record)?;
    Ok(result)
}

/// Builds a server of ours, whose program is named like its package; where it is.
///
/// # Errors
/// When it cannot be built.
pub(crate) fn ours(package: &str) -> Result<PathBuf> {
    ours_with(package, &[])
}

/// The same with features that are no defaults.
///
/// # Errors
/// When it cannot be built.
pub(crate) fn ours_with(package: &str, features: &[&str]) -> Result<PathBuf> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--profile", xtask::workspace::SHIPPED, "--package", package, "--bin", package]);
    run_quietly(build.args(["--features", &features.join(",")]))?;
    Ok(xtask::workspace::shipped(package))
}

/// Builds or fetches a peer; where it is.
///
/// # Errors
/// When it cannot be had; the text says why.
pub(crate) fn peer(name: &str) -> Result<PathBuf> {
    run_quietly(Command::new(xtask::workspace::root().join("benches/peers/install")).arg(name))?;
    // The script knows its own place, and no other target folder.
    let program = xtask::workspace::root().join("target/peers/bin").join(name);
    // Measured is the program itself, and not a link to it.
    program.canonicalize().with_context(|| program.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_peer_is_an_error_that_says_so() {
        let error = peer("nobody").unwrap_err().to_string();
        assert!(error.contains("nobody: there is no such peer"), "{error}");
    }
}

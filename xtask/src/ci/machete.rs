//! cargo-machete, which finds dependencies that a manifest declares and no source of the package names.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use xtask::process::run_quietly;
use xtask::workspace::{cargo, requires_peers, root, target_dir};

/// The version that the exceptions in manifests (`[package.metadata.cargo-machete]`) are written for.
const VERSION: &str = "0.9.2";

/// The command that looks at all manifests, also those outside of the workspace, with a program that is installed or built here.
/// `None` if there is no program, with a printed reason.
///
/// # Errors
/// Peers are required, and the program cannot be built.
pub(super) fn command() -> Result<Option<Command>> {
    let tools = target_dir().join("tools");
    let built = tools.join("bin/cargo-machete");
    if let Some(program) = [PathBuf::from("cargo-machete"), built.clone()].into_iter().find(|program| fits(program)) {
        return Ok(Some(of(&program)));
    }
    let mut install = cargo();
    // Without optimisation it takes a second for this workspace.
    install.args(["install", "--quiet", "--locked", "--debug", "--root"]).arg(&tools);
    // In a temporary folder, which cargo removes.
    install.arg(format!("cargo-machete@{VERSION}")).env_remove("CARGO_TARGET_DIR");
    match run_quietly(&mut install) {
        Ok(_) => Ok(Some(of(&built))),
        Err(error) if requires_peers() => Err(error.context("REQUIRE_PEERS=1, and cargo-machete cannot be installed")),
        Err(error) => {
            let reason = error.to_string().lines().last().unwrap_or_default().trim().to_owned();
            println!("skipped: unused dependencies (cargo-machete {VERSION} cannot be installed: {reason})");
            Ok(None)
        }
    }
}

fn of(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--skip-target-dir").current_dir(root());
    command
}

/// Returns true if the program is there, in the version that the gate expects.
fn fits(program: &Path) -> bool {
    run_quietly(Command::new(program).arg("--version")).is_ok_and(|version| version.trim() == VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuous_integration_installs_the_same_version() {
        let script = std::fs::read_to_string(root().join(".ci/run")).unwrap();
        assert!(script.contains(&format!("cargo install --locked --debug cargo-machete@{VERSION}\n")));
        assert!(script.contains(&format!("$(cargo-machete --version 2>/dev/null) == {VERSION} ]]")));
    }
}

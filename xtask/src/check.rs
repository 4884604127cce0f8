//! The gates of a part of the workspace: the crates that a change touches and those that depend on them.

mod touched;

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Result, bail};
use clap::Args;

use self::touched::Workspace;

/// The features of echonet-lite that its tests want beside the defaults. In tests of the whole workspace `echonet` brings them.
const ECHONET_FEATURES: &str = "echonet-lite/certify,echonet-lite/emulate,echonet-lite/serial";

/// Options of `cargo xtask check`.
#[derive(Args)]
pub(crate) struct Options {
    /// Crates to check. Default: those whose files differ from `--against`, and all that depend on them.
    #[arg(value_name = "CRATE")]
    crates: Vec<String>,
    /// The revision that changes are counted from: its merge base with HEAD.
    #[arg(long, value_name = "REVISION", default_value = "main")]
    against: String,
    /// Leave out the crates that depend on a touched one.
    #[arg(long)]
    no_dependents: bool,
    /// Leave out the commands of the crates' READMEs, which need all programs.
    #[arg(long)]
    no_readme: bool,
}

/// Checks format, lints, tests, docs, house rules, and the commands of READMEs.
///
/// # Errors
/// At the first gate that fails, after its whole output was printed; a crate that the workspace does not have.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::read()?;
    let crates = chosen(options, &workspace)?;
    // House rules hold for files outside of crates, too.
    crate::tidy::run()?;
    if crates.is_empty() {
        println!("check: no file of a crate differs from {}", options.against);
        return Ok(());
    }
    println!("check: {}", crates.iter().map(String::as_str).collect::<Vec<_>>().join(", "));
    crate::ci::gate("format", on(&crates, &["fmt", "--check"]))?;
    let mut lints = on(&crates, &["clippy", "--all-targets", "--all-features"]);
    lints.args(["--", "-D", "warnings"]);
    crate::ci::gate("lints", lints)?;
    let tests = crate::ci::gate("tests", tests(&crates))?;
    let mut doc = on(&crates, &["doc", "--all-features", "--no-deps", "--document-private-items"]);
    doc.env("RUSTDOCFLAGS", "-Dwarnings");
    crate::ci::gate("docs", doc)?;
    if !options.no_readme {
        readmes(&workspace, &crates)?;
    }
    tests.lines().filter(|line| line.starts_with("test result:")).for_each(|line| println!("{line}"));
    Ok(())
}

/// The crates to check, by name.
fn chosen(options: &Options, workspace: &Workspace) -> Result<BTreeSet<String>> {
    if let Some(unknown) = options.crates.iter().find(|name| !workspace.has(name)) {
        bail!("{unknown}: expected a crate of this workspace: {}", workspace.names().collect::<Vec<_>>().join(", "));
    }
    if !options.crates.is_empty() {
        return Ok(options.crates.iter().cloned().collect());
    }
    let touched = workspace.owners(&touched::files(&options.against)?);
    Ok(if options.no_dependents { touched } else { workspace.with_dependents(touched) })
}

/// A cargo command for these crates.
fn on(crates: &BTreeSet<String>, arguments: &[&str]) -> Command {
    let mut command = xtask::workspace::cargo();
    command.arg(arguments[0]);
    for name in crates {
        command.args(["--package", name]);
    }
    command.args(&arguments[1..]);
    command
}

fn tests(crates: &BTreeSet<String>) -> Command {
    let mut tests = on(crates, &["test", "--no-fail-fast"]);
    if crates.contains("echonet-lite") {
        tests.args(["--features", ECHONET_FEATURES]);
    }
    tests
}

/// Runs the commands of the READMEs in the crates' folders, and of their documents.
fn readmes(workspace: &Workspace, crates: &BTreeSet<String>) -> Result<()> {
    let mut build = xtask::workspace::cargo();
    build.arg("everything");
    crate::ci::gate("programs", build)?;
    for name in crates {
        let own = format!("{}/", workspace.folder(name));
        for folder in touched::documents(name).map(str::to_owned).chain([own]) {
            crate::readme::run(&crate::readme::Options::of_built(&folder))?;
        }
    }
    Ok(())
}

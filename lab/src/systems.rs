//! echonet-lite where the workspace's tests do not run it: compiled for other systems, and its tests with the sockets that those
//! have.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;
use xtask::process::run_quietly;

/// Targets, and the features of the `echonet` command that are checked for each. TLS of `mqtt` (ring) takes a C compiler for the target.
const SYSTEMS: [(&str, &str); 2] = [("x86_64-pc-windows-gnu", "web"), ("aarch64-apple-darwin", "serial,web")];

/// Sets of features for embedding programs, without the defaults; each is checked alone, the empty one by `bare`.
const FEATURES: [&str; 8] = [
    "names",
    "std",
    "net",
    "embassy,defmt,serde,skstack",
    "std,serde,log,tracing",
    "net,serde,log,tracing,earlier-releases",
    "serial",
    "net,serial,emulate,certify",
];

/// Options of `cargo xtask systems`.
#[derive(Args)]
pub(crate) struct Options {
    /// Only compile, without the tests.
    #[arg(long)]
    check: bool,
}

/// Checks the crate for other systems and with other features, and runs its tests with their sockets.
///
/// # Errors
/// With the output of what failed.
pub(crate) fn run(options: &Options) -> Result<()> {
    for (target, features) in SYSTEMS {
        if !has_standard_library(target) {
            println!("skipped: echonet-lite on {target} (its standard library comes by `rustup target add {target}`)");
            continue;
        }
        let mut check = cargo("systems", "-Dwarnings");
        // The command brings the library. Examples ask for the libraries of tests, which take a C compiler, too.
        check.args(["check", "--package", "echonet", "--bins", "--no-default-features", "--features", features]);
        run_quietly(check.args(["--target", target])).with_context(|| format!("echonet on {target}"))?;
        println!("ok: echonet-lite and echonet compile for {target}");
    }
    for features in FEATURES {
        let mut check = cargo("systems", "-Dwarnings");
        check.args(["check", "--lib", "--no-default-features", "--features", features]);
        run_quietly(&mut check).with_context(|| format!("echonet-lite with {features}"))?;
    }
    println!("ok: echonet-lite compiles with {} sets of features", FEATURES.len());
    if options.check {
        return Ok(());
    }
    // Tests start examples as programs, which `test --examples` would make tests of.
    let examples: &[&str] = &["build", "--examples"];
    // A README's programs do the same with all sockets, and they are compiled without the flag.
    let tests: &[&str] = &["test", "--lib", "--test", "it", "--", "net::", "--skip", "readme"];
    for words in [examples, tests] {
        let mut command = cargo("portable", "--cfg echonet_portable -Dwarnings");
        run_quietly(command.args(words)).context("echonet-lite with the sockets of other systems")?;
    }
    println!("ok: echonet-lite's tests hold with the sockets of other systems");
    Ok(())
}

/// Cargo with a folder and flags of its own, so that the workspace's is neither locked nor built anew.
fn cargo(folder: &str, flags: &str) -> Command {
    let mut command = xtask::workspace::cargo();
    command.env("CARGO_TARGET_DIR", xtask::workspace::target_dir().join(folder)).env_remove("CARGO_BUILD_BUILD_DIR");
    command.env("RUSTFLAGS", flags).env_remove("CARGO_ENCODED_RUSTFLAGS");
    // Nothing here is built again after a change: the files for that would be half of the folder.
    command.env("CARGO_INCREMENTAL", "0");
    command.current_dir(xtask::workspace::root().join("echonet-lite"));
    command
}

/// Whether the workspace's compiler can build for a target.
fn has_standard_library(target: &str) -> bool {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", target]).current_dir(xtask::workspace::root());
    let output = rustc.output().ok().filter(|output| output.status.success());
    output.is_some_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).exists())
}

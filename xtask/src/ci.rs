//! Every gate, quiet where all is well.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;

/// Inputs of a fuzz target in the gate: most have run them within two seconds.
const FUZZ_RUNS: &str = "-runs=20000";

/// What echonet-lite has beside its defaults: as a dev-dependency on itself it made every example build the command. The alias
/// `cargo everything` names them, too.
const FEATURES: &str = "echonet-lite/cli,echonet-lite/mqtt,echonet-lite/serial";

/// Options of `cargo xtask ci`.
#[derive(Args)]
pub(crate) struct Options {
    /// Leave out Redis' own suite.
    #[arg(long)]
    no_suite: bool,
    /// Run what takes long, too: Redis' suite with servers that it starts, kills by the hundred, cases that are loaded again.
    #[arg(long)]
    full: bool,
    /// Seconds for each fuzz target at most; 0 leaves them out.
    #[arg(long, default_value_t = 10)]
    fuzz_seconds: u32,
}

/// Runs the gates and ends with the summary lines of the tests.
///
/// # Errors
/// At the first gate that fails, after its whole output was printed.
pub(crate) fn run(options: &Options) -> Result<()> {
    let xtask = Xtask(env::current_exe().context("this program has no path")?);
    gate("format", cargo(&["fmt", "--all", "--check"]))?;
    gate("lints", cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]))?;
    // With the examples, so that what the lints have built of the libraries serves here too: their tests' features are on.
    let targets = ["--lib", "--bins", "--examples"];
    let doc = ["doc", "--workspace", "--all-features", "--no-deps", "--document-private-items"];
    let mut doc = cargo(&[&doc[..], &targets].concat());
    doc.env("RUSTDOCFLAGS", "-Dwarnings");
    gate("docs", doc)?;
    crate::tidy::run()?;
    // In full each is built from its tarball, which takes minutes.
    let package = ["package", "--build"];
    gate("tarballs", xtask.task(&package[..if options.full { 2 } else { 1 }]))?
        .lines()
        .for_each(|line| println!("{line}"));
    gate("release build", cargo(&[&["build", "--release"], &crate::paths::PROGRAMS[..]].concat()))?;
    let paths = gate("instructions of hot paths", xtask.task(&["paths"]))?;
    let bare = gate("bare-metal light", xtask.task(&["bare"]))?;
    let systems = gate("echonet-lite on other systems", xtask.task(&["systems"]))?;
    let skipped = paths.lines().chain(bare.lines()).chain(systems.lines()).filter(|line| line.starts_with("skipped:"));
    skipped.for_each(|line| println!("{line}"));
    let mut test = cargo(&["test", "--workspace", "--no-fail-fast", "--features", FEATURES]);
    if options.full {
        test.env("AOF_KILLS", "200");
    }
    let tests = gate("tests", test)?;
    // By the programs that the tests have built.
    let mut attacks = xtask.task(&["attacks", "--short", "--programs"]);
    attacks.arg(crate::target_dir().join("debug"));
    gate("attacks", attacks)?.lines().last().into_iter().for_each(|line| println!("{line}"));
    // By the same programs, and the peers that the tests have fetched.
    let mut readme = xtask.task(&["readme", "--programs"]);
    readme.arg(crate::target_dir().join("debug")).arg("--redis-server").arg(crate::release_server());
    gate("commands of the READMEs", readme)?.lines().for_each(|line| println!("{line}"));
    let mut deploy = xtask.task(&["deploy", "--programs"]);
    deploy.arg(crate::target_dir().join("debug"));
    gate("what operators get", deploy)?.lines().for_each(|line| println!("{line}"));
    if options.no_suite {
        println!("skipped: Redis' own suite (--no-suite)");
    } else {
        let modes = [("Redis' own suite", &[][..]), ("the suite with servers that it starts", &["--spawn"])];
        for (name, arguments) in &modes[..if options.full { 2 } else { 1 }] {
            let suite = gate(name, xtask.task(&[&["suite"], *arguments].concat()))?;
            suite.lines().filter(|line| line.starts_with("suite:")).for_each(|line| println!("{line}"));
        }
    }
    differ(&xtask, options.full)?;
    if options.full {
        gate("faults picked by hand", xtask.task(&["mutants"]))?
            .lines()
            .last()
            .into_iter()
            .for_each(|line| println!("{line}"));
    }
    fuzz(options)?;
    // Last, so that whoever reads only the end sees how many tests ran; binaries without tests have no say.
    let summaries = tests.lines().filter(|line| line.starts_with("test result:") && !line.contains(" 0 passed"));
    summaries.for_each(|line| println!("{line}"));
    Ok(())
}

/// Random commands to ours and a genuine server, where one is installed.
fn differ(xtask: &Xtask, full: bool) -> Result<()> {
    if Command::new("redis-server").arg("--version").output().is_err() {
        if requires_peers() {
            bail!("REQUIRE_PEERS=1, and no redis-server is installed to compare with");
        }
        println!("skipped: random commands (no redis-server is installed to compare with)");
        return Ok(());
    }
    // The same commands each time: whether the gate holds depends neither on luck nor on how fast a machine is.
    let task = ["differ", "--commands", "500000", "--seconds", "120"];
    let again: &[&str] = if full { &["--reload-each", "10"] } else { &[] };
    let output = gate("random commands", xtask.task(&[&task[..], again].concat()))?;
    output.lines().filter(|line| line.starts_with("differ:")).for_each(|line| println!("{line}"));
    Ok(())
}

/// Builds every fuzz target and runs it for a short while, with the nightly tools.
fn fuzz(options: &Options) -> Result<()> {
    let seconds = options.fuzz_seconds;
    if seconds == 0 {
        println!("skipped: fuzz targets (--fuzz-seconds 0)");
        return Ok(());
    }
    let nightly = || {
        let mut command = Command::new("cargo");
        command.args(["+nightly", "fuzz"]).current_dir(crate::root());
        command
    };
    let list = nightly().arg("list").output().ok().filter(|output| output.status.success());
    let Some(list) = list else {
        if requires_peers() {
            bail!("REQUIRE_PEERS=1, and no nightly Rust with cargo-fuzz is installed to build the fuzz targets");
        }
        println!("skipped: fuzz targets (nightly Rust with cargo-fuzz is not installed)");
        return Ok(());
    };
    let mut build = nightly();
    build.arg("build");
    gate("build of fuzz targets", build)?;
    for target in String::from_utf8_lossy(&list.stdout).split_whitespace() {
        let mut run = nightly();
        run.args(["run", target, "--", &format!("-max_total_time={seconds}")]);
        // The same inputs each time: whether the gate holds does not depend on luck. New ones are looked for in the full run.
        if !options.full {
            run.args(["-seed=1", FUZZ_RUNS]);
        }
        gate(&format!("fuzz target {target}"), run)?;
    }
    Ok(())
}

/// Whether the absence of what the gate needs is a failure, not a note.
pub(crate) fn requires_peers() -> bool {
    env::var_os("REQUIRE_PEERS").is_some_and(|value| value == "1")
}

/// This program, which does other tasks as processes of their own.
struct Xtask(PathBuf);

impl Xtask {
    fn task(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.0);
        command.args(arguments).current_dir(crate::root());
        command
    }
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = crate::programs::cargo();
    command.args(arguments);
    command
}

/// Runs one gate; prints one line when it holds, everything when it does not.
fn gate(name: &str, mut command: Command) -> Result<String> {
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {command:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        print!("{text}");
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        bail!("{name}: {command:?} failed ({})", output.status);
    }
    println!("ok: {name} ({} s)", start.elapsed().as_secs());
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::FEATURES;

    #[test]
    fn the_alias_has_the_features_of_the_tests() {
        let config = std::fs::read_to_string(crate::root().join(".cargo/config.toml")).unwrap();
        let config: toml::Table = toml::from_str(&config).unwrap();
        let alias = config["alias"]["everything"].as_str().unwrap();
        assert!(alias.ends_with(&format!(" --features {FEATURES}")), "{alias}");
    }
}

//! Files for operators beside the programs. Manual pages and completions are made from the output of `--help`. Bills of materials are made
//! from the lock file. Programs are stripped, with their debug data in a second file. Units of systemd, the image, rules of Prometheus, the
//! dashboard and manifests of Kubernetes are checked against the programs and by installed tools. So are licences and sources of
//! dependencies.

mod bill;
mod completions;
mod debian;
mod man;
mod monitoring;
mod program;
mod split;
mod tool;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;
use xtask::process::run_quietly;

use program::{PROGRAMS, Program};
use tool::is_there;

/// Where the units say that programs are.
const PLACE: &str = "/usr/bin/";

/// The largest exposure of a unit by `systemd-analyze security`, in tenths: from 0, all is taken from it, to 100.
const MAX_EXPOSURE: &str = "--threshold=20";

/// Options of `cargo xtask deploy`.
#[derive(Args)]
pub(crate) struct Options {
    /// In place of building them takes the programs in this folder as they are.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
    /// Builds Debian packages, too, into `target/deploy/deb`; needs cargo-deb.
    #[arg(long)]
    deb: bool,
}

/// Makes what can be made, below `target/deploy`, and checks the rest.
///
/// # Errors
/// When something cannot be made, or does not fit the programs.
pub(crate) fn run(options: &Options) -> Result<()> {
    let programs = match &options.programs {
        Some(folder) => fs::canonicalize(folder).with_context(|| folder.display().to_string())?,
        None => build()?,
    };
    let folder = xtask::workspace::target_dir().join("deploy");
    for name in ["man", "completions", "systemd", "sbom", "bin"] {
        fs::create_dir_all(folder.join(name))?;
    }
    let lock = bill::lock()?;
    for Program { name: program, package, features, completes, .. } in &PROGRAMS {
        let help = run_quietly(Command::new(programs.join(program)).arg("--help").env("COLUMNS", "100"))?;
        let page = folder.join(format!("man/{program}.1"));
        fs::write(&page, man::page(program, &help))?;
        man::check(&page)?;
        if !completes {
            fs::write(folder.join(format!("completions/{program}.bash")), completions::bash(program, &help))?;
        }
        let (bill, crates) = bill::of(program, package, features, &lock)?;
        fs::write(folder.join(format!("sbom/{program}.cdx.json")), bill)?;
        let size = split_off(&programs.join(program), &folder.join("bin"))?;
        // Sizes of others than these say nothing.
        if options.programs.is_none() {
            println!("{program}: {crates} crates{size}");
        }
    }
    write_pages(&programs, &folder.join("man"))?;
    debian::files(&folder, &programs)?;
    let units = check_units(&folder.join("systemd"), &programs)?;
    let dockerfile = fs::read_to_string(xtask::workspace::root().join("deploy/Dockerfile"))?;
    let toolchain = fs::read_to_string(xtask::workspace::root().join("rust-toolchain.toml"))?;
    check_image(&dockerfile, &toolchain)?;
    let alerts = monitoring::check(xtask::workspace::root(), &folder.join("names"))?;
    check_dependencies()?;
    let programs = PROGRAMS.len();
    println!("deploy: {programs} manual pages, completions and bills, {units} units, {alerts} alerts");
    if options.deb {
        println!("deploy: {} packages in {}", debian::packages(&folder)?, folder.join("deb").display());
    }
    Ok(())
}

/// loadgen's own pages, of its subcommands too.
fn write_pages(programs: &Path, folder: &Path) -> Result<()> {
    run_quietly(Command::new(programs.join("loadgen")).args(["man", "--to"]).arg(folder))?;
    for entry in fs::read_dir(folder)? {
        let page = entry?.path();
        if page.file_name().is_some_and(|name| name.to_string_lossy().starts_with("loadgen")) {
            man::check(&page)?;
        }
    }
    Ok(())
}

/// Splits a program, where that can be done; its sizes.
fn split_off(program: &Path, folder: &Path) -> Result<String> {
    if !is_there("objcopy") {
        return Ok(String::new());
    }
    let sizes = split::split(program, folder)?;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let (whole, program, debug) = (mib(sizes.whole), mib(sizes.program), mib(sizes.debug));
    Ok(format!(", {whole:.1} MiB, of which {program:.1} are installed, {debug:.1} are for debuggers"))
}

/// Builds the programs for release; their folder.
fn build() -> Result<PathBuf> {
    let mut build = xtask::workspace::cargo();
    build.args(["build", "--quiet", "--profile", xtask::workspace::SHIPPED]);
    build.args(PROGRAMS.iter().flat_map(|program| ["--features", program.features]));
    build.args(PROGRAMS.iter().flat_map(|program| ["--package", program.package, "--bin", program.name]));
    run_quietly(&mut build)?;
    Ok(xtask::workspace::shipped(""))
}

/// The units are as systemd wants them, and take from a process what it does not need; how many there are.
fn check_units(copies: &Path, programs: &Path) -> Result<usize> {
    let mut units = Vec::new();
    for entry in fs::read_dir(xtask::workspace::root().join("deploy/systemd"))? {
        let path = entry?.path();
        let text = fs::read_to_string(&path)?;
        let copy = copies.join(path.file_name().context("a file has a name")?);
        // Whether a unit's program is there is a part of the check.
        let there = PROGRAMS.iter().fold(text, |text, Program { name, installed, .. }| {
            // With the space behind it: one name may begin another.
            text.replace(&format!("{PLACE}{installed} "), &format!("{}/{name} ", programs.display()))
        });
        if there.contains(PLACE) {
            bail!("{}: it names a program that is not among the installed ones", path.display());
        }
        fs::write(&copy, there)?;
        units.push(copy);
    }
    if !is_there("systemd-analyze") {
        println!("skipped: units (systemd-analyze is not installed)");
        return Ok(units.len());
    }
    let verified = run_quietly(Command::new("systemd-analyze").args(["verify", "--man=no"]).args(&units))?;
    // Warnings about other units of the machine are not ours.
    let ours: Vec<&str> = verified.lines().filter(|line| line.contains("gritstone-")).collect();
    if !ours.is_empty() {
        bail!("{}", ours.join("\n"));
    }
    for unit in units.iter().filter(|unit| unit.extension().is_some_and(|extension| extension == "service")) {
        run_quietly(Command::new("systemd-analyze").args(["security", "--offline=yes", MAX_EXPOSURE]).arg(unit))?;
    }
    Ok(units.len())
}

/// The image is built by the workspace's toolchain, and of programs that there are.
fn check_image(dockerfile: &str, toolchain: &str) -> Result<()> {
    let toolchain: toml::Table = toml::from_str(toolchain)?;
    let version = toolchain["toolchain"]["channel"].as_str().context("rust-toolchain.toml: expected a channel")?;
    for wanted in [format!("FROM rust:{version}-"), format!("ENV RUSTUP_TOOLCHAIN={version}\n")] {
        if !dockerfile.contains(&wanted) {
            bail!("deploy/Dockerfile: expected `{}`, as rust-toolchain.toml has it", wanted.trim_end());
        }
    }
    let words: Vec<&str> = dockerfile.split_whitespace().collect();
    for pair in words.windows(2).filter(|pair| pair[0] == "--package") {
        let built = pair[1];
        if !PROGRAMS.iter().any(|program| program.package == built) {
            bail!("deploy/Dockerfile: --package {built}: there is no such package with a program");
        }
    }
    for name in words.iter().filter_map(|word| word.strip_prefix("target/dist/")) {
        if !PROGRAMS.iter().any(|program| program.name == name) {
            bail!("deploy/Dockerfile: target/dist/{name}: there is no such program");
        }
    }
    Ok(())
}

/// Licences, bans and sources as deny.toml has them; advisories need a database that is fetched, where it can be.
fn check_dependencies() -> Result<()> {
    if run_quietly(xtask::workspace::cargo().args(["deny", "--version"])).is_err() {
        if xtask::workspace::requires_peers() {
            bail!("REQUIRE_PEERS=1, and cargo-deny is not installed to look at what dependencies may be");
        }
        println!("skipped: deny.toml (cargo-deny is not installed)");
        return Ok(());
    }
    // Crates of other systems, which no build here has used, are fetched.
    run_quietly(xtask::workspace::cargo().args(["deny", "--locked", "check", "licenses", "bans", "sources"]))?;
    if run_quietly(xtask::workspace::cargo().args(["deny", "fetch", "db"])).is_err() {
        println!("skipped: advisories (their database cannot be fetched)");
        return Ok(());
    }
    run_quietly(xtask::workspace::cargo().args(["deny", "--offline", "check", "advisories"])).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_does_not_fit_is_named() {
        let toolchain = "[toolchain]\nchannel = \"1.95.0\"\n";
        let good = "FROM rust:1.95.0-slim AS a\nENV RUSTUP_TOOLCHAIN=1.95.0\n";
        let check = |text: &str, expected: &str| {
            let found = check_image(text, toolchain).map_err(|error| error.to_string());
            assert_eq!(found.err().unwrap_or_default(), expected, "{text}");
        };
        check(good, "");
        check("FROM rust:1.90.0\n", "deploy/Dockerfile: expected `FROM rust:1.95.0-`, as rust-toolchain.toml has it");
        check(
            &format!("{good}RUN cargo build --package nothing"),
            "deploy/Dockerfile: --package nothing: there is no such package with a program",
        );
        check(
            &format!("{good}RUN install target/dist/nothing"),
            "deploy/Dockerfile: target/dist/nothing: there is no such program",
        );
    }
}

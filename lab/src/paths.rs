//! Instructions of the hot paths, counted by callgrind against a committed baseline: a regression is seen on any machine,
//! however busy.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;

/// Growth above which the gate fails. Tables are seeded anew in each process, which moves a count by some tenths.
const TOLERANCE: f64 = 0.03;

/// Turns of the shorter and of the longer run; what both do once falls out of the difference.
const TURNS: (u64, u64) = (200, 1200);

/// The built programs: the program that is counted, and a server that other gates need. Cargo makes another build of every library for
/// another choice of packages, so that one for both takes less time than one for each.
const PROGRAMS: [&str; 8] =
    ["--package", "benches", "--bin", "turns", "--package", "redis-server", "--bin", "redis-server"];

/// Options of `cargo xtask paths`.
#[derive(Args)]
pub(crate) struct Options {
    /// Writes the baseline anew instead of checking it.
    #[arg(long)]
    record: bool,
}

/// Builds [`PROGRAMS`], counts, prints, and compares with the baseline or writes it.
///
/// # Errors
/// When valgrind is missing though peers are required, a path runs wrongly, or one has grown by more than [`TOLERANCE`].
pub(crate) fn run(options: &Options) -> Result<()> {
    xtask::process::run_quietly(
        xtask::workspace::cargo().args(["build", "--profile", xtask::workspace::SHIPPED]).args(PROGRAMS),
    )?;
    if Command::new("valgrind").arg("--version").output().is_err() {
        ensure!(std::env::var_os("REQUIRE_PEERS").is_none(), "valgrind is not installed");
        println!("skipped: instructions of hot paths (valgrind is not installed)");
        return Ok(());
    }
    let program = xtask::workspace::shipped("turns");
    let list = Command::new(&program).output().context("the paths cannot be listed")?;
    let list = String::from_utf8(list.stdout)?;
    let counts = list
        .lines()
        .map(|line| {
            let (name, requests) =
                line.split_once(' ').with_context(|| format!("{line}: expected a name and a number"))?;
            Ok((name, count(&program, name)? / requests.parse::<u64>()?))
        })
        .collect::<Result<Vec<_>>>()?;
    if options.record {
        return Ok(fs::write(baseline_path(), baseline_text(&counts))?);
    }
    let text = fs::read_to_string(baseline_path()).context("no baseline: run `cargo xtask paths --record`")?;
    let mut grown = Vec::new();
    for (name, count) in counts {
        let before = baseline_of(&text, name)?;
        let change = count as f64 / before as f64 - 1.0;
        println!(
            "{name:<20} {count:>7} instructions per request, {before:>7} in the baseline ({:+.1} %)",
            change * 100.0
        );
        if change > TOLERANCE {
            grown.push(name);
        }
    }
    if !grown.is_empty() {
        bail!(
            "more than {:.0} % above the baseline: {}; if that is what the change is worth, `cargo xtask paths --record`",
            TOLERANCE * 100.0,
            grown.join(", ")
        );
    }
    Ok(())
}

/// Instructions of one turn.
fn count(program: &Path, name: &str) -> Result<u64> {
    let (few, many) = (executed(program, name, TURNS.0)?, executed(program, name, TURNS.1)?);
    ensure!(many > few, "{name}: {many} instructions for {} turns, {few} for {}", TURNS.1, TURNS.0);
    Ok((many - few) / (TURNS.1 - TURNS.0))
}

/// Instructions of a whole run.
fn executed(program: &Path, name: &str, turns: u64) -> Result<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program).args([name, &turns.to_string()]);
    let output = command.output().context("valgrind cannot be started: install it")?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name}: {text}");
    let collected = text.lines().find_map(|line| line.split_once("Collected :"));
    let (_, number) = collected.with_context(|| format!("{name}: valgrind names no count: {text}"))?;
    Ok(number.trim().parse()?)
}

fn baseline_path() -> PathBuf {
    xtask::workspace::root().join("lab/record/paths.txt")
}

fn baseline_text(counts: &[(&str, u64)]) -> String {
    let lines = counts.iter().map(|(name, count)| format!("{name} {count}\n"));
    let head = "# `cargo xtask paths --record`: user-space instructions per request of the hot paths (benches/src/loops.rs).\n";
    std::iter::once(head.to_owned()).chain(lines).collect()
}

fn baseline_of(text: &str, name: &str) -> Result<u64> {
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let number = found.with_context(|| format!("the baseline lacks {name}: run `cargo xtask paths --record`"))?;
    number.parse().with_context(|| format!("baseline of {name}: {number} is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_is_read_as_it_was_written() {
        let text = baseline_text(&[("axum-json", 4000), ("axum-json-2", 17)]);
        assert_eq!(baseline_of(&text, "axum-json").ok(), Some(4000));
        assert_eq!(baseline_of(&text, "axum-json-2").ok(), Some(17));
        let error = baseline_of(&text, "axum").expect_err("it is not there");
        assert_eq!(error.to_string(), "the baseline lacks axum: run `cargo xtask paths --record`");
    }
}

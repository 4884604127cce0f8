//! Options of programs, as `--help` prints them, and the classes that the command `echonet` knows.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use xtask::process::run_quietly;

use super::table::row;

/// The help of programs, and of their subcommands, each below a heading.
pub(super) fn options(programs: &[&Path]) -> Result<String> {
    let mut out = String::new();
    for program in programs {
        let name = program.file_name().context("a program has a name")?.to_string_lossy();
        let help = page(program, &["--help"])?;
        section(&mut out, &name, &help);
        for subcommand in subcommands(&help) {
            // The short form has all options, each with a line or two.
            let help = page(program, &[subcommand, "-h"])?;
            section(&mut out, &format!("{name} {subcommand}"), &help);
        }
    }
    Ok(out)
}

/// The table of `echonet classes`.
pub(super) fn classes(echonet: &Path) -> Result<String> {
    let mut out = "| code | class | name | releases |\n|---|---|---|---|\n".to_owned();
    for line in run_quietly(Command::new(echonet).arg("classes"))?.lines().skip(1) {
        let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let [code, class, name, releases] = cells[..] else { continue };
        row(&mut out, &[&format!("`{code}`"), &format!("`{class}`"), name, releases]);
    }
    Ok(out)
}

fn page(program: &Path, words: &[&str]) -> Result<String> {
    run_quietly(Command::new(program).args(words).env("COLUMNS", "100"))
}

fn section(out: &mut String, title: &str, help: &str) {
    let lines: Vec<&str> = help.trim().lines().map(str::trim_end).collect();
    let _ = write!(out, "\n## {title}\n\n```text\n{}\n```\n", lines.join("\n"));
}

/// Subcommands that are left out: the help itself, and command lines of other tools, which `docs/loadgen/drop-in.md` describes.
const LEFT_OUT: [&str; 5] = ["help", "wrk", "hey", "ghz", "redis-benchmark"];

/// The names below `Commands:`.
fn subcommands(help: &str) -> Vec<&str> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| !LEFT_OUT.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_subcommands() {
        let help = "Usage: a <COMMAND>\n\nCommands:\n  get   Read\n        more\n  help  Print\n\nOptions:\n  -h\n";
        assert_eq!(subcommands(help), ["get"]);
        assert_eq!(subcommands("Usage: a\n\nOptions:\n  -h\n"), [""; 0]);
    }
}

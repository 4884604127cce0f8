//! The suite's tests of clusters and of Sentinel, `tests/cluster` and `tests/sentinel`: they start many servers themselves, and have a
//! format of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::output::{BETWEEN_TESTS, Outcome, without_colours};
use super::start::GENUINE;

/// The kinds of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nodes {
    /// Twenty nodes of a cluster.
    Cluster,
    /// Five servers, of which one is the others' primary, watched by five genuine Sentinels.
    Sentinel,
}

impl Nodes {
    /// The name of its folder.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Sentinel => "sentinel",
        }
    }
}

/// The files whose names begin with one of these words, or all of them, in their order.
///
/// # Errors
/// There is none.
pub(super) fn files(tree: &Path, nodes: Nodes, wanted: &[String]) -> Result<Vec<String>> {
    let folder = tree.join(format!("tests/{}/tests", nodes.name()));
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".tcl")?.to_owned()))
        .filter(|name| wanted.is_empty() || wanted.iter().any(|word| name.starts_with(word)))
        .collect();
    files.sort_unstable();
    if files.is_empty() {
        bail!("no file of {} begins so", folder.display());
    }
    Ok(files)
}

/// The command that runs one file.
pub(super) fn command(nodes: Nodes, file: &str) -> Command {
    let mut command = Command::new(format!("./runtest-{}", nodes.name()));
    // The argument is a pattern for the path. Colours tell its own words from those of the programs that it runs.
    command.args(["--single", &format!("/{file}.tcl")]).env("TERM", "xterm");
    command
}

/// A program below `cache`, one for each lane, that starts `ours` for nodes with an odd port, and the genuine server for the others.
///
/// # Errors
/// It cannot be written.
pub(super) fn mixed(cache: &Path, ours: &Path, lane: u32) -> Result<PathBuf> {
    let program = cache.join(format!("every-second-node-{lane}"));
    let script = format!(
        "#!/bin/sh\ncase $(sed -n 's/^port //p' \"$1\" | tail -n 1) in\n*[13579]) exec {} \"$@\" ;;\n*) exec {} \"$@\" ;;\nesac\n",
        ours.display(),
        GENUINE
    );
    fs::write(&program, script)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(program)
}

/// Moves the servers of a tree to other ports, so that another tree may run clusters beside.
///
/// # Errors
/// They are not where they were.
pub(super) fn move_ports(tree: &Path) -> Result<()> {
    const USUAL: &str = "set ::redis_base_port 30000\n";
    let file = tree.join("tests/instances.tcl");
    let text = fs::read_to_string(&file)?;
    if !text.contains(USUAL) {
        bail!("{}: no `{}`", file.display(), USUAL.trim_end());
    }
    Ok(fs::write(file, text.replace(USUAL, "set ::redis_base_port 31500\n"))?)
}

/// The suite's output behind the name of a test that has passed.
const OK: &str = "\u{1b}[0;32;49mOK\u{1b}[0m";

/// Reads the whole output of one file: `HH:MM:SS> NAME: ` and, behind what the test itself prints, `OK` or `FAILED: MESSAGE`.
pub(super) fn parse(text: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let (mut running, mut rest) = (None, text);
    while let Some((before, header)) = next_test(rest) {
        add(&mut outcome, running, before);
        let name = name(header);
        (running, rest) = (Some(name), &header[name.len()..]);
    }
    add(&mut outcome, running, rest);
    // A file ends at its first failure. Some draw their steps until then by lot, so that another run need not have done the same.
    outcome.is_whole = outcome.failed.is_empty() && outcome.hung.is_empty();
    outcome
}

/// The name of the test at the beginning of what is printed of it; it may hold a colon itself.
fn name(header: &str) -> &str {
    let ends = ["\n", "\u{1b}", "FAILED: "].into_iter().filter_map(|end| header.find(end));
    let line = &header[..ends.min().unwrap_or(header.len())];
    line.rsplit_once(": ").map_or(line, |(name, _)| name)
}

/// Takes in what was printed behind the name of a test, or before the first.
fn add(outcome: &mut Outcome, name: Option<&str>, printed: &str) {
    let has_passed = printed.contains(OK);
    let message = failure(printed);
    if let Some(name) = name {
        match &message {
            _ if has_passed => outcome.passed.push(name.to_owned()),
            Some(message) => outcome.failed.push((name.to_owned(), message.clone())),
            None => outcome.hung.push(name.to_owned()),
        }
    }
    if let Some(message) = message.filter(|_| has_passed || name.is_none()) {
        outcome.failed.push((BETWEEN_TESTS.to_owned(), message));
    }
}

/// The message of a failed assertion, of an error, or of a run that is given up.
fn failure(printed: &str) -> Option<String> {
    const ERROR: &str = "caught an error in the test ";
    let (_, message) = printed.split_once("FAILED: ").or_else(|| printed.split_once(">>>>>>>> "))?;
    let line = without_colours(message.lines().next()?);
    Some(line.strip_prefix(ERROR).unwrap_or(&line).to_owned())
}

/// The text before the next `HH:MM:SS> `, and the text behind it.
fn next_test(text: &str) -> Option<(&str, &str)> {
    let is_time = |at: usize| {
        let time = at.checked_sub(8).map(|from| &text.as_bytes()[from..at]);
        time.is_some_and(|time| {
            time.iter().enumerate().all(|(at, byte)| if at % 3 == 2 { *byte == b':' } else { byte.is_ascii_digit() })
        })
    };
    let (at, _) = text.match_indices("> ").find(|&(at, _)| is_time(at))?;
    Some((&text[..at - 8], &text[at + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_test_is_understood() {
        let text = "Starting redis #0 at port 30000\n\u{1b}[0;33;49mTesting unit: 07-replica-migration.tcl\u{1b}[0m\n\
            15:21:47> (init) Restart killed instances: redis/5 redis/6 \u{1b}[0;32;49mOK\u{1b}[0m\n\
            15:21:48> Resharding: >>> Check slots coverage...\n\u{1b}[32;1m[OK] All 16384 slots covered.\n\u{1b}[0m\
            \u{1b}[0;32;49mOK\u{1b}[0m\n\
            15:21:49> Consistency: WWW...Starting resharding...W\u{1b}[0;31;49mFAILED: Key a is gone\u{1b}[0m\n\
            \u{1b}[0;31;49m(Jumping to next unit after error)\u{1b}[0m\nCleaning up...\n";
        let outcome = parse(text);
        assert_eq!(outcome.passed, ["(init) Restart killed instances", "Resharding"]);
        assert_eq!(outcome.failed, [("Consistency".to_owned(), "Key a is gone".to_owned())]);
        assert!(outcome.hung.is_empty());
    }

    #[test]
    fn errors_and_what_never_ends_have_a_name() {
        let failed = |text: &str, name: &str, message: &str| {
            let outcome = parse(text);
            assert_eq!(outcome.failed, [(name.to_owned(), message.to_owned())], "{text}");
            outcome
        };
        failed(
            "15:21:49> Epoch: A: FAILED: caught an error in the test ERR no\n    while executing\n",
            "Epoch: A",
            "ERR no",
        );
        let between = failed(
            "15:21:49> A: \u{1b}[0;32;49mOK\u{1b}[0m\nFAILED: caught an error in the test ERR no\n",
            BETWEEN_TESTS,
            "ERR no",
        );
        assert_eq!(between.passed, ["A"]);
        failed(
            "WARNING: Aborting the test.\n>>>>>>>> Problems starting redis #3\n",
            BETWEEN_TESTS,
            "Problems starting redis #3",
        );
        assert_eq!(parse("15:21:49> A: W").hung, ["A"]);
        assert!(!between.is_whole && parse("15:21:49> A: \u{1b}[0;32;49mOK\u{1b}[0m\n").is_whole);
    }
}

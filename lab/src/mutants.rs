//! Hand-picked faults, put into a copy of the tree one by one: the tests that are named must find each.
//!
//! A fault is a text of a file, what stands in its place, and tests; the list is `lab/mutants/list.toml`. It is found if a test
//! fails or does not end. One that is not found is a missing test.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;
use xtask::process::run_quietly;

/// The faults.
const LIST: &str = "lab/mutants/list.toml";

/// Time that the tests of a fault may take at least, and how many times as long as without it; one that makes them hang is found.
const LIMIT: Duration = Duration::from_secs(120);
/// See [`LIMIT`]. Other programs may take nearly all of the processors.
const TIMES: u32 = 5;
/// Time that they may take without the fault.
const LIMIT_WITHOUT: Duration = Duration::from_secs(1800);

/// The exit code of `timeout` for a program that it ended.
const TIMED_OUT: i32 = 124;

/// Options of `cargo xtask mutants`.
#[derive(Args)]
pub(crate) struct Options {
    /// Faults whose name or package holds this alone.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
}

#[derive(Deserialize)]
struct List {
    #[serde(rename = "fault")]
    faults: Vec<Fault>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    /// The fault.
    name: String,
    /// The package whose tests find it; `models` stands outside of the workspace.
    package: String,
    file: String,
    /// Stands there once.
    text: String,
    with: String,
    /// The integration tests' binary; the library's own tests if none is named.
    binary: Option<String>,
    /// Which of them, as libtest filters.
    tests: String,
}

/// Puts the faults in, one after the other.
///
/// # Errors
/// When a fault is not found, does not compile, or its text is not there once; when the named tests fail without it.
pub(crate) fn run(options: &Options) -> Result<()> {
    let faults = faults()?;
    let faults: Vec<_> = faults.iter().filter(|fault| fault.is_meant(&options.only)).collect();
    for fault in &faults {
        fault.changed(
            &fs::read_to_string(xtask::workspace::root().join(&fault.file)).with_context(|| fault.file.clone())?,
        )?;
    }
    let tree = Tree::new()?;
    let mut limits = HashMap::new();
    for fault in &faults {
        if let Entry::Vacant(limit) = limits.entry(fault.key()) {
            let (output, took) = tree.test(fault, LIMIT_WITHOUT)?;
            let text = String::from_utf8_lossy(&output.stdout);
            if !output.status.success() || text.contains("running 0 tests") {
                bail!("`{}` of {} without a fault, after {took:?}:\n{text}", fault.tests, fault.package);
            }
            limit.insert(LIMIT.max(took * TIMES));
        }
    }
    let mut missed = Vec::new();
    for fault in &faults {
        let began = Instant::now();
        let how = tree.with(fault, || Ok(found_by(&tree.test(fault, limits[&fault.key()])?.0)))?;
        let seconds = began.elapsed().as_secs();
        match how {
            Some(how) => println!("found: {}, {}: {how} ({seconds} s)", fault.package, fault.name),
            None => missed.push(format!("MISSED: {}, {} ({seconds} s)", fault.package, fault.name)),
        }
    }
    println!("mutants: {} of {} found", faults.len() - missed.len(), faults.len());
    if !missed.is_empty() {
        bail!("{}", missed.join("\n"));
    }
    Ok(())
}

/// The list.
fn faults() -> Result<Vec<Fault>> {
    let list = fs::read_to_string(xtask::workspace::root().join(LIST))?;
    let List { faults } = toml::from_str(&list).context(LIST)?;
    Ok(faults)
}

/// The first test that fails, or why there is none; nothing if all hold.
fn found_by(output: &Output) -> Option<String> {
    if output.status.success() {
        return None;
    }
    if output.status.code() == Some(TIMED_OUT) {
        return Some("does not end".to_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let failed = text.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    Some(failed.map_or_else(|| format!("the tests end with {}", output.status), str::to_owned))
}

impl Fault {
    /// Which tests find it.
    fn key(&self) -> (&str, Option<&str>, &str) {
        (&self.package, self.binary.as_deref(), &self.tests)
    }

    fn is_meant(&self, only: &str) -> bool {
        self.name.contains(only) || self.package.contains(only)
    }

    /// The text of its file with the fault in it.
    fn changed(&self, text: &str) -> Result<String> {
        match text.matches(&self.text).count() {
            1 => Ok(text.replace(&self.text, &self.with)),
            count => bail!("{}: `{}` stands {count} times in {}, not once", self.name, self.text, self.file),
        }
    }
}

/// A copy of all files, built apart: a fault must not get into what others build.
struct Tree {
    folder: PathBuf,
    target: PathBuf,
}

impl Tree {
    fn new() -> Result<Self> {
        let parent = xtask::workspace::target_dir().join("mutants");
        let tree = Self { folder: parent.join("tree"), target: parent.join("target") };
        let mut list = Command::new("git");
        list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(xtask::workspace::root());
        for name in run_quietly(&mut list)?.split('\0').filter(|name| !name.is_empty()) {
            let source = xtask::workspace::root().join(name);
            if source.is_file() {
                write_if_other(&tree.folder.join(name), &fs::read(source)?)?;
            }
        }
        Ok(tree)
    }

    /// Does something while a fault is in the tree.
    fn with<T>(&self, fault: &Fault, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let path = self.folder.join(&fault.file);
        let sound = fs::read_to_string(&path)?;
        fs::write(&path, fault.changed(&sound)?)?;
        let result = work();
        fs::write(&path, sound)?;
        result
    }

    /// Builds and runs a fault's tests, for so long at most; says how long they ran.
    fn test(&self, fault: &Fault, limit: Duration) -> Result<(Output, Duration)> {
        let mut words = vec!["test", "--offline", "--package", &fault.package];
        if fault.package == "models" {
            words.extend(["--manifest-path", "models/Cargo.toml"]);
        }
        match &fault.binary {
            Some(binary) => words.extend(["--test", binary]),
            None => words.push("--lib"),
        }
        let cargo = xtask::workspace::cargo();
        let mut build = Command::new(cargo.get_program());
        build.args(&words).arg("--no-run");
        run_quietly(self.inside(&mut build)).with_context(|| format!("{} does not compile", fault.name))?;
        let mut test = Command::new("timeout");
        test.arg(limit.as_secs().to_string()).arg(cargo.get_program()).args(&words).args(["--", &fault.tests]);
        let began = Instant::now();
        let output = self.inside(&mut test).stdin(Stdio::null()).output().context("cannot start timeout")?;
        Ok((output, began.elapsed()))
    }

    fn inside<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.current_dir(&self.folder).env("CARGO_TARGET_DIR", &self.target).env("CARGO_INCREMENTAL", "1");
        // Which test fails is said without lines for debuggers, which are most of what is built and linked anew for each fault.
        command.env("CARGO_PROFILE_DEV_DEBUG", "none")
    }
}

/// Writes a file only if it has changed: an unchanged file keeps its time, and is not built again.
fn write_if_other(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    Ok(fs::write(path, bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_in_its_place() {
        let faults = faults().unwrap();
        for fault in &faults {
            let text = fs::read_to_string(xtask::workspace::root().join(&fault.file)).unwrap();
            let changed = fault.changed(&text).unwrap_or_else(|error| panic!("{error}"));
            assert_ne!(changed, text, "{}", fault.name);
        }
        assert!(faults[0].changed("").unwrap_err().to_string().contains("stands 0 times in "));
    }

    #[test]
    fn every_fault_has_tests() {
        let faults = faults().unwrap();
        let mut known = HashMap::new();
        for fault in &faults {
            let folder = match &fault.binary {
                Some(binary) => format!("{}/tests/{binary}", fault.package),
                None => format!("{}/src", fault.package),
            };
            let tests =
                known.entry(folder).or_insert_with_key(|folder| tests_in(&xtask::workspace::root().join(folder)));
            assert!(
                tests.iter().any(|test| test.contains(&fault.tests)),
                "{}: no test of {} is called `{}`",
                fault.name,
                fault.package,
                fault.tests
            );
        }
    }

    /// Tests that stand in a folder, by module and name.
    fn tests_in(folder: &Path) -> Vec<String> {
        let mut list = Command::new("git");
        list.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.rs"]).current_dir(folder);
        let mut tests = Vec::new();
        for file in run_quietly(&mut list).unwrap().split('\0').filter(|file| !file.is_empty()) {
            let module = file.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
            let text = fs::read_to_string(folder.join(file)).unwrap();
            // In the same file they stand in `mod tests`.
            let module = if text.contains("mod tests {") { format!("{module}::tests") } else { module };
            let parts = text.split("#[test]").skip(1).chain(text.split("#[tokio::test").skip(1));
            let name = |part: &str| {
                part.split_once("fn ").and_then(|(_, rest)| rest.split_once('(')).map(|(name, _)| name.to_owned())
            };
            tests.extend(parts.filter_map(name).map(|name| format!("{module}::{name}")));
        }
        tests
    }
}

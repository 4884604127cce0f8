//! RediSearch's own Python tests, with our server in the place of the one that they start.
//!
//! They are taken from a git repository of RediSearch that is there already, because no package has them: `--repository`, or the variable
//! `REDISEARCH_REPOSITORY`. Without one the command says so and passes. RLTest runs them, from PyPI, file by file.
//! `lab/suite/known-redisearch.txt` says which tests or whole files concern what is not supported, and which ones fail.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::known::{Known, Verdict};
use super::options::Options;
use super::output::Outcome;
use super::{python, runner};
use anyhow::{Context, Result};

/// The version whose commands we have.
const TAG: &str = "v2.10.5";

/// Packages that RLTest and the tests import.
const REQUIREMENTS: &[&str] = &[
    "RLTest==0.7.32",
    "deepdiff==9.1.0",
    "distro==1.9.0",
    "faker==40.63.0",
    "gevent==26.9.0",
    "numpy==2.4.6",
    "packaging==26.4",
    "redis==8.1.0",
    "scipy==1.17.1",
];

/// Stands for a module of RediSearch's build tools that names the platform.
const PLATFORM: &str =
    "class Platform:\n    def __init__(self):\n        self.osnick, self.os, self.arch = 'linux', 'linux', 'x64'\n";

/// Our server, called as redis-server: on loopback addresses, as Redis 7.2, of which the module is.
const WRAPPER: &str = r#"#!/bin/sh
case " $* " in *" --version "*) echo 'Redis server v=7.4.0 sha=0 malloc=libc bits=64 build=0'; exit ;; esac
exec "$SEARCH_SERVER" "$@" --bind 127.0.0.1 -::1 --save '' --compatibility 7.2 --drain-timeout 0
"#;

/// Seconds after which RLTest ends a test that hangs, and its file with it.
const TEST_SECONDS: &str = "120";

/// Runs the tests and prints their table.
///
/// # Errors
/// When they cannot be run, or a test fails that is not known to.
pub(super) fn run(options: &Options) -> Result<()> {
    let Some(repository) = &options.repository else {
        println!("skipped: REDISEARCH_REPOSITORY names no git repository of RediSearch");
        return Ok(());
    };
    let cache = xtask::workspace::target_dir().join("suite-redisearch");
    let place = install(&cache, repository)?;
    let known = Known::read(&xtask::workspace::root().join("lab/suite/known-redisearch.txt"))?;
    let program = python::program(options)?;
    let files = files(&place, options, &known)?;
    python::report(&files, options, &known, |file, lane| run_file(&place, &program, file, (lane, options.time_limit)))
}

/// The folder with the tests, the wrapper and an environment of Python, made when it is not there yet.
fn install(cache: &Path, repository: &Path) -> Result<PathBuf> {
    let mark = REQUIREMENTS.join("\n");
    if python::is_new(cache, &mark)? {
        // The texts are documents of the tests about summaries.
        let texts = ["tests/ctests/genesis.txt", "tests/ctests/cn_sample.txt"];
        python::lay(repository, TAG, &[&["tests/pytests"][..], &texts].concat(), cache)?;
        fs::write(cache.join("paella.py"), PLATFORM)?;
        python::script(&cache.join("server"), WRAPPER)?;
        python::environment(cache, REQUIREMENTS)?;
        python::complete(cache, &mark)?;
    }
    Ok(cache.to_owned())
}

/// The files to run: without those that concern as a whole what is not supported.
fn files(place: &Path, options: &Options, known: &Known) -> Result<Vec<String>> {
    if !options.files.is_empty() {
        return Ok(options.files.clone());
    }
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(place.join("tests/pytests"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let name = name.strip_suffix(".py").filter(|name| name.starts_with("test")).map(str::to_owned);
        files.extend(name.filter(|name| {
            // No test has the name of its file alone, which a prefix covers all the same.
            !matches!(known.verdict(&format!("{name}:"), ""), Verdict::Unsupported(_))
        }));
    }
    Ok(files.into_iter().collect())
}

/// Runs one file in a process group of its own, which ends with it.
fn run_file(place: &Path, program: &Path, file: &str, (lane, seconds): (u32, u64)) -> Result<Outcome> {
    let logs = place.join(format!("logs-{lane}"));
    fs::create_dir_all(&logs)?;
    let output = place.join(format!("{file}.log"));
    let mut command = Command::new(place.join("venv/bin/python"));
    command
        .args(["-m", "RLTest", "--module", "/redisearch.so", "--module-args", "TIMEOUT 0", "--allow-unsafe"])
        .args(["--no-progress", "--clear-logs", "--randomize-ports", "--test-timeout", TEST_SECONDS, "--test"])
        .arg(place.join(format!("tests/pytests/{file}.py")))
        .arg("--oss-redis-path")
        .arg(place.join("server"))
        .arg("--log-dir")
        .arg(&logs)
        .env("PYTHONPATH", place)
        .env("NO_LIBEXT", "1")
        .env("SEARCH_SERVER", program)
        .current_dir(&logs)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(File::create(&output)?)
        .stderr(File::options().append(true).open(&output)?);
    let mut child = command.spawn().context("cannot start Python")?;
    let is_whole = runner::wait(&mut child, Instant::now() + Duration::from_secs(seconds))?;
    // Servers that the file has left behind.
    runner::end_group(child.id())?;
    let mut outcome = parse(&String::from_utf8_lossy(&fs::read(&output)?));
    if !is_whole || outcome.passed.is_empty() && outcome.failed.is_empty() && outcome.ignored.is_empty() {
        outcome.hung.push(format!("{file}: (the file)"));
    }
    Ok(outcome)
}

/// Reads what RLTest prints: a test's name in one line, its state in the next.
fn parse(text: &str) -> Outcome {
    let text = super::output::without_colours(text);
    let mut outcome = Outcome::default();
    let (mut name, mut message) = (None, String::new());
    for line in text.lines().map(str::trim) {
        let state = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        match (state, name.clone()) {
            (Some("PASS"), Some(test)) => outcome.passed.push(test),
            (Some("SKIP"), Some(test)) => outcome.ignored.push(test),
            (Some("FAIL" | "ERROR"), Some(test)) => outcome.failed.push((test, std::mem::take(&mut message))),
            _ => {
                let test = line.strip_suffix(':').filter(|test| test.starts_with("test") && test.contains(':'));
                name = test.map(str::to_owned);
                if message.is_empty() && line.contains("(FAIL):") {
                    message = line.chars().take(200).collect();
                }
                continue;
            }
        }
        (name, message) = (None, String::new());
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_rltest() {
        let text = "\u{1b}[36mtest_a:one\u{1b}[0m:\r\n\t\u{1b}[32m[PASS]\u{1b}[0m\n\
                    \t❌  (FAIL):\t1 == 2\ttest_a.py:7\n\
                    \ttest_a:Two.three:\r\n\t[FAIL]\ntest_a:four:\r\n\t[SKIP]\ntest_a:five:\r\n\t[ERROR]\n";
        let outcome = parse(text);
        assert_eq!(outcome.passed, ["test_a:one"]);
        assert_eq!(outcome.ignored, ["test_a:four"]);
        let failed: Vec<&str> = outcome.failed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(failed, ["test_a:Two.three", "test_a:five"]);
        assert!(outcome.failed[0].1.contains("1 == 2") && outcome.failed[1].1.is_empty());
    }
}

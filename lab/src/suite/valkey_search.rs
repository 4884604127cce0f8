//! valkey-search's own integration tests, with our server in the place of valkey-server and its modules.
//!
//! They are taken from git repositories of valkey-search and of its test framework that are there already, because no package has them:
//! `--valkey-search-repository` and `--test-framework-repository`, or the variables `VALKEY_SEARCH_REPOSITORY` and
//! `VALKEY_TEST_FRAMEWORK_REPOSITORY`. Without them the command says so and passes. pytest runs them file by file, each in a network of its
//! own. `lab/suite/known-valkey-search.txt` says which tests or whole files concern what is not supported, and which ones fail.
//! `lab/suite/valkey-search/` has what stands between the tests and our server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::known::{Known, Verdict};
use super::options::Options;
use super::output::Outcome;
use super::{python, runner};

/// The revisions of the tests and of their framework.
const TESTS: &str = "cbad9d689198623b3cc65151916672d339b1e5ec";
const FRAMEWORK: &str = "33cc62660ea94d49bd6ab27cb8c09b345fc5d577";

/// Packages that the tests import, and pytest's limit of time.
const REQUIREMENTS: &[&str] =
    &["absl-py==2.5.1", "numpy==2.4.6", "pytest==9.2.0", "pytest-timeout==2.4.0", "valkey==6.0.2"];

/// Our server, called as valkey-server.
const WRAPPER: &str = include_str!("../../suite/valkey-search/server.sh");

/// The plugin of pytest.
const PLUGIN: &str = include_str!("../../suite/valkey-search/valkey_search_plugin.py");

/// The list of what fails and what is not supported.
const KNOWN: &str = "lab/suite/known-valkey-search.txt";

/// Seconds after which pytest ends a test that hangs. The longest one runs 51,000 queries.
const TEST_SECONDS: &str = "300";

/// Runs the tests and prints their table.
///
/// # Errors
/// When they cannot be run, or a test fails that is not known to.
pub(super) fn run(options: &Options) -> Result<()> {
    let (Some(tests), Some(framework)) = (&options.valkey_search_repository, &options.test_framework_repository) else {
        println!("skipped: VALKEY_SEARCH_REPOSITORY and VALKEY_TEST_FRAMEWORK_REPOSITORY name no git repositories");
        return Ok(());
    };
    let place = install(&xtask::workspace::target_dir().join("suite-valkey-search"), tests, framework)?;
    let list = xtask::workspace::root().join(KNOWN);
    let known = Known::read(&list)?;
    let program = python::program(options)?;
    let files = files(&place, options, &known)?;
    python::report(&files, options, &known, |file, lane| {
        let mut outcome = run_file(&place, &program, (file, &list), (lane, options.time_limit))?;
        // The plugin leaves out the tests of what is not supported.
        let (left_out, ignored) = std::mem::take(&mut outcome.ignored)
            .into_iter()
            .partition(|name| matches!(known.verdict(name, ""), Verdict::Unsupported(_)));
        outcome.ignored = ignored;
        let left_out: Vec<String> = left_out;
        outcome.failed.extend(left_out.into_iter().map(|name| (name, String::new())));
        Ok(outcome)
    })
}

/// The folder with the tests, their framework, the wrapper, the plugin and an environment of Python, made when it is not there yet.
fn install(cache: &Path, tests: &Path, framework: &Path) -> Result<PathBuf> {
    let mark = [REQUIREMENTS, &[TESTS, FRAMEWORK]].concat().join("\n");
    let integration = cache.join("integration");
    if python::is_new(cache, &mark)? {
        // A shared object that a test loads is left out.
        python::lay(tests, TESTS, &["integration", ":(exclude)integration/module"], cache)?;
        python::lay(framework, FRAMEWORK, &["src"], &cache.join("framework"))?;
        fs::rename(cache.join("framework/src"), integration.join("valkeytestframework"))?;
        // Servers and clients of the framework use all addresses of the machine.
        let case = integration.join("valkeytestframework/valkey_test_case.py");
        fs::write(&case, fs::read_to_string(&case)?.replace("\"0.0.0.0\"", "\"127.0.0.1\""))?;
        python::environment(cache, REQUIREMENTS)?;
        python::complete(cache, &mark)?;
    }
    python::script(&cache.join("server"), WRAPPER)?;
    fs::write(integration.join("valkey_search_plugin.py"), PLUGIN)?;
    Ok(cache.to_owned())
}

/// The files to run: without those that concern as a whole what is not supported.
fn files(place: &Path, options: &Options, known: &Known) -> Result<Vec<String>> {
    if !options.files.is_empty() {
        return Ok(options.files.clone());
    }
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(place.join("integration"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let name = name.strip_suffix(".py").filter(|name| name.starts_with("test_") || name.ends_with("_test"));
        files.extend(name.filter(|name| !is_left_out(known, name)).map(str::to_owned));
    }
    Ok(files.into_iter().collect())
}

/// The list leaves out the whole file. The verdict comes from a prefix: no test has the name of its file alone.
fn is_left_out(known: &Known, file: &str) -> bool {
    matches!(known.verdict(&format!("{file}::"), ""), Verdict::Unsupported(_))
}

/// Runs one file in a network and a process group of its own, which end with it.
fn run_file(
    place: &Path,
    program: &Path,
    (file, known): (&str, &Path),
    (lane, seconds): (u32, u64),
) -> Result<Outcome> {
    let logs = place.join(format!("logs-{lane}"));
    if logs.exists() {
        fs::remove_dir_all(&logs)?;
    }
    fs::create_dir_all(&logs)?;
    let (output, integration) = (place.join(format!("{file}.log")), place.join("integration"));
    let mut command = xtask::process::unshare();
    command
        .args(["sh", "-c", "ip link set lo up; exec \"$@\"", "sh"])
        .arg(place.join("venv/bin/python"))
        .args(["-m", "pytest", "-p", "valkey_search_plugin", "-p", "no:cacheprovider", "-v", "-rfE", "--tb=short"])
        .args(["-o", "console_output_style=classic", "--timeout", TEST_SECONDS, &format!("{file}.py")])
        .env("PYTHONPATH", format!("{0}:{0}/valkeytestframework", integration.display()))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("COLUMNS", "300")
        .env("VALKEY_SERVER_PATH", place.join("server"))
        .env("MODULE_PATH", "/libsearch.so")
        .env("JSON_MODULE_PATH", "/libjson.so")
        .env("LOGS_DIR", &logs)
        .env("ROOT_DIR", place)
        .env("SEARCH_SERVER", program)
        .env("SEARCH_KNOWN", known)
        .current_dir(&integration)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(File::create(&output)?)
        .stderr(File::options().append(true).open(&output)?);
    let mut child = command.spawn().context("cannot start unshare")?;
    let is_whole = runner::wait(&mut child, Instant::now() + Duration::from_secs(seconds))?;
    // Servers that the file has left behind.
    runner::end_group(child.id())?;
    let mut outcome = parse(&String::from_utf8_lossy(&fs::read(&output)?));
    if !is_whole || outcome.passed.is_empty() && outcome.failed.is_empty() && outcome.ignored.is_empty() {
        outcome.hung.push(format!("{file}::(the file)"));
    }
    Ok(outcome)
}

/// Reads what pytest prints: a test and its state in a line, then a summary of failures with their messages.
fn parse(text: &str) -> Outcome {
    let text = super::output::without_colours(text);
    let (mut states, mut messages) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some((name, message)) = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR ")).map(named) {
            messages.insert(name.to_owned(), message.to_owned());
            continue;
        }
        let marks = ["PASSED", "FAILED", "ERROR", "SKIPPED"];
        let found = marks.into_iter().find_map(|state| Some((line.find(&format!(" {state}"))?, state)));
        if let Some((at, state)) = found.filter(|(at, _)| line[..*at].contains(".py::")) {
            // An error at the end of a test follows its state.
            let state = if states.get(&line[..at]) == Some(&"FAILED") { "FAILED" } else { state };
            states.insert(line[..at].to_owned(), state);
        }
    }
    let mut outcome = Outcome::default();
    for (name, state) in states {
        let test = name.replacen(".py::", "::", 1);
        match state {
            "PASSED" => outcome.passed.push(test),
            "SKIPPED" => outcome.ignored.push(test),
            _ => outcome.failed.push((test, messages.remove(&name).unwrap_or_default())),
        }
    }
    outcome
}

/// A line of the summary, without its first word: the test and why it failed.
fn named(line: &str) -> (&str, &str) {
    line.split_once(" - ").unwrap_or((line, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_pytest() {
        let text = "collecting ... collected 5 items\n\ntest_a.py::TestA::one PASSED\n\
                    test_a.py::TestA::two[x y-1] FAILED\ntest_a.py::TestA::three SKIPPED (not supported)\n\
                    test_a.py::TestA::four ERROR\ntest_a.py::TestA::five PASSED\ntest_a.py::TestA::five ERROR\n\
                    E   assert 1 == 2\n\
                    FAILED test_a.py::TestA::two[x y-1] - assert 1 == 2\n\
                    ERROR test_a.py::TestA::four - no server\n= 1 failed in 1.00s =\n";
        let outcome = parse(text);
        assert_eq!(outcome.passed, ["test_a::TestA::one"]);
        assert_eq!(outcome.ignored, ["test_a::TestA::three"]);
        let failed: Vec<(&str, &str)> =
            outcome.failed.iter().map(|(name, message)| (name.as_str(), message.as_str())).collect();
        let expected = [
            ("test_a::TestA::five", ""),
            ("test_a::TestA::four", "no server"),
            ("test_a::TestA::two[x y-1]", "assert 1 == 2"),
        ];
        assert_eq!(failed, expected);
    }
}

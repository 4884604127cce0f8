//! Genuine peers for tests: looked for, fetched once by their languages' package clients, run within bounds; and how their answers are read.
//! Beside them, processes for tests of what concerns a whole process, free ports, and slow readers.
//!
//! A peer that is not there is a printed note; with `REQUIRE_PEERS=1` it is a failure.

mod alone;
mod browser;
mod kit;
mod outside;
mod port;
mod slow_reader;

use std::env;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub use alone::{alone, alone_after};
pub use browser::Browser;
pub use kit::Kit;
pub use outside::outside;
pub use port::free_port;
pub use slow_reader::{read_slowly, slow_reader};

/// Longest run of a program that is to print something: two minutes, patience for a busy machine.
const PATIENCE: u32 = 120;

/// Whether a missing peer is a failure: `REQUIRE_PEERS=1`.
#[must_use]
pub fn are_required() -> bool {
    env::var_os("REQUIRE_PEERS").is_some_and(|value| value == "1")
}

/// Says that something needed is not there.
///
/// # Panics
/// If peers are required.
#[track_caller]
pub fn skip(reason: &str) {
    assert!(!are_required(), "REQUIRE_PEERS=1, but {reason}");
    println!("skipped: {reason}");
}

/// Whether a program can be started; if not, see [`skip`].
///
/// # Panics
/// If it cannot and peers are required.
#[must_use]
#[track_caller]
pub fn is_there(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", program]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        skip(&format!("there is no {program}"));
    }
    found
}

/// One read that goes on where a signal has interrupted it: the system starts none again that has a timeout.
///
/// # Errors
/// Those of the stream but [`io::ErrorKind::Interrupted`].
pub fn read(stream: &mut (impl Read + ?Sized), buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Headless Chromium with a profile of its own, made in a folder. Check before that it [`is_there`].
#[must_use]
pub fn chromium(folder: &Path) -> Command {
    let mut browser = Command::new("chromium");
    // Containers and root have no sandbox; the pages are our own.
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
    browser.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    browser
}

/// Runs a program for so many seconds at most, without input; its output.
///
/// # Errors
/// If it cannot be started.
pub fn run_within(seconds: u32, command: &Command) -> io::Result<Output> {
    let mut bounded = Command::new("timeout");
    bounded.arg(seconds.to_string()).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => bounded.env(name, value),
            None => bounded.env_remove(name),
        };
    }
    command.get_current_dir().map(|folder| bounded.current_dir(folder));
    bounded.stdin(Stdio::null()).output()
}

/// Runs a program for at most two minutes and returns its standard output.
///
/// # Panics
/// If it cannot be started or fails, with all that it printed.
#[must_use]
#[track_caller]
pub fn printed(command: &Command) -> String {
    both(command).0
}

/// Runs a program for at most two minutes and returns its standard output followed by its standard error.
///
/// # Panics
/// If it cannot be started or fails, with all that it printed.
#[must_use]
#[track_caller]
pub fn printed_and_logged(command: &Command) -> String {
    let (output, errors) = both(command);
    output + &errors
}

#[track_caller]
fn both(command: &Command) -> (String, String) {
    let output = run_within(PATIENCE, command).unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [text, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, quoted(&format!("{text}\n{errors}")));
    (text, errors)
}

/// The words of another program, each line marked: a panic that holds a failing test's "test result: FAILED" as it came
/// would count as one more result of the tests around it.
fn quoted(text: &str) -> String {
    text.lines().map(|line| format!("> {line}\n")).collect()
}

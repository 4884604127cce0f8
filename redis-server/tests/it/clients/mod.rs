//! Genuine clients, unmodified, against our server.

mod crates;
mod languages;
mod suites;
mod tools;

use std::process::{Command, Output, Stdio};

/// Runs a program to its end, at most a minute; its output.
fn run(command: &Command) -> std::io::Result<Output> {
    run_within(60, command)
}

/// Runs a program for so many seconds at most; its output.
fn run_within(seconds: u32, command: &Command) -> std::io::Result<Output> {
    let mut bounded = Command::new("timeout");
    bounded.arg(seconds.to_string()).arg(command.get_program()).args(command.get_args());
    command.get_envs().for_each(|(name, value)| match value {
        Some(value) => drop(bounded.env(name, value)),
        None => drop(bounded.env_remove(name)),
    });
    command.get_current_dir().map(|folder| bounded.current_dir(folder));
    bounded.stdin(Stdio::null()).output()
}

/// What a program prints, errors included; it must succeed.
#[track_caller]
fn printed(command: &Command) -> String {
    let output = run(command).unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text.into_owned()
}

/// Whether a program can be started at all.
fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

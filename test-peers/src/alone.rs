//! A process for one test.

use std::env;
use std::process::Command;

/// Runs a test again in a process of its own, for what concerns a whole process: open files, signals, the log. The test begins with
/// `if !alone("module::name") { return; }`.
///
/// # Panics
/// If the test fails there, or has another name.
#[must_use]
pub fn alone(test: &str) -> bool {
    alone_after(":", test)
}

/// [`alone`], after the command `shell` of the process' shell, such as `ulimit -n 100`.
///
/// # Panics
/// As [`alone`].
#[must_use]
pub fn alone_after(shell: &str, test: &str) -> bool {
    const MARK: &str = "TEST_ALONE";
    if env::var(MARK).is_ok_and(|name| name == test) {
        return true;
    }
    let program = env::current_exe().expect("a test is a program");
    let script = format!("{shell}; exec \"$0\" --exact {test} --nocapture");
    let output = Command::new("sh").arg("-c").arg(script).arg(program).env(MARK, test).output();
    let output = output.expect("there is a shell");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    false
}

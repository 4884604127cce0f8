//! Installed tools that the checks call.

use std::process::Command;

/// Whether a tool is installed.
pub(super) fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

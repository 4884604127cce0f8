//! How the suite's servers are started.

use std::path::Path;

/// Where Debian installs Redis' server.
pub(super) const GENUINE: &str = "/usr/bin/redis-server";

/// How a server is started for the suite, with further settings.
pub(super) fn command(program: &Path, port: u16, settings: &[&str]) -> Vec<String> {
    let (program, port) = (program.display().to_string(), port.to_string());
    let memory_only = ["--save", "", "--appendonly", "no", "--enable-debug-command", "yes"];
    let command =
        [&[program.as_str(), "--bind", "127.0.0.1", "--port", &port], memory_only.as_slice(), settings].concat();
    command.into_iter().map(String::from).collect()
}

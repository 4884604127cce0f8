//! One server whose topics are measured, and the generator's runs against it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;
use xtask::process::Server;

use crate::programs::result_of;

/// The figures of one server in a round, by the names of its rows.
pub(super) type Figures = Vec<(&'static str, f64)>;

/// One server, and what it is measured with.
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) program: String,
    pub(super) loadgen: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) keys: usize,
}

impl Subject {
    /// The command of a server on `port` that takes `more` settings besides.
    pub(super) fn command(&self, port: u16, more: &[&str]) -> Vec<String> {
        let port = port.to_string();
        let common = ["--bind", "127.0.0.1", "--port", &port, "--save", "", "--enable-debug-command", "yes"];
        let common = common.iter().chain(&["--rdbcompression", "no"]).chain(more);
        [self.program.clone()].into_iter().chain(common.map(|word| (*word).to_owned())).collect()
    }

    pub(super) fn start(&self, more: &[&str]) -> Result<Server> {
        let port = test_peers::free_port();
        Server::start(&self.command(port, more), port, &self.folder)
    }

    /// A run of the generator against `server`, begun.
    pub(super) fn load(&self, server: &Server, words: &[&str]) -> Command {
        let mut command = Command::new(&self.loadgen);
        command.args(["redis", "-t", "1", "--warm-up", "0s", "--timeout", "60s", "--keys", &self.keys.to_string()]);
        command.args(words).arg(format!("127.0.0.1:{}", server.port()));
        command
    }

    /// Runs the generator; its summary of all requests.
    pub(super) fn run(&self, server: &Server, words: &[&str]) -> Result<Value> {
        let mut result = result_of(&mut self.load(server, words), &self.folder)?;
        Ok(result["summary"]["all"].take())
    }
}

/// A figure of the generator's summary.
pub(super) fn figure(summary: &Value, name: &str) -> Result<f64> {
    summary[name].as_f64().with_context(|| format!("the generator's result has no {name}"))
}

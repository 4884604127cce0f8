//! Redis' own tests of vector sets, against ours with a replica.

use std::process::Command;

use test_peers::{Kit, kit, run_within};

use crate::support::server::Server;

const SUITE: Kit = kit! {
    name: "redis-vector-sets",
    sources: &["tests/peers/vector-sets"],
    programs: &["python3", "apt-get"],
    install: "sh install.sh",
};

/// The suite adds some 40,000 vectors one by one.
const SECONDS: u32 = 1500;
/// The tests of Redis 8.0.6, without the large one. Of fewer, some have not run.
const LEAST: usize = 24;

/// The number of tests that pass, and of all: `Test Summary: 24/24 tests passed`.
fn summary(text: &str) -> Option<(usize, usize)> {
    let (_, counts) = text.split_once("Test Summary: ")?;
    let (passed, all) = counts.split(' ').next()?.split_once('/')?;
    Some((passed.parse().ok()?, all.parse().ok()?))
}

#[test]
#[ignore = "takes minutes: full runs of the gates have it"]
fn redis_own_tests_pass() {
    let Some(folder) = SUITE.installed() else { return };
    let settings = [("enable-debug-command", "yes"), ("compatibility", "8.0"), ("repl-diskless-sync-delay", "0")];
    let servers = [Server::with(&settings), Server::with(&settings)];
    let [primary, replica] = servers.each_ref().map(|server| server.addr.port().to_string());
    let mut command = Command::new("../venv/bin/python");
    command.args(["test.py", "--primary-port", &primary, "--replica-port", &replica]);
    let output = run_within(SECONDS, command.current_dir(folder.join("suite"))).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let (passed, all) = summary(&text).unwrap_or_default();
    println!("{passed} of {all} tests pass");
    assert!(passed == all && all >= LEAST, "{text}");
}

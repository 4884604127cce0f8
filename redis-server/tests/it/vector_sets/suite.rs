//! Redis' own tests of vector sets, against ours with a replica.

use std::collections::BTreeMap;
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
/// With fewer tests than this the suite has hardly run.
const LEAST: usize = 40;

/// Tests that fail here, and why.
const KNOWN: &[(&str, &str)] = &[];

/// Reads `name: OK (0.01s)` or `name: ERR (0.01s)`; the states have colours.
fn verdict(line: &str) -> Option<(&str, bool)> {
    let (name, state) = line.rsplit_once(": \u{1b}")?;
    let state = state.split_once('m')?.1;
    (state.starts_with("OK") || state.starts_with("ERR")).then_some((name, state.starts_with("OK")))
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
    let verdicts: BTreeMap<&str, bool> = text.lines().filter_map(verdict).collect();
    println!("{} of {} tests pass", verdicts.values().filter(|passes| **passes).count(), verdicts.len());
    assert!(verdicts.len() >= LEAST, "the suite has not run: {text}");
    let is_known = |name: &str| KNOWN.iter().any(|(known, _)| *known == name);
    let failed: Vec<&&str> =
        verdicts.iter().filter(|(name, passes)| **passes == is_known(name)).map(|it| it.0).collect();
    assert!(failed.is_empty(), "{failed:?}\n{text}");
}

//! Clients in several languages: small programs of our own (`tests/peers`) on the genuine libraries.

use std::process::Command;

use test_peers::{Kit, kit, printed};

use crate::support::genuine::Genuine;
use crate::support::server::Server;

pub(crate) const PYTHON: Kit = kit! {
    name: "redis-python",
    sources: &["tests/peers/python"],
    programs: &["python3"],
    install: "python3 -m venv venv && venv/bin/pip install --quiet --requirement requirements.txt",
};
pub(crate) const GO: Kit = kit! {
    name: "redis-go",
    sources: &["tests/peers/go"],
    programs: &["go"],
    install: "go build -o peer .",
};
/// go-redis' own tests, of the version that `go.mod` names.
pub(super) const GO_SUITE: Kit = kit! {
    name: "redis-go-suite",
    sources: &["tests/peers/go-suite"],
    programs: &["go"],
    install: "sh install.sh",
};
/// redis-py's own tests, of the version that `requirements.txt` names.
pub(super) const PYTHON_SUITE: Kit = kit! {
    name: "redis-python-suite",
    sources: &["tests/peers/python-suite"],
    programs: &["python3"],
    install: "sh install.sh",
};
/// valkey-glide's own tests for Go, of the version that `go.mod` names, and its core as a library for C.
pub(super) const GLIDE_SUITE: Kit = kit! {
    name: "redis-glide-suite",
    sources: &["tests/peers/glide-suite"],
    programs: &["go", "cc", "python3"],
    install: "sh install.sh",
};
pub(crate) const JS: Kit = kit! {
    name: "redis-js",
    sources: &["tests/peers/js"],
    programs: &["node", "npm"],
    install: "npm install --no-audit --no-fund --no-package-lock --loglevel=error",
};

pub(crate) const RUST: Kit = kit! {
    name: "redis-rust",
    sources: &["tests/peers/rust"],
    programs: &["cargo"],
    install: "cargo build --quiet --target-dir target",
};

/// Runs a script in RESP2 and RESP3.
fn check(kit: &Kit, program: &str, script: &[&str]) {
    let Some(folder) = kit.installed() else { return };
    for protocol in ["2", "3"] {
        let server = Server::start();
        // Installed programs stand in the folder, others in the path.
        let inside = folder.join(program);
        let mut command = if inside.exists() { Command::new(inside) } else { Command::new(program) };
        let port = server.addr.port().to_string();
        let said = printed(command.args(script).args([&port, protocol]).current_dir(&folder));
        assert_eq!(said.lines().last(), Some("ok"), "{said}");
    }
}

#[test]
fn redis_py() {
    check(&PYTHON, "venv/bin/python", &["peer.py"]);
}

#[test]
fn go_redis() {
    check(&GO, "peer", &[]);
}

#[test]
fn redis_rs() {
    check(&RUST, "target/debug/peer", &[]);
}

#[test]
fn ioredis() {
    check(&JS, "node", &["ioredis.js"]);
}

#[test]
fn ioredis_newer_commands() {
    check(&JS, "node", &["ioredis-newer.js"]);
}

#[test]
fn queues_locks_limiters_sessions() {
    // They live on scripts: a server without EVAL cannot be asked.
    if redis_server::commands::REGISTRY.lookup(b"eval").is_none() {
        println!("skipped: there is no EVAL");
        return;
    }
    check(&JS, "node", &["--no-warnings", "applications.js"]);
    // A genuine server fulfils the script's expectations, too.
    if let (Some(folder), Some(mut genuine)) = (JS.installed(), Genuine::start(&[])) {
        let port = genuine.listen().port().to_string();
        let said =
            printed(Command::new("node").args(["--no-warnings", "applications.js", &port, "2"]).current_dir(folder));
        assert_eq!(said.lines().last(), Some("ok"), "{said}");
    }
}

#[test]
fn node_redis() {
    check(&JS, "node", &["node-redis.js"]);
}

//! Clients in other languages: small programs of our own (`tests/peers`) on the genuine libraries.

use std::process::Command;

use test_peers::{Kit, printed};

use super::Both;
use super::install::{GO, JS, PYTHON};

/// Runs a client that says `ok` at its end; its program may be one of the kit's.
#[track_caller]
fn check(kit: &Kit, program: &str, script: &[&str]) {
    let Some(folder) = kit.installed() else { return };
    let server = Both::greeter();
    let inside = folder.join(program);
    let mut command = if inside.exists() { Command::new(inside) } else { Command::new(program) };
    command.args(script).arg(server.plain.to_string()).arg(server.tls.to_string()).arg(&server.certificate);
    let said = printed(command.current_dir(folder));
    assert_eq!(said.lines().last(), Some("ok"), "{said}");
}

#[test]
fn grpc_go() {
    check(&GO, "bin/peers", &[]);
}

#[test]
fn grpcio_of_python() {
    check(&PYTHON, "venv/bin/python", &["peer.py"]);
}

#[test]
fn grpc_js_of_node() {
    check(&JS, "node", &["peer.js"]);
}

//! Clients in other languages: small programs of our own (`tests/peers`) on the genuine libraries.

use std::path::PathBuf;
use std::process::Command;

use grpc_server::Args;
use test_peers::{Kit, printed};

use super::Both;
use super::install::{CONNECT, GO, JAVA, JS, PYTHON};

/// Runs a client that says `ok` at its end; its program may be one of the kit's.
#[track_caller]
fn check(kit: &Kit, program: &str, script: &[&str]) {
    let Some(folder) = kit.installed() else { return };
    run(&Both::greeter(), folder, program, script);
}

fn run(server: &Both, folder: PathBuf, program: &str, script: &[&str]) {
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

/// The Connect protocol, by its makers' client.
#[test]
fn connect_go() {
    let Some(folder) = CONNECT.installed() else { return };
    run(&Both::start(&["--connect"], Args::routes), folder, "connectpeer", &[]);
}

#[test]
fn grpcio_of_python() {
    check(&PYTHON, "venv/bin/python", &["peer.py"]);
}

#[test]
fn grpc_js_of_node() {
    check(&JS, "node", &["peer.js"]);
}

#[test]
fn grpc_java() {
    check(&JAVA, "java", &["-cp", "target/classes:lib/*", "Peer"]);
}

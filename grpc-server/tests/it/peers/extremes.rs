//! Honest extremes: genuine clients at their fastest, none of which may be cut off.
//!
//! A client prints a line for each row, its name and how many answers came, and fails when a call ends otherwise than it should.
//! Beside each figure stands that of the library's own server. Times decide nothing.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use grpc_server::Args;
use test_peers::{Kit, printed};

use super::Both;
use super::install::{CONNECT, GO, JAVA, JS, PYTHON};

/// Seconds for each row. `EXTREMES_SECONDS` has another time, for figures that say more.
const SECONDS: f64 = 0.8;

/// Frames that carry nothing, a second. Fewer than the default, so that a slow machine, too, shows who lives on credit.
const FRAMES: &str = "1000";

/// The library's own server, for as long as this lives.
struct Own {
    child: Child,
    address: String,
}

impl Own {
    fn start(folder: &Path, program: &[&str]) -> Self {
        let mut command = command(folder, program);
        let mut child = command.arg("serve").stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        assert!(address.starts_with("127.0.0.1:"), "the library's own server does not start: {address:?}");
        Self { child, address: address.trim_end().to_owned() }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(folder: &Path, program: &[&str]) -> Command {
    let inside = folder.join(program[0]);
    let mut command = if inside.exists() { Command::new(inside) } else { Command::new(program[0]) };
    command.args(&program[1..]).current_dir(folder);
    command
}

/// Names of rows, and how many answers came.
fn rows(text: &str) -> Vec<(&str, u64)> {
    let rows = text.lines().map(|line| line.split_once('\t').unwrap_or_else(|| panic!("{text}")));
    rows.map(|(name, count)| (name, count.parse().unwrap())).collect()
}

/// Runs a client, which is started with these words before the address, against our server and its own.
fn check(kit: &Kit, program: &[&str], words: &[&str], unit: &str) {
    let Some(folder) = kit.installed() else { return };
    let seconds = std::env::var("EXTREMES_SECONDS").map_or(SECONDS, |seconds| seconds.parse().unwrap());
    let run = |address: &str| {
        let mut command = command(&folder, program);
        printed(command.args(words).arg(address).arg(format!("{seconds}{unit}")))
    };
    let server = Both::start(&["--connect", "--max-control-frames", FRAMES], Args::routes);
    let ours = run(&server.plain.to_string());
    let own = Own::start(&folder, program);
    let theirs = run(&own.address);
    assert_eq!(rows(&ours).len(), rows(&theirs).len());
    for ((name, ours), (_, theirs)) in rows(&ours).into_iter().zip(rows(&theirs)) {
        println!("| {} | {name} | {ours} | {theirs} | {:.2} |", kit.name, ours as f64 / theirs as f64);
        assert!(ours > 0, "{name}: no answer came");
    }
}

#[test]
fn grpc_go() {
    check(&GO, &["bin/peers"], &["extremes"], "s");
}

#[test]
fn grpcio_of_python() {
    check(&PYTHON, &["venv/bin/python", "extremes.py"], &[], "");
}

#[test]
fn grpc_js_of_node() {
    check(&JS, &["node", "extremes.js"], &[], "");
}

#[test]
fn grpc_java() {
    check(&JAVA, &["java", "-cp", "target/classes:lib/*", "Extremes"], &[], "");
}

#[test]
fn connect_go() {
    check(&CONNECT, &["connectpeer"], &["extremes"], "s");
}

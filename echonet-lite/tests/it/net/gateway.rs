//! Examples as programs: a gateway beside a node that freezes, and the device that is measured.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use echonet_lite::net::Endpoint;
use rustix::process::{Pid, Signal, kill_process};

use super::{PATIENCE, node};

/// A program that is told to end and waits for an answer would take 20 s for it.
const AT_ONCE: Duration = Duration::from_secs(3);

/// Where cargo puts examples: beside the folder of the tests.
fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is not built: `cargo test -p echonet-lite` without `--test` builds it", path.display());
    path
}

#[test]
fn the_measured_device_serves() {
    let mut command = Command::new(example("bench"));
    let mut bench = command
        .args(["serve", "--address", "127.0.83.3"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(bench.stdout.take().unwrap()).read_line(&mut line).unwrap();
    bench.kill().unwrap();
    let output = bench.wait_with_output().unwrap();
    assert_eq!(line, "ready\n", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn ends_at_once_beside_a_frozen_node() {
    let mut device = Endpoint::builder().serve(node(1, 42)).address([127, 0, 83, 2]).bind_blocking().unwrap();
    let mut command = Command::new(example("gateway"));
    let mut gateway = command
        .args(["--address", "127.0.83.1", "--interval", "0.1", "--search", "1"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(gateway.stdout.take().unwrap()).lines();
    let (sender, lines_of_gateway) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    // The node answers until its state is known, and never again.
    let begun = Instant::now();
    while !lines_of_gateway.try_iter().any(|line| line.contains("lightLevel")) {
        assert!(begun.elapsed() < PATIENCE, "the gateway has found the node");
        device.turn(Some(Duration::from_millis(20))).unwrap();
    }
    // Several of its rounds begin meanwhile, and wait.
    std::thread::sleep(Duration::from_millis(500));
    let told = Instant::now();
    kill_process(Pid::from_child(&gateway), Signal::TERM).unwrap();
    while gateway.try_wait().unwrap().is_none() {
        if told.elapsed() > AT_ONCE {
            gateway.kill().unwrap();
            gateway.wait().unwrap();
            panic!("it has not ended within {AT_ONCE:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

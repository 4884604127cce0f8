//! Many connections from one process.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::Value;

use crate::target::many;

/// The project's limit for each connection, TCP and without TLS.
const MOST_BYTES: u64 = 8 << 10;

#[test]
fn ten_thousand_connections_need_little_memory_each() {
    check(10_000);
}

/// Beyond the ports of one address: further loopback addresses are used. It needs a hard limit of 60,000 open files.
#[test]
#[ignore = "needs `ulimit -Hn` of 60,000, and takes a while"]
fn fifty_thousand_connections_need_little_memory_each() {
    check(50_000);
}

/// A server elsewhere has no process to be looked at.
#[test]
fn the_timeline_has_a_piece_per_second_also_without_a_server_process() {
    let address = many().to_string();
    let words = ["redis", &address, "-d", "2s", "--warm-up", "0s", "-c", "5", "-t", "1", "PING"];
    let mut scenario = loadgen::cli::scenario(&words).unwrap();
    scenario.load.sampled = loadgen::load::Sampled::Nobody;
    let outcome = scenario.run(&mut |_| loadgen::watch::Watch::GoOn);
    let pieces: Vec<_> = outcome.timeline.iter().map(|piece| piece.start).collect();
    assert_eq!(pieces, [0.0, 1.0]);
    assert!(outcome.server.is_none());
    let answers: u64 = outcome.timeline.iter().map(|piece| piece.latencies.count()).sum();
    assert_eq!(answers, outcome.answers());
}

#[track_caller]
fn check(connections: u64) {
    let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let (most, wanted) = (limits.maximum.unwrap_or(u64::MAX), connections + 1_000);
    if most < wanted {
        println!("skipped: {connections} connections, because a process may open only {most} files here");
        return;
    }
    // Ours is the target's end of them.
    let raised = rustix::process::Rlimit { current: limits.maximum, maximum: limits.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let address = many();
    let (few, many) = (resident_bytes(address, 10), resident_bytes(address, connections));
    let each = many.saturating_sub(few) / (connections - 10);
    println!("{each} bytes for each of {connections} connections: {few} bytes with 10, {many} with all");
    assert!(each > 0 && each <= MOST_BYTES, "{each} bytes: {few} with 10 connections, {many} with {connections}");
}

/// The generator's resident memory while all connections were open and used.
#[track_caller]
fn resident_bytes(address: SocketAddr, connections: u64) -> u64 {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command.args(["redis", "--json", "-", "--quiet", "-t", "2", "--timeout", "60s", "-c", &connections.to_string()]);
    // A time, not a number of requests, which one thread could use up before the other has begun.
    command.args(["-d", "3s", &address.to_string(), "PING"]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let result: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!((&result["ending"], &result["failures"]), (&Value::from("complete"), &Value::Array(Vec::new())));
    // A closed loop: nobody is left out.
    assert!(result["fairness"]["least"].as_u64() > Some(0), "{:?}", result["fairness"]);
    result["generator"]["resident_bytes"].as_u64().unwrap()
}

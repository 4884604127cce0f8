//! The commands of the package `lab`, which start servers or measure. It needs hundreds of crates: `cargo xtask` lists its commands without
//! it, and has cargo build it when one is called.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;

use anyhow::Error;

use crate::workspace::{cargo, root};

/// Name and effect of each command, in the order of the help.
pub const COMMANDS: [(&str, &str); 19] = [
    ("bare", "The bare-metal light: built for a Cortex-M4, its code size and static RAM against their limits"),
    ("systems", "echonet-lite on other systems: compiled for them, its tests with their sockets"),
    ("mutants", "Hand-picked faults, put into a copy of the tree one by one: the tests must find each"),
    ("miri", "Unit tests of `unsafe` modules and of threads that share without locks, under Miri (nightly Rust)"),
    ("suite", "Redis' own test suite (Debian's source package) in external mode against our server"),
    ("differ", "Random commands to our server and a genuine one, whose replies must be the same"),
    ("compare", "Memory of Redis-compatible servers: per key, or per element of collections"),
    (
        "clusters",
        "Clusters of redis-server's nodes in virtual time, by their size: what nodes say, how long changes take, and what the rules say",
    ),
    (
        "failovers",
        "Failovers by Redis' Sentinels and in clusters, ours and a genuine server: how long nothing can be written, and whether anything is lost",
    ),
    (
        "isolation",
        "Latencies of redis-server's clients while one more client does what takes long, ours and a genuine server",
    ),
    (
        "reshard",
        "The cost of moving slots between two nodes of a cluster, as a whole and key by key, and its effect on clients",
    ),
    ("attacks", "Attacks by strangers on http-server and grpc-server, and their outcome: one table"),
    (
        "persistence",
        "The cost of keeping data, in redis-server and a genuine server: snapshots, the append-only file, loading",
    ),
    (
        "scaling",
        "The gain of a second worker of redis-server, alone and with clients that make others look after their keys",
    ),
    (
        "search",
        "The cost of queries and of their indexes, in redis-server and in Redis with RediSearch; libraries as floors",
    ),
    (
        "confidence",
        "How often `loadgen compare` calls a server different from itself, and finds five per cent more work",
    ),
    (
        "report",
        "The published comparisons measured again: runs loadgen compare, keeps its records, writes REPORT.md and its page",
    ),
    ("paths", "Instructions of every server's hot paths, against a committed baseline"),
    (
        "instructions",
        "Instructions per request of redis-server, with --http of http-server, with --grpc of grpc-server, by callgrind",
    ),
];

/// The effect of a command.
pub fn about(name: &str) -> Option<&'static str> {
    COMMANDS.iter().find(|(own, _)| *own == name).map(|(_, about)| *about)
}

/// The commands with their effects, as the end of a help text.
pub fn list() -> String {
    let rows = COMMANDS.iter().map(|(name, about)| format!("\n  {name:<12}  {about}"));
    format!("Commands of the package lab, which the first one builds:{}", rows.collect::<String>())
}

/// Returns true if the arguments of xtask call a command of lab, or ask for its help.
pub fn is_called_by(arguments: &[OsString]) -> bool {
    let name = match arguments {
        [help, name, ..] if help == "help" => Some(name),
        other => other.first(),
    };
    name.and_then(|name| name.to_str()).is_some_and(|name| about(name).is_some())
}

/// Builds lab and replaces this process by it: signals and the exit status are lab's. Returns only the error that kept cargo from starting.
pub fn call(arguments: &[OsString]) -> Error {
    let mut run = cargo();
    run.args(["run", "--quiet", "--package", "lab", "--manifest-path"]).arg(root().join("Cargo.toml"));
    // Paths among the arguments begin in the caller's folder.
    run.arg("--").args(arguments).current_dir(".");
    Error::from(run.exec()).context("cannot start cargo")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_lab_are_told_from_those_of_xtask() {
        let check = |line: &str, expected: bool| {
            let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            assert_eq!(is_called_by(&arguments), expected, "{line}");
        };
        check("differ --seed 7", true);
        check("help differ", true);
        check("help", false);
        check("", false);
        check("help tidy", false);
        check("tidy", false);
        check("readme --only differ", false);
        check("ci --only differ", false);
        check("--help differ", false);
    }
}

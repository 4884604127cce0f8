//! Automation of the workspace: gates, the genuine test suite, interim measurements.
//!
//! Every command is described by `cargo xtask help COMMAND`.

mod api;
mod attacks;
mod bare;
mod book;
mod check;
mod ci;
mod clusters;
mod compare;
mod confidence;
mod deploy;
mod differ;
mod failovers;
mod instructions;
mod interrupt;
mod isolation;
mod links;
mod load;
mod miri;
mod mutants;
mod network;
mod package;
mod paths;
mod persistence;
mod programs;
mod readme;
mod record;
mod report;
mod reshard;
mod scaling;
mod suite;
mod systems;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Automation of this workspace")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Every gate in the order of the cheapest failure: format, lints, docs, tidy, tests, suite, fuzz.
    Ci(ci::Options),
    /// The gates of the crates that a change touches and of those that depend on them.
    Check(check::Options),
    /// The house rules that no compiler checks.
    Tidy,
    /// The commands of every README, run as they are printed.
    Readme(readme::Options),
    /// The documentation as a book (mdBook), with every link checked, and its reference tables against the programs.
    Book(book::Options),
    /// Files for operators: manual pages and completions from the programs' help; units, image, alerts, manifests and dependencies checked.
    Deploy(deploy::Options),
    /// The tarballs of the crates that others take: what they say of themselves, what they hold, that each builds by itself.
    Package(package::Options),
    /// The public items of the crates that others embed, against the recorded ones.
    Api(api::Options),
    /// The bare-metal light: built for a Cortex-M4, its code size and static RAM against their limits.
    Bare(bare::Options),
    /// echonet-lite on other systems: compiled for them, its tests with their sockets.
    Systems(systems::Options),
    /// Hand-picked faults, put into a copy of the tree one by one: the tests must find each.
    Mutants(mutants::Options),
    /// Unit tests of `unsafe` modules and of threads that share without locks, under Miri (nightly Rust).
    Miri(miri::Options),
    /// Redis' own test suite (Debian's source package) in external mode against our server.
    Suite(suite::Options),
    /// Random commands to our server and a genuine one, whose replies must be the same.
    Differ(differ::Options),
    /// Memory of Redis-compatible servers: per key, or per element of collections.
    Compare(compare::Options),
    /// Clusters of redis-server's nodes in virtual time, by their size: what nodes say, how long changes take, and what the rules say.
    Clusters(clusters::Options),
    /// Failovers by Redis' Sentinels and in clusters, ours and a genuine server: how long nothing can be written, and whether anything is lost.
    Failovers(failovers::Options),
    /// Latencies of redis-server's clients while one more client does what takes long, ours and a genuine server.
    Isolation(isolation::Options),
    /// The cost of moving slots between two nodes of a cluster, as a whole and key by key, and its effect on clients.
    Reshard(reshard::Options),
    /// Attacks by strangers on http-server and grpc-server, and their outcome: one table.
    Attacks(attacks::Options),
    /// The cost of keeping data, in redis-server and a genuine server: snapshots, the append-only file, loading.
    Persistence(persistence::Options),
    /// The gain of a second worker of redis-server, alone and with clients that make others look after their keys.
    Scaling(scaling::Options),
    /// How often `loadgen compare` calls a server different from itself, and finds five per cent more work.
    Confidence(confidence::Options),
    /// The published comparisons measured again: runs loadgen compare, keeps its records, writes REPORT.md and its page.
    Report(report::Options),
    /// Instructions of every server's hot paths, against a committed baseline.
    Paths(paths::Options),
    /// Instructions per request of redis-server, with --http of http-server, with --grpc of grpc-server, by callgrind.
    Instructions(instructions::Options),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Task::Ci(options) => ci::run(&options),
        Task::Check(options) => check::run(&options),
        Task::Tidy => tidy::run(),
        Task::Readme(options) => readme::run(&options),
        Task::Book(options) => book::run(&options),
        Task::Deploy(options) => deploy::run(&options),
        Task::Package(options) => package::run(&options),
        Task::Api(options) => api::run(&options),
        Task::Bare(options) => bare::run(&options),
        Task::Systems(options) => systems::run(&options),
        Task::Mutants(options) => mutants::run(&options),
        Task::Miri(options) => miri::run(&options),
        Task::Suite(options) => suite::run(&options),
        Task::Differ(options) => differ::run(&options),
        Task::Compare(options) => compare::run(&options),
        Task::Clusters(options) => clusters::run(&options),
        Task::Failovers(options) => failovers::run(&options),
        Task::Isolation(options) => isolation::run(&options),
        Task::Reshard(options) => reshard::run(&options),
        Task::Attacks(options) => attacks::run(&options),
        Task::Persistence(options) => persistence::run(&options),
        Task::Scaling(options) => scaling::run(&options),
        Task::Confidence(options) => confidence::run(&options),
        Task::Report(options) => report::run(&options),
        Task::Paths(options) => paths::run(&options),
        Task::Instructions(options) => instructions::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The chain of causes, without the backtrace that the `Debug` form has.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

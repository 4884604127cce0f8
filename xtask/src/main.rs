//! Automation of the workspace: gates, house rules, documents, packages.
//!
//! Every command is described by `cargo xtask help COMMAND`. Commands that start servers or measure are those of the package `lab`.

mod api;
mod book;
mod check;
mod ci;
mod deploy;
mod links;
mod package;
mod readme;
mod tidy;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::lab;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Automation of this workspace", after_help = lab::list())]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Every gate in the order of the cheapest failure: format, lints, docs, tidy, tests, suite.
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
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let result = if lab::is_called_by(&arguments) { Err(lab::call(&arguments)) } else { run(Cli::parse().command) };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The chain of causes, without the backtrace that the `Debug` form has.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> anyhow::Result<()> {
    match task {
        Task::Ci(options) => ci::run(&options),
        Task::Check(options) => check::run(&options),
        Task::Tidy => tidy::run(),
        Task::Readme(options) => readme::run(&options),
        Task::Book(options) => book::run(&options),
        Task::Deploy(options) => deploy::run(&options),
        Task::Package(options) => package::run(&options),
        Task::Api(options) => api::run(&options),
    }
}

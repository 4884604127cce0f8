//! The commands that start servers or measure: differences from genuine servers, their test suites, attacks, measurements, the report.
//!
//! `cargo xtask` hands the words of these commands over; `cargo xtask help COMMAND` describes each.

mod attacks;
mod bare;
mod clusters;
mod compare;
mod confidence;
mod differ;
mod failovers;
mod instructions;
mod interrupt;
mod isolation;
mod load;
mod miri;
mod mutants;
mod network;
mod paths;
mod persistence;
mod programs;
mod record;
mod report;
mod reshard;
mod scaling;
mod search;
mod suite;
mod systems;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Commands that start servers or measure")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

/// The help of each is in [`xtask::lab::COMMANDS`].
#[derive(Subcommand)]
enum Task {
    Bare(bare::Options),
    Systems(systems::Options),
    Mutants(mutants::Options),
    Miri(miri::Options),
    Suite(suite::Options),
    Differ(differ::Options),
    Compare(compare::Options),
    Clusters(clusters::Options),
    Failovers(failovers::Options),
    Isolation(isolation::Options),
    Reshard(reshard::Options),
    Attacks(attacks::Options),
    Persistence(persistence::Options),
    Scaling(scaling::Options),
    Search(search::Options),
    Confidence(confidence::Options),
    Report(report::Options),
    Paths(paths::Options),
    Instructions(instructions::Options),
}

fn main() -> ExitCode {
    let task = Cli::from_arg_matches(&cli().get_matches()).unwrap_or_else(|error| error.exit()).command;
    let result = match task {
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
        Task::Search(options) => search::run(&options),
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

/// The command line with the help texts that `cargo xtask` shows.
fn cli() -> clap::Command {
    Cli::command().mut_subcommands(|command| match xtask::lab::about(command.get_name()) {
        Some(about) => command.about(about),
        None => command,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xtask_lists_these_commands() {
        let cli = cli();
        let names = cli.get_subcommands().map(clap::Command::get_name);
        assert_eq!(names.collect::<Vec<_>>(), xtask::lab::COMMANDS.map(|(name, _)| name));
    }
}

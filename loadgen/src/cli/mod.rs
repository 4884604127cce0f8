//! The command line. One file per subcommand; what protocols share is in [`LoadArgs`].

mod compare;
mod drive;
mod drop_in;
mod echonet;
mod flows;
mod grpc;
mod header;
mod http;
mod invalid;
mod load_args;
mod login;
mod man;
mod merge;
mod pubsub;
mod redis;
mod replay;
mod subjects;
mod target;
mod tls;
mod websocket;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

pub use compare::{CompareArgs, GateArgs, ReportArgs};
pub use drive::Drive;
pub use echonet::Echonet;
pub use flows::ScenarioArgs;
pub use grpc::GrpcArgs;
pub use http::HttpArgs;
pub use invalid::Invalid;
pub use load_args::{ArrivalsArg, Carrier, LoadArgs, OutputArgs, RateArg, Transport};
pub use login::LoginArgs;
pub use merge::MergeArgs;
pub use pubsub::PubSubArgs;
pub use redis::RedisArgs;
pub use replay::ReplayArgs;
pub use subjects::{KeyChoice, SubjectArgs, ValueSize};
pub use target::{Place, Target};
pub use tls::TlsArgs;
pub use websocket::WebSocketArgs;

use crate::front;
use crate::output::{self, table};
use crate::scenario::Scenario;

/// Puts load on Redis, HTTP, gRPC and ECHONET Lite servers, checks the answers, and says how long they took.
#[derive(Parser, Debug)]
#[command(name = "loadgen", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The meanings of the command's exit codes.
const EXIT_CODES: &str = "Exit codes: 0 fine, 1 the run failed or a file could not be written, 2 wrong usage, \
3 an objective (--slo) was missed or a gate found something worse, 4 a gate cannot tell, 130 interrupted (the first Ctrl-C still gives the results so far).";

/// A subcommand.
#[derive(Subcommand, Debug)]
enum Command {
    /// Put load on a Redis server
    Redis(Box<RedisArgs>),
    /// Publish on a Redis server and subscribe to it: how long deliveries take
    #[command(name = "pubsub")]
    PubSub(Box<PubSubArgs>),
    /// Put load on an HTTP server
    Http(Box<HttpArgs>),
    /// Put load on an HTTP server by virtual users that walk through the flows of a file
    Scenario(Box<ScenarioArgs>),
    /// Put load on a gRPC server
    Grpc(Box<GrpcArgs>),
    /// Put load on a WebSocket server that echoes
    #[command(name = "websocket", visible_alias = "ws")]
    WebSocket(Box<WebSocketArgs>),
    /// Put load on an ECHONET Lite node
    Echonet(Box<Echonet>),
    Wrk(Box<drop_in::Wrk>),
    Hey(Box<drop_in::Hey>),
    Ghz(Box<drop_in::Ghz>),
    RedisBenchmark(Box<drop_in::RedisBenchmark>),
    /// Compare servers: start them by recipes, interleave their runs, report ratios with confidence intervals
    Compare(CompareArgs),
    /// Render records again, as Markdown and as a page
    Report(ReportArgs),
    /// Merge the results of generators that ran at the same time: counts and histograms add up exactly
    Merge(MergeArgs),
    /// Judge a comparison's record by an older one: the exit code is 3 if something has become worse, 4 if that cannot be told
    Gate(GateArgs),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of a subcommand, or write all pages into a folder
    Man {
        /// The subcommand [default: the command itself]
        #[arg(value_name = "SUBCOMMAND")]
        subcommand: Option<String>,

        /// Write the pages of the command and of all subcommands into this folder
        #[arg(long, value_name = "FOLDER", conflicts_with = "subcommand")]
        to: Option<PathBuf>,
    },
}

impl Command {
    /// The subcommand, if it puts load on a server.
    fn drive(&self) -> Option<&dyn Drive> {
        match self {
            Self::Redis(drive) => Some(&**drive),
            Self::PubSub(drive) => Some(&**drive),
            Self::Http(drive) => Some(&**drive),
            Self::Scenario(drive) => Some(&**drive),
            Self::Grpc(drive) => Some(&**drive),
            Self::WebSocket(drive) => Some(&**drive),
            Self::Echonet(drive) => Some(&**drive),
            Self::Wrk(_) | Self::Hey(_) | Self::Ghz(_) | Self::RedisBenchmark(_) => None,
            Self::Compare(_) | Self::Report(_) | Self::Merge(_) | Self::Gate(_) => None,
            Self::Completions { .. } | Self::Man { .. } => None,
        }
    }
}

/// Runs the command of this process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse_from(arguments(std::env::args_os()));
    match &cli.command {
        Command::Wrk(wrk) => wrk.run(scenario).into(),
        Command::Hey(hey) => hey.run(scenario).into(),
        Command::Ghz(ghz) => ghz.run(scenario).into(),
        Command::RedisBenchmark(benchmark) => benchmark.run(scenario).into(),
        Command::Compare(args) => compare::compare(args, check, scenario),
        Command::Report(args) => compare::report(args),
        Command::Merge(args) => merge::merge(args),
        Command::Gate(args) => compare::gate(args),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "loadgen", &mut text);
            print(&String::from_utf8_lossy(&text))
        }
        Command::Man { subcommand: _, to: Some(folder) } => match man::write(&Cli::command(), folder) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => usage(&error),
        },
        Command::Man { subcommand, to: None } => {
            let wanted = subcommand.as_ref().map_or_else(|| "loadgen".to_owned(), |name| format!("loadgen-{name}"));
            match man::pages(&Cli::command()).into_iter().find(|(name, _)| *name == wanted) {
                Some((_, page)) => print(&page),
                None => usage(&Invalid::new(
                    "SUBCOMMAND",
                    subcommand.as_deref().unwrap_or_default(),
                    "one that `loadgen --help` lists",
                )),
            }
        }
        Command::Scenario(args) if args.is_check() => match checked(&**args) {
            Ok(scenario) => print(&format!("{}\n", scenario.description)),
            Err(error) => usage(&error),
        },
        load => load.drive().map_or(ExitCode::SUCCESS, put_load),
    }
}

/// Prints a text, as far as the reader takes it.
fn print(text: &str) -> ExitCode {
    match output::print(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The run of a subcommand. Only flows have parts that an objective can name.
fn checked(drive: &dyn Drive) -> Result<Scenario, Invalid> {
    let scenario = drive.scenario()?;
    let is_of_flows = scenario.settings.get("protocol").is_some_and(|protocol| protocol == "scenario");
    match scenario.objectives.iter().find(|objective| objective.part.is_some() && !is_of_flows) {
        Some(objective) => Err(Invalid::new("--slo", objective, "an objective of the whole run, such as p99=2ms")),
        None => Ok(scenario),
    }
}

fn put_load(drive: &dyn Drive) -> ExitCode {
    match checked(drive) {
        Ok(scenario) => front::run(scenario, &drive.load_args().outputs.wanted(), &table).into(),
        Err(error) => usage(&error),
    }
}

/// The arguments, in the form that they are described here.
fn arguments(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<_> = given.collect();
    if words.get(1).is_some_and(|subcommand| subcommand == "hey") {
        words = words.into_iter().map(drop_in::with_two_dashes).collect();
    }
    words
}

/// Says what is wrong with the command line.
fn usage(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("error: {error}\n\nFor more information, try '--help'.");
    front::Exit::Usage.into()
}

/// Checks the options of a command line without its program's name, without making anything of them.
///
/// # Errors
/// When it is no command line that puts load on a server; the text says what is wrong with it.
pub fn check<S: AsRef<str>>(words: &[S]) -> Result<(), String> {
    drive_of(words).map(|_| ())
}

fn drive_of<S: AsRef<str>>(words: &[S]) -> Result<Cli, String> {
    let words = std::iter::once("loadgen").chain(words.iter().map(AsRef::as_ref));
    let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
    if cli.command.drive().is_none() {
        return Err("this subcommand puts no load on a server".to_owned());
    }
    Ok(cli)
}

/// The scenario of a command line without its program's name: `redis 127.0.0.1:6379 -c 50 GET key:{key}`.
///
/// # Errors
/// When it is no command line that puts load on a server; the text says what is wrong with it.
pub fn scenario<S: AsRef<str>>(words: &[S]) -> Result<Scenario, String> {
    let cli = drive_of(words)?;
    let drive = cli.command.drive().ok_or("this subcommand puts no load on a server")?;
    checked(drive).map_err(|error| error.to_string())
}

/// Tests that a command line becomes the scenario of this description, or has this error.
#[cfg(test)]
#[track_caller]
fn assert_scenario(words: &[&str], expected: Result<&str, &str>) {
    let found = scenario(words).map(|scenario| scenario.description);
    assert_eq!(found.as_deref().map_err(String::as_str), expected);
}

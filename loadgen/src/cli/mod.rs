//! The command line. One file per subcommand; what protocols share is in [`LoadArgs`].

mod echonet;
mod grpc;
mod http;
mod invalid;
mod load_args;
mod redis;
mod subjects;
mod target;
mod tls;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

pub use echonet::Echonet;
pub use grpc::GrpcArgs;
pub use http::HttpArgs;
pub use invalid::Invalid;
pub use load_args::{ArrivalsArg, LoadArgs, OutputArgs, RateArg, Transport};
pub use redis::RedisArgs;
pub use subjects::{KeyChoice, SubjectArgs, ValueSize};
pub use target::{Place, Target};
pub use tls::TlsArgs;

use crate::front;
use crate::output::table;
use crate::scenario::Scenario;

/// Puts load on Redis, HTTP, gRPC and ECHONET Lite servers, checks the answers, and says how long they took.
#[derive(Parser, Debug)]
#[command(name = "loadgen", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What the command's exit codes mean.
const EXIT_CODES: &str = "Exit codes: 0 fine, 1 the run failed or a file could not be written, 2 wrong usage, \
3 an objective (--slo) was missed, 130 interrupted (the first Ctrl-C still gives the results so far).";

/// A subcommand.
#[derive(Subcommand, Debug)]
enum Command {
    /// Put load on a Redis server
    Redis(Box<RedisArgs>),
    /// Put load on an HTTP server
    Http(Box<HttpArgs>),
    /// Put load on a gRPC server
    Grpc(Box<GrpcArgs>),
    /// Put load on an ECHONET Lite node
    Echonet(Box<Echonet>),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// A subcommand that puts load on a server.
pub trait Drive {
    /// The options that all such subcommands share.
    fn load_args(&self) -> &LoadArgs;

    /// What is to be run.
    ///
    /// # Errors
    /// When the options make no sense together, or name what cannot be used.
    fn scenario(&self) -> Result<Scenario, Invalid>;
}

impl Command {
    /// The subcommand, if it puts load on a server.
    fn drive(&self) -> Option<&dyn Drive> {
        match self {
            Self::Redis(drive) => Some(&**drive),
            Self::Http(drive) => Some(&**drive),
            Self::Grpc(drive) => Some(&**drive),
            Self::Echonet(drive) => Some(&**drive),
            Self::Completions { .. } => None,
        }
    }
}

/// Runs the command of this process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Command::Completions { shell } = &cli.command {
        clap_complete::generate(*shell, &mut Cli::command(), "loadgen", &mut std::io::stdout());
        return ExitCode::SUCCESS;
    }
    let Some(drive) = cli.command.drive() else {
        return ExitCode::SUCCESS;
    };
    match drive.scenario() {
        Ok(scenario) => front::run(scenario, &drive.load_args().outputs.wanted(), &table).into(),
        Err(error) => usage(&error),
    }
}

/// Says what is wrong with the command line.
fn usage(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("error: {error}\n\nFor more information, try '--help'.");
    front::Exit::Usage.into()
}

/// The scenario of a command line without its program's name: `redis 127.0.0.1:6379 -c 50 GET key:{key}`.
///
/// # Errors
/// When it is no command line that puts load on a server; the text says what is wrong with it.
pub fn scenario<S: AsRef<str>>(words: &[S]) -> Result<Scenario, String> {
    let words = std::iter::once("loadgen").chain(words.iter().map(AsRef::as_ref));
    let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
    let drive = cli.command.drive().ok_or("this subcommand puts no load on a server")?;
    drive.scenario().map_err(|error| error.to_string())
}

//! The `echonet` command: finds ECHONET Lite nodes, reads, writes, watches, decodes, emulates and measures them.

mod bench;
#[cfg(feature = "mqtt")]
mod bridge;
mod capture;
mod certify;
#[cfg(any(feature = "mqtt", feature = "web"))]
mod circuits;
mod classes;
mod commands;
mod data;
mod decode;
#[cfg(any(feature = "mqtt", feature = "web"))]
mod directory;
mod discover;
mod dump;
mod emulate;
mod failure;
mod frame;
mod get;
mod language;
mod link;
mod names;
mod output;
#[cfg(any(feature = "mqtt", feature = "web"))]
mod quirks;
mod render;
#[cfg(feature = "serial")]
mod route_b;
mod search;
mod serve;
mod set;
mod watch;
#[cfg(feature = "web")]
mod web;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use commands::{Cli, Command};
use failure::Failure;
use output::Output;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // If the output is closed, the message is lost.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(failure::OTHER) } else { ExitCode::SUCCESS };
        }
    };
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    let (options, out) = (&cli.options, &Output::new(&cli.options));
    #[cfg(feature = "serial")]
    if options.meter.is_some() && !cli.command.reaches_meters() {
        let wrong = "--meter is for discover, get, set, watch, bridge, export and web";
        return Err(Failure::Input(wrong.to_owned()));
    }
    data::load(options.data.as_deref())?;
    match &cli.command {
        Command::Decode(args) => decode::run(args, out),
        Command::Classes(args) => classes::run(args, options, out),
        Command::Bench(args) => bench::run(args, options, out),
        Command::Completions { shell } => completions(*shell, out),
        Command::Discover(args) => interruptible(behind_meter(cli, discover::run(args, options, out))),
        Command::Get(args) => interruptible(behind_meter(cli, get::run(args, options, out))),
        Command::Set(args) => interruptible(behind_meter(cli, set::run(args, options, out))),
        Command::Watch(args) => endless(behind_meter(cli, watch::run(args, options, out))),
        Command::Dump(args) => endless(dump::run(args, options, out)),
        Command::Emulate(args) => endless(emulate::run(args, options, out)),
        Command::Certify(args) => certify::run(args, options, out),
        #[cfg(feature = "mqtt")]
        Command::Bridge(args) => whole(beside_meter(cli, bridge::run(args, options, out))),
        Command::Serve(args) => endless(serve::run(args, options, out)),
        #[cfg(feature = "web")]
        Command::Export(args) => endless(beside_meter(cli, web::export(args, options, out))),
        #[cfg(feature = "web")]
        Command::Web(args) => endless(beside_meter(cli, web::run(args, options, out))),
    }
}

/// Does work once the meter of `--meter`, if there is one, has been joined.
async fn behind_meter(cli: &Cli, work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    with_meter(cli, true, work).await
}

/// Does work while the meter of `--meter`, if there is one, is joined.
#[cfg(any(feature = "mqtt", feature = "web"))]
async fn beside_meter(cli: &Cli, work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    with_meter(cli, false, work).await
}

#[cfg(feature = "serial")]
async fn with_meter(cli: &Cli, first: bool, work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    route_b::beside(&cli.options, &Output::new(&cli.options), first, work).await
}

/// Without the feature `serial` there is no `--meter`.
#[cfg(not(feature = "serial"))]
async fn with_meter(_: &Cli, _: bool, work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    work.await
}

/// Does work that an interruption makes fail.
fn interruptible(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        tokio::select! {
            result = work => result,
            ended = link::asked_to_end() => ended.map_err(Failure::from).and(Err(Failure::Interrupted)),
        }
    })
}

/// Does work that hears of an interruption itself.
#[cfg(feature = "mqtt")]
fn whole(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// Does work that ends when it is interrupted, as it should.
fn endless(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    match interruptible(work) {
        Err(Failure::Interrupted) => Ok(()),
        result => result,
    }
}

fn completions(shell: clap_complete::Shell, out: &Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "echonet", &mut script);
    out.bytes(&script)
}

//! Instructions per request of a pipelined GET and SET, counted by callgrind: the same figure on a busy machine.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::compare::memory_only;
use crate::load::{Connection, Request};
use crate::process::{Server, free_port, run_quietly};

/// Options of `cargo xtask instructions`.
#[derive(Args)]
pub(crate) struct Options {
    /// Keys of 16 bytes in the server.
    #[arg(long, default_value_t = 100_000)]
    keys: u64,
    /// Bytes of each value.
    #[arg(long, default_value_t = 100)]
    value_size: usize,
    /// Requests sent at a time.
    #[arg(long, default_value_t = 16)]
    depth: u64,
    /// Requests that are counted.
    #[arg(long, default_value_t = 160_000)]
    requests: u64,
    /// The server's command, without its port (default: the release build).
    #[arg(long)]
    server: Option<String>,
}

/// Counts and prints.
///
/// # Errors
/// When valgrind is missing, or the server does not run under it.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.depth > 0 && options.requests >= options.depth, "at least one full batch of requests is needed");
    let folder = crate::target_dir().join("instructions");
    fs::create_dir_all(&folder)?;
    let port = free_port()?;
    let server_command = options.server.clone().unwrap_or_else(|| crate::release_server().display().to_string());
    let mut command: Vec<String> = ["valgrind", "--tool=callgrind", "--instr-atstart=no"].map(String::from).into();
    let output = folder.join(format!("callgrind.{port}"));
    command.push(format!("--callgrind-out-file={}", output.display()));
    command.extend(server_command.split_whitespace().map(String::from));
    command.extend(memory_only(port));
    let server = Server::start(&command, port, &folder)?;

    let mut connection = Connection::open(port, options.value_size)?;
    connection.fill(options.keys)?;
    control(&server, &["-i", "on"])?;
    println!(
        "{}, {} deep, {} keys, values of {} bytes:",
        server_command, options.depth, options.keys, options.value_size
    );
    for (dump, (name, request)) in [("GET", Request::Get), ("SET", Request::Set)].into_iter().enumerate() {
        connection.pipeline(request, options.requests / 10, options.depth, options.keys)?;
        control(&server, &["-z"])?;
        connection.pipeline(request, options.requests, options.depth, options.keys)?;
        control(&server, &["-d"])?;
        let total = total(&format!("{}.{}", output.display(), dump + 1))?;
        let counted = options.requests / options.depth * options.depth;
        println!("{name}: {:.0} instructions per request", total as f64 / counted as f64);
    }
    Ok(())
}

/// Sends a command to the running callgrind.
fn control(server: &Server, arguments: &[&str]) -> Result<()> {
    run_quietly(Command::new("callgrind_control").args(arguments).arg(server.pid().to_string())).map(drop)
}

/// The number of instructions in a dump.
fn total(path: &str) -> Result<u64> {
    let text = fs::read_to_string(path).with_context(|| format!("no dump {path}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("summary:").or_else(|| line.strip_prefix("totals:")));
    let number = line.and_then(|line| line.split_whitespace().next()).context("a dump has a summary")?;
    Ok(number.parse()?)
}

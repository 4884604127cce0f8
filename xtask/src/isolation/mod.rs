//! Whether one client stops others: latencies of a hundred bystanders in an open loop while one more client does what
//! takes long, ours and a genuine server, one after the other for each disturbance.

mod client;
mod disturbance;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::process::{Server, free_port, run_quietly};
pub(crate) use client::Client;
use disturbance::{ALL, Disturbance};

/// What the bystanders do: half of them read, half write, keys of their own.
const BYSTANDERS: [&str; 12] = [
    "-c",
    "100",
    "-t",
    "1",
    "--keys",
    "1000",
    "--value-size",
    "100",
    "--mix",
    "1:GET by:{key}",
    "--mix",
    "1:SET by:{key} {value}",
];
/// For how long the disturbance goes on before the bystanders come.
const LEAD: Duration = Duration::from_millis(300);

/// Options of `cargo xtask isolation`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only disturbances whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Only our server.
    #[arg(long)]
    ours_only: bool,
    /// Our server; built when not given.
    #[arg(long)]
    ours: Option<PathBuf>,
    /// The genuine server.
    #[arg(long, default_value = "/usr/bin/redis-server")]
    genuine: PathBuf,
    /// The load generator; built when not given.
    #[arg(long)]
    loadgen: Option<PathBuf>,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Requests per second of all bystanders.
    #[arg(long, default_value_t = 20_000)]
    rate: u32,
    /// Divides all sizes, to try the harness.
    #[arg(long, default_value_t = 1)]
    shrink: usize,
}

/// Latencies of the bystanders, and how often the disturbance happened meanwhile.
struct Figures {
    p99: f64,
    p999: f64,
    max: f64,
    rate: f64,
    rounds: u64,
}

/// Runs the command.
///
/// # Errors
/// A server or the generator cannot be started, or fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    let ours = options.ours.clone().map_or_else(|| crate::programs::ours("redis-server"), Ok)?;
    let loadgen = options.loadgen.clone().map_or_else(|| crate::programs::ours("loadgen"), Ok)?;
    let folder = crate::target_dir().join("isolation");
    let mut subjects = vec![("ours", command(&ours, &["--workers", "2"])?)];
    if !options.ours_only {
        subjects.push(("redis", command(&options.genuine, &[])?));
    }
    println!("| one more client | server | p99 | p99.9 | max (ms) | answers/s | rounds |");
    println!("|---|---|--:|--:|--:|--:|--:|");
    let is_wanted = |row: &&Disturbance| options.only.as_ref().is_none_or(|only| row.name.contains(only.as_str()));
    for row in ALL.iter().filter(is_wanted) {
        for (name, command) in &subjects {
            match measure(options, row, command, &loadgen, &folder) {
                Ok(Figures { p99, p999, max, rate, rounds }) => {
                    println!("| {} | {name} | {p99:.2} | {p999:.2} | {max:.1} | {rate:.0} | {rounds} |", row.name);
                }
                // The others are worth knowing all the same.
                Err(error) => {
                    println!("| {} | {name} | failed | | | | |", row.name);
                    eprintln!("{}, {name}: {error:#}", row.name);
                }
            }
        }
    }
    Ok(())
}

fn command(program: &Path, more: &[&str]) -> Result<Vec<String>> {
    // Not the file that a link leads to: Debian's looks at its own name.
    let program = std::path::absolute(program)?;
    let flags = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--enable-debug-command", "yes"];
    let words = [program.display().to_string()].into_iter();
    Ok(words.chain(flags.iter().chain(more).map(|flag| (*flag).to_owned())).collect())
}

fn measure(options: &Options, row: &Disturbance, command: &[String], loadgen: &Path, folder: &Path) -> Result<Figures> {
    let port = free_port()?;
    let mut command = command.to_vec();
    command.extend(["--port".to_owned(), port.to_string()]);
    let server = Server::start(&command, port, folder)?;
    let mut client = Client::connect(port)?;
    let size = row.size / options.shrink;
    (row.prepare)(&mut client, size)?;
    let (over, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let disturbing = {
        let (over, rounds, disturb) = (Arc::clone(&over), Arc::clone(&rounds), row.disturb);
        thread::spawn(move || {
            while !over.load(Relaxed) && disturb(&mut client, size, &over).is_ok() {
                rounds.fetch_add(1, Relaxed);
            }
        })
    };
    thread::sleep(LEAD);
    let before = rounds.load(Relaxed);
    let rate = options.rate.to_string();
    let time = format!("{}s", options.seconds);
    let record = folder.join(format!("record-{port}.json"));
    let ran = run_quietly(
        Command::new(loadgen)
            .args(["redis", "--json"])
            .arg(&record)
            .args(["--timeout", "60s", "--rate", &rate, "-d", &time])
            .args(BYSTANDERS)
            .arg(format!("127.0.0.1:{port}")),
    );
    over.store(true, Relaxed);
    let rounds = rounds.load(Relaxed) - before;
    drop(server);
    if disturbing.join().is_err() {
        bail!("the disturbance failed");
    }
    ran?;
    let result: Value = serde_json::from_str(&fs::read_to_string(&record)?).context("the generator's result")?;
    fs::remove_file(&record)?;
    figures(&result, rounds).context("the generator's result has other names")
}

fn figures(result: &Value, rounds: u64) -> Option<Figures> {
    let all = &result["summary"]["all"];
    let millis = |name: &str| all[name].as_f64().map(|seconds| seconds * 1e3);
    let rate = all["per_second"].as_f64()?;
    Some(Figures { p99: millis("p99")?, p999: millis("p99.9")?, max: millis("max")?, rate, rounds })
}

//! Whether one client stops others: latencies of a hundred bystanders in an open loop while one more client does what
//! takes long, ours and a genuine server, one after the other for each disturbance.

mod client;
mod disturbance;
mod pauses;
mod record;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use xtask::process::Server;

use crate::programs::{Compared, result_of};
pub(crate) use client::{Client, request};
use disturbance::{ALL, Disturbance};
use pauses::{PAUSE, Watch};
use record::Row;

/// Commands of the bystanders: half of them read, half write, keys of their own.
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
/// How often a measurement is made in which a processor has paused.
const ATTEMPTS: usize = 8;
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
    #[command(flatten)]
    programs: Compared,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Requests per second of all bystanders.
    #[arg(long, default_value_t = 20_000)]
    rate: u32,
    /// Divides all sizes, to try the harness.
    #[arg(long, default_value_t = 1)]
    shrink: usize,
    /// By how much the one more client gives way to the others, all of which share this machine's processors.
    #[arg(long, default_value_t = 0)]
    nice: i32,
    /// Keeps the rows in benches/record/isolation.jsonl.
    #[arg(long, conflicts_with = "shrink")]
    record: bool,
    /// Measures nothing: prints the table of docs/redis/performance.md and draws its plot, from the record.
    #[arg(long, exclusive = true)]
    render: bool,
}

/// The table of docs/redis/performance.md, from the record.
///
/// # Errors
/// The record's.
pub(crate) fn table() -> Result<String> {
    Ok(record::table(&record::read()?))
}

/// Runs the command.
///
/// # Errors
/// A server or the generator cannot be started, or fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.render {
        return record::render();
    }
    let (ours, loadgen) = (options.programs.ours()?, options.programs.loadgen()?);
    let folder = xtask::workspace::target_dir().join("isolation");
    let [our_name, their_name] = record::SERVERS;
    let mut subjects = vec![(our_name, command(&ours, &["--workers", "2"])?)];
    if !options.ours_only {
        subjects.push((their_name, command(&options.programs.genuine, &[])?));
    }
    println!("| one more client | server | p99 | p99.9 | max (ms) | answers/s | rounds |");
    println!("|---|---|--:|--:|--:|--:|--:|");
    let is_wanted = |row: &&Disturbance| options.only.as_ref().is_none_or(|only| row.name.contains(only.as_str()));
    for row in ALL.iter().filter(is_wanted) {
        for (name, command) in subjects.iter().filter(|(name, _)| row.is_common || *name == our_name) {
            match measure(options, row, (name, command), &loadgen, &folder) {
                Ok(row) => {
                    let Row { disturbance, p99, p999, max, rate, rounds, .. } = &row;
                    println!("| {disturbance} | {name} | {p99:.2} | {p999:.2} | {max:.1} | {rate:.0} | {rounds} |");
                    if options.record {
                        record::keep(&row)?;
                    }
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

fn measure(
    options: &Options,
    row: &Disturbance,
    (name, command): (&str, &[String]),
    loadgen: &Path,
    folder: &Path,
) -> Result<Row> {
    let port = test_peers::free_port();
    let mut command = command.to_vec();
    command.extend(["--port".to_owned(), port.to_string()]);
    let server = Server::start(&command, port, folder)?;
    let mut client = Client::connect(port)?;
    let size = row.size / options.shrink;
    (row.prepare)(&mut client, size)?;
    let (over, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let disturbing = {
        let (over, rounds, disturb, nice) = (Arc::clone(&over), Arc::clone(&rounds), row.disturb, options.nice);
        thread::spawn(move || {
            give_way(nice);
            while !over.load(Relaxed) && disturb(&mut client, size, &over).is_ok() {
                rounds.fetch_add(1, Relaxed);
            }
        })
    };
    thread::sleep(LEAD);
    let rate = options.rate.to_string();
    let time = format!("{}s", options.seconds);
    let bystanders = || {
        let mut command = Command::new(loadgen);
        command.args(["redis", "--timeout", "60s", "--rate", &rate, "-d", &time]).args(BYSTANDERS);
        command.arg(format!("127.0.0.1:{port}"));
        result_of(&mut command, folder)
    };
    let undisturbed = (0..ATTEMPTS).find_map(|_| {
        let (before, watch) = (rounds.load(Relaxed), Watch::begin());
        let result = bystanders();
        let rounds = rounds.load(Relaxed) - before;
        let has_paused = watch.end() >= PAUSE;
        (result.is_err() || !has_paused).then_some((result, rounds))
    });
    over.store(true, Relaxed);
    drop(server);
    if disturbing.join().is_err() {
        bail!("the disturbance failed");
    }
    let paused = || format!("a processor paused for {PAUSE:?} or more in each of {ATTEMPTS} attempts");
    let (result, rounds) = undisturbed.with_context(paused)?;
    let result = result?;
    let all = &result["summary"]["all"];
    let figure = |name: &str| all[name].as_f64().with_context(|| format!("the generator's result has no {name}"));
    Ok(Row {
        disturbance: row.name.to_owned(),
        server: name.to_owned(),
        p99: 1e3 * figure("p99")?,
        p999: 1e3 * figure("p99.9")?,
        max: 1e3 * figure("max")?,
        rate: figure("per_second")?,
        rounds,
        seconds: options.seconds,
        commit: loadgen::compare::commit(xtask::workspace::root()),
    })
}

/// Lowers this thread's priority: a client elsewhere would have processors of its own.
fn give_way(nice: i32) {
    // A refusal is no harm: it then takes its share.
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), nice);
}

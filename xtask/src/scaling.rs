//! What a second worker adds: CPU time per request with one worker and with two that are both at work, in interleaved runs.
//!
//! Where server and generator share two processors no rate can say it. But workers that never wait for each other do twice as
//! much in the same time, at the price that a request has then: twice the ratio of the prices is what two workers do. What
//! would be missing is time that a worker sleeps for a lock, which is no CPU time; the keyspace's locks spin first, and how much of
//! both processors server and generator left idle is printed beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::compare::stats::{median, paired_ratio};
use crate::isolation::Client;
use crate::process::{Server, children_cpu_seconds, free_port, run_quietly};

/// Requests outstanding on each connection.
const DEPTHS: [u32; 2] = [1, 32];
const CONNECTIONS: &str = "64";
/// Below this balance of two workers' CPU time, a run says nothing of two.
const SPREAD: f64 = 0.3;
/// Keys that the load uses.
const KEYS: &str = "100000";

/// One more client that does nothing, and what it has asked for before.
struct Idler {
    name: &'static str,
    words: &'static [&'static [&'static str]],
}

const IDLERS: [Idler; 5] = [
    Idler { name: "nobody else", words: &[] },
    Idler { name: "one idle BLPOP", words: &[&["BLPOP", "nothing", "0"]] },
    Idler { name: "one WATCH", words: &[&["WATCH", "key:1"]] },
    Idler { name: "one tracking client", words: &[&["HELLO", "3"], &["CLIENT", "TRACKING", "ON"], &["GET", "key:1"]] },
    Idler {
        name: "one subscriber of keyspace events",
        words: &[&["CONFIG", "SET", "notify-keyspace-events", "KEA"], &["SUBSCRIBE", "__keyspace@0__:key:1"]],
    },
];

/// Options of `cargo xtask scaling`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Our server; built when not given.
    #[arg(long)]
    ours: Option<PathBuf>,
    /// The load generator; built when not given.
    #[arg(long)]
    loadgen: Option<PathBuf>,
    /// Rounds of each measurement.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each run.
    #[arg(long, default_value_t = 2)]
    seconds: u32,
    /// Only conditions whose name contains this.
    #[arg(long)]
    only: Option<String>,
}

/// What one run showed.
struct Sample {
    /// CPU time of the server per request, in microseconds.
    cpu_us: f64,
    rate: f64,
    /// CPU time of the worker that did less, over that of the one that did more.
    balance: f64,
    /// Share of two processors that neither server nor generator used.
    idle: f64,
}

/// Runs the command.
///
/// # Errors
/// A server or the generator cannot be started, or fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    let ours = options.ours.clone().map_or_else(|| crate::programs::ours("redis-server"), Ok)?;
    let loadgen = options.loadgen.clone().map_or_else(|| crate::programs::ours("loadgen"), Ok)?;
    println!("| one more client | depth | us with 1 worker | with 2 | 2 workers do | 95 % | balance | idle | rate |");
    println!("|---|--:|--:|--:|--:|---|--:|--:|--:|");
    let is_wanted = |idler: &&Idler| options.only.as_ref().is_none_or(|only| idler.name.contains(only.as_str()));
    for idler in IDLERS.iter().filter(is_wanted) {
        for depth in DEPTHS {
            let mut samples: [Vec<Sample>; 2] = [Vec::new(), Vec::new()];
            for round in 0..options.rounds {
                for at in [round % 2, 1 - round % 2] {
                    samples[at].push(measure(options, idler, depth, at + 1, &ours, &loadgen)?);
                }
            }
            print_row(idler, depth, &samples);
        }
    }
    Ok(())
}

fn print_row(idler: &Idler, depth: u32, [one, two]: &[Vec<Sample>; 2]) {
    let all = |samples: &[Sample], field: fn(&Sample) -> f64| samples.iter().map(field).collect::<Vec<_>>();
    let (single, double) = (all(one, |sample| sample.cpu_us), all(two, |sample| sample.cpu_us));
    let ratio = paired_ratio(&single, &double);
    let of_two = |field| median(&all(two, field));
    let balance = of_two(|sample| sample.balance);
    // The server gathers connections on one worker where no processor is free.
    let scaling = if balance < SPREAD {
        "unknown: one did all | ".to_owned()
    } else {
        format!("{:.2} x | {:.2} to {:.2}", 2.0 * ratio.mean, 2.0 * ratio.interval.0, 2.0 * ratio.interval.1)
    };
    println!(
        "| {} | {depth} | {:.2} | {:.2} | {scaling} | {balance:.2} | {:.0} % | {:.0} |",
        idler.name,
        median(&single),
        median(&double),
        100.0 * of_two(|sample| sample.idle),
        of_two(|sample| sample.rate),
    );
}

fn measure(
    options: &Options,
    idler: &Idler,
    depth: u32,
    workers: usize,
    ours: &Path,
    loadgen: &Path,
) -> Result<Sample> {
    let folder = crate::target_dir().join("scaling");
    let port = free_port()?;
    let program = std::path::absolute(ours)?.display().to_string();
    let mut command = vec![program, "--workers".to_owned(), workers.to_string()];
    command.extend(crate::compare::memory_only(port));
    let server = Server::start(&command, port, &folder)?;
    let mut client = Client::connect(port)?;
    let (last, first) = idler.words.split_last().map_or((None, idler.words), |(last, first)| (Some(last), first));
    first.iter().try_for_each(|words| client.ask(words))?;
    last.map_or(Ok(()), |words| client.send(words))?;
    let record = folder.join(format!("record-{port}.json"));
    let (depth, time) = (depth.to_string(), format!("{}s", options.seconds));
    let load = |time: &str| {
        run_quietly(
            Command::new(loadgen)
                .args(["redis", "--json"])
                .arg(&record)
                .args(["-c", CONNECTIONS, "-t", "1", "--depth", &depth, "--batch", "-d", time, "--warm-up", "0s"])
                .args([
                    "--keys",
                    KEYS,
                    "--value-size",
                    "100",
                    "--mix",
                    "1:GET key:{key}",
                    "--mix",
                    "1:SET key:{key} {value}",
                ])
                .arg(format!("127.0.0.1:{port}")),
        )
    };
    // The workers share the connections out within tenths of a second.
    load("500ms")?;
    let (cpu, threads, generator) = (server.cpu_seconds()?, server.threads_cpu_seconds()?, children_cpu_seconds()?);
    let began = Instant::now();
    load(&time)?;
    let (elapsed, cpu) = (began.elapsed().as_secs_f64(), server.cpu_seconds()? - cpu);
    let generator = children_cpu_seconds()? - generator;
    let mut spent: Vec<f64> =
        server.threads_cpu_seconds()?.iter().zip(&threads).map(|(after, before)| after - before).collect();
    spent.sort_by(|a, b| b.total_cmp(a));
    let result: Value = serde_json::from_str(&fs::read_to_string(&record)?).context("the generator's result")?;
    fs::remove_file(&record)?;
    let answers = result["summary"]["all"]["answers"].as_f64().context("the generator's result has other names")?;
    Ok(Sample {
        cpu_us: cpu / answers * 1e6,
        rate: answers / elapsed,
        balance: spent.get(1).copied().unwrap_or(0.0) / spent[0].max(f64::MIN_POSITIVE),
        idle: 1.0 - (cpu + generator) / (2.0 * elapsed),
    })
}

//! An interim measurement until the workspace has its load generator: redis-benchmark against several servers, interleaved.

mod collections;
mod fields;
mod memory;
mod sample;
pub(crate) mod stats;
mod subject;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::load::Connection;
use crate::process::Server;
use sample::{Bench, Sample};
use stats::{median, paired_ratio};
pub(crate) use subject::memory_only;
use subject::{Pinning, Subject, parse_pinning};

/// Options of `cargo xtask compare`.
///
/// Example: cargo xtask compare --subject ours=target/release/redis-server --subject redis=/usr/bin/redis-server
/// --pin server=1,client=0 --bench "-t set,get -c 50 -P 16 -r 1000000 -n 2000000"
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    /// A server to measure, as NAME=COMMAND; at least one, the first is compared with each of the others.
    /// `--bind 127.0.0.1 --port N --save '' --appendonly no` is appended, unless the command places its port itself by {port}.
    #[arg(long = "subject", value_name = "NAME=COMMAND", required = true, value_parser = subject::parse)]
    subjects: Vec<Subject>,
    /// Arguments for redis-benchmark; -h, -p and --csv are added, the tests of -t run one after the other.
    #[arg(long, default_value = "-t set,get -c 50 -P 16 -r 1000000 -n 1000000", allow_hyphen_values = true)]
    bench: String,
    /// Rounds: in each, every subject runs every test once; the order turns round each time (A B, B A, …).
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Keys of 16 bytes that are loaded before the first round.
    #[arg(long, default_value_t = 1_000_000)]
    keys: u64,
    /// Bytes of each loaded value.
    #[arg(long, default_value_t = 100)]
    value_size: usize,
    /// Cores for the servers and for redis-benchmark, as server=1,client=0 (a list may be 0-1).
    #[arg(long, value_parser = parse_pinning)]
    pin: Option<Pinning>,
    /// Measure resident bytes per loaded key instead of speed.
    #[arg(long)]
    memory: bool,
    /// Measure resident bytes per element of collections instead.
    #[arg(long, conflicts_with = "memory")]
    collections: bool,
    /// Measure a hash of this many fields that expire instead: memory, processor time, and how long another client waits.
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["memory", "collections"])]
    fields: Option<usize>,
}

/// Measures and prints; the raw samples go to a file below the target folder.
///
/// # Errors
/// When a server or redis-benchmark cannot be started, or answers wrongly.
pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = crate::target_dir().join("compare");
    fs::create_dir_all(&folder)?;
    if options.memory {
        return memory::run(options, &folder);
    }
    if options.collections {
        return collections::run(options, &folder);
    }
    if let Some(fields) = options.fields {
        return fields::run(options, fields, &folder);
    }
    ensure!(options.rounds > 0, "at least one round is needed");
    let bench = Bench::parse(&options.bench)?;
    let mut servers = Vec::new();
    for subject in &options.subjects {
        let server = subject.start(options.pin.as_ref(), &folder)?;
        Connection::open(server.port(), options.value_size)?.fill(options.keys)?;
        servers.push(server);
    }
    let (path, mut raw) = raw_file(&folder, options)?;
    let mut samples = Vec::new();
    for round in 0..options.rounds {
        for index in order(round, servers.len()) {
            for sample in measure(options, &bench, index, &servers[index])? {
                writeln!(raw, "{round},{},{}", options.subjects[index].name, sample.csv())?;
                samples.push(sample);
            }
        }
    }
    print_results(options, &bench, &samples);
    println!("raw samples: {}", path.display());
    Ok(())
}

/// Forward in even rounds, backward in odd ones: a drift of the machine hits everyone alike.
pub(crate) fn order(round: usize, subjects: usize) -> Vec<usize> {
    let forward = 0..subjects;
    if round.is_multiple_of(2) { forward.collect() } else { forward.rev().collect() }
}

fn measure(options: &Options, bench: &Bench, index: usize, server: &Server) -> Result<Vec<Sample>> {
    let name = &options.subjects[index].name;
    let tests = bench.tests().iter();
    tests.map(|test| bench.run(test, index, server, options.pin.as_ref()).with_context(|| name.clone())).collect()
}

fn raw_file(folder: &std::path::Path, options: &Options) -> Result<(PathBuf, File)> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock stands before 1970")?;
    let path = folder.join(format!("{}.csv", now.as_secs()));
    let mut file = File::create(&path)?;
    writeln!(file, "# redis-benchmark {}", options.bench)?;
    writeln!(file, "# {} keys of 16 bytes, values of {} bytes", options.keys, options.value_size)?;
    for subject in &options.subjects {
        writeln!(file, "# {} = {}", subject.name, subject.command)?;
    }
    if let Some(pin) = &options.pin {
        writeln!(file, "# server on cores {}, client on cores {}", pin.server, pin.client)?;
    }
    writeln!(file, "round,subject,{}", Sample::HEADER)?;
    Ok((path, file))
}

/// One figure of a sample.
type Metric = fn(&Sample) -> f64;

fn print_results(options: &Options, bench: &Bench, samples: &[Sample]) {
    println!("redis-benchmark {}, {} rounds, medians:", options.bench, options.rounds);
    println!(
        "{:<16} {:<6} {:>12} {:>12} {:>9} {:>9}",
        "subject", "test", "requests/s", "CPU µs/req", "p50 ms", "p99 ms"
    );
    let values = |index: usize, test: &str, value: Metric| -> Vec<f64> {
        samples.iter().filter(|sample| sample.subject == index && sample.test == test).map(value).collect()
    };
    for test in bench.tests() {
        for (index, subject) in options.subjects.iter().enumerate() {
            let of = |value| median(&values(index, test, value));
            let note = if of(|s| s.generator_busy) > sample::GENERATOR_BOUND { "  generator-bound" } else { "" };
            println!(
                "{:<16} {:<6} {:>12.0} {:>12.3} {:>9.3} {:>9.3}{note}",
                subject.name,
                test,
                of(|s| s.rate),
                of(|s| s.cpu_us),
                of(|s| s.p50_ms),
                of(|s| s.p99_ms),
            );
        }
    }
    let metrics: [(&str, Metric); 3] =
        [("requests/s", |s| s.rate), ("CPU/request", |s| s.cpu_us), ("p99", |s| s.p99_ms)];
    for (other, subject) in options.subjects.iter().enumerate().skip(1) {
        println!(
            "\n{} / {} (geometric mean of pairs, bootstrap 95 % interval):",
            options.subjects[0].name, subject.name
        );
        for test in bench.tests() {
            for (name, value) in metrics {
                let ratio = paired_ratio(&values(0, test, value), &values(other, test, value));
                let (low, high) = ratio.interval;
                let pairs = options.rounds;
                let (mean, smaller) = (ratio.mean, ratio.smaller);
                println!("  {test:<6} {name:<12} {mean:.3} [{low:.3}, {high:.3}]  smaller in {smaller} of {pairs}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_alternate_their_order() {
        assert_eq!(order(0, 3), [0, 1, 2]);
        assert_eq!(order(1, 3), [2, 1, 0]);
    }
}

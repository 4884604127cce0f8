//! http-server and its peers, interleaved, by wrk: one table of throughput, CPU time per request, tail and memory.

mod backend;
mod sample;
mod subject;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::compare::stats::{median, paired_ratio};
use crate::compare::{Pinning, order, parse_pinning};
use crate::process::Server;
pub(crate) use backend::Backend;
use sample::{Sample, Shape};
pub(crate) use subject::answers;
use subject::{SUBJECTS, Subject};

/// Cores of wrk above which it, and not the server, is the limit.
const GENERATOR_BOUND: f64 = 1.8;

/// Options of `cargo xtask http`.
///
/// Peers are built below the target folder, and a redis-server is started for `/get`; what cannot be had is named.
///
/// Example: cargo xtask http --only ours,floor,axum,net/http --shape /@100 --shape /@64x16 --rounds 10
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    /// Peers to measure, separated by commas; ours is always among them.
    /// floor, axum, actix-web, ntex, may_minihttp, net/http, fasthttp, go-redis, node, bun
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// What wrk does, as PATH@CONNECTIONS, or PATH@CONNECTIONSxDEPTH to send DEPTH requests at a time.
    #[arg(long = "shape", value_parser = Shape::parse, default_values = ["/@100", "/json@100", "/@20", "/@1", "/@1000", "/@64x16", "/get?key=foo@20"])]
    shapes: Vec<Shape>,
    /// HOST:PORT of a Redis that runs already, for `/get` [default: one of our own, of the redis-server that is installed].
    /// Its key `foo` is set.
    #[arg(long)]
    redis: Option<String>,
    /// Rounds: in each, every server is measured once in every shape; the order turns round each time.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Seconds of a run.
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Cores for the servers and for wrk, as server=1,client=0.
    #[arg(long, value_parser = parse_pinning)]
    pin: Option<Pinning>,
}

/// A subject that runs.
struct Running {
    subject: &'static Subject,
    server: Server,
}

/// One measurement, by its place.
struct Taken {
    subject: usize,
    shape: usize,
    sample: Sample,
}

/// Measures and prints; the raw samples go to a file below the target folder.
///
/// # Errors
/// When ours cannot be built, or a server answers wrongly. A peer that cannot be had is left out with a note.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.rounds > 0 && options.seconds > 0, "at least one round of one second is needed");
    let folder = crate::target_dir().join("http");
    fs::create_dir_all(&folder)?;
    let (shapes, backend) = backend(options, &folder)?;
    let redis = backend.as_ref().map(Backend::place);
    let wanted = |subject: &&Subject| {
        let is_named = options.only.is_empty() || options.only.iter().any(|name| name == subject.name);
        subject.name == "ours" || (is_named && shapes.iter().any(|shape| subject.answers(shape)))
    };
    let mut running = Vec::new();
    for subject in SUBJECTS.iter().filter(wanted) {
        match subject.build().and_then(|command| subject.start(&command, redis, options.pin.as_ref(), &folder)) {
            Ok(server) => running.push(Running { subject, server }),
            Err(error) if subject.name == "ours" => return Err(error),
            Err(error) => println!("left out: {}: {error:#}", subject.name),
        }
    }
    let (path, mut raw) = raw_file(&folder)?;
    let mut all = Vec::new();
    for round in 0..options.rounds {
        for (shape, load) in shapes.iter().enumerate() {
            for subject in order(round, running.len()) {
                let Running { subject: Subject { name, .. }, server } = &running[subject];
                if !running[subject].subject.answers(load) {
                    continue;
                }
                let run = load.run(server, options.seconds, options.pin.as_ref(), &folder);
                let sample = run.with_context(|| format!("{name} {}", load.name()))?;
                let Sample { rate, cpu_us, p99_ms, rss_mib, generator } = sample;
                let load = load.name();
                writeln!(raw, "{round},{name},{load},{rate},{cpu_us:.4},{p99_ms},{rss_mib:.1},{generator:.2}")?;
                all.push(Taken { subject, shape, sample });
            }
        }
    }
    for (shape, load) in shapes.iter().enumerate() {
        print(load, shape, &running, &all, options);
    }
    println!("raw samples: {}", path.display());
    Ok(())
}

/// The shapes that can be measured, and the Redis for those that need one.
fn backend(options: &Options, folder: &Path) -> Result<(Vec<Shape>, Option<Backend>)> {
    let mut shapes = options.shapes.clone();
    if !shapes.iter().any(Shape::needs_redis) {
        return Ok((shapes, None));
    }
    let backend = match &options.redis {
        Some(place) => Backend::running(place)?,
        None => match Backend::start(options.pin.as_ref(), folder) {
            Ok(backend) => backend,
            Err(error) => {
                println!("left out: what needs Redis: {error:#}");
                shapes.retain(|shape| !shape.needs_redis());
                return Ok((shapes, None));
            }
        },
    };
    Ok((shapes, Some(backend)))
}

fn raw_file(folder: &Path) -> Result<(PathBuf, File)> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock stands before 1970")?;
    let path = folder.join(format!("{}.csv", now.as_secs()));
    let mut file = File::create(&path)?;
    writeln!(file, "round,subject,shape,requests_per_s,server_cpu_us,p99_ms,rss_mib,generator_cores")?;
    Ok((path, file))
}

fn print(load: &Shape, shape: usize, running: &[Running], all: &[Taken], options: &Options) {
    println!(
        "\nwrk {}, {} rounds of {} s, medians; ours / theirs with 95 % interval:",
        load.name(),
        options.rounds,
        options.seconds
    );
    println!(
        "{:<14} {:>10} {:>9} {:>9} {:>8}   {:<24} {:<24}",
        "server", "requests/s", "CPU µs", "p99 ms", "RSS MiB", "CPU ratio", "rate ratio"
    );
    let values = |subject: usize, value: fn(&Sample) -> f64| -> Vec<f64> {
        let of_it = all.iter().filter(|taken| taken.subject == subject && taken.shape == shape);
        of_it.map(|taken| value(&taken.sample)).collect()
    };
    for (subject, Running { subject: Subject { name, .. }, .. }) in running.iter().enumerate() {
        if values(subject, |s| s.rate).is_empty() {
            continue;
        }
        let of = |value| median(&values(subject, value));
        let ratio = |value: fn(&Sample) -> f64| {
            if subject == 0 {
                return String::new();
            }
            let ratio = paired_ratio(&values(0, value), &values(subject, value));
            format!("{:.3} [{:.3}, {:.3}]", ratio.mean, ratio.interval.0, ratio.interval.1)
        };
        let bound = if of(|s| s.generator) > GENERATOR_BOUND { "generator-bound" } else { "" };
        println!(
            "{name:<14} {:>10.0} {:>9.3} {:>9.2} {:>8.1}   {:<24} {:<24} {bound}",
            of(|s| s.rate),
            of(|s| s.cpu_us),
            of(|s| s.p99_ms),
            of(|s| s.rss_mib),
            ratio(|s| s.cpu_us),
            ratio(|s| s.rate),
        );
    }
}

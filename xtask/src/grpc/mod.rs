//! grpc-server and its peers, interleaved, by h2load, ghz and our own generator: throughput, CPU time per call, tail, memory.

mod sample;
mod shape;
mod subject;
mod table;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::compare::{Pinning, order, parse_pinning};
use crate::process::Server;
use sample::Sample;
use shape::{Shape, Tools};
pub(crate) use subject::answers;
use subject::{SUBJECTS, Subject};

/// Options of `cargo xtask grpc`.
///
/// Example: cargo xtask grpc --only grpc-go --shape h2load@100x50 --shape ghz@100x50 --rounds 10
///
/// Needed: h2load; for grpc-go also go and protoc, for C++ g++, pkg-config, protoc, grpc_cpp_plugin and libgrpc++-dev.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Options {
    /// Peers to measure, separated by commas; ours is always among them.
    /// tonic, grpc-go, grpc-c++, grpc-js
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Who makes which load, as TOOL@CONNECTIONSxCALLS, with as many calls at a time on each connection.
    /// h2load and ghz call SayHello; unary and stream are our own generator's: SayHello, and streams of 1,000 replies.
    /// ghz@100x50 is the published command line.
    #[arg(
        long = "shape",
        value_parser = Shape::parse,
        default_values = ["h2load@100x50", "ghz@100x50", "unary@100x50", "unary@10x10", "unary@1x1", "stream@10x10"],
    )]
    shapes: Vec<Shape>,
    /// Rounds: in each, every server is measured once in every shape; the order turns round each time.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Seconds of a run, about: calls are counted, as many as a first run suggests.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Cores for the servers and for the generators, as server=1,client=0.
    #[arg(long, value_parser = parse_pinning)]
    pin: Option<Pinning>,
    /// Another command that starts ours, without `--listen ADDRESS` (default: the release build).
    #[arg(long)]
    ours: Option<String>,
}

/// A subject that runs.
struct Running {
    name: &'static str,
    server: Server,
    /// Calls of a run in each shape.
    calls: Vec<u64>,
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
    ensure!(options.rounds > 0 && options.seconds > 0.0, "at least one round of some time is needed");
    let folder = crate::target_dir().join("grpc");
    fs::create_dir_all(&folder)?;
    let pin = options.pin.as_ref();
    let tools = Tools::open(&folder, pin, &options.shapes)?;
    let wanted = |subject: &&Subject| {
        options.only.is_empty() || subject.is_ours() || options.only.iter().any(|name| name == subject.name)
    };
    let mut running = Vec::new();
    for subject in SUBJECTS.iter().filter(wanted) {
        let started = subject.build(options.ours.as_deref()).and_then(|command| {
            let server = subject::start(command, pin, &folder)?;
            tools.verify(&server)?;
            Ok(server)
        });
        match started.with_context(|| subject.name) {
            Ok(server) => running.push(Running { name: subject.name, server, calls: Vec::new() }),
            Err(error) if subject.is_ours() => return Err(error),
            Err(error) => println!("left out: {error:#}"),
        }
    }
    for Running { server, calls, name } in &mut running {
        for shape in &options.shapes {
            calls.push(shape.calls_of(options.seconds, &tools, server).with_context(|| format!("{name} {shape}"))?);
        }
    }
    let all = measure(options, &tools, &running)?;
    for (shape, load) in options.shapes.iter().enumerate() {
        table::print(load, shape, &running, &all, options);
    }
    Ok(())
}

fn measure(options: &Options, tools: &Tools, running: &[Running]) -> Result<Vec<Taken>> {
    let (path, mut raw) = raw_file(&tools.folder, options)?;
    let mut all = Vec::new();
    for round in 0..options.rounds {
        for (shape, load) in options.shapes.iter().enumerate() {
            for subject in order(round, running.len()) {
                let Running { name, server, calls } = &running[subject];
                let sample = load.run(tools, server, calls[shape]).with_context(|| format!("{name} {load}"))?;
                writeln!(raw, "{round},{name},{load},{}", sample.csv())?;
                all.push(Taken { subject, shape, sample });
            }
        }
    }
    println!("raw samples: {}", path.display());
    Ok(all)
}

fn raw_file(folder: &std::path::Path, options: &Options) -> Result<(PathBuf, File)> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock stands before 1970")?;
    let path = folder.join(format!("{}.csv", now.as_secs()));
    let mut file = File::create(&path)?;
    if let Some(pin) = &options.pin {
        writeln!(file, "# server on cores {}, client on cores {}", pin.server(), pin.client())?;
    }
    writeln!(file, "round,subject,shape,{}", Sample::HEADER)?;
    Ok((path, file))
}

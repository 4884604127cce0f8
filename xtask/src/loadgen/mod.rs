//! What the load generator itself costs, compared with the tools that it stands in for, interleaved.
//!
//! Each contest has a target that answers a constant (`loadgen/examples/constant.rs`) or a genuine server, on one core, and
//! generators that take turns on another. What counts is the generator's CPU time per request, or the rate that it reaches.

mod contest;
mod report;
mod run;
mod tools;

use std::fs;

use anyhow::{Result, ensure};
use clap::Args;

use contest::CONTESTS;
use tools::Tools;

/// Options of `cargo xtask loadgen`. It needs two cores, cc, and the tools compared with: wrk, redis-benchmark, h2load, ghz.
#[derive(Args)]
pub(crate) struct Options {
    /// Rounds: in each, every generator runs once; the order turns round each time.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Seconds of a run, about.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Only contests whose name contains this: http, redis-p1, redis-p16, redis-server, grpc, udp, agree-http, ….
    #[arg(long, default_value = "")]
    only: String,
    /// Write the raw samples to xtask/record/loadgen.txt.
    #[arg(long)]
    record: bool,
}

/// Measures and prints; writes the raw samples down if asked to.
///
/// # Errors
/// When something of ours cannot be built or started, or a run fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.rounds > 0, "at least one round is needed");
    let tools = Tools::open()?;
    let mut text = String::new();
    for contest in CONTESTS.iter().filter(|contest| contest.name.contains(&options.only)) {
        let samples = run::interleaved(options, &tools, contest)?;
        print!("{}", report::table(contest, &samples));
        text += &report::raw(contest, &samples);
        text += &report::table(contest, &samples);
    }
    if options.record {
        let path = crate::root().join("xtask/record/loadgen.txt");
        fs::write(&path, report::header(options)? + &text)?;
        println!("record: {}", path.display());
    }
    Ok(())
}

//! The cost of keeping data: snapshots, the append-only file and loading, ours and a genuine server in interleaved rounds.

mod append;
mod load;
mod prober;
mod record;
mod replicate;
mod save;
mod subject;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use loadgen::compare::Machine;

use crate::programs::Compared;
use prober::Plot;
use record::Topic;
use subject::{Figures, Subject};

/// Options of `cargo xtask persistence`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only topics whose name contains this: save, load, append, replicate.
    #[arg(long)]
    only: Option<String>,
    #[command(flatten)]
    programs: Compared,
    /// Rounds of each topic; the first server of each takes turns.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Keys; with values of 1,000 bytes where snapshots are measured.
    #[arg(long, default_value_t = 1_000_000)]
    keys: usize,
    /// Where the outcome goes, in the place of what is there of the same topics.
    #[arg(long)]
    record: Option<PathBuf>,
    /// Measure nothing: print this record, and draw its latencies during snapshots to the file of its name that ends in svg.
    #[arg(long)]
    render: Option<PathBuf>,
}

/// Measures one server; what is to be drawn of it goes to the plot.
type Measure = fn(&Subject, &mut Plot) -> Result<Figures>;

const TOPICS: [(&str, Measure); 4] =
    [("save", save::measure), ("load", load::measure), ("append", append::measure), ("replicate", replicate::measure)];

/// The table of docs/redis/performance.md, from the record.
///
/// # Errors
/// The record's.
pub(crate) fn table() -> Result<String> {
    record::table(&record::read(&xtask::workspace::root().join("benches/record/persistence.jsonl"))?)
}

/// Runs the command.
///
/// # Errors
/// A server or the generator cannot be started, or fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    if let Some(path) = &options.render {
        return record::render(path);
    }
    let (ours, loadgen) = (options.programs.ours()?, options.programs.loadgen()?);
    let subject = |name, program: &Path| -> Result<Subject> {
        // Not the file that a link leads to: Debian's looks at its own name.
        let program = std::path::absolute(program)?.display().to_string();
        let folder = xtask::workspace::target_dir().join("persistence");
        Ok(Subject { name, program, loadgen: std::path::absolute(&loadgen)?, folder, keys: options.keys })
    };
    let subjects = [subject("ours", &ours)?, subject("redis", &options.programs.genuine)?];
    for (name, measure) in TOPICS {
        if options.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let mut latencies = Plot::default();
        let mut found: Vec<(String, [Vec<f64>; 2])> = Vec::new();
        for round in 0..options.rounds {
            for at in [round % 2, 1 - round % 2] {
                let figures = measure(&subjects[at], &mut latencies).with_context(|| format!("{name}, {at}"))?;
                for (row, (name, value)) in figures.into_iter().enumerate() {
                    if row == found.len() {
                        found.push((name.to_owned(), Default::default()));
                    }
                    found[row].1[at].push(value);
                }
            }
        }
        record::print_figures(&found);
        if let Some(path) = &options.record {
            let (topic, commit, machine) =
                (name.to_owned(), loadgen::compare::commit(xtask::workspace::root()), Machine::this());
            record::add(path, Topic { topic, commit, machine, keys: options.keys, figures: found, latencies })?;
        }
    }
    Ok(())
}

//! `loadgen merge`: the results of several generators as one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::front::{self, Exit};
use crate::objective::Objective;
use crate::output::{Outputs, table};
use crate::record::Outcome;

/// Merges the results of generators that put load on one server at the same time.
#[derive(Args, Debug)]
pub struct MergeArgs {
    /// Results that `--json` wrote
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Objectives of the merged result, such as p99=2ms; can be given several times
    #[arg(long, value_name = "OBJECTIVE")]
    slo: Vec<Objective>,

    /// Write the merged result with its full histograms as JSON; `-` is the standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write one line per second as CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write a page with plots that needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write an interval log that HdrHistogram's tools read
    #[arg(long, value_name = "FILE")]
    hdr: Option<PathBuf>,
}

/// Merges, shows and writes.
pub(super) fn merge(args: &MergeArgs) -> ExitCode {
    match merged(&args.files) {
        Ok(outcome) => {
            let (json, csv) = (args.json.clone(), args.csv.clone());
            let outputs = Outputs { json, csv, html: args.html.clone(), hdr: args.hdr.clone() };
            front::show(&outcome, &outputs, &args.slo, &table).into()
        }
        Err(error) => {
            eprintln!("error: {error}");
            Exit::Usage.into()
        }
    }
}

fn merged(files: &[PathBuf]) -> Result<Outcome, String> {
    let read = |path: &PathBuf| Ok((path.display().to_string(), read(path)?));
    Outcome::merged(&files.iter().map(read).collect::<Result<Vec<_>, String>>()?)
}

fn read(path: &Path) -> Result<Outcome, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text)
        .map_err(|error| format!("{}: expected a result that --json wrote ({error})", path.display()))
}

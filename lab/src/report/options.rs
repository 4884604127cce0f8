//! Options of `cargo xtask report`.

use std::path::PathBuf;

use clap::Args;

/// Options of `cargo xtask report`.
#[derive(Args)]
pub(crate) struct Options {
    /// Only this finding, F1 and so on; can be given several times.
    #[arg(long)]
    pub(super) only: Vec<String>,
    /// Fewer scenarios, subjects and rounds: on two cores less than half an hour from a fresh clone.
    #[arg(long)]
    pub(super) quick: bool,
    /// Rounds of every comparison, instead of those in its plan.
    #[arg(long, conflicts_with = "quick")]
    pub(super) rounds: Option<usize>,
    /// Take our programs as they lie in target/dist.
    #[arg(long)]
    pub(super) no_build: bool,
    /// Leave out findings whose records are whole, of this commit without changes, and of all that is asked for.
    #[arg(long)]
    pub(super) resume: bool,
    /// Measure nothing: render the records that there are.
    #[arg(long, conflicts_with_all = ["only", "quick", "rounds", "resume"])]
    pub(super) render: bool,
    /// Measure nothing: write the tables of READMEs that come from records, as benches/scenarios/readme.toml says.
    #[arg(long, conflicts_with_all = ["only", "quick", "rounds", "resume", "render", "micro"])]
    pub(super) readme: bool,
    /// Measure nothing: keep a compact form of this record of `loadgen compare` in benches/record, and write the tables of READMEs.
    #[arg(long, value_name = "NAME.jsonl", conflicts_with_all = ["only", "quick", "rounds", "resume", "render", "micro", "readme"])]
    pub(super) keep: Option<PathBuf>,
    /// Measure nothing: take the outcomes of hypotheses from the last run of the microbenchmarks
    /// (docs/internals/measuring.md), and render.
    #[arg(long, conflicts_with_all = ["only", "quick", "rounds", "resume", "render"])]
    pub(super) micro: bool,
}

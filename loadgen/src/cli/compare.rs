//! `loadgen compare`, `loadgen report` and `loadgen gate`.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result};
use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::drive::ReadScenario;
use crate::compare::{self, Judgement, Metric, Plan, Record, Rules, Stored, Surroundings, Time, Writer};
use crate::front::{self, Exit};
use crate::number;
use crate::output;
use crate::record::Outcome;
use crate::watch::Watch;

/// Shows what a file may say.
const EXAMPLE: &str = concat!("An example of a file:\n\n", include_str!("../../examples/redis.toml"));

/// Options of `loadgen compare`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLE)]
pub struct CompareArgs {
    /// A TOML file with subjects and scenarios
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,

    /// Begin of the names of what is written: NAME.jsonl, NAME.md and NAME.html [default: the file's name and the date]
    #[arg(short, long, value_name = "NAME")]
    output: Option<PathBuf>,

    /// Rounds, instead of the file's
    #[arg(long, value_name = "N", value_parser = number::size)]
    rounds: Option<usize>,

    /// How long runs last that last for a time, instead of the file's
    #[arg(short, long, value_name = "TIME", value_parser = time)]
    duration: Option<Time>,

    /// Only this subject; can be given several times
    #[arg(long, value_name = "SUBJECT")]
    only: Vec<String>,

    /// Only this scenario; can be given several times
    #[arg(long, value_name = "SCENARIO")]
    scenario: Vec<String>,

    /// Install subjects that are absent, where the file says how
    #[arg(long)]
    install: bool,

    /// Print nothing but the tables
    #[arg(short, long)]
    quiet: bool,
}

/// Options of `loadgen report`.
#[derive(Args, Clone, Debug)]
pub struct ReportArgs {
    /// Records of comparisons, or results of single runs that --json wrote
    #[arg(value_name = "RECORD", required = true)]
    records: Vec<PathBuf>,

    /// Write a page with plots that needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write the Markdown here instead of printing it
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// Options of `loadgen gate`.
#[derive(Args, Clone, Debug)]
pub struct GateArgs {
    /// The record to be judged
    #[arg(value_name = "RECORD")]
    record: PathBuf,

    /// The record that it is judged by
    #[arg(long, value_name = "RECORD")]
    baseline: PathBuf,

    /// By how much a metric may be worse
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = number::parse_share)]
    max_regression: f64,

    /// A metric to judge by: throughput, cpu (of the server per answer), p50, p99, p99.9, memory, switches; can be given
    /// several times [default: throughput, p99 and cpu]
    #[arg(long, value_name = "NAME")]
    metric: Vec<Metric>,

    /// Judge only this subject; can be given several times
    #[arg(long, value_name = "NAME")]
    subject: Vec<String>,

    /// Judge by the ratios to this subject, whose own change is taken for the machine's
    #[arg(long, value_name = "NAME")]
    relative_to: Option<String>,
}

fn time(text: &str) -> Result<Time, String> {
    Time::try_from(text.to_owned())
}

/// Checks the options of a command line without its program's name.
type Check = fn(&[String]) -> Result<(), String>;

/// Makes a comparison.
pub(super) fn compare(args: &CompareArgs, check: Check, scenario: ReadScenario) -> ExitCode {
    match read_plan(args, check) {
        Ok(plan) => finish(make(args, &plan, scenario)),
        Err(error) => wrong_usage(&error),
    }
}

/// Renders records.
pub(super) fn report(args: &ReportArgs) -> ExitCode {
    finish(render(args).map(|()| ExitCode::SUCCESS))
}

/// Judges a record.
pub(super) fn gate(args: &GateArgs) -> ExitCode {
    let result = || -> Result<ExitCode> {
        let (old, new) = (Record::read(&args.baseline)?, Record::read(&args.record)?);
        let default = vec![Metric::Throughput, Metric::P99, Metric::Cpu];
        let rules = Rules {
            most: args.max_regression,
            metrics: if args.metric.is_empty() { default } else { args.metric.clone() },
            subjects: args.subject.clone(),
            relative_to: args.relative_to.clone(),
        };
        let gate = compare::judge(&old, &new, &rules).map_err(anyhow::Error::msg)?;
        print(&format!("{gate}\n"))?;
        Ok(match gate.result() {
            Judgement::Fine => Exit::Fine.into(),
            Judgement::Regression | Judgement::Missing => Exit::Missed.into(),
            Judgement::Inconclusive => Exit::Inconclusive.into(),
        })
    };
    finish(result())
}

fn finish(result: Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn wrong_usage(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    Exit::Usage.into()
}

fn read_plan(args: &CompareArgs, check: Check) -> Result<Plan> {
    let name = args.file.display();
    let text = fs::read_to_string(&args.file).with_context(|| format!("cannot read {name}"))?;
    let mut plan = Plan::parse(&text).map_err(anyhow::Error::msg).with_context(|| format!("{name}"))?;
    plan.restrict(&args.only, &args.scenario).map_err(anyhow::Error::msg)?;
    plan.rounds = args.rounds.unwrap_or(plan.rounds);
    if let Some(duration) = &args.duration {
        plan.set_duration(duration);
    }
    for scenario in &plan.scenarios {
        let rate: &[String] = if scenario.rate_of.is_some() { &["--rate".to_owned(), "1".to_owned()] } else { &[] };
        let commands = scenario.command.iter().map(|words| (words, rate));
        for (words, more) in commands.chain(scenario.prepare.iter().map(|words| (words, &[][..]))) {
            // A wrong load is better reported before servers are started.
            check(&words.aimed("127.0.0.1", 1, more))
                .map_err(|error| anyhow::anyhow!("scenario {}: `{words}`: {}", scenario.name, error.trim()))?;
        }
    }
    Ok(plan)
}

fn make(args: &CompareArgs, plan: &Plan, scenario: ReadScenario) -> Result<ExitCode> {
    let here = fs::canonicalize(&args.file)?.parent().unwrap_or_else(|| Path::new("/")).to_owned();
    // Servers get this process' limit of open files; without connections to check, it is only raised.
    front::allow_connections(0).map_err(|error| anyhow::anyhow!("{error}"))?;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // There is no second Ctrl-C that ends at once: the servers would be left behind.
        signal_hook::flag::register(signal, Arc::clone(&interrupted)).context("signals cannot be handled")?;
    }
    let name = args.output.clone().unwrap_or_else(|| {
        let stem = args.file.file_stem().unwrap_or_default().to_string_lossy();
        PathBuf::from(format!("{stem}-{}", compare::now().replace([':', '-'], "")))
    });
    let path = |extension: &str| PathBuf::from(format!("{}.{extension}", name.display()));
    let mut around = Process { scenario, interrupted, quiet: args.quiet };
    compare::run(plan, &here, args.install, &mut Writer::create(&path("jsonl"))?, &mut around)?;
    // Made from the record, so that `report` gives the same.
    let stored = Stored::read(&path("jsonl"))?;
    let markdown = markdown(&stored);
    write(&path("md"), &markdown)?;
    write(&path("html"), &compare::page(std::slice::from_ref(&stored)))?;
    print(&markdown)?;
    around.say(&format!("written: {0}.jsonl, {0}.md, {0}.html", name.display()));
    let Stored::Comparison(record) = stored else { unreachable!("a comparison was written") };
    let complete = record.end.is_some_and(|end| end.complete);
    Ok(match (complete, record.runs.is_empty()) {
        (false, _) => Exit::Interrupted.into(),
        (true, true) => Exit::Failed.into(),
        (true, false) => Exit::Fine.into(),
    })
}

fn render(args: &ReportArgs) -> Result<()> {
    let stored: Vec<Stored> = args.records.iter().map(|path| Stored::read(path)).collect::<Result<_>>()?;
    let text = stored.iter().map(markdown).collect::<Vec<_>>().join("\n");
    match &args.markdown {
        Some(path) => write(path, &text)?,
        None => print(&text)?,
    }
    if let Some(path) = &args.html {
        write(path, &compare::page(&stored))?;
    }
    Ok(())
}

fn markdown(stored: &Stored) -> String {
    match stored {
        Stored::Comparison(record) => compare::markdown(record),
        Stored::Single(outcome) => compare::single_markdown(outcome),
    }
}

fn print(text: &str) -> Result<()> {
    output::print(text).context("cannot write the standard output")
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// A comparison in this process.
struct Process {
    scenario: ReadScenario,
    interrupted: Arc<AtomicBool>,
    quiet: bool,
}

impl Surroundings for Process {
    fn run(&mut self, words: &[String]) -> Result<Outcome, String> {
        let scenario = (self.scenario)(words)?;
        if scenario.search {
            return Err("--rate max is for single runs; expected a rate, or none".to_owned());
        }
        front::allow_connections(scenario.workload.connections(&scenario.load)).map_err(|error| error.to_string())?;
        let interrupted = Arc::clone(&self.interrupted);
        Ok(scenario.run(&mut |_| if interrupted.load(Ordering::Relaxed) { Watch::Stop } else { Watch::GoOn }))
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn say(&mut self, text: &str) {
        if !self.quiet {
            // The reader may be gone; the comparison goes on.
            let _ = writeln!(io::stderr(), "{text}");
        }
    }
}

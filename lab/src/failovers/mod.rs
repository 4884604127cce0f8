//! Failovers, ours and the genuine server's in interleaved rounds: a primary is killed, stopped, cut off or told to hand over; how long
//! nothing can be written, and whether anything is lost that was acknowledged.
//!
//! Everything runs in network and process namespaces that end with this program.

pub(crate) mod client;
mod deployment;
mod history;
mod kind;
mod node;
mod record;
mod writer;

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use xtask::process::run_quietly;
use xtask::workspace::cargo;

use self::client::{Client, Reply, ask};
use self::deployment::{Deployment, until};
use self::kind::{KINDS, Kind};
use self::node::Fault;
use self::record::{Outcome, Row};
use self::writer::Writer;

/// Clients of each shard.
const WRITERS: usize = 2;
/// How long clients write before the fault.
const BEFORE: Duration = Duration::from_millis(700);

/// Options of `cargo xtask failovers`. It needs root or user namespaces, unshare, nsenter, ip and bridge; the genuine server is the Sentinel, too.
#[derive(Args)]
pub(crate) struct Options {
    /// Failovers of each kind.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Only kinds whose name holds one of these, such as `sentinel-kill` or `cut`.
    #[arg(long, value_delimiter = ',', value_name = "TEXT")]
    only: Vec<String>,
    /// Least number of seconds that a server stays away. Sentinels that have not decided yet may promote a server that returns at once
    /// without its data. In a cluster, a primary that is cut off needs some time to notice it.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    away: u64,
    /// Our server, instead of one that is built for it as tests are: what takes time are timeouts.
    #[arg(long, value_name = "PATH")]
    ours: Option<PathBuf>,
    #[arg(long, value_name = "PATH", default_value = "/usr/bin/redis-server")]
    genuine: PathBuf,
    /// Leave the genuine server out.
    #[arg(long)]
    ours_only: bool,
    /// Believe what servers answer and do not ask by WAIT, as if it were broken: what is lost then must be found.
    #[arg(long, conflicts_with = "record")]
    without_wait: bool,
    /// Keeps the rows in benches/record/failovers.jsonl, each in place of an older one of its kind.
    #[arg(long, conflicts_with_all = ["ours_only", "away"])]
    record: bool,
    /// Measures nothing: prints the table of what was kept.
    #[arg(long, conflicts_with = "record")]
    render: bool,
    /// In the namespaces already.
    #[arg(long, hide = true)]
    inside: bool,
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
/// A server cannot be started, or does not come back; something that was acknowledged is lost.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.render {
        print!("{}", record::text(&record::read()?));
        return Ok(());
    }
    if !options.inside {
        return run_inside(options);
    }
    // The first process of a namespace ends by no signal that it does not ask for; all others end with it.
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::new(AtomicBool::new(true)))?;
    }
    node::lay_bridge()?;
    let ours = options.ours.as_deref().context("--inside needs --ours")?;
    let programs = if options.ours_only { vec![ours] } else { vec![ours, &options.genuine] };
    for program in &programs {
        ensure!(program.is_file(), "{}: no program is there", program.display());
    }
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    for kind in KINDS {
        let name = kind.to_string();
        if !options.only.is_empty() && !options.only.iter().any(|text| name.contains(text)) {
            continue;
        }
        match measure(kind, &programs, options) {
            Ok(row) => {
                faults.extend(row.ours().violations.iter().map(|fault| format!("{name}: {fault}")));
                if options.record {
                    record::keep(&row)?;
                }
                rows.push(row);
            }
            Err(error) => faults.push(format!("{name}: {error:#}")),
        }
    }
    ensure!(!rows.is_empty() || !faults.is_empty(), "no kind's name holds any of {:?}", options.only);
    print!("{}", record::text(&rows));
    if !faults.is_empty() {
        bail!("{}", faults.join("\n"));
    }
    Ok(())
}

/// Runs this command in namespaces of its own; where there are none, or no genuine server, says so.
fn run_inside(options: &Options) -> Result<()> {
    let namespaces = || {
        let mut command = xtask::process::unshare();
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
        command
    };
    let needs = [
        ("network namespaces (root or user namespaces)", run_quietly(namespaces().arg("true"))),
        ("a genuine server, which is the Sentinel, too", run_quietly(Command::new(&options.genuine).arg("--version"))),
    ];
    for (what, is_there) in needs {
        if is_there.is_err() {
            ensure!(!xtask::workspace::requires_peers(), "REQUIRE_PEERS=1, and there are no {what}");
            println!("skipped: failovers (they need {what})");
            return Ok(());
        }
    }
    let mut command = namespaces();
    command.arg(env::current_exe()?).args(env::args_os().skip(1)).arg("--inside");
    if options.ours.is_none() {
        run_quietly(cargo().args(["build", "--quiet", "--package", "redis-server", "--bin", "redis-server"]))?;
        command.arg("--ours").arg(xtask::workspace::target_dir().join("debug/redis-server"));
    }
    let status = command.status().context("cannot start unshare")?;
    ensure!(status.success(), "failovers end with {status}");
    Ok(())
}

/// All rounds of a kind, of all servers in turns.
fn measure(kind: Kind, programs: &[&Path], options: &Options) -> Result<Row> {
    // A server that hands over loses no answered write.
    let waits = kind.fault != Fault::Planned && !options.without_wait;
    let mut subjects = Vec::new();
    for (number, program) in programs.iter().enumerate() {
        // Not the file that a link leads to: Debian's looks at its own name.
        let program = std::path::absolute(program)?;
        let root = xtask::workspace::target_dir().join("failovers").join(format!("{kind}-{number}"));
        let port = 26400 + 10 * u16::try_from(number)?;
        let started = Deployment::start(kind.setup, &program, &options.genuine, &root, port);
        subjects.push(Subject::new(
            kind.fault,
            waits,
            started.with_context(|| format!("{kind}, {}", program.display()))?,
        ));
    }
    for round in 0..options.rounds {
        for at in 0..subjects.len() {
            let at = (at + round) % subjects.len();
            subjects[at]
                .fail_over(kind.fault, round, Duration::from_secs(options.away))
                .with_context(|| format!("{kind}, round {round} of {}", programs[at].display()))?;
        }
    }
    Ok(Row::new(kind, subjects.into_iter().map(Subject::outcome).collect()))
}

/// A server's deployment with its clients.
struct Subject {
    deployment: Deployment,
    outside: Vec<Writer>,
    /// One of each shard, which stays with a primary that is cut off.
    beside: Vec<Writer>,
    writable: Vec<f64>,
    refused: Vec<f64>,
}

impl Subject {
    fn new(fault: Fault, waits: bool, deployment: Deployment) -> Self {
        let writer = |name: &str, shard| Writer::new(name, shard, deployment.tag(shard), waits);
        let outside = (0..deployment.shards() * WRITERS).map(|number| writer(&number.to_string(), number / WRITERS));
        let outside = outside.collect();
        let cut_off = if matches!(fault, Fault::Cut | Fault::Part) { deployment.shards() } else { 0 };
        Self {
            outside,
            beside: (0..cut_off).map(|shard| writer("beside", shard)).collect(),
            deployment,
            writable: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// One failover among writing clients, and a look at what is there behind it.
    fn fail_over(&mut self, fault: Fault, round: usize, away: Duration) -> Result<()> {
        let Self { deployment, outside, beside, .. } = self;
        let count = if fault == Fault::Part { 2 } else { 1 };
        let shards: Vec<usize> = (0..count).map(|next| (round + next) % deployment.shards()).collect();
        let primaries = shards.iter().map(|shard| deployment.primary(*shard)).collect::<Result<Vec<_>>>()?;
        let networks = primaries.iter().map(|primary| {
            let node = &deployment.nodes[*primary];
            Ok((node.addr, node.network()?))
        });
        let networks = networks.collect::<Result<Vec<_>>>()?;
        let over = AtomicBool::new(false);
        let (began, writable) = thread::scope(|scope| {
            let over = &over;
            for writer in outside.iter_mut() {
                let finder = deployment.finder(writer.shard);
                scope.spawn(move || writer.write(finder, over));
            }
            for writer in beside.iter_mut() {
                let Some(at) = shards.iter().position(|shard| *shard == writer.shard) else { continue };
                let (addr, network) = &networks[at];
                scope.spawn(move || {
                    node::enter(network).expect("who has made a namespace may enter it");
                    writer.write_only_to(*addr, over);
                });
            }
            let struck = strike(deployment, fault, &shards, &primaries, away);
            over.store(true, Relaxed);
            struck
        })?;
        self.writable.push(writable.as_secs_f64());
        let refused: Vec<Instant> = {
            let struck = self.beside.iter().filter(|writer| shards.contains(&writer.shard));
            struck.filter_map(|writer| writer.refused).collect()
        };
        ensure!(fault != Fault::Part || refused.len() == shards.len(), "the smaller part took writes to the end");
        self.refused.extend(refused.iter().map(|at| at.saturating_duration_since(began).as_secs_f64()));
        self.look()
    }

    /// Reads every writer's keys on every server.
    fn look(&mut self) -> Result<()> {
        for shard in 0..self.deployment.shards() {
            let mut client = Client::connect(self.deployment.nodes[self.deployment.primary(shard)?].addr)?;
            client.ask(&format!("SET settled:{{{}}} 1", self.deployment.tag(shard)))?;
            until("the replica has everything", || {
                Ok(matches!(client.ask("WAIT 1 500")?, Reply::Number(1..)).then_some(()))
            })?;
        }
        for writer in self.outside.iter_mut().chain(&mut self.beside) {
            for node in &self.deployment.nodes[2 * writer.shard..][..2] {
                writer.look(node.addr)?;
            }
        }
        Ok(())
    }

    fn outcome(self) -> Outcome {
        let writers = || self.outside.iter().chain(&self.beside);
        // A lost write is missed at each look.
        let violations: BTreeSet<_> = writers().flat_map(Writer::violations).collect();
        Outcome {
            kept: writers().map(Writer::kept).sum(),
            violations: violations.into_iter().collect(),
            writable: self.writable,
            refused: self.refused,
        }
    }
}

/// Takes the primaries of shards away until others have taken their places, and waits until all is settled. When that began, and how
/// long something could not be written.
fn strike(
    deployment: &mut Deployment,
    fault: Fault,
    shards: &[usize],
    primaries: &[usize],
    away: Duration,
) -> Result<(Instant, Duration)> {
    thread::sleep(BEFORE);
    let began = Instant::now();
    for primary in primaries {
        deployment.nodes[*primary].strike(fault)?;
        if fault == Fault::Planned {
            let (addr, command) = deployment.plan(*primary);
            until(command, || Ok((ask(addr, command)?.text() == "OK").then_some(())))?;
        }
    }
    for (shard, primary) in shards.iter().zip(primaries) {
        let (old, mut finder) = (deployment.nodes[*primary].addr, deployment.finder(*shard));
        let probe = format!("SET probe:{{{}}} 1", deployment.tag(*shard));
        until("another primary", || {
            let addr = finder.next()?;
            Ok((addr != old && ask(addr, &probe)?.text() == "OK").then_some(()))
        })?;
    }
    let writable = began.elapsed();
    if fault != Fault::Planned {
        thread::sleep(away.saturating_sub(writable));
    }
    for primary in primaries {
        deployment.nodes[*primary].heal(fault)?;
    }
    deployment.settle()?;
    Ok((began, writable))
}

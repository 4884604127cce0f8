//! Speed of ECHONET Lite devices and controllers: ours, the peers', and the least that is possible, interleaved.
//!
//! The generator, the floor and the programs on the peers' libraries are in `benches/peers`. Each pair of programs has a network of
//! its own.

mod report;
mod run;
mod space;
mod subject;

use std::fs;

use anyhow::{Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::compare::stats;
use run::Sample;
pub(crate) use space::{Holder, unshare};
use subject::{Role, Subject, Workshop};

/// Options of `cargo xtask echonet`. It needs two cores, root or user namespaces, cc, and for the peers Go, Node.js and
/// Python.
#[derive(Args)]
pub(crate) struct Options {
    /// Rounds: in each, every subject runs every scenario once; the order turns round each time.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Seconds of a run as a device.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Only scenarios whose name contains this: device-sequential, device-window, published, controller,
    /// controller-published.
    #[arg(long, default_value = "")]
    scenario: String,
    /// Only subjects whose name contains this; the floor always runs, for the ratios.
    #[arg(long, default_value = "")]
    subject: String,
    /// Only this placement: apart (subject and generator on a core each) or together (both on one).
    #[arg(long, value_parser = ["apart", "together"])]
    placement: Option<String>,
    /// Write the raw samples to xtask/record/echonet.txt.
    #[arg(long)]
    record: bool,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq)]
enum Scenario {
    /// Get of one property, one request under way.
    DeviceSequential,
    /// The same, 32 under way.
    DeviceWindow,
    /// The published benchmark: 12 properties of the node profile one by one, after a search by multicast.
    Published,
    /// The subject asks the floor for one property, with 32 under way where it can.
    Controller,
    /// The published benchmark as it was published, with the subject as its controller, and the floor as the device.
    ControllerPublished,
}

impl Scenario {
    const ALL: [Self; 5] =
        [Self::DeviceSequential, Self::DeviceWindow, Self::Published, Self::Controller, Self::ControllerPublished];

    fn name(self) -> &'static str {
        match self {
            Self::DeviceSequential => "device-sequential",
            Self::DeviceWindow => "device-window",
            Self::Published => "published",
            Self::Controller => "controller",
            Self::ControllerPublished => "controller-published",
        }
    }

    fn role(self) -> Role {
        match self {
            Self::DeviceSequential | Self::DeviceWindow | Self::Published => Role::Device,
            Self::Controller | Self::ControllerPublished => Role::Controller,
        }
    }
}

/// On which core each side runs.
#[derive(Clone, Copy, PartialEq)]
enum Placement {
    Apart,
    Together,
}

impl Placement {
    fn name(self) -> &'static str {
        match self {
            Self::Apart => "apart",
            Self::Together => "together",
        }
    }

    /// The core of the other side; the subject's is [`SUBJECT_CORE`].
    fn other_core(self) -> &'static str {
        match self {
            Self::Apart => "0",
            Self::Together => SUBJECT_CORE,
        }
    }
}

/// Every subject has one core, so that rates are rates per core.
const SUBJECT_CORE: &str = "1";

/// A run as a controller, for the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ControllerRun {
    /// Scenario and placement: "controller, apart".
    pub(crate) scenario: String,
    pub(crate) subject: String,
    pub(crate) round: usize,
    pub(crate) per_second: f64,
    /// The controller's user and system time per request.
    pub(crate) cpu_us: f64,
    pub(crate) lost: u64,
}

/// Controllers that are built or fetched, and the device that they ask.
pub(crate) struct Controllers {
    workshop: Workshop,
    subjects: Vec<Subject>,
}

impl Controllers {
    /// Those that are `wanted`, ours as they were built before; a peer that cannot be had is printed and left out.
    ///
    /// # Errors
    /// When generator and floor cannot be compiled.
    pub(crate) fn prepare(wanted: &dyn Fn(&str) -> bool) -> Result<Self> {
        let workshop = Workshop::open(true)?;
        let subjects = workshop.subjects(wanted)?;
        Ok(Self { workshop, subjects })
    }

    /// Measures them in both placements; what fails is printed and left out. With `published`, only the published benchmark.
    ///
    /// # Errors
    /// When there are no networks to run in, ours fails, or `stop` says to give up.
    pub(crate) fn measure(&self, rounds: usize, published: bool, stop: Stop<'_>) -> Result<Vec<ControllerRun>> {
        let mut runs = Vec::new();
        for (scenario, placement) in contests(published) {
            let name = format!("{}, {}", scenario.name(), placement.name());
            let plan = Contest { rounds, seconds: 1.0, scenario, placement, stop };
            let samples = run::interleaved(&plan, &self.workshop, &self.subjects)?;
            runs.extend(samples.into_iter().map(|sample| ControllerRun {
                scenario: name.clone(),
                subject: self.subjects[sample.subject].name.to_owned(),
                round: sample.round,
                per_second: sample.rate,
                cpu_us: sample.cpu_us,
                lost: sample.lost,
            }));
        }
        Ok(runs)
    }
}

/// How many runs [`Controllers::measure`] makes of so many controllers, at most.
pub(crate) fn controller_runs(controllers: usize, rounds: usize, published: bool) -> usize {
    contests(published).count() * controllers * rounds
}

fn contests(published: bool) -> impl Iterator<Item = (Scenario, Placement)> {
    let all = Scenario::ALL.into_iter().filter(|scenario| scenario.role() == Role::Controller);
    let wanted = all.filter(move |scenario| !published || *scenario == Scenario::ControllerPublished);
    wanted.flat_map(|scenario| [Placement::Apart, Placement::Together].map(|placement| (scenario, placement)))
}

/// Whether the user wants it to end.
pub(crate) type Stop<'a> = &'a dyn Fn() -> bool;

/// What all subjects run, and how often.
struct Contest<'a> {
    rounds: usize,
    seconds: f64,
    scenario: Scenario,
    placement: Placement,
    stop: Stop<'a>,
}

/// Measures, prints a table, and writes the raw samples down if asked to.
///
/// # Errors
/// When something cannot be built or started, or a run fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.rounds > 0, "at least one round is needed");
    let workshop = Workshop::open(false)?;
    let subjects = workshop.subjects(&|name| name.contains(&options.subject))?;
    let mut samples = Vec::new();
    for scenario in Scenario::ALL.into_iter().filter(|scenario| scenario.name().contains(&options.scenario)) {
        for placement in [Placement::Apart, Placement::Together] {
            if options.placement.as_ref().is_some_and(|only| only != placement.name()) {
                continue;
            }
            let (rounds, seconds) = (options.rounds, options.seconds);
            let contest = Contest { rounds, seconds, scenario, placement, stop: &|| false };
            let taken = run::interleaved(&contest, &workshop, &subjects)?;
            report::print(scenario, placement, &subjects, &taken);
            samples.extend(taken);
        }
    }
    if options.record {
        let path = crate::root().join("xtask/record/echonet.txt");
        fs::write(&path, report::record(options, &subjects, &samples)?)?;
        println!("raw samples: {}", path.display());
    }
    Ok(())
}

//! Speed of ECHONET Lite devices and controllers: ours, the peers', and the least that is possible, interleaved.
//!
//! The generator (`xtask/echonet/generator.c`) and the floor (`floor.c`) are compiled at run time, the peers' libraries are
//! fetched by their package clients. Each pair of programs has a network of its own.

mod report;
mod run;
mod space;
mod subject;

use std::fs;

use anyhow::{Result, ensure};
use clap::Args;

use crate::compare::stats;
use run::Sample;
use subject::{Role, Workshop};

/// Options of `cargo xtask echonet`. It needs two cores, root or user namespaces, cc, and for the peers Go and Node.js.
#[derive(Args)]
pub(crate) struct Options {
    /// Rounds: in each, every subject runs every scenario once; the order turns round each time.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Seconds of a run as a device.
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Only scenarios whose name contains this: device-sequential, device-window, published, controller.
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
}

impl Scenario {
    const ALL: [Self; 4] = [Self::DeviceSequential, Self::DeviceWindow, Self::Published, Self::Controller];

    fn name(self) -> &'static str {
        match self {
            Self::DeviceSequential => "device-sequential",
            Self::DeviceWindow => "device-window",
            Self::Published => "published",
            Self::Controller => "controller",
        }
    }

    fn role(self) -> Role {
        if self == Self::Controller { Role::Controller } else { Role::Device }
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

/// Measures, prints a table, and writes the raw samples down if asked to.
///
/// # Errors
/// When something cannot be built or started, or a run fails.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.rounds > 0, "at least one round is needed");
    let workshop = Workshop::open()?;
    let subjects = workshop.subjects(&options.subject)?;
    let mut samples = Vec::new();
    for scenario in Scenario::ALL.into_iter().filter(|scenario| scenario.name().contains(&options.scenario)) {
        for placement in [Placement::Apart, Placement::Together] {
            if options.placement.as_ref().is_some_and(|only| only != placement.name()) {
                continue;
            }
            let taken = run::interleaved(options, &workshop, &subjects, scenario, placement)?;
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

//! A run: a workload, a load, and the objectives of the result. Made from a command line, by hand or out of a comparison's file.

use std::net::SocketAddr;

use serde_json::{Map, Value};

use crate::codec::Protocol;
use crate::load::{Endpoint, Load};
use crate::objective::Objective;
use crate::pace::Pace;
use crate::record::Outcome;
use crate::session;
use crate::watch::{Progress, Watch};

/// A run that can be started as often as wanted.
pub struct Scenario {
    /// The run in words: protocol, address, load, and every setting that is not the default.
    pub description: String,
    /// The settings by name, so that the run can be repeated.
    pub settings: Map<String, Value>,
    /// The requests to the server.
    pub workload: Box<dyn Workload>,
    /// How much, how long, against which address.
    pub load: Load,
    /// The objectives of the result.
    pub objectives: Vec<Objective>,
    /// Whether the highest rate that meets the objectives is searched for (`--rate max`).
    pub search: bool,
}

impl Scenario {
    /// Runs it once. `watch` is called about ten times a second, on the calling thread.
    #[must_use]
    pub fn run(&self, watch: &mut dyn FnMut(&Progress<'_>) -> Watch) -> Outcome {
        self.run_with(&self.load, watch)
    }

    /// Runs it once with another load than its own, as the search for a rate does.
    #[must_use]
    pub fn run_with(&self, load: &Load, watch: &mut dyn FnMut(&Progress<'_>) -> Watch) -> Outcome {
        let mut outcome = self.workload.run(load, watch);
        outcome.notes.extend(latency_bound(load, &outcome));
        Outcome { description: self.description.clone(), settings: self.settings.clone(), ..outcome }
    }
}

/// Below this share of a processor, server and generator have nothing to do for half of the time.
const IDLE: f64 = 0.5;

/// Says that a closed loop measured its own size: neither side was saturated, so that more in flight would have shown more.
fn latency_bound(load: &Load, outcome: &Outcome) -> Option<String> {
    let server = outcome.server.filter(|_| outcome.seconds > 0.0)?;
    let is_idle = outcome.generator.busiest_thread < IDLE && server.cpu.total() / outcome.seconds < IDLE;
    let is_bound = is_idle && load.pace == Pace::Closed && outcome.answers() > 0;
    is_bound
        .then(|| "latency-bound: neither side was saturated: throughput equals concurrency ÷ mean latency".to_owned())
}

/// The requests to a server, whatever the protocol.
pub trait Workload: Send + Sync {
    /// Puts the load on the server. `watch` is called about ten times a second, on the calling thread.
    fn run(&self, load: &Load, watch: &mut dyn FnMut(&Progress<'_>) -> Watch) -> Outcome;

    /// Where the servers are: the addresses of each.
    fn servers(&self, load: &Load) -> Vec<Vec<SocketAddr>> {
        load.endpoints().map(Endpoint::addresses).map(<[SocketAddr]>::to_vec).collect()
    }

    /// The unit of the load in words: its requests, or the iterations that requests are steps of.
    fn unit(&self) -> &'static str {
        "requests"
    }

    /// How many connections there will be.
    fn connections(&self, load: &Load) -> usize {
        load.connections
    }
}

impl<P: Protocol> Workload for P {
    fn run(&self, load: &Load, watch: &mut dyn FnMut(&Progress<'_>) -> Watch) -> Outcome {
        session::run(self, load, watch)
    }

    fn unit(&self) -> &'static str {
        if self.iterations().is_some() { "iterations" } else { "requests" }
    }
}

//! The account of iterations: what virtual users did from their first request to their last answer.

use serde::{Deserialize, Serialize};

use super::{Latencies, Operation};
use crate::clock::Nanos;

/// The iterations of a run, in which each request is a step. The latencies of steps are those of the run's operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Iterations {
    /// By flow.
    pub flows: Vec<Flow>,
    /// How long the requests of each step took that failed, until they did.
    pub failed_steps: Vec<Operation>,
    /// The checks of answers, in the order of the file.
    pub checks: Vec<Check>,
}

/// The iterations of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Of complete iterations: from the intended time to the last answer, without think times.
    pub latencies: Latencies,
    /// Of iterations that ended with a request that failed: until it did.
    pub failed: Latencies,
}

/// A check of answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its step and its name.
    pub name: String,
    /// How many answers passed.
    pub passed: u64,
    /// How many did not.
    pub failed: u64,
}

impl Iterations {
    /// No iterations yet of these flows, steps and checks.
    pub(crate) fn new(
        flows: impl IntoIterator<Item = String>,
        steps: impl IntoIterator<Item = String>,
        checks: impl IntoIterator<Item = String>,
    ) -> Self {
        let flow = |name| Flow { name, latencies: Latencies::new(), failed: Latencies::new() };
        let step = |name| Operation { name, latencies: Latencies::new() };
        let check = |name| Check { name, passed: 0, failed: 0 };
        Self {
            flows: flows.into_iter().map(flow).collect(),
            failed_steps: steps.into_iter().map(step).collect(),
            checks: checks.into_iter().map(check).collect(),
        }
    }

    /// Complete iterations.
    #[must_use]
    pub fn complete(&self) -> u64 {
        self.flows.iter().map(|flow| flow.latencies.count()).sum()
    }

    /// Iterations that ended with a request that failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.flows.iter().map(|flow| flow.failed.count()).sum()
    }

    /// Adds those of another account of the same flows, steps and checks.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (own, theirs) in self.flows.iter_mut().zip(&other.flows) {
            own.latencies.merge(&theirs.latencies);
            own.failed.merge(&theirs.failed);
        }
        for (own, theirs) in self.failed_steps.iter_mut().zip(&other.failed_steps) {
            own.latencies.merge(&theirs.latencies);
        }
        for (own, theirs) in self.checks.iter_mut().zip(&other.checks) {
            own.passed += theirs.passed;
            own.failed += theirs.failed;
        }
    }

    /// Forgets all, but keeps the memory.
    pub(crate) fn clear(&mut self) {
        for flow in &mut self.flows {
            flow.latencies.clear();
            flow.failed.clear();
        }
        self.failed_steps.iter_mut().filter(|step| step.latencies.count() > 0).for_each(|step| step.latencies.clear());
        for check in &mut self.checks {
            (check.passed, check.failed) = (0, 0);
        }
    }

    pub(super) fn failed_step(&mut self, step: usize, nanos: Nanos) {
        self.failed_steps[step].latencies.record(nanos);
    }
}

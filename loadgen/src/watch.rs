//! What can be seen of a run while it goes on.

use std::time::Duration;

use crate::record::{Failures, Interval};

/// A run, as it is now.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'run> {
    /// What it is doing.
    pub phase: Phase,
    /// How long it has gone on, warm-up included.
    pub elapsed: Duration,
    /// The last whole second, or the first one so far.
    pub interval: &'run Interval,
    /// Right answers since the measurement began.
    pub answers: u64,
    /// Failures since the beginning.
    pub failures: &'run Failures,
    /// Connections that are open.
    pub connections: usize,
}

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Load before the measurement.
    WarmUp,
    /// What counts.
    Measuring,
    /// Nothing new is sent; the last answers are waited for.
    Draining,
}

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// It does.
    GoOn,
    /// It ends now, with the results so far.
    Stop,
}

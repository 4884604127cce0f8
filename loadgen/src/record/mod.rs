//! The findings of a run: latencies, failures, and its cost.
//!
//! Each thread keeps a [`Tally`]; the run's [`Outcome`] is made of all of them.

mod failure;
mod histogram;
mod iterations;
mod merge;
mod openings;
mod operation;
mod outcome;
mod tally;

pub use failure::{EXAMPLES, Failure, FailureCount, Failures};
pub use histogram::{Latencies, Sealed};
pub use iterations::{Check, Flow, Iterations};
pub use openings::{OpeningPart, Openings};
pub use operation::Operation;
pub use outcome::{
    Cpu, Deliveries, Ending, Fairness, Generator, Interval, Outcome, Redirects, ServerInterval, ServerUse, Stalls,
    StatusCount, Told,
};
pub use tally::{Parts, Tally, Window};

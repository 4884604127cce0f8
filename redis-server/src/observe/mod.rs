//! Observation of the server: counters, the slow log, latency events, MONITOR, memory.

pub mod hotkeys;
pub mod memory;
mod observers;
pub mod stats;

pub use observers::*;

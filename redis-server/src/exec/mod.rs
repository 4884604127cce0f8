//! How commands run: admission, the locks of a window, transactions, blocked clients, scripts, eviction.

pub mod aof;
mod apply;
pub mod cluster;
pub mod core;
pub mod eviction;
pub mod gate;
pub mod replication;
pub mod run;
pub mod script;
pub mod search;
pub mod snapshot;

pub use crate::clients::notifications::Event;

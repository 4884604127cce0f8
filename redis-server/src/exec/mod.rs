//! How commands run: admission, the locks of a window, transactions, blocked clients, scripts, eviction.

pub mod aof;
pub mod blocking;
pub mod client_eviction;
pub mod client_list;
pub mod cluster;
pub mod core;
pub mod dispatch;
pub mod eviction;
pub mod gate;
pub(crate) mod panics;
pub mod permission;
pub(crate) mod pipeline;
mod replay;
pub mod replication;
pub mod script;
pub mod search;
pub mod session;
pub mod slow;
pub mod snapshot;
pub mod tracking;
pub mod transaction;
pub mod window;

pub use crate::clients::notifications::Event;

//! The way of a command: from its words to its reply, and the commands that wait.

pub mod admission;
pub mod blocking;
pub mod client_eviction;
pub mod client_list;
pub mod dispatch;
pub mod invoke;
pub mod outcome;
pub(crate) mod panics;
pub mod parked;
pub mod permission;
pub(crate) mod pipeline;
pub mod resolve;
pub mod session;
pub mod slow;
pub mod tracking;
pub mod transaction;
pub mod window;

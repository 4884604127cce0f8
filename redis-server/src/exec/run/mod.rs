//! The way of a command: from its words to its reply, and the commands that wait.

pub mod admission;
pub mod alone;
pub mod blocking;
pub mod client_eviction;
pub mod client_list;
pub mod dispatch;
pub mod invoke;
pub(crate) mod judge;
pub mod outcome;
pub(crate) mod panics;
pub mod parked;
pub mod permission;
pub(crate) mod pipeline;
pub mod session;
pub mod slow;
pub(in crate::exec) mod stack;
pub mod tracking;
pub mod transaction;
pub mod window;

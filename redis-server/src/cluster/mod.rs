//! Redis Cluster (<https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>) without sockets, files or a clock.
//!
//! [`Machine`] is a node: bytes of the cluster's bus, subcommands and the time go in; packets, a file's text and what the data is to do
//! come out. [`Routing`] has the owners of slots, for the execution of commands. [`packet`] is the bus's format.

mod action;
mod id;
mod machine;
pub mod moves;
mod nodes;
pub(crate) mod note;
pub mod packet;
mod random;
mod routing;
mod settings;
#[cfg(test)]
mod simulation;
mod slot;
mod slot_set;

pub use action::{Action, Facts, Level, Link, Millis, PrimaryLink};
pub use id::{ID, NodeId};
pub use machine::{Failover, LinkInfo, Machine, SavedError, SetSlot, ShardInfo, ShardNode};
pub use nodes::MAX_NODES;
pub use routing::{Endpoint, NOBODY, Routing};
pub use settings::Settings;
pub use slot::{SLOTS, parse as parse_slot, slot_of};
pub use slot_set::{BITMAP, SlotSet};

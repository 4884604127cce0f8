//! Redis Cluster (<https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>) without sockets, files or a clock.

mod action;
mod id;
mod routing;
mod settings;
mod slot;
mod slot_set;

pub use action::{Action, Facts, Level, Link, Millis, PrimaryLink};
pub use id::{ID, NodeId};
pub use routing::{Endpoint, NOBODY, Routing};
pub use settings::Settings;
pub use slot::{SLOTS, parse as parse_slot, slot_of};
pub use slot_set::{BITMAP, SlotSet};

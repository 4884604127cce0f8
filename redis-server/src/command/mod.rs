//! The definition of a command: its row in the table, and its arguments.

mod args;
mod flags;
mod keys;
mod registry;
mod role;
mod row;
mod unknown;
pub mod weight;

pub use args::{Args, OwnedArgs};
pub use flags::{Categories, Flags, acl};
pub use keys::{Begin, Find, KeySpec, Use, keynum, numkeys, optional, read, reads, update, write, writes};
pub use registry::{MAX_ROWS, Recent, Registry, Row, Slot, index};
pub use role::Role;
pub(crate) use row::{BATCH_ARGS, NO_BATCH};
pub use row::{Command, DatabasePositions, Footprint, KeyPositions, KeyUses, Reach, Result};
pub use weight::{STRING_UNIT, Weight};

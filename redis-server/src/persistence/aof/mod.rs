//! The append-only file: commands in RESP, in several files that a manifest names in order, as Redis 7 has them.
//!
//! Nothing here knows the data or the time: [`Log`] has the files, [`Writer`] decides what is written and forced to disk when, [`Reader`]
//! cuts what was written into commands. All of them work on a [`Disk`](super::disk::Disk). The threads and the timing are in
//! [`exec::aof`](crate::exec::aof).

mod check;
mod layout;
mod log;
mod manifest;
mod plain;
mod reader;
mod writer;

pub use check::{Contents, Damage, check, fix};
pub use layout::Layout;
pub(crate) use log::find;
pub use log::{FindError, Log, Partial};
pub use manifest::{Manifest, ManifestError, Part, SEQ_MAX};
pub use plain::{Buffered, PlainWriter, Put};
pub use reader::{Batch, ReadFault, Reader};
pub use writer::{Failed, Fsync, Mark, Now, Policy, Sync, Writer};

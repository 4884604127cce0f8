//! What outlives the server: the formats of Redis' files, and files that are replaced as a whole.
//!
//! Formats take bytes and give bytes; [`SnapshotFile`] is the only one here that touches a disk. Who saves and loads, and
//! under which locks, is told in [`exec::snapshot`](crate::exec::snapshot).

mod file;
pub mod rdb;
mod status;

pub use file::SnapshotFile;
pub use status::{Outcome, Status};

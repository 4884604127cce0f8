//! What outlives the server: the formats of Redis' files, and files that are replaced as a whole.
//!
//! Formats take bytes and give bytes; whatever is written goes through [`disk`]. Who saves and loads, and
//! under which locks, is told in [`exec::snapshot`](crate::exec::snapshot).

pub mod aof;
pub mod disk;
mod file;
pub mod rdb;
mod status;

pub use file::SnapshotFile;
pub use status::{Outcome, Status};

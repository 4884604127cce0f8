//! Persistence: the formats of Redis' files, and files that are replaced as a whole.
//!
//! Formats convert bytes to and from values; all writes go through [`disk`]. Saving, loading and their locks are in
//! [`exec::snapshot`](crate::exec::snapshot).

pub mod aof;
pub mod disk;
mod file;
pub mod rdb;
mod status;

pub use file::SnapshotFile;
pub use status::{Outcome, Status};

//! The workspace's published pages, tested as a reader sees them.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod report;

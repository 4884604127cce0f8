//! What this workspace publishes, looked at as its readers do.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod report;

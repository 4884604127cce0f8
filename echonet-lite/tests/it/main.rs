//! Integration tests: one binary, one module per subject.
#![allow(missing_docs, reason = "tests")]

mod class;
mod network;
#[cfg(feature = "net")]
mod peers;
mod simulation;

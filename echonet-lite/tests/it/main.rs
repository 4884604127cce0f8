//! Integration tests: one binary, one module per subject.
#![allow(missing_docs, unreachable_pub, reason = "the modules of a test binary are its own")]

mod announcements;
mod class;
mod conformance;
mod malformed;
mod network;
#[cfg(feature = "net")]
mod peers;
mod simulation;
mod support;
mod vectors;

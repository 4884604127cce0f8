//! Integration tests: one binary, one module per subject.
#![allow(missing_docs, unreachable_pub, reason = "the modules of a test binary are its own")]

mod announcements;
mod class;
mod conformance;
#[cfg(feature = "std")]
mod home;
mod malformed;
#[cfg(feature = "std")]
mod network;
#[cfg(feature = "std")]
mod simulation;
mod support;
mod values;
mod vectors;

//! Integration tests: one binary, one module per subject.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod announcements;
#[cfg(all(feature = "certify", feature = "emulate"))]
mod certify;
mod class;
mod conformance;
#[cfg(feature = "std")]
mod home;
mod judge;
mod malformed;
#[cfg(feature = "net")]
mod net;
#[cfg(feature = "std")]
mod network;
#[cfg(feature = "net")]
mod peers;
#[cfg(feature = "emulate")]
mod power_cut;
#[cfg(all(feature = "serde", feature = "std"))]
mod shape;
#[cfg(feature = "std")]
mod simulation;
mod support;
mod typed;
mod values;
mod vectors;

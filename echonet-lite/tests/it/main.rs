//! Integration tests: one binary, one module per subject.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod announcements;
#[cfg(feature = "cli")]
mod attacks;
#[cfg(feature = "mqtt")]
mod bridge;
#[cfg(all(feature = "certify", feature = "emulate"))]
mod certify;
mod class;
#[cfg(feature = "cli")]
mod cli;
mod conformance;
#[cfg(feature = "cli")]
#[cfg_attr(not(any(feature = "mqtt", feature = "web")), allow(dead_code, reason = "the servers' tests use all of it"))]
mod emulated;
#[cfg(feature = "web")]
mod export;
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
#[cfg(feature = "cli")]
mod reach;
#[cfg(feature = "cli")]
mod reports;
#[cfg(all(feature = "cli", feature = "serial"))]
mod route_b;
#[cfg(all(feature = "serde", feature = "std"))]
mod shape;
#[cfg(feature = "std")]
mod simulation;
mod support;
mod typed;
mod values;
mod vectors;
#[cfg(feature = "web")]
mod web;

//! Integration tests of the command: one binary, one module per subject.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod attacks;
#[cfg(feature = "mqtt")]
mod bridge;
mod certified;
mod cli;
#[cfg_attr(not(any(feature = "mqtt", feature = "web")), allow(dead_code, reason = "the servers' tests use all of it"))]
mod emulated;
#[cfg(feature = "web")]
mod export;
mod reach;
mod reports;
#[cfg(feature = "serial")]
mod route_b;
#[cfg(feature = "web")]
mod web;

/// The maker of emulated nodes: the code for experiments.
const MAKER: [u8; 3] = [0x00, 0x00, 0x77];

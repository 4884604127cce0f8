//! The runtime from outside: real sockets on loopback.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod connections;
mod limits;
mod logging;
mod metrics;
mod places;
mod shutdown;
mod support;
mod tls;

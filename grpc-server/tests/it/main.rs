//! Tests of the whole server over sockets: calls, faults, shutdown.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod calls;
mod support;

//! The load generator against servers that the tests make themselves, and against genuine ones.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod cluster;
mod command;
mod compare;
mod drop_in;
mod faults;
mod flows;
mod grpc;
#[cfg(feature = "http3")]
mod http3;
mod many;
mod misbehaving;
mod pubsub;
mod replay;
mod scenarios;
mod target;
mod truth;

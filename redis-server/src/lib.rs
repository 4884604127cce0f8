//! A Redis-compatible server, as a library.
//!
//! `src/main.rs` starts it from a configuration; [`runtime::start`] does so inside of another program. From the socket
//! inwards: [`runtime`] (connections) → [`protocol`] (the wire) → [`exec`] (admission and the locks) → [`commands`]
//! (handlers) → [`keyspace`] → [`types`] (data structures).

#[cfg(test)]
mod cache_lines;
pub mod clients;
pub mod cluster;
pub mod command;
pub mod commands;
pub mod config;
pub mod exec;
pub mod journal;
pub mod keyspace;
pub mod observe;
pub mod persistence;
pub mod process;
pub mod protocol;
pub mod runtime;
#[cfg(feature = "search")]
pub mod search;
mod threads;
pub mod types;

pub use runtime::test;

/// The version of Redis whose commands and replies are offered, as clients are told.
pub const REDIS_VERSION: &str = "7.0.15";

//! A Redis-compatible server, as a library.
//!
//! `src/main.rs` starts it from a configuration; [`server::start`] does so inside of another program. From the socket
//! inwards: [`server`] (connections) → [`resp`] (the wire) → [`dispatch`] (the gate and the locks) → [`commands`]
//! (handlers) → [`db`] (the keyspace) → [`types`] (data structures).

pub mod acl;
pub mod blocking;
pub mod client;
pub mod command;
pub mod commands;
pub mod config;
pub mod crew;
pub mod crowd;
pub mod db;
pub mod dispatch;
pub mod embedded;
pub mod error;
pub mod evict;
pub mod glob;
pub mod guest;
pub mod instance;
pub mod logging;
pub mod memory;
mod metrics;
pub mod notify;
pub mod number;
pub mod observe;
pub mod peer;
pub mod persist;
mod pipeline;
pub mod pubsub;
pub mod registry;
pub mod resp;
pub mod script;
pub mod server;
pub mod stats;
pub mod tracking;
pub mod types;
pub mod worker;
pub mod world;

/// The version of Redis whose commands and replies are offered, as clients are told.
pub const REDIS_VERSION: &str = "7.0.15";

#[cfg(test)]
mod oracle;

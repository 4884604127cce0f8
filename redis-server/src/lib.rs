//! A Redis-compatible server, as a library.
//!
//! `src/main.rs` starts it from a configuration; [`server::start`] does so inside of another program. From the socket
//! inwards: [`server`] (connections) → [`resp`] (the wire) → [`dispatch`] (the gate and the locks) → [`commands`]
//! (handlers) → [`db`] (the keyspace) → [`types`] (data structures).

pub mod blocking;
pub mod client;
pub mod command;
pub mod commands;
pub mod config;
pub mod db;
pub mod dispatch;
pub mod embedded;
pub mod error;
pub mod glob;
pub mod instance;
pub mod number;
pub mod pubsub;
pub mod registry;
pub mod resp;
pub mod server;
pub mod stats;
pub mod types;
pub mod worker;

/// The version of Redis whose protocol and commands are spoken, as HELLO and INFO tell it.
pub const REDIS_VERSION: &str = "7.2.0";

#[cfg(test)]
mod oracle;

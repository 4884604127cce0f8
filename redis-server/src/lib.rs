//! A Redis-compatible server.

pub mod config;

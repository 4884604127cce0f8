//! Tests of the whole server: conversations, genuine clients, hostile neighbours, limits.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod acl;
mod atomicity;
mod blocking;
mod clients;
mod connections;
mod events;
mod eviction;
mod isolation;
mod limits;
mod memory;
mod migrate;
mod model;
mod panics;
mod scripts;
mod settings;
mod snapshots;
mod support;
mod tls;
mod tracking;
mod transcripts;
mod windows;

//! Tests of the whole server: conversations, genuine clients, hostile neighbours, limits.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod acl;
mod append_only;
mod atomicity;
mod background_saves;
mod blocking;
mod clients;
mod cluster;
mod cluster_tls;
mod connections;
mod documents;
mod events;
mod eviction;
mod faults;
mod gossip;
mod isolation;
mod journal;
mod kills;
mod limits;
mod loading;
mod memory;
mod migrate;
mod model;
mod moments;
mod monitor;
mod moves;
mod panics;
mod replication;
mod resident;
mod scripts;
mod search;
mod service;
mod settings;
mod snapshots;
mod strangers;
mod support;
mod test_server;
mod threads;
mod tls;
mod tracking;
mod transcripts;
mod values;
mod vector_sets;
mod waiters;
mod windows;

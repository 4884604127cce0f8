//! Genuine clients, unmodified, against our server.

mod cluster;
mod crates;
pub(crate) mod languages;
mod suites;
mod tools;

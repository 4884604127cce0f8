//! Genuine clients, unmodified, against our server.

mod cluster;
mod crates;
pub(crate) mod languages;
mod newer;
mod suites;
mod tools;

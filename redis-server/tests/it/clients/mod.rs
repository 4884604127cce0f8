//! Genuine clients, unmodified, against our server.

mod cluster;
mod crates;
mod languages;
mod suites;
mod tools;

//! Genuine clients, unmodified, against our server.

mod crates;
mod languages;
mod suites;
mod tools;

//! Genuine clients, unmodified, against our server.

mod applications;
mod cluster;
pub(crate) mod languages;
mod newer;
mod shake;
mod stores;
mod suites;
mod tools;

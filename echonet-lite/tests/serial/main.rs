//! The SKSTACK driver and its clients against a module and a meter that are acted out.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod client;
mod driver;
mod link;
mod module;
mod noise;
mod relay;

//! The only code that waits: connections, and the server's periodic work.

mod batch;
mod conn;
mod cron;
pub mod embedded;
mod housekeeping;
mod input;
pub mod logging;
pub(crate) mod metrics;
mod output;
pub mod rounds;
mod service;
pub(crate) mod tls;

pub use service::{Server, StartError, start, start_at};

#[cfg(test)]
mod tests;

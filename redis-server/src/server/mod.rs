//! The only code that waits: connections, and the server's periodic work.

mod batch;
mod conn;
mod cron;
mod housekeeping;
mod input;
mod output;
pub mod rounds;
mod service;
pub(crate) mod tls;

pub use service::{Server, StartError, start, start_at};

#[cfg(test)]
mod tests;

//! The only code that waits: connections, and the server's periodic work.

mod batch;
mod bus;
mod conn;
mod crash;
mod cron;
pub mod embedded;
mod housekeeping;
mod import;
mod input;
pub(crate) mod metrics;
mod output;
mod replica;
mod service;
mod signals;
mod supervise;
pub mod test;

pub use service::{Server, StartError, start, start_at};
pub use signals::READY;

#[cfg(test)]
mod tests;

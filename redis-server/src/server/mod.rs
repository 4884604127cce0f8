//! The only code that waits: connections, and the server's periodic work.

mod conn;
mod cron;
mod output;
mod service;

pub use service::{Server, StartError, start, start_at};

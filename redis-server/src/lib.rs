//! A Redis-compatible server.

pub mod glob;
pub mod number;
pub mod types;

#[cfg(test)]
mod oracle;

//! Sockets for nodes and controllers: tokio and blocking.

mod error;
mod interface;
mod io;
mod socket;
mod sys;

pub use error::BindError;
pub use interface::Interface;

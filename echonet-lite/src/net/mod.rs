//! Sockets for nodes and controllers: tokio and blocking.

pub mod blocking;
mod bounds;
mod builder;
mod endpoint;
pub(crate) mod engine;
mod error;
mod interface;
mod io;
mod pending;
mod remote;
mod shared;
mod socket;
mod sys;
mod tcp;
mod watch;

pub use bounds::Reach;
pub use builder::Builder;
pub use endpoint::{Endpoint, Events, Notifications};
pub use engine::Device;
pub use error::{BindError, Error};
pub use interface::Interface;
pub use remote::Remote;
pub use tcp::Listen;

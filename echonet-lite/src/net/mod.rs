//! Sockets for nodes and controllers: tokio and blocking.
//!
//! The parts that depend on the operating system stand in one of two modules with the same items: `linux`, and
//! `portable` for all others, by crates that know them. `--cfg echonet_portable` takes the latter on Linux, too, for
//! tests.

pub mod blocking;
mod bounds;
mod builder;
mod datagram;
mod departing;
mod endpoint;
pub(crate) mod engine;
mod error;
mod interface;
mod io;
#[cfg(all(target_os = "linux", not(echonet_portable)))]
mod linux;
mod pending;
#[cfg(any(not(target_os = "linux"), echonet_portable))]
mod portable;
mod remote;
mod report;
mod shared;
mod socket;
mod tcp;
mod token;

#[cfg(all(target_os = "linux", not(echonet_portable)))]
use linux as system;
#[cfg(any(not(target_os = "linux"), echonet_portable))]
use portable as system;

pub use bounds::Reach;
pub use builder::Builder;
pub use endpoint::{Endpoint, Events, Notifications};
pub use engine::Device;
pub use error::{BindError, Error};
pub use interface::Interface;
pub use remote::Remote;
pub use tcp::Listen;

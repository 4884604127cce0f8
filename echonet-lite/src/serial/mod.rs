//! Route-B smart meters behind a serial Wi-SUN module that speaks SKSTACK IP.
//!
//! - [`Skstack`] drives the module as a state machine without a port and a clock: bytes and time in, bytes, events and
//!   a deadline out. It resets the module, scans for the meter, joins its network (PANA), sends and receives
//!   datagrams, and starts over where something fails. Neither it nor its tables allocate.
//! - With the feature `serial`: `Link` puts the requests of a [controller](crate::controller) on top of the driver,
//!   `SerialPort` opens a port, and `Client` joins both for programs that wait: `join`, `get`, `set`. With the feature
//!   `net` too there is `AsyncClient` on an `AsyncSerialPort`, for tokio.
//! - With the feature `serial`: `Relay` makes the meter a node of another network, for any number of controllers.
//! - [`Message`] reads a line of the module, for tools that show a conversation.
//!
//! Commands and events are those of the SKSTACK IP command references of BP35A1, BP35C0 and RL7023.
#![forbid(unsafe_code)]

#[cfg(all(feature = "serial", feature = "net"))]
mod asynchronous;
#[cfg(feature = "serial")]
mod client;
mod command;
mod config;
mod driver;
mod event;
mod line;
#[cfg(feature = "serial")]
mod link;
mod message;
#[cfg(feature = "serial")]
mod port;
#[cfg(feature = "serial")]
mod relay;

#[cfg(all(feature = "serial", feature = "net"))]
pub use asynchronous::{AsyncClient, AsyncSerialPort};
#[cfg(feature = "serial")]
pub use client::Client;
pub use config::{Config, Credentials, CredentialsError, Module, Pan, PayloadMode};
pub use driver::{SendError, Skstack};
pub use event::{Cause, Datagram, Event, FailCode, Failure, Loss, Step, Version};
#[cfg(feature = "serial")]
pub use link::{Error, Link, Pending};
pub use message::{Message, Notice, PanField, Payload, Received};
#[cfg(feature = "serial")]
pub use port::{BAUD, SerialPort};
#[cfg(feature = "serial")]
pub use relay::Relay;

/// The longest payload that SKSENDTO takes and ERXUDP brings, in bytes.
pub const PAYLOAD_MAX: usize = 1232;

/// The size of a buffer that holds any command: SKSENDTO with the longest payload.
pub const COMMAND_MAX: usize = PAYLOAD_MAX + 80;

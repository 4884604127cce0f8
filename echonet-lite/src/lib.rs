//! ECHONET Lite for devices, controllers and gateways.
//!
//! The layers, each usable without the ones below it in this list:
//!
//! - [`wire`]: frames as checked views of bytes and a writer into a buffer; neither allocates.
//! - [`class`]: device classes as constant tables, and the typed values of their properties.
//! - [`node`]: the device side of a node without sockets and clocks: datagrams and time in, datagrams and deadlines out.
//! - [`controller`]: the requesting side, in the same form.
//! - `net` (feature): the sockets, for tokio and for blocking programs.
//! - `serial` (feature): Route-B smart meters behind a serial Wi-SUN module.
#![no_std]

#[cfg(feature = "std")]
extern crate std;

pub mod class;
pub mod controller;
#[cfg(feature = "net")]
pub mod net;
pub mod node;
#[cfg(feature = "serial")]
pub mod serial;
pub mod wire;

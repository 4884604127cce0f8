//! ECHONET Lite for devices, controllers and gateways.
//!
//! The layers, each usable without the ones below it in this list:
//!
//! - [`wire`]: frames as checked views of bytes and a writer into a buffer; neither allocates.
//! - [`class`]: device classes as constant tables, and the typed values of their properties.
//! - [`meter`]: the meaning of a smart electric energy meter's values.
//! - [`node`]: the device side of a node without sockets and clocks: datagrams and time in, datagrams and deadlines out.
//! - [`controller`]: the requesting side, in the same form.
//! - `net` (feature): the sockets, for tokio and for blocking programs.
//! - `embassy` (feature): a node on embassy-net, without an allocator.
//! - `emulate` (feature): virtual homes of any classes, with faults, for tests; `certify` (feature): a node held
//!   against the specification.
//! - `shape` (feature `serde`): how all of this is written by serde.
//! - `serial` (feature `serial`; feature `skstack` for its no_std part): Route-B smart meters behind a serial Wi-SUN module.
#![no_std]

#[cfg(any(feature = "std", test))]
extern crate std;

#[cfg(all(feature = "net", not(any(unix, windows))))]
compile_error!(
    "the sockets of echonet-lite (feature `net`) are those of Linux, macOS, the BSDs and Windows: use `default-features = false`, and \
     `node` with sockets of your own (or the feature `embassy`), or `controller` with the feature `std`"
);
#[cfg(all(feature = "serial", not(unix)))]
compile_error!("serial ports (feature `serial`) are Unix' for now: use the feature `skstack` with a port of your own");

#[cfg(feature = "certify")]
pub mod certify;
pub mod class;
pub mod controller;
#[cfg(feature = "embassy")]
pub mod embassy;
#[cfg(feature = "emulate")]
pub mod emulate;
pub mod meter;
#[cfg(feature = "net")]
pub mod net;
pub mod node;
#[cfg(feature = "skstack")]
pub mod serial;
#[cfg(feature = "serde")]
pub mod shape;
pub mod wire;

/// The examples of the README are compiled.
#[cfg(all(doctest, feature = "net"))]
#[doc = include_str!("../README.md")]
struct Readme;

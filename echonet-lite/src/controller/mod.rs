//! The requesting side of a node, without sockets and clocks: time and datagrams in; datagrams, deadlines and events out.
//!
//! A [`Controller`] keeps many requests outstanding at many nodes. Requests to one node are sent one after the other
//! ([`Config::window`]). Their time-out follows from the node's earlier answers and from the class of the object. A
//! request without an answer is sent again with a fresh transaction identifier. An answer counts only if everything
//! fits: identifier, address, object, service and properties. Requests that a node answers in part go to it in parts
//! from then on, and properties that it refused to read are not asked for again for a while. [`Controller::discover`]
//! and the nodes' announcements find nodes, and an interview of each follows: objects, maker, property maps.
//! Notifications become [`Event::Notification`], once each, and are confirmed where the node wants that.
//!
//! Every table has a limit in [`Config`]; a request beyond it is an error at once, never a wait without end.
//!
//! It uses an allocator, unlike the device side, so that it needs the feature `std`.
//!
//! # Driving it
//!
//! ```
//! use core::net::Ipv4Addr;
//! use echonet_lite::controller::{Config, Controller, Event, Request};
//! use echonet_lite::node::{Destination, Instant};
//! use echonet_lite::wire::Eoj;
//!
//! let mut controller = Controller::new(Config::new(1));
//! let (light, now) = (Eoj::new(0x02, 0x90, 1), Instant::from_micros(0));
//! let id = controller.request(now, Ipv4Addr::new(192, 0, 2, 7).into(), &Request::get(light, &[0x80]))?;
//!
//! // Whenever something was done to it, and when the time that poll_timeout names has come: send what there is to send …
//! let mut buffer = [0; 1452];
//! while let Some((destination, size)) = controller.poll_transmit(now, &mut buffer) {
//!     assert_eq!(destination, Destination::Unicast("192.0.2.7:3610".parse()?));
//!     assert_eq!(buffer[4..size], *b"\x05\xff\x01\x02\x90\x01\x62\x01\x80\x00");
//! }
//! // … take what comes, …
//! let answer = [0x10, 0x81, buffer[2], buffer[3], 2, 0x90, 1, 5, 0xFF, 1, 0x72, 1, 0x80, 1, 0x30];
//! controller.handle(now, "192.0.2.7:3610".parse()?, &answer);
//! // … and see what has happened.
//! while let Some(event) = controller.poll_event() {
//!     let Event::Done { id: done, result } = event else { continue };
//!     assert_eq!((done, result?.get(0x80)), (id, Some(&[0x30][..])));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![cfg(feature = "std")]

mod addr;
mod answer;
mod config;
mod deadlines;
mod event;
mod identity;
mod interview;
mod knowledge;
mod machine;
mod patience;
mod peer;
mod receive;
mod request;
mod slot;
mod stage;
mod tids;
mod transmit;
mod typed;

#[cfg(test)]
mod tests;

pub use addr::NodeAddr;
pub use answer::{Answer, Notification, Outcome, Status};
pub use config::{Config, Interview, Spacing};
pub use event::Event;
pub use identity::NodeId;
pub use knowledge::{NodeInfo, ObjectInfo, PropertyMaps};
pub use machine::{Controller, Statistics};
pub use request::{Failure, Operation, Request, RequestError, RequestId, Write};
pub use typed::PropertyError;
#[cfg(feature = "net")]
pub(crate) use typed::has;

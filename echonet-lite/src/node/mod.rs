//! The device side of a node, without sockets and clocks: datagrams and time in, datagrams and deadlines out.
//!
//! A device author implements [`Object`] and puts it into a [`Node`]. The node answers requests by the rules of Part II,
//! 4.2; computes the node profile and all property maps; announces itself, and every announced property that a peer
//! changes; and delays answers to multicast requests. It allocates nothing, so the same code runs on a microcontroller
//! and below the `net` layer.
//!
//! ```
//! use core::net::SocketAddr;
//! use echonet_lite::node::{
//!     Arrival, CommonProperties, Config, Destination, Identity, Instant, Node, Object, Outbox, PropertyAccess, Refused,
//! };
//! use echonet_lite::wire::Eoj;
//!
//! struct Light(CommonProperties);
//!
//! impl Object for Light {
//!     fn eoj(&self) -> Eoj {
//!         Eoj::new(0x02, 0x90, 1)
//!     }
//!     fn access(&self) -> &PropertyAccess {
//!         &CommonProperties::ACCESS
//!     }
//!     fn get(&self, epc: u8, edt: &mut [u8]) -> Result<usize, Refused> {
//!         self.0.get(epc, edt)
//!     }
//!     fn set(&mut self, epc: u8, edt: &[u8]) -> Result<(), Refused> {
//!         self.0.set(epc, edt)
//!     }
//! }
//!
//! let maker = [0, 0, 0x77];
//! let mut node = Node::new(Config::new(Identity::new(maker, 1)), [Light(CommonProperties::new(maker))]);
//! let mut buffer = [0; 512];
//!
//! // The next datagram to send: the announcement of the node.
//! let (to, length) = node.poll_transmit(Instant::ZERO, &mut buffer).expect("a node announces itself");
//! assert_eq!(to, Destination::Multicast);
//! assert_eq!(buffer[..length], *b"\x10\x81\x00\x01\x0e\xf0\x01\x0e\xf0\x01\x73\x01\xd5\x04\x01\x02\x90\x01");
//!
//! // A request that came from a socket.
//! let from = SocketAddr::from(([192, 0, 2, 7], 3610));
//! let request = b"\x10\x81\x00\x05\x05\xff\x01\x02\x90\x01\x62\x01\x80\x00";
//! let mut out = Outbox::new(&mut buffer, |to, answer: &[u8]| {
//!     assert_eq!(to, Destination::Unicast(from));
//!     assert_eq!(answer, b"\x10\x81\x00\x05\x02\x90\x01\x05\xff\x01\x72\x01\x80\x01\x30");
//! });
//! node.handle(Instant::ZERO, from, Arrival::Unicast, request, &mut out);
//! ```
#![forbid(unsafe_code)]

mod agenda;
mod check;
mod common;
mod config;
mod device;
mod object;
mod objects;
mod profile;
mod random;
mod respond;
mod stored;
mod time;
mod transmit;
mod typed;
mod validate;

pub use check::check;
pub use common::CommonProperties;
pub use config::{AnswerPort, Config, Identity, ManyInstances, Profile, SetGet};
pub use device::{DEFAULT_STORE, Handled, Node, NotifyError, Statistics};
pub use object::{Object, PropertyAccess, Refused, put};
pub use objects::Objects;
pub use profile::{CLASSES_MAX, INSTANCES_MAX};
pub use stored::{DEFAULT_ROOM, Stored};
pub use time::Instant;
pub use transmit::{Arrival, Destination, Outbox, Transmit};
pub use typed::{accept, show};
pub use validate::{Fault, Required};

//! Frames as checked views of bytes, and a writer into a buffer (ECHONET Lite Specification, Part II, chapter 3).
//!
//! [`Frame::parse`] checks a datagram once. The frame borrows the datagram, and reading it cannot fail.
//! [`FrameWriter`] writes into a buffer of the caller's and cannot produce a frame that [`Frame::parse`] refuses.
//! Nothing here allocates.
//!
//! ```
//! use echonet_lite::wire::{Eoj, Esv, Frame, FrameWriter, Header};
//!
//! let light = Eoj::new(0x02, 0x90, 1);
//! let mut buffer = [0; 64];
//! let mut writer =
//!     FrameWriter::new(&mut buffer, Header { tid: 1, seoj: Eoj::CONTROLLER, deoj: light, esv: Esv::Get })?;
//! writer.property(0x80, &[])?;
//! let datagram = writer.finish()?;
//! assert_eq!(datagram, b"\x10\x81\x00\x01\x05\xff\x01\x02\x90\x01\x62\x01\x80\x00");
//!
//! let Frame::Format1(message) = Frame::parse(datagram)? else { unreachable!() };
//! assert_eq!(message.deoj(), light);
//! assert_eq!(message.properties().map(|property| property.epc).collect::<Vec<_>>(), [0x80]);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod access;
mod display;
mod eoj;
mod error;
mod esv;
#[cfg(feature = "defmt")]
mod format;
mod frame;
mod property_map;
mod property_set;
mod stream;
mod writer;

use core::net::{Ipv4Addr, Ipv6Addr};

#[cfg(feature = "serde")]
pub use crate::shape::MessageBuf;
pub use access::PropertyAccess;
pub use eoj::{ClassCode, Eoj, ParseEojError};
pub use error::{Cause, ParseError};
pub use esv::{Esv, UnknownEsv};
pub use frame::{Frame, Message, Properties, Property};
pub use property_map::{MapError, PROPERTY_MAP_MAX};
pub use property_set::{Epcs, PropertySet};
pub use stream::{MessageLength, message_length};
pub use writer::{FrameWriter, Header, Unwritten, WriteError};

/// UDP and TCP port that every message is sent to (Part II, 1.3): requests, answers and notifications.
pub const PORT: u16 = 3610;
/// Group that every IPv4 node joins.
pub const MULTICAST_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 23, 0);
/// Group that every IPv6 node is in: all nodes of the link.
pub const MULTICAST_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Longest value of one property (its length, PDC, is one byte).
pub const EDT_MAX: usize = 255;
/// Bytes of a format-1 frame before its first property.
pub const HEADER_LEN: usize = 12;

//! The server's side of HTTP/2 (RFC 9113, HPACK of RFC 7541, priorities of RFC 9218) without sockets or clock: bytes and the
//! time go in, events and bytes come out. A driver has the socket: a thread, a runtime, a test.
//!
//! ```
//! use std::time::Instant;
//! use http2::hpack::{Block, Field};
//! use http2::{Config, Connection, Event};
//!
//! /// Answers all requests of the bytes read; the rest belongs before the bytes read next.
//! fn serve<'i>(connection: &mut Connection, mut read: &'i [u8]) -> Result<&'i [u8], http2::Error> {
//!     let ok = Block::new([Field::new(b":status", b"200"), Field::new(b"content-type", b"text/plain")]);
//!     let mut complete = Vec::new();
//!     while let Some(event) = connection.next(&mut read, Instant::now())? {
//!         match event {
//!             Event::Request { stream, end: true, .. } => complete.push(stream),
//!             Event::Data { stream, data, end } => {
//!                 let length = data.len();
//!                 connection.release(stream, length);
//!                 complete.extend(end.then_some(stream));
//!             }
//!             Event::Trailers { stream, .. } => complete.push(stream),
//!             Event::TooLarge { stream, .. } => connection.refuse_large(stream),
//!             Event::Request { .. } | Event::Reset { .. } | Event::Pong(_) | Event::GoAway { .. } => {}
//!         }
//!     }
//!     for stream in complete {
//!         // A stream may have been reset since; then there is nobody to tell.
//!         let sent = connection.send_head_block(stream, &ok, false);
//!         let _ = sent.and_then(|()| connection.send_data(stream, b"hello", true));
//!     }
//!     Ok(read)
//! }
//!
//! let mut connection = Connection::new(&Config::default(), Instant::now());
//! // The preface, empty settings, and a GET of `/` on stream 1.
//! let read = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x03\x01\x05\0\0\0\x01\x82\x84\x86";
//! assert!(serve(&mut connection, read)?.is_empty());
//! assert!(connection.output().ends_with(b"hello"));
//! # Ok::<(), http2::Error>(())
//! ```
//!
//! A driver repeats this: read; call [`Connection::next`] until it gives `None`; give bodies that wait their turn by
//! [`Connection::next_writable`]; write [`Connection::output`] and call [`Connection::advance`]. It ends the connection when
//! [`Connection::is_over`] says so and all is written. `examples/` has one on tokio and one on threads.
//!
//! Everything that a peer can make grow has a limit in [`Config`]. Its work is limited, too: control frames, refused
//! requests and resets have a budget ([`Config::max_control_frames`]). While the peer does not read, the connection
//! does not read from it. Features for which the protocol has no frames, time-outs above all, belong to the driver.

mod blocks;
mod budget;
mod config;
mod connection;
mod head;
mod output;
mod priority;
mod reason;
mod receive;
mod send;
mod streams;
mod turns;
mod upgrade;

pub mod frame;
pub mod hpack;
#[cfg(feature = "http")]
pub mod shared;

pub use config::Config;
pub use connection::{Connection, Event};
pub use head::RequestHead;
pub use priority::Priority;
pub use reason::{Error, Reason};
pub use send::SendError;
pub use streams::StreamId;
pub use upgrade::{ALPN, BadSettings, PREFACE};

/// The program of README.md compiles and runs with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

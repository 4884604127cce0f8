//! WebSocket (RFC 6455) as bytes: frames in, events out; no sockets, no clock.
//!
//! [`Decoder::next`] reads a client's frames where the connection's buffer has them. A message that is whole there is borrowed from there.
//! [`put`] and [`put_close`] append a server's frames to an output buffer. [`deflate`] is the extension permessage-deflate (RFC 7692).

mod decoder;
pub mod deflate;
mod frame;
mod utf8;

pub use decoder::{Decoder, Event, Limits};
pub use frame::{Failure, MAX_CONTROL, MAX_REASON, Opcode, close_code_is_valid, put, put_close, put_head};

#[cfg(test)]
mod tests;

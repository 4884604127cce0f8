//! HTTP/3: QUIC by quinn, frames and fields by h3, answered by the same router within the same limits.
//!
//! Each worker has a UDP socket at every address, and all of a connection is its worker's, as of TCP. The connection's id leads a
//! datagram to the worker, so that a client can move to another address.

mod aside;
mod bounds;
mod congestion;
mod conn;
mod gate;
mod incoming;
mod section;
mod shares;
mod stream;
mod wire;

pub(super) use gate::{Gate, open};

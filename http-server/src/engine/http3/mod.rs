//! HTTP/3: QUIC by quinn, frames and fields by h3, answered by the same router within the same limits.
//!
//! One thread has the UDP sockets and knows which datagram belongs to which connection, so that a client can move to another
//! address. A connection's cryptography, its requests and their answers are its worker's, as those of TCP are.

mod aside;
mod bounds;
mod congestion;
mod conn;
mod gate;
mod incoming;
mod section;
mod stream;
mod wire;

pub(super) use gate::{Arrivals, Gate, open};

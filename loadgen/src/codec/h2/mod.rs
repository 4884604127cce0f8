//! HTTP/2 (RFC 9113) from the client's side: bytes in, bytes out.
//!
//! A [`Connection`] keeps the streams whose answers are missing; what an answer means is told by a [`Judge`]: HTTP or gRPC.

mod connection;
mod frame;
mod head;
pub mod hpack;
mod judge;
mod receive;
mod streams;

pub use connection::{Connection, Request};
pub use head::{Encoding, Head};
#[cfg(feature = "http3")]
pub(super) use head::{KnownHeads, Reader};
pub use judge::Judge;

#[cfg(test)]
pub(in crate::codec) mod tests;

//! HTTP/2 (RFC 9113) from the client's side: bytes in, bytes out.
//!
//! A [`Connection`] keeps the streams whose answers are missing; what an answer means is told by a [`Judge`]: HTTP or gRPC.

mod connection;
mod frame;
mod head;
pub mod hpack;
mod receive;
mod streams;

pub use connection::{Connection, Request};
pub use head::{Encoding, Head};
#[cfg(feature = "http3")]
pub(super) use head::{KnownHeads, Reader};

use crate::clock::Nanos;
use crate::record::Tally;

/// The protocol on top of HTTP/2, which judges answers.
pub trait Judge {
    /// The state of a request until the answer is complete. It is used again for later requests.
    type Exchange: Default;

    /// The answer's head has come.
    fn head(&self, exchange: &mut Self::Exchange, head: &Head);

    /// A piece of the answer's body has come.
    fn data(&self, exchange: &mut Self::Exchange, data: &[u8]);

    /// The answer's trailers have come.
    fn trailers(&self, exchange: &mut Self::Exchange, trailers: &Head);

    /// The answer is complete: to be accounted as finished or failed.
    fn complete(&self, exchange: &mut Self::Exchange, intended: Nanos, tally: &mut Tally);
}

#[cfg(test)]
pub(in crate::codec) mod tests;

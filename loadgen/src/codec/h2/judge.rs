//! The interface to the protocol on top of HTTP/2.

use super::head::Head;
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

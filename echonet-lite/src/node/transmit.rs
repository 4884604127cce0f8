//! Where a node's datagrams go.

use core::net::SocketAddr;

/// How a datagram came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Arrival {
    /// To an address of this node's own.
    Unicast,
    /// To a group or by broadcast: the answer waits a random moment, so that not all nodes speak at once.
    Multicast,
    /// On a TCP connection: answered on it, to exactly the address it came from.
    Connection,
}

/// Where a datagram is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Destination {
    /// To this address and port, with its scope. For what came on a TCP connection, that connection.
    Unicast(SocketAddr),
    /// To the ECHONET group, port 3610, on every interface and of every address family that the node is on; UDP even when
    /// the request came by TCP.
    Multicast,
}

/// Takes the datagrams of a node at once, written in place. [`Outbox`] makes one from a buffer and a function; a
/// transport that batches gives each datagram its own buffer.
pub trait Transmit {
    /// The buffer for the next datagram. Its length limits the answer: a longer one becomes an SNA with as many properties
    /// as fit. Less than 14 bytes hold no answer at all.
    fn buffer(&mut self) -> &mut [u8];

    /// The first `length` bytes of the buffer are a datagram for `destination`.
    fn transmit(&mut self, destination: Destination, length: usize);
}

/// A [`Transmit`] of one buffer, whose datagrams go to a function.
#[derive(Debug)]
pub struct Outbox<'b, F> {
    buffer: &'b mut [u8],
    send: F,
}

impl<'b, F: FnMut(Destination, &[u8])> Outbox<'b, F> {
    /// Writes datagrams to `buffer` and calls `send` with each.
    pub fn new(buffer: &'b mut [u8], send: F) -> Self {
        Self { buffer, send }
    }
}

impl<F: FnMut(Destination, &[u8])> Transmit for Outbox<'_, F> {
    #[inline]
    fn buffer(&mut self) -> &mut [u8] {
        self.buffer
    }

    #[inline]
    fn transmit(&mut self, destination: Destination, length: usize) {
        (self.send)(destination, &self.buffer[..length]);
    }
}

//! What moves datagrams: the sockets, and the buffers of the batches in both directions.

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;

use super::error::BindError;
use super::interface::Changes;
use super::socket::{Arrived, Plan, Sockets, Way};
use super::sys::{BATCH, Incoming, Outgoing};
use crate::node::{Destination, Transmit};
use crate::wire::PORT;

/// Multicasts of our own that are remembered in order to know them when they come back.
const ECHOES: usize = 32;

/// Everything that moves datagrams for one node.
pub(super) struct Io {
    pub(super) incoming: Incoming,
    pub(super) departing: Departing,
    pub(super) changes: Changes,
}

impl Io {
    pub(super) fn open(plan: Plan) -> Result<Self, BindError> {
        // Listened for before the interfaces are looked at, so that no change goes unseen in between.
        let changes = Changes::listen().map_err(|source| BindError::Io {
            doing: "listening for changes of addresses",
            address: None,
            source,
        })?;
        let port = plan.port;
        let sockets = Sockets::open(plan)?;
        let departing = Departing { sockets, outgoing: Outgoing::new(), echoes: Echoes::default(), port, lost: 0 };
        Ok(Self { incoming: Incoming::new(), departing, changes })
    }

    /// Receives a batch from socket `at` without waiting; says how many datagrams, and whether there may be more.
    pub(super) fn receive(&mut self, at: usize) -> (usize, bool) {
        match self.incoming.receive(self.departing.sockets.descriptor(at), false) {
            Ok(count) => (count, count == BATCH),
            Err(error) => (0, error.kind() != io::ErrorKind::WouldBlock),
        }
    }

    /// Joins and leaves as interfaces have come and gone, if any have. Says whether our addresses have changed.
    pub(super) fn follow_changes(&mut self) -> bool {
        self.changes.any() && self.departing.sockets.refresh().unwrap_or(false)
    }
}

/// Datagrams on their way out.
pub(super) struct Departing {
    pub(super) sockets: Sockets,
    outgoing: Outgoing,
    echoes: Echoes,
    port: u16,
    /// Datagrams that the kernel would not take.
    pub(super) lost: u64,
}

impl Departing {
    /// Where the next datagram is to be written.
    pub(super) fn buffer(&mut self) -> &mut [u8] {
        if self.outgoing.is_full() {
            self.flush();
        }
        self.outgoing.buffer()
    }

    /// Sends the first `length` bytes of the buffer, by the given way or the one that the address suggests.
    pub(super) fn send(&mut self, destination: Destination, length: usize, way: Option<Way>) {
        match destination {
            Destination::Unicast(to) => {
                let to = self.redirected(to);
                let target = way.or_else(|| self.sockets.way_to(to)).map(|way| (to, way));
                self.outgoing.push(length, target);
            }
            Destination::Multicast => {
                self.echoes.sent(&self.outgoing.buffer()[..length]);
                self.outgoing.push(length, self.sockets.departures().iter().copied());
            }
        }
    }

    /// Everything goes to port 3610, unless this endpoint was told to live on another.
    fn redirected(&self, mut to: SocketAddr) -> SocketAddr {
        if to.port() == PORT {
            to.set_port(self.port);
        }
        to
    }

    /// Whether a datagram is a multicast of our own that came back, as it does on every interface.
    pub(super) fn is_echo(&self, arrived: &Arrived, from: SocketAddr, bytes: &[u8]) -> bool {
        arrived.to_all && self.sockets.is_own(from.ip()) && self.echoes.knows(bytes)
    }

    pub(super) fn flush(&mut self) {
        if !self.outgoing.is_empty() {
            self.lost += self.outgoing.flush(&self.sockets);
        }
    }
}

/// Takes a node's answers to one datagram.
pub(super) struct Answers<'a> {
    pub(super) departing: &'a mut Departing,
    pub(super) way: Way,
}

impl Transmit for Answers<'_> {
    fn buffer(&mut self) -> &mut [u8] {
        self.departing.buffer()
    }

    fn transmit(&mut self, destination: Destination, length: usize) {
        self.departing.send(destination, length, Some(self.way));
    }
}

/// Hashes of the multicasts sent last.
#[derive(Default)]
struct Echoes {
    hasher: RandomState,
    sent: VecDeque<u64>,
}

impl Echoes {
    fn sent(&mut self, bytes: &[u8]) {
        if self.sent.len() == ECHOES {
            self.sent.pop_front();
        }
        self.sent.push_back(self.hasher.hash_one(bytes));
    }

    fn knows(&self, bytes: &[u8]) -> bool {
        self.sent.contains(&self.hasher.hash_one(bytes))
    }
}

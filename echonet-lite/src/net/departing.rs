//! Datagrams on their way out: the sockets, the batch, and what may be answered to whom.

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use super::bounds::{Allowance, Bounds, Rates, Reach};
use super::report::report;
use super::socket::{Arrived, Sockets, Way};
use super::system::Outgoing;
use crate::node::{Arrival, Destination, Instant, Transmit};
use crate::wire::PORT;

/// Multicasts of our own that are remembered in order to know them when they come back.
const ECHOES: usize = 32;

/// Datagrams on their way out.
pub(super) struct Departing {
    pub(super) sockets: Sockets,
    bounds: Bounds,
    rates: Rates,
    outgoing: Outgoing,
    echoes: Echoes,
    port: u16,
    /// Datagrams that the kernel would not take.
    pub(super) lost: u64,
}

impl Departing {
    pub(super) fn new(sockets: Sockets, bounds: Bounds, port: u16) -> Self {
        Self {
            sockets,
            bounds,
            rates: Rates::default(),
            outgoing: Outgoing::new(),
            echoes: Echoes::default(),
            port,
            lost: 0,
        }
    }

    /// The sockets have changed; nothing is queued.
    pub(super) fn sockets_changed(&mut self) {
        self.outgoing.sockets_changed();
    }

    /// Where the next datagram is to be written.
    pub(super) fn buffer(&mut self) -> &mut [u8] {
        if self.outgoing.is_full() {
            self.flush();
        }
        self.outgoing.buffer()
    }

    /// How much may be answered to a request; nothing if it is not to be answered at all.
    pub(super) fn allowance(
        &mut self,
        now: Instant,
        from: SocketAddr,
        how: Arrival,
        request: usize,
    ) -> Option<Allowance> {
        if self.sockets.is_near(from.ip()) {
            return Some(self.allowance_near());
        }
        // A multicast does not come from afar. Its answers wait, and would be sent without a bound.
        let is_allowed = self.bounds.reach == Reach::Everywhere && how == Arrival::Unicast;
        let admitted = is_allowed && self.rates.admit(now, from.ip());
        admitted.then(|| Allowance::far(&self.bounds, request))
    }

    /// How much may be answered to a host of the own subnets.
    pub(super) fn allowance_near(&self) -> Allowance {
        Allowance::near(&self.bounds)
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
    pub(super) fn redirected(&self, mut to: SocketAddr) -> SocketAddr {
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
            let lost = self.outgoing.flush(&self.sockets);
            if lost > 0 {
                self.lost += lost;
                report!(debug, "the system did not take {lost} datagrams");
            }
        }
    }
}

/// Takes a node's answers to one datagram.
pub(super) struct Answers<'a> {
    pub(super) departing: &'a mut Departing,
    pub(super) way: Way,
    pub(super) allowance: Allowance,
}

impl Transmit for Answers<'_> {
    #[inline]
    fn buffer(&mut self) -> &mut [u8] {
        let room = self.allowance.room();
        let buffer = self.departing.buffer();
        let room = room.min(buffer.len());
        &mut buffer[..room]
    }

    fn transmit(&mut self, destination: Destination, length: usize) {
        self.allowance.spend(length);
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

//! The mover of datagrams: the sockets, and the buffers of the batches in both directions.

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::vec::Vec;

use super::bounds::{Allowance, Bounds, Rates, Reach};
use super::engine::{Device, Engine};
use super::error::BindError;
use super::report::report;
use super::socket::{Arrived, Plan, Sockets, Way};
use super::system::{Changes, Incoming, Outgoing, Watch};
use super::tcp::{Listen, Tcp};
use super::token::{self, Interest};
use crate::node::{Arrival, Destination, Instant, Transmit};
use crate::wire::PORT;

/// Multicasts of our own that are remembered in order to know them when they come back.
const ECHOES: usize = 32;

/// How long a receive that waits does so, as the kernel is told: it rounds up to a tick.
const LEAD_TICK: Duration = Duration::from_millis(1);

/// The longest announcement of 84 instances, which has room whatever else was sent.
const ANNOUNCEMENT: usize = 12 + 2 + 253;

/// Everything that moves datagrams for one node.
pub(super) struct Io {
    pub(super) incoming: Incoming,
    pub(super) departing: Departing,
    pub(super) watch: Watch,
    pub(super) tcp: Tcp,
    changes: Changes,
}

impl Io {
    pub(super) fn open(plan: Plan, bounds: Bounds, listen: Listen, prefer_tcp: bool) -> Result<Self, BindError> {
        let failed = |source| BindError::Io { doing: "watching for changes of addresses", address: None, source };
        let watch = Watch::new().map_err(failed)?;
        // Listened for before the interfaces are looked at, so that no change goes unseen in between.
        let changes = Changes::listen(&watch).map_err(failed)?;
        let port = plan.port;
        let sockets = Sockets::open(plan)?;
        let tcp = Tcp::open(listen, prefer_tcp, sockets.unicast_addresses(), &watch)?;
        let departing = Departing {
            sockets,
            bounds,
            rates: Rates::default(),
            outgoing: Outgoing::new(),
            echoes: Echoes::default(),
            port,
            lost: 0,
        };
        Ok(Self { incoming: Incoming::new(), departing, watch, tcp, changes })
    }

    /// Has the watch say when one of the sockets can be read, by its place now.
    pub(super) fn follow_sockets(&mut self) -> io::Result<()> {
        let Self { departing, watch, .. } = self;
        for (at, socket) in departing.sockets.watched().enumerate() {
            socket.set_read_timeout(Some(LEAD_TICK))?;
            watch.follow(socket, token::SOCKETS + at as u64, Interest::Reading)?;
        }
        Ok(())
    }

    /// Receives a batch from socket `at`; says how many datagrams, and whether there may be more. With `wait`, waits for
    /// the first, at most as long as the socket's timeout.
    pub(super) fn receive(&mut self, at: usize, wait: bool) -> (usize, bool) {
        match self.incoming.receive(self.departing.sockets.udp(at), wait) {
            Ok(received) => received,
            // Errors of a UDP socket are those of earlier datagrams, and reported once.
            Err(error) => (0, error.kind() != io::ErrorKind::WouldBlock),
        }
    }

    /// Deals with one event that is not a UDP socket's.
    pub(super) fn attend<D: Device>(&mut self, now: Instant, event: u64, engine: &mut Engine<D>) {
        match event {
            token::WAKER => self.watch.rest(),
            token::CHANGES => {
                let mut unplugged = Vec::new();
                if self.changes.any(&mut unplugged) {
                    self.follow_changes(&unplugged, engine);
                }
            }
            token::LISTENERS..token::SOCKETS => {
                self.tcp.accept(now, (event - token::LISTENERS) as usize, &self.watch);
            }
            _ => {
                let place = event.saturating_sub(token::CONNECTIONS) as usize;
                self.tcp.attend(now, place, engine, &mut self.departing, &self.watch);
            }
        }
    }

    /// Interfaces or addresses have changed; those of the interfaces `unplugged` may be back already.
    fn follow_changes<D: Device>(&mut self, unplugged: &[u32], engine: &mut Engine<D>) {
        // Queued datagrams name their socket by place.
        self.departing.flush();
        let generation = self.departing.sockets.generation();
        // If the interfaces cannot be listed now, the next change asks again.
        let has_gained = self.departing.sockets.refresh(unplugged).unwrap_or_else(|error| {
            report!(warn, "the interfaces could not be listed: {error}");
            false
        });
        report!(debug, "interfaces or addresses have changed");
        if self.departing.sockets.generation() != generation {
            self.departing.outgoing.sockets_changed();
            self.tcp.follow(self.departing.sockets.unicast_addresses(), &self.watch);
        }
        if has_gained {
            engine.device.address_changed();
        }
    }

    /// Queues all that both sides of the node have to send by now.
    pub(super) fn transmit<D: Device>(&mut self, now: Instant, engine: &mut Engine<D>) {
        let Self { departing, tcp, watch, .. } = self;
        tcp.expire(now, departing, watch);
        // All answers to a request to many objects come in a row.
        let mut allowance = Allowance::near(&departing.bounds);
        while let Some((destination, length)) = engine.poll_device(now, departing, allowance.room().max(ANNOUNCEMENT)) {
            if matches!(destination, Destination::Unicast(_)) {
                allowance.spend(length);
            }
            departing.send(destination, length, None);
        }
        while let Some((destination, length)) = engine.controller.poll_transmit(now, departing.buffer()) {
            if let Destination::Unicast(to) = destination {
                let (to, shared) = (departing.redirected(to), departing.sockets.receives(to.ip()));
                if tcp.send(now, to, shared, &departing.buffer()[..length], watch) {
                    continue;
                }
            }
            departing.send(destination, length, None);
        }
    }

    /// When [`transmit`](Self::transmit) is due, though nothing came.
    pub(super) fn deadline<D: Device>(&self, engine: &Engine<D>) -> Option<Instant> {
        [engine.device.poll_timeout(), engine.controller.poll_timeout(), self.tcp.deadline()]
            .into_iter()
            .flatten()
            .min()
    }
}

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
            return Some(Allowance::near(&self.bounds));
        }
        // A multicast does not come from afar. Its answers wait, and would be sent without a bound.
        let is_allowed = self.bounds.reach == Reach::Everywhere && how == Arrival::Unicast;
        let admitted = is_allowed && self.rates.admit(now, from.ip());
        admitted.then(|| Allowance::far(&self.bounds, request))
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

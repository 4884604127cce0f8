//! The mover of datagrams: the sockets, and the buffers of the batches in both directions.

use core::time::Duration;
use std::io;
use std::vec::Vec;

use super::bounds::Bounds;
use super::departing::{Answers, Departing};
use super::engine::{Device, Engine};
use super::error::BindError;
use super::report::report;
use super::socket::{Plan, Sockets};
use super::system::{Changes, Incoming, Watch};
use super::tcp::{Listen, Tcp};
use super::token::{self, Interest};
use crate::node::{Arrival, Destination, Instant};

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
        let departing = Departing::new(sockets, bounds, port);
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

    /// Hands the first `count` datagrams of the batch that came by socket `at` to the engine.
    pub(super) fn deliver<D: Device>(&mut self, now: Instant, at: usize, count: usize, engine: &mut Engine<D>) {
        let Self { incoming, departing, .. } = self;
        for datagram in (0..count).filter_map(|place| incoming.datagram(place)) {
            let Some(arrived) = departing.sockets.arrival(at, &datagram) else { continue };
            let how = if arrived.to_all { Arrival::Multicast } else { Arrival::Unicast };
            if departing.is_echo(&arrived, datagram.from, datagram.bytes) {
                continue;
            }
            let way = arrived.way;
            match departing.allowance(now, datagram.from, how, datagram.bytes.len()) {
                Some(allowance) => {
                    engine.take(now, datagram.from, how, datagram.bytes, &mut Answers { departing, way, allowance });
                }
                None => {
                    report!(debug, "{} is not near, or asks too often: its request is not answered", datagram.from);
                    engine.take_unanswered(now, datagram.from, datagram.bytes);
                }
            }
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
            self.departing.sockets_changed();
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
        let mut allowance = departing.allowance_near();
        loop {
            let room = allowance.room().max(ANNOUNCEMENT);
            let buffer = departing.buffer();
            let room = room.min(buffer.len());
            let Some((destination, length)) = engine.poll_device(now, &mut buffer[..room]) else { break };
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

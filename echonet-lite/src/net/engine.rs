//! The device and the requesting side of one node behind one set of sockets, without a way to wait: both the tokio
//! and the blocking endpoint drive this.

use std::time::Instant as SystemInstant;

use super::io::{Answers, Departing, Io};
use crate::controller::Controller;
use crate::node::{Arrival, Destination, Instant, Node, Objects, Transmit};
use crate::wire::Esv;

/// The device side of an endpoint: a [`Node`], or `()` for a program that only asks.
pub trait Device: sealed::Device {}

impl Device for () {}
impl<O: Objects, const N: usize> Device for Node<O, N> {}

pub(super) mod sealed {
    use super::{Arrival, Destination, Instant, Transmit};
    use core::net::SocketAddr;

    /// What an endpoint does with its device side.
    pub trait Device {
        /// Whether there is one.
        const PRESENT: bool;

        /// Takes a datagram; answers at once where no delay is due.
        fn handle(&mut self, now: Instant, from: SocketAddr, how: Arrival, bytes: &[u8], out: &mut impl Transmit);

        /// Writes what is due.
        fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(Destination, usize)>;

        /// When something is due.
        fn poll_timeout(&self) -> Option<Instant>;

        /// Tells everyone that this node is there.
        fn announce(&mut self, now: Instant);
    }
}

impl sealed::Device for () {
    const PRESENT: bool = false;

    fn handle(&mut self, _: Instant, _: core::net::SocketAddr, _: Arrival, _: &[u8], _: &mut impl Transmit) {}

    fn poll_transmit(&mut self, _: Instant, _: &mut [u8]) -> Option<(Destination, usize)> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn announce(&mut self, _: Instant) {}
}

/// Offset of the service in a frame.
const ESV: usize = 10;

/// Both sides of a node.
pub(super) struct Engine<D> {
    pub(super) device: D,
    pub(super) controller: Controller,
    clock: SystemInstant,
}

impl<D: Device> Engine<D> {
    pub(super) fn new(device: D, controller: Controller) -> Self {
        Self { device, controller, clock: SystemInstant::now() }
    }

    pub(super) fn now(&self) -> Instant {
        Instant(self.clock.elapsed().as_micros() as u64)
    }

    /// The moment of the system's clock that `at` stands for.
    pub(super) fn system_time(&self, at: Instant) -> SystemInstant {
        self.clock + at.since(Instant::ZERO)
    }

    /// Takes the first `count` datagrams of the batch that came by socket `at`.
    pub(super) fn take_batch(&mut self, now: Instant, io: &mut Io, at: usize, count: usize) {
        let Io { incoming, departing, .. } = io;
        for datagram in (0..count).filter_map(|place| incoming.datagram(place)) {
            let Some(arrived) = departing.sockets.arrival(at, &datagram) else { continue };
            let how = if arrived.to_all { Arrival::Multicast } else { Arrival::Unicast };
            if departing.is_echo(&arrived, datagram.from, datagram.bytes) {
                continue;
            }
            self.take(now, datagram.from, how, datagram.bytes, &mut Answers { departing, way: arrived.way });
        }
    }

    /// Takes one message, however it came.
    pub(super) fn take(
        &mut self,
        now: Instant,
        from: core::net::SocketAddr,
        how: Arrival,
        bytes: &[u8],
        out: &mut impl Transmit,
    ) {
        let request = bytes.get(ESV).is_some_and(|&esv| Esv::from_u8(esv).is_some_and(|esv| esv.is_request()));
        // What is no request is mostly for the controller, yet confirmations and notifications can be for an object.
        if D::PRESENT {
            self.device.handle(now, from, how, bytes, out);
        }
        if !request {
            self.controller.handle(now, from, bytes);
        }
    }

    /// Queues all that both sides have to send by now.
    pub(super) fn transmit(&mut self, now: Instant, departing: &mut Departing) {
        while let Some((destination, length)) = self.device.poll_transmit(now, departing.buffer()) {
            departing.send(destination, length, None);
        }
        while let Some((destination, length)) = self.controller.poll_transmit(now, departing.buffer()) {
            departing.send(destination, length, None);
        }
    }

    /// When [`transmit`](Self::transmit) is due, though nothing came.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.device.poll_timeout(), self.controller.poll_timeout()].into_iter().flatten().min()
    }
}

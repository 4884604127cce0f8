//! The device and the requesting side of one node behind one set of sockets, without a way to wait: both the tokio
//! and the blocking endpoint drive this.

use core::net::SocketAddr;
use std::borrow::ToOwned;
use std::panic::{self, AssertUnwindSafe};
use std::string::String;

use tokio::time::Instant as SystemInstant;

use super::report::report;
use crate::controller::{Controller, Event};
use crate::node::{Arrival, Destination, Fault, Handled, Instant, Node, Objects, Transmit};
use crate::wire::{Esv, Frame, Message, ParseError};

/// The device side of an endpoint: a [`Node`], or `()` for a program that only asks.
pub trait Device: sealed::Device {}

impl Device for () {}
impl<O: Objects, const STORE: usize> Device for Node<O, STORE> {}

#[expect(unnameable_types, reason = "a trait that only this module implements and calls")]
pub(crate) mod sealed {
    use core::net::SocketAddr;

    use super::{Arrival, Destination, Fault, Instant, Message, Transmit};

    /// The device side of an endpoint.
    pub trait Device {
        /// Whether there is one.
        const PRESENT: bool;

        /// Takes a message; says whether it was for the device.
        fn handle(
            &mut self,
            now: Instant,
            from: SocketAddr,
            how: Arrival,
            message: &Message<'_>,
            out: &mut impl Transmit,
        ) -> bool;

        /// Writes what is due.
        fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(Destination, usize)>;

        /// When something is due.
        fn poll_timeout(&self) -> Option<Instant>;

        /// Has it tell everyone that it is there.
        fn address_changed(&mut self);

        /// Reports its faults.
        fn validate(&self, found: &mut dyn FnMut(Fault));

        /// Has its own messages begin behind this transaction identifier.
        fn begin_tids(&mut self, tid: u16);
    }
}

impl sealed::Device for () {
    const PRESENT: bool = false;

    fn handle(&mut self, _: Instant, _: SocketAddr, _: Arrival, _: &Message<'_>, _: &mut impl Transmit) -> bool {
        false
    }

    fn poll_transmit(&mut self, _: Instant, _: &mut [u8]) -> Option<(Destination, usize)> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn address_changed(&mut self) {}

    fn validate(&self, _: &mut dyn FnMut(Fault)) {}

    fn begin_tids(&mut self, _: u16) {}
}

impl<O: Objects, const STORE: usize> sealed::Device for Node<O, STORE> {
    const PRESENT: bool = true;

    #[inline]
    fn handle(
        &mut self,
        now: Instant,
        from: SocketAddr,
        how: Arrival,
        message: &Message<'_>,
        out: &mut impl Transmit,
    ) -> bool {
        self.handle_message(now, from, how, message, out) == Handled::Done
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(Destination, usize)> {
        Self::poll_transmit(self, now, buffer)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Self::poll_timeout(self)
    }

    fn address_changed(&mut self) {
        Self::address_changed(self);
    }

    fn validate(&self, found: &mut dyn FnMut(Fault)) {
        Self::validate(self, found);
    }

    fn begin_tids(&mut self, tid: u16) {
        Self::begin_tids(self, tid);
    }
}

/// Both sides of a node.
pub(super) struct Engine<D> {
    pub(super) device: D,
    pub(super) controller: Controller,
    /// Datagrams that were no messages.
    pub(super) malformed: u64,
    clock: SystemInstant,
}

impl<D: Device> Engine<D> {
    pub(super) fn new(device: D, controller: Controller) -> Self {
        Self { device, controller, malformed: 0, clock: SystemInstant::now() }
    }

    pub(super) fn now(&self) -> Instant {
        Instant(self.clock.elapsed().as_micros() as u64)
    }

    /// The moment of tokio's clock that `at` stands for.
    #[cfg(all(target_os = "linux", not(echonet_portable)))]
    pub(super) fn system_time(&self, at: Instant) -> SystemInstant {
        self.clock + at.since(Instant::ZERO)
    }

    /// Writes the device's next datagram that is due. One that an object panicked over is not sent.
    pub(super) fn poll_device(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(Destination, usize)> {
        let Self { device, controller, .. } = self;
        loop {
            if let Some(polled) = unharmed(controller, || device.poll_transmit(now, buffer)) {
                return polled;
            }
        }
    }

    /// Takes a message of a host that gets no answers: it may be an answer itself.
    pub(super) fn take_unanswered(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        match Frame::parse(bytes) {
            Ok(Frame::Format1(message)) if message.esv().is_answer() => {
                self.controller.handle_message(now, from, &message);
            }
            Ok(_) => {}
            Err(error) => self.note_malformed(from, error),
        }
    }

    #[cold]
    fn note_malformed(&mut self, from: SocketAddr, error: ParseError) {
        self.malformed += 1;
        report!(debug, "a datagram of {from} is no message: {error}");
    }

    /// Takes one message, however it came.
    #[inline]
    pub(super) fn take(&mut self, now: Instant, from: SocketAddr, how: Arrival, bytes: &[u8], out: &mut impl Transmit) {
        let message = match Frame::parse(bytes) {
            Ok(Frame::Format1(message)) => message,
            // Format 2 needs an agreement between nodes, and this node has none.
            Ok(_) => {
                self.malformed += 1;
                return;
            }
            Err(error) => return self.note_malformed(from, error),
        };
        let Self { device, controller, .. } = self;
        // An answer that ended in a panic was the device's to give all the same.
        if !unharmed(controller, || device.handle(now, from, how, &message, out)).unwrap_or(true) {
            self.controller.handle_message(now, from, &message);
        } else if message.esv() == Esv::Infc {
            // Confirmed by the device side, and news for the requesting side all the same.
            self.controller.handle_notification(now, from, &message);
        }
    }
}

/// Lets objects work; a panic of theirs ends this work alone, and is told. The node is whole afterwards: it has done
/// with a task before it calls an object for it. State that the object itself left half done stays so.
#[inline]
fn unharmed<R>(controller: &mut Controller, work: impl FnOnce() -> R) -> Option<R> {
    match panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => Some(result),
        Err(payload) => {
            let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
            let message = text.unwrap_or_default();
            report!(error, "an object panicked: {message}");
            controller.tell(Event::ObjectPanicked { message });
            None
        }
    }
}

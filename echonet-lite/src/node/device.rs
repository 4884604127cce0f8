//! The device side of a node.

use core::{fmt, net::SocketAddr};

use super::{
    AnswerPort, Arrival, Config, Destination, Instant, Objects, Profile, Transmit,
    agenda::{Agenda, Confirm, Task},
    profile::NodeProfile,
    random::Random,
    respond::{Outcome, Reply, respond},
};
use crate::wire::{ClassCode, Eoj, Esv, Frame, Message, PORT, ParseError, PropertySet};

mod later;

/// Bytes that [`Node::new`] gives to what is sent later: some eight requests of one property.
pub const DEFAULT_STORE: usize = 512;

/// The last quarter of the store is the node's own: requests of others cannot crowd out its notifications.
const OWN_SHARE: usize = 4;

/// A node: its profile and its objects. See the [module](super) for an example.
///
/// Call [`handle`](Self::handle) with every datagram, [`poll_transmit`](Self::poll_transmit) until it has nothing more
/// whenever something was called, and again at [`poll_timeout`](Self::poll_timeout).
///
/// `STORE` is the number of bytes for all that is sent later: answers to multicast requests (40 bytes and the request
/// each) and notifications (30 bytes for each object, 48 that are confirmed). A multicast request that does not fit is
/// answered at once, which [`Statistics`] count; a confirmed notification that does not is an error. Announcements are
/// never lost: of those that do not fit, the node remembers which properties have changed, and of which range of
/// objects. Then all of these objects announce them, some perhaps the value that they had before.
#[derive(Clone, Debug)]
pub struct Node<O, const STORE: usize = DEFAULT_STORE> {
    config: Config,
    objects: O,
    agenda: Agenda<STORE>,
    overflow: later::Overflow,
    random: Random,
    /// TID of the last message of the node's own.
    tid: u16,
    /// The object that was asked last: peers ask the same one again and again.
    recent: usize,
    statistics: Statistics,
}

/// The result of handling a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Handled {
    /// It was for an object of this node and is dealt with: answered now, later, or not at all where the specification
    /// wants silence.
    Done,
    /// It is for an object that this node does not have: silence.
    NotForUs,
    /// It is an answer or a notification, or has format 2: for the requesting side, if for anyone.
    NotARequest,
    /// It is no frame.
    Malformed(ParseError),
}

/// The counters of failures since the start. They wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Statistics {
    /// Datagrams that were no frames.
    pub malformed: u32,
    /// Multicast requests answered without delay because the store was full.
    pub undelayed: u32,
    /// INFC without a confirmation.
    pub unconfirmed: u32,
}

/// Why a notification cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum NotifyError {
    /// The node has no such object.
    NoSuchObject,
    /// The object has no such property, or one that can neither be read nor is announced.
    NoSuchProperty,
    /// The store has no room for a confirmed notification. It empties as time goes by and [`Node::poll_transmit`] is called.
    StoreFull,
}

impl fmt::Display for NotifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSuchObject => "the node has no such object",
            Self::NoSuchProperty => "the object has no such property to notify",
            Self::StoreFull => "too much is waiting to be sent",
        })
    }
}

impl core::error::Error for NotifyError {}

impl<O: Objects> Node<O> {
    /// A node of these objects with [`DEFAULT_STORE`] bytes for what is sent later. Its announcement is due at once.
    pub fn new(config: Config, objects: O) -> Self {
        Self::with_store(config, objects)
    }
}

impl<O: Objects, const STORE: usize> Node<O, STORE> {
    /// As [`Node::new`], with any size of the store, which is named by the type: `Node::<_, 128>::with_store(…)`.
    pub fn with_store(config: Config, objects: O) -> Self {
        let random = Random::new(config.seed);
        let (tid, statistics) = (config.first_tid, Statistics::default());
        let (agenda, overflow) = (Agenda::new(), later::Overflow::default());
        let mut node = Self { config, objects, agenda, overflow, random, tid, recent: 0, statistics };
        node.address_changed();
        node
    }

    /// Takes a datagram, or a frame of a TCP connection, that came from `from`; `out` takes the answers that are due now.
    /// Answers to multicast, and notifications of what changed, come from [`poll_transmit`](Self::poll_transmit).
    #[inline]
    pub fn handle(
        &mut self,
        now: Instant,
        from: SocketAddr,
        arrival: Arrival,
        bytes: &[u8],
        out: &mut impl Transmit,
    ) -> Handled {
        match Frame::parse(bytes) {
            Ok(Frame::Format1(message)) => self.handle_message(now, from, arrival, &message, out),
            Ok(Frame::Format2 { .. }) => Handled::NotARequest,
            Err(error) => {
                self.statistics.malformed = self.statistics.malformed.wrapping_add(1);
                Handled::Malformed(error)
            }
        }
    }

    /// As [`handle`](Self::handle), for a frame that was parsed already.
    ///
    /// INFC is answered by the object that it is for; if that is [`Handled::Done`], no other code may answer it. INFC_Res ends
    /// the repetition of [`notify_confirmed`](Self::notify_confirmed).
    #[inline]
    pub fn handle_message(
        &mut self,
        now: Instant,
        from: SocketAddr,
        arrival: Arrival,
        message: &Message<'_>,
        out: &mut impl Transmit,
    ) -> Handled {
        let esv = message.esv();
        if esv == Esv::InfcRes {
            return self.confirmed(from, message);
        }
        // Part II, 3.2.5: INFC is never multicast.
        let answerable = esv.is_request() || (esv == Esv::Infc && arrival != Arrival::Multicast);
        if !answerable {
            return Handled::NotARequest;
        }
        let Some(first) = self.first_target(message.deoj()) else { return Handled::NotForUs };
        if arrival == Arrival::Multicast && esv != Esv::SetI && !self.config.multicast_delay.is_zero() {
            self.answer_later(now, from, message, first, out);
        } else {
            self.answer_now(from, arrival, message, first, out);
        }
        Handled::Done
    }

    /// The objects.
    pub fn objects(&self) -> &O {
        &self.objects
    }

    /// The objects, to change them. Follow a change of an announced property with [`notify`](Self::notify), and a change of
    /// the set of objects with [`address_changed`](Self::address_changed), which announces it.
    pub fn objects_mut(&mut self) -> &mut O {
        &mut self.objects
    }

    /// Has the next of the node's own messages follow this transaction identifier, instead of [`Config::first_tid`].
    #[cfg(feature = "net")]
    pub(crate) fn begin_tids(&mut self, tid: u16) {
        self.tid = tid;
    }

    /// The settings that the node was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The counters of failures since the start.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Answers with every object that the message is for, each on its own.
    #[inline]
    fn answer_now(
        &mut self,
        from: SocketAddr,
        arrival: Arrival,
        message: &Message<'_>,
        first: usize,
        out: &mut impl Transmit,
    ) {
        let to = self.answer_address(from, arrival);
        let mut next = Some(first);
        while let Some(target) = next {
            let outcome = self.respond_at(target, message, out.buffer());
            match outcome.reply {
                Reply::Silence => {}
                Reply::Unicast(length) => out.transmit(Destination::Unicast(to), length),
                Reply::Multicast(length) => out.transmit(Destination::Multicast, length),
            }
            next = self.next_target(message.deoj(), target);
        }
    }

    /// Lets the object at `target` answer, and has the properties that it changed announced.
    #[inline]
    fn respond_at(&mut self, target: usize, message: &Message<'_>, buffer: &mut [u8]) -> Outcome {
        let set_get = self.config.set_get;
        if message.deoj().class_code() == ClassCode::NODE_PROFILE {
            return respond(&mut NodeProfile::new(&self.config, &self.objects), message, set_get, buffer);
        }
        let Some(object) = self.objects.get_mut(target) else {
            return Outcome { reply: Reply::Silence, changed: PropertySet::EMPTY };
        };
        let outcome = respond(object, message, set_get, buffer);
        if !outcome.changed.is_empty() {
            let eoj = object.eoj();
            self.announce(eoj, outcome.changed);
        }
        outcome
    }

    /// The first object that a message to `deoj` is for; 0 stands for the profile if that is meant.
    #[inline]
    fn first_target(&mut self, deoj: Eoj) -> Option<usize> {
        if self.config.profile == Profile::SendOnly {
            return None;
        }
        if deoj.class_code() == ClassCode::NODE_PROFILE {
            return deoj.addresses(Eoj::NODE_PROFILE).then_some(0);
        }
        if self.objects.get(self.recent).is_some_and(|object| object.eoj() == deoj) {
            return Some(self.recent);
        }
        self.recent = self.objects.find(deoj, 0)?;
        Some(self.recent)
    }

    /// The next object behind `target`: only instance 0 means several.
    #[inline]
    fn next_target(&self, deoj: Eoj, target: usize) -> Option<usize> {
        if deoj.instance() != 0 || deoj.class_code() == ClassCode::NODE_PROFILE {
            return None;
        }
        self.objects.find(deoj, target + 1)
    }

    #[inline]
    fn answer_address(&self, from: SocketAddr, arrival: Arrival) -> SocketAddr {
        let mut to = from;
        if arrival != Arrival::Connection && self.config.answer_port == AnswerPort::Standard {
            to.set_port(PORT);
        }
        to
    }
}

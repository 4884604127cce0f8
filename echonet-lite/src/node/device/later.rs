//! Messages that a node sends of its own accord or with a delay.

use super::*;
use crate::node::Object;
use crate::node::agenda::Place;
use crate::node::respond::{append, notifiable};
use crate::wire::{FrameWriter, Header, Unwritten};

/// The next object of a stored request that all have answered.
const ANSWERED: u16 = u16::MAX;

impl<O: Objects, const STORE: usize> Node<O, STORE> {
    /// When [`poll_transmit`](Self::poll_transmit) will have something to send.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.overflow.epcs.is_empty() { self.agenda.first_due() } else { Some(Instant::ZERO) }
    }

    /// The next datagram that is due: written into `buffer`, with its destination and length.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(Destination, usize)> {
        // Every turn ends a task, or sends a part of it.
        loop {
            let sent = if self.agenda.first_due().is_none_or(|due| due > now) {
                if self.overflow.epcs.is_empty() {
                    return None;
                }
                self.send_overflow(buffer)
            } else {
                let (place, task) = self.agenda.first()?;
                match task {
                    Task::Answer { to, frame } => {
                        let sent = copy(frame, buffer).map(|length| (Destination::Unicast(to), length));
                        self.agenda.remove(place);
                        sent
                    }
                    Task::Request { .. } => self.answer_stored(buffer),
                    Task::Notify { eoj, epcs } => self.send_notification(place, eoj, epcs, buffer),
                    Task::Confirm(confirm) => self.send_confirmable(place, confirm, now, buffer),
                }
            };
            if sent.is_some() {
                return sent;
            }
        }
    }

    /// Announces the node: call it when an address of it has changed, when it has come back to the network, and when
    /// objects were added or taken away. The start-up announcement comes by itself.
    pub fn address_changed(&mut self) {
        let eoj = NodeProfile::new(&self.config, &self.objects).eoj();
        if !self.overflow.epcs.is_empty() {
            // Its places can be those of other objects now.
            (self.overflow.first, self.overflow.last) = (0, PROFILE);
        }
        self.announce(eoj, PropertySet::of(&[0xD5]));
    }

    /// Tells everyone the value of a property (INF, multicast) that it has when it is sent. Notifications of one object that
    /// wait together are sent together. None is ever lost: see [`Node`].
    ///
    /// # Errors
    /// No such object or property.
    pub fn notify(&mut self, eoj: Eoj, epc: u8) -> Result<(), NotifyError> {
        self.check_notifiable(eoj, epc)?;
        self.announce(eoj, PropertySet::EMPTY.with(epc));
        Ok(())
    }

    /// Tells one object of one node the value of a property (INFC), again and again with a fresh TID until it confirms or
    /// the attempts of the configuration are used up. `to` gets it at its port, which is 3610 by the specification.
    ///
    /// # Errors
    /// No such object or property, or too much that waits.
    pub fn notify_confirmed(&mut self, to: SocketAddr, deoj: Eoj, eoj: Eoj, epc: u8) -> Result<(), NotifyError> {
        self.check_notifiable(eoj, epc)?;
        let confirm = Confirm { to, deoj, seoj: eoj, epc, tid: 0, attempts: self.config.infc_attempts.max(1) };
        self.agenda.push(Instant::ZERO, Task::Confirm(confirm), 0).map_err(|_| NotifyError::StoreFull)
    }

    /// Stores a multicast request to be answered after a random moment. Writes are carried out at once, so that a later
    /// unicast write stays the later one, and only their answer waits.
    pub(super) fn answer_later(
        &mut self,
        now: Instant,
        from: SocketAddr,
        message: &Message<'_>,
        first: usize,
        out: &mut impl Transmit,
    ) {
        let due = now + self.random.up_to(self.config.multicast_delay);
        let reserve = STORE / OWN_SHARE;
        if matches!(message.esv(), Esv::Get | Esv::InfReq)
            && let Ok(next) = u16::try_from(first)
        {
            let request = Task::Request { from, next, frame: message.as_bytes() };
            if self.agenda.push(due, request, reserve).is_err() {
                self.statistics.undelayed = self.statistics.undelayed.wrapping_add(1);
                self.answer_now(from, Arrival::Multicast, message, first, out);
            }
            return;
        }
        let to = self.answer_address(from, Arrival::Multicast);
        let mut next = Some(first);
        while let Some(target) = next {
            let buffer = out.buffer();
            if let Reply::Unicast(length) = self.respond_at(target, message, buffer).reply {
                let answer = Task::Answer { to, frame: &buffer[..length] };
                if self.agenda.push(due, answer, reserve).is_err() {
                    self.statistics.undelayed = self.statistics.undelayed.wrapping_add(1);
                    out.transmit(Destination::Unicast(to), length);
                }
            }
            next = self.next_target(message.deoj(), target);
        }
    }

    /// Answers the first task, a stored request, with its next object.
    fn answer_stored(&mut self, buffer: &mut [u8]) -> Option<(Destination, usize)> {
        let (place, Task::Request { from, next, frame }) = self.agenda.first()? else { return None };
        let message = match Frame::parse(frame) {
            Ok(Frame::Format1(message)) if next != ANSWERED => message,
            _ => {
                self.agenda.remove(place);
                return None;
            }
        };
        let to = self.answer_address(from, Arrival::Multicast);
        let (deoj, target) = (message.deoj(), usize::from(next));
        let next = self.next_target(deoj, target).and_then(|next| u16::try_from(next).ok()).unwrap_or(ANSWERED);
        // Before the object is called: if it panics, its turn is over all the same.
        self.agenda.advance(place, next);
        let (_, Task::Request { frame, .. }) = self.agenda.first()? else { return None };
        let Ok(Frame::Format1(message)) = Frame::parse(frame) else { return None };
        // Only reads are stored, so nothing changes and nothing is added to the agenda meanwhile.
        let reply = if deoj.class_code() == ClassCode::NODE_PROFILE {
            let mut profile = NodeProfile::new(&self.config, &self.objects);
            respond(&mut profile, &message, self.config.set_get, buffer).reply
        } else {
            let object = self.objects.get_mut(target);
            object.map_or(Reply::Silence, |object| respond(object, &message, self.config.set_get, buffer).reply)
        };
        if next == ANSWERED {
            self.agenda.remove(place);
        }
        match reply {
            Reply::Silence => None,
            Reply::Unicast(length) => Some((Destination::Unicast(to), length)),
            Reply::Multicast(length) => Some((Destination::Multicast, length)),
        }
    }

    /// Ends the repetition of an INFC.
    pub(super) fn confirmed(&mut self, from: SocketAddr, message: &Message<'_>) -> Handled {
        let ours = |task: Task<'_>| match task {
            // An answer from another port is one, too: 3610 is not everyone's source.
            Task::Confirm(confirm) => {
                confirm.tid == message.tid()
                    && confirm.to.ip() == from.ip()
                    && confirm.deoj == message.seoj()
                    && confirm.seoj == message.deoj()
            }
            Task::Request { .. } | Task::Answer { .. } | Task::Notify { .. } => false,
        };
        let found = self.agenda.tasks().find(|&(_, task)| ours(task)).map(|(place, _)| place);
        let Some(place) = found else { return Handled::NotARequest };
        self.agenda.remove(place);
        Handled::Done
    }

    /// Remembers what is to be announced: with what waits of this object already, or for itself, or if the store has no room
    /// together with all that it had none for.
    pub(super) fn announce(&mut self, eoj: Eoj, epcs: PropertySet) {
        let waiting = self.agenda.tasks().find_map(|(place, task)| match task {
            Task::Notify { eoj: of, epcs } if of == eoj => Some((place, epcs)),
            Task::Notify { .. } | Task::Request { .. } | Task::Answer { .. } | Task::Confirm(_) => None,
        });
        if let Some((place, already)) = waiting {
            self.agenda.replace(place, place.due, Task::Notify { eoj, epcs: already.union(epcs) });
        } else if self.agenda.push(Instant::ZERO, Task::Notify { eoj, epcs }, 0).is_err() {
            let index = self.objects.find(eoj, 0).and_then(|index| u16::try_from(index).ok()).unwrap_or(PROFILE);
            self.overflow.add(index, epcs);
        }
    }

    fn check_notifiable(&self, eoj: Eoj, epc: u8) -> Result<(), NotifyError> {
        let allowed = self.with_object(eoj, |object| notifiable(object.access()).contains(epc));
        match allowed {
            None => Err(NotifyError::NoSuchObject),
            Some(false) => Err(NotifyError::NoSuchProperty),
            Some(true) => Ok(()),
        }
    }

    /// Calls `f` with the object, or with the profile.
    fn with_object<T>(&self, eoj: Eoj, f: impl FnOnce(&dyn Object) -> T) -> Option<T> {
        let profile = NodeProfile::new(&self.config, &self.objects);
        if profile.eoj() == eoj {
            return Some(f(&profile));
        }
        self.objects.get(self.objects.find(eoj, 0)?).filter(|object| object.eoj() == eoj).map(f)
    }

    /// One INF with as many of the properties as fit; the others stay.
    fn send_notification(
        &mut self,
        place: Place,
        eoj: Eoj,
        epcs: PropertySet,
        buffer: &mut [u8],
    ) -> Option<(Destination, usize)> {
        if epcs.is_empty() {
            self.agenda.remove(place);
            return None;
        }
        // Before the object is called: if it panics, this notification is over all the same.
        self.agenda.replace(place, place.due, Task::Notify { eoj, epcs: PropertySet::EMPTY });
        let (length, rest) = self.write_notification(eoj, epcs, buffer);
        if rest.is_empty() {
            self.agenda.remove(place);
        } else {
            self.agenda.replace(place, place.due, Task::Notify { eoj, epcs: rest });
        }
        length.map(|length| (Destination::Multicast, length))
    }

    /// One INF of the next object of those that the store had no room for.
    fn send_overflow(&mut self, buffer: &mut [u8]) -> Option<(Destination, usize)> {
        let Overflow { first, last, epcs } = self.overflow;
        // Before the object is called: if it panics, its turn is over all the same.
        let next = if usize::from(first) < self.objects.len() { first + 1 } else { PROFILE };
        if first >= last {
            self.overflow = Overflow::default();
        } else {
            self.overflow.first = next;
        }
        let eoj = match self.objects.get(first.into()) {
            Some(object) => object.eoj(),
            None if first == PROFILE => NodeProfile::new(&self.config, &self.objects).eoj(),
            None => return None,
        };
        let own = self.with_object(eoj, |object| epcs.intersection(notifiable(object.access())))?;
        let (length, rest) = self.write_notification(eoj, own, buffer);
        if !rest.is_empty() {
            self.announce(eoj, rest);
        }
        length.map(|length| (Destination::Multicast, length))
    }

    /// Writes an INF with as many of the properties as fit; returns its length, and the others.
    fn write_notification(&mut self, eoj: Eoj, epcs: PropertySet, buffer: &mut [u8]) -> (Option<usize>, PropertySet) {
        let header = self.own_header(eoj, Eoj::NODE_PROFILE, Esv::Inf);
        let written = FrameWriter::new(buffer, header).ok().and_then(|mut writer| {
            let rest = if epcs.contains(0xD5) && eoj.class_code() == ClassCode::NODE_PROFILE {
                NodeProfile::new(&self.config, &self.objects).announce(&mut writer);
                epcs.without(0xD5)
            } else {
                self.with_object(eoj, |object| append_all(object, epcs, &mut writer))?
            };
            Some((writer.finish().ok()?.len(), rest))
        });
        // Properties that cannot be written at all are given up.
        written.map_or((None, PropertySet::EMPTY), |(length, rest)| (Some(length), rest))
    }

    /// One attempt of an INFC, and the next one's time.
    fn send_confirmable(
        &mut self,
        place: Place,
        confirm: Confirm,
        now: Instant,
        buffer: &mut [u8],
    ) -> Option<(Destination, usize)> {
        if confirm.attempts == 0 {
            self.statistics.unconfirmed = self.statistics.unconfirmed.wrapping_add(1);
            self.agenda.remove(place);
            return None;
        }
        let header = self.own_header(confirm.seoj, confirm.deoj, Esv::Infc);
        // Before the object is called: if it panics, this attempt is over all the same.
        let next = Confirm { tid: header.tid, attempts: confirm.attempts - 1, ..confirm };
        self.agenda.replace(place, now + self.config.infc_timeout, Task::Confirm(next));
        let length = FrameWriter::new(buffer, header).ok().and_then(|mut writer| {
            self.with_object(confirm.seoj, |object| append(object, confirm.epc, &mut writer))?.ok()?;
            Some(writer.finish().ok()?.len())
        });
        length.map(|length| (Destination::Unicast(confirm.to), length))
    }

    fn own_header(&mut self, seoj: Eoj, deoj: Eoj, esv: Esv) -> Header {
        self.tid = self.tid.wrapping_add(1);
        Header { tid: self.tid, seoj, deoj, esv }
    }
}

/// Appends the properties that can be read; returns those that found no room.
fn append_all(object: &dyn Object, epcs: PropertySet, writer: &mut FrameWriter<'_>) -> PropertySet {
    let mut rest = epcs;
    for epc in epcs {
        match append(object, epc, writer) {
            Err(Unwritten::Writer(_)) => break,
            Ok(()) | Err(Unwritten::Source(_)) => rest = rest.without(epc),
        }
    }
    rest
}

fn copy(frame: &[u8], buffer: &mut [u8]) -> Option<usize> {
    buffer.get_mut(..frame.len())?.copy_from_slice(frame);
    Some(frame.len())
}

/// The place of the profile among what waits in an [`Overflow`].
const PROFILE: u16 = u16::MAX;

/// The announcements that found no room in the store: these properties of all objects from one place to another. It is
/// state, not messages: more changes need no more room, and at worst an object announces a value that has not changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overflow {
    first: u16,
    last: u16,
    epcs: PropertySet,
}

impl Overflow {
    fn add(&mut self, index: u16, epcs: PropertySet) {
        if self.epcs.is_empty() {
            *self = Self { first: index, last: index, epcs };
        } else {
            let (first, last) = (self.first.min(index), self.last.max(index));
            *self = Self { first, last, epcs: self.epcs.union(epcs) };
        }
    }
}

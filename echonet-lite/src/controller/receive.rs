//! Incoming messages: answers, notifications.

use core::net::SocketAddr;
use std::vec::Vec;

use super::answer::{Outcomes, Status};
use super::identity::fnv;
use super::peer::News;
use super::slot::{Attempt, Lists, Slot, State, Target};
use super::{Answer, Config, Controller, Event, NodeAddr, NodeId, Notification};
use crate::node::Instant;
use crate::wire::{Eoj, Esv, Frame, FrameWriter, Header, Message, PropertySet};

/// How many confirmations wait to be sent at most. A node whose confirmation is dropped sends its news again.
const MAX_CONFIRMATIONS: usize = 256;

/// Where the transaction identifier is in a frame.
const TID: core::ops::Range<usize> = 2..4;

/// Properties that change seldom, and so are learnt from an answer to any request: a node's profile and the property
/// maps.
const LEARNT: PropertySet = PropertySet::of(&[0x82, 0x83, 0x8A, 0x8D, 0x9D, 0x9E, 0x9F, 0xD3, 0xD6]);

impl Controller {
    /// Takes a datagram that came from an address. Requests, which are for the device side of a node, are passed over.
    pub fn handle(&mut self, now: Instant, from: SocketAddr, bytes: &[u8]) {
        match Frame::parse(bytes) {
            Ok(Frame::Format1(message)) => self.handle_message(now, from, &message),
            Ok(Frame::Format2 { .. }) | Err(_) => self.statistics.malformed += 1,
        }
    }

    /// [`handle`](Self::handle) for a frame that has been parsed.
    pub fn handle_message(&mut self, now: Instant, from: SocketAddr, message: &Message<'_>) {
        match message.esv() {
            Esv::Inf => {
                // The notification's facts are known before a step of an interview ends with it.
                let was_asked = self.is_asked_for(from.into(), message);
                self.notification(now, from.into(), message, was_asked);
                self.answer(now, from.into(), message);
            }
            Esv::Infc => {
                let Some(object) = self.object_at(message.deoj()) else { return };
                self.confirm(from.into(), object, message);
                self.notification(now, from.into(), message, false);
            }
            // The answer to what the device side sent.
            Esv::InfcRes => {}
            esv if !esv.is_answer() => {}
            _ if self.answer(now, from.into(), message) => {}
            _ if self.tids.is_resting(message.tid()) => {
                self.statistics.late += 1;
                // Too late for its request, and still a sign of life.
                if self.find_peer(from.into()).is_some() {
                    self.hear(now, from.into());
                }
            }
            _ => self.statistics.unmatched += 1,
        }
    }

    /// Takes an INFC that the device side of this node has confirmed already, or an INF.
    pub fn handle_notification(&mut self, now: Instant, from: SocketAddr, message: &Message<'_>) {
        if message.esv().is_notification() {
            self.notification(now, from.into(), message, false);
        }
    }

    /// Whether an announcement answers an INF_REQ, rather than being the node's own idea.
    fn is_asked_for(&self, from: NodeAddr, message: &Message<'_>) -> bool {
        let slot = self.tids.find(message.tid()).map(|index| &self.slots[index as usize]);
        slot.is_some_and(|slot| {
            let from_asked = match slot.target {
                Target::Group => true,
                Target::Peer(place) => self.peer(place).info.covers(from),
            };
            let (eoj, service) = slot.asks();
            from_asked && service == Esv::InfReq && eoj.addresses(message.seoj())
        })
    }

    /// Takes an answer, if it fits a request in every respect; returns whether it does.
    fn answer(&mut self, now: Instant, from: NodeAddr, message: &Message<'_>) -> bool {
        let Some(index) = self.tids.find(message.tid()) else { return false };
        let slot = &mut self.slots[index as usize];
        let esv = message.esv();
        let for_us = message.deoj() == self.config.eoj || esv == Esv::Inf;
        // There are nodes that refuse every write as if no answer had been wanted.
        let (eoj, service) = slot.asks();
        let is_loose_refusal = (service, esv) == (Esv::SetC, Esv::SetISna);
        let of_service = service.accepted() == Some(esv) || service.refused() == Some(esv) || is_loose_refusal;
        if !for_us || !of_service || !eoj.addresses(message.seoj()) {
            return false;
        }
        let Some(attempt) = slot.attempts.find(message.tid()).copied() else { return false };
        let answered = if refuses_namelessly(message) { Some(attempt.lists) } else { answered(message, attempt.lists) };
        let Some(answered) = answered else { return false };
        let from_asked = match slot.target {
            Target::Group => true,
            Target::Peer(place) => {
                let peer = self.peers[place as usize].as_ref().expect("requests keep their node");
                peer.info.covers(from)
            }
        };
        if !from_asked {
            return false;
        }
        self.statistics.answers += 1;
        if slot.is_gathering() {
            self.gathered(now, index, from, message, attempt);
        } else if let Target::Peer(place) = slot.target {
            if slot.checks().is_some() {
                self.identified(now, index, place, from, message, attempt);
            } else {
                self.answered(now, index, (place, from), message, attempt, answered);
            }
        }
        true
    }

    /// The node at an address has said who it is, before something is sent to it that is for one node only.
    fn identified(
        &mut self,
        now: Instant,
        index: u32,
        place: u32,
        from: NodeAddr,
        message: &Message<'_>,
        attempt: Attempt,
    ) {
        self.timed(now, place, now.since(attempt.at));
        // Without an identification number it can be another node since, one that tells none.
        let tells_number = message.properties().find(0x83).is_some_and(|number| !number.is_empty());
        let expected = self.slots[index as usize].checks();
        self.learn(now, place, from, message);
        // A request for one node only has failed by now if another node has answered.
        let slot = &mut self.slots[index as usize];
        if slot.state != State::Outstanding {
            return;
        }
        let is_right = match expected {
            Some(NodeId::Number(_)) => tells_number && self.peer(place).info.id == expected,
            _ => self.peer(place).info.id == expected,
        };
        if !is_right {
            let failure = self.slots[index as usize].diverted(now);
            self.finish(now, index, Some(message.tid()), Some(failure));
            return;
        }
        self.drop_attempts(now, index, Some(message.tid()));
        self.requeue(now, index);
        self.slots[index as usize].checked();
    }

    /// An answer took so long.
    fn timed(&mut self, now: Instant, place: u32, response_time: core::time::Duration) {
        let Self { peers, config, .. } = self;
        let peer = peers[place as usize].as_mut().expect("requests keep their node");
        peer.response_time.answered(response_time);
        peer.info.response_time = peer.response_time.smoothed();
        peer.not_before = now + peer.response_time.spacing(config.spacing);
        if peer.heard(now) {
            self.returned(place);
        }
    }

    /// A node that was lost is heard again: it can be another one by now.
    fn returned(&mut self, place: u32) {
        let addr = self.peer(place).info.addr;
        self.tell(Event::NodeReturned(addr));
        self.doubt(place);
    }

    /// One of the answers to a request to several.
    fn gathered(&mut self, now: Instant, index: u32, from: NodeAddr, message: &Message<'_>, attempt: Attempt) {
        // The message shows whether the node has answered already by another address.
        let heard = self.hear(now, from);
        if let Some(place) = heard {
            self.learn(now, place, from, message);
        }
        let place = heard.and_then(|_| self.find_peer(from));
        let node = place.map_or(from, |place| self.peer(place).info.addr);
        let most = self.config.max_nodes.max(self.config.max_objects);
        let slot = &mut self.slots[index as usize];
        if slot.heard.len() >= most || !slot.heard.insert((node, message.seoj())) {
            return;
        }
        let mut outcomes = Outcomes::default();
        let lists = attempt.lists;
        let left = lists.difference(record(&mut outcomes, message, slot.service, lists));
        left.writes.iter().for_each(|epc| outcomes.push(epc, true, Status::Omitted, &[]));
        left.reads.iter().for_each(|epc| outcomes.push(epc, false, Status::Omitted, &[]));
        let id = super::RequestId { slot: index, generation: slot.generation };
        let service = slot.service;
        let response_time = now.since(attempt.at);
        if let Some(place) = place.filter(|_| message.seoj().class_code() == Eoj::NODE_PROFILE.class_code()) {
            self.start_interview(place);
        }
        self.tell(Event::Gathered {
            id,
            answer: Answer { node, eoj: message.seoj(), service, response_time, outcomes },
        });
    }

    /// The answer of one object, to all or part of what was asked.
    fn answered(
        &mut self,
        now: Instant,
        index: u32,
        (place, from): (u32, NodeAddr),
        message: &Message<'_>,
        attempt: Attempt,
        answered: Lists,
    ) {
        self.timed(now, place, now.since(attempt.at));
        let Self { slots, peers, config, .. } = self;
        let slot = &mut slots[index as usize];
        let peer = peers[place as usize].as_mut().expect("requests keep their node");
        slot.response_time = now.since(attempt.at);
        let service = slot.service;
        record(&mut slot.outcomes, message, service, attempt.lists);
        // A refusal of the whole SetGet names no properties.
        slot.left = if message.esv() == Esv::SetGetSna && answered.is_empty() {
            Lists::default()
        } else {
            slot.left.difference(answered)
        };
        let unanswered = attempt.lists.difference(answered);
        if message.esv().is_sna() && !unanswered.is_empty() && !answered.is_empty() {
            // Properties that do not fit into an answer are left out of it, from the end (4.2.3).
            peer.info.properties_at_once = Some(answered.len().min(usize::from(u8::MAX)) as u8);
        }
        if service == Esv::Get {
            remember_refusals(now, peer, slot, message, config);
            let learnt = !attempt.lists.reads.intersection(LEARNT).is_empty();
            if learnt {
                self.learn(now, place, from, message);
            }
        }
        let slot = &mut self.slots[index as usize];
        if slot.service == Esv::SetGet && slot.left.writes.is_empty() {
            slot.service = Esv::Get;
        }
        if !slot.left.is_empty() && matches!(slot.service, Esv::Get | Esv::SetC | Esv::InfReq) {
            slot.tried = 0;
            self.drop_attempts(now, index, Some(message.tid()));
            self.requeue(now, index);
        } else {
            slot.settle(Status::Omitted);
            self.finish(now, index, Some(message.tid()), None);
        }
    }

    /// News of a node: delivered once, however often they come.
    fn notification(&mut self, now: Instant, from: NodeAddr, message: &Message<'_>, was_asked: bool) {
        let confirmed = message.esv() == Esv::Infc;
        let Some(place) = self.hear(now, from) else { return };
        // Tells copies of a notification from others.
        let hash = fnv(message.as_bytes()[TID.end..].iter().copied());
        let epcs: PropertySet = message.properties().map(|property| property.epc).collect();
        let news = News { tid: message.tid(), eoj: message.seoj(), confirmed, epcs, hash };
        let Self { peers, config, .. } = self;
        let peer = peers[place as usize].as_mut().expect("it was just heard");
        let is_profile = message.seoj().class_code() == Eoj::NODE_PROFILE.class_code();
        let is_start = is_profile && !was_asked && !confirmed && epcs.contains(0xD5);
        let repeated = if is_start { peer.is_start_repeated(now, news) } else { peer.is_repeated(now, news, config) };
        if repeated {
            self.statistics.repeated_notifications += 1;
            return;
        }
        self.statistics.notifications += 1;
        if is_profile {
            self.learn_announcement(now, place, from, message, was_asked);
        }
        // A search does not reach some nodes, and they announce themselves by their devices' values alone.
        if self.peer_mut(place).is_prompted(now) {
            self.start_interview(place);
        }
        let node = self.peer(place).info.addr;
        let mut list = Vec::with_capacity(message.as_bytes().len());
        for property in message.properties() {
            list.extend_from_slice(&[property.epc, property.edt.len() as u8]);
            list.extend_from_slice(property.edt);
        }
        let (eoj, deoj) = (message.seoj(), message.deoj());
        self.tell(Event::Notification(Notification { node, eoj, deoj, confirmed, list }));
    }

    /// The object of this node that a notification addresses.
    fn object_at(&self, deoj: Eoj) -> Option<Eoj> {
        let own = [self.config.eoj, Eoj::NODE_PROFILE];
        own.into_iter().chain(self.config.objects.iter().copied()).find(|eoj| deoj.addresses(*eoj))
    }

    /// Answers an INFC: the same properties without values.
    fn confirm(&mut self, from: NodeAddr, object: Eoj, message: &Message<'_>) {
        if self.confirmations.len() >= MAX_CONFIRMATIONS || self.config.listens_only {
            return;
        }
        let header = Header { tid: message.tid(), seoj: object, deoj: message.seoj(), esv: Esv::InfcRes };
        let mut buffer = [0; 12 + 2 * u8::MAX as usize];
        let Ok(mut writer) = FrameWriter::new(&mut buffer, header) else { return };
        for property in message.properties() {
            if writer.property(property.epc, &[]).is_err() {
                return;
            }
        }
        if let Ok(frame) = writer.finish() {
            self.statistics.confirmed += 1;
            self.confirmations.push_back((from, frame.into()));
        }
    }

    /// Something came from an address: its node, which may be new. `None` if there is no place for it.
    pub(super) fn hear(&mut self, now: Instant, from: NodeAddr) -> Option<u32> {
        let place = match self.find_peer(from) {
            Some(place) => place,
            None => {
                let Some(place) = self.add_peer(now, from, false) else {
                    self.statistics.crowded_out += 1;
                    self.crowded_out += 1;
                    return None;
                };
                self.tell(Event::NodeFound(from));
                place
            }
        };
        let peer = self.peer_mut(place);
        peer.response_time.heard();
        if peer.heard(now) {
            self.returned(place);
        }
        Some(place)
    }
}

/// Whether a message refuses without a word on what: there are nodes whose refusals name the property 00, which is none.
fn refuses_namelessly(message: &Message<'_>) -> bool {
    let mut properties = message.properties().chain(message.get_properties()).peekable();
    message.esv().is_sna() && properties.peek().is_some() && properties.all(|property| property.epc < 0x80)
}

/// Which of the properties that were asked for a message answers; `None` if it names others, or one twice.
fn answered(message: &Message<'_>, asked: Lists) -> Option<Lists> {
    let is_write = matches!(message.esv(), Esv::SetRes | Esv::SetCSna | Esv::SetISna);
    // An announcement of a long list of instances repeats its property.
    let may_repeat = message.esv() == Esv::Inf;
    let take = |answered: PropertySet, epc: u8, asked: PropertySet| {
        (asked.contains(epc) && (may_repeat || !answered.contains(epc))).then(|| answered.with(epc))
    };
    let mut answered = Lists::default();
    for property in message.properties() {
        if is_write || message.esv().has_two_lists() {
            answered.writes = take(answered.writes, property.epc, asked.writes)?;
        } else {
            answered.reads = take(answered.reads, property.epc, asked.reads)?;
        }
    }
    if message.esv().has_two_lists() {
        for property in message.get_properties() {
            answered.reads = take(answered.reads, property.epc, asked.reads)?;
        }
    }
    Some(answered)
}

/// Writes down the outcomes that an answer tells; returns which.
fn record(outcomes: &mut Outcomes, message: &Message<'_>, service: Esv, asked: Lists) -> Lists {
    let esv = message.esv();
    outcomes.reserve(message.as_bytes().len() + 2 * asked.len());
    let mut told = Lists::default();
    let is_empty = message.properties().len() + message.get_properties().len() == 0;
    if refuses_namelessly(message) || (esv == Esv::SetGetSna && is_empty) {
        // The node does not know the service, or does not say what it refuses.
        asked.writes.iter().for_each(|epc| outcomes.push(epc, true, Status::Refused, &[]));
        asked.reads.iter().for_each(|epc| outcomes.push(epc, false, Status::Refused, &[]));
        return asked;
    }
    let (mut writes, reads) = match service {
        Esv::SetI | Esv::SetC => (Some(message.properties()), None),
        Esv::SetGet => (Some(message.properties()), Some(message.get_properties())),
        _ => (None, Some(message.properties())),
    };
    // A refusal that refuses nothing, though nothing is left out, comes from nodes that do not give the values back.
    let all_refused = matches!(esv, Esv::SetISna | Esv::SetCSna)
        && message.properties().len() == asked.writes.len()
        && message.properties().all(|property| property.edt.is_empty());
    for property in writes.take().into_iter().flatten() {
        let is_refused = esv.is_sna() && (all_refused || !property.edt.is_empty());
        told.writes = told.writes.with(property.epc);
        outcomes.push(property.epc, true, if is_refused { Status::Refused } else { Status::Done }, &[]);
    }
    for property in reads.into_iter().flatten() {
        let is_refused = esv.is_sna() && property.edt.is_empty();
        told.reads = told.reads.with(property.epc);
        let status = if is_refused { Status::Refused } else { Status::Done };
        outcomes.push(property.epc, false, status, property.edt);
    }
    told
}

/// Remembers which properties an object refused to read, and forgets those that it let read.
fn remember_refusals(now: Instant, peer: &mut super::peer::Peer, slot: &Slot, message: &Message<'_>, config: &Config) {
    let eoj = slot.eoj;
    let (mut refused, mut read) = (PropertySet::EMPTY, PropertySet::EMPTY);
    for property in message.properties() {
        if message.esv().is_sna() && property.edt.is_empty() {
            refused = refused.with(property.epc);
        } else {
            read = read.with(property.epc);
        }
    }
    peer.forget_refused_of(eoj, read);
    // There are nodes that refuse all of a list for one of its properties.
    if !refused.is_empty() && (!read.is_empty() || refused.len() == 1) {
        peer.remember_refused(now, eoj, refused, config);
    }
}

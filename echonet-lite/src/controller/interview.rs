//! Interviews of nodes: their announcements, their answers to a search, and the requests that follow.

use core::time::Duration;
use std::vec::Vec;

use super::identity::is_alike;
use super::peer::Peer;
use super::slot::{Owner, State, Target};
use super::stage::{Stage, Step};
use super::{Answer, Controller, Event, Failure, Interview, NodeAddr, NodeId, NodeInfo, Operation, Request};
use crate::node::Instant;
use crate::wire::{Eoj, Esv, Message, PropertySet};

/// How many instances one list of them can name (a value has 253 bytes for them).
const LISTED_AT_ONCE: usize = 84;

/// Between an interview that a node did not answer and the next one; twice as long after each, at most 64 times.
const RESUMED_AFTER: Duration = Duration::from_secs(10);

/// The action after a step.
enum Next {
    Ask(Step),
    /// All is known.
    Nothing,
    /// The node does not answer: it is asked another time.
    BreakOff,
}

impl Controller {
    /// Asks a node what [`Config::interview`](super::Config::interview) says, again if it has been asked before. Ends with
    /// [`Event::NodeReady`], unless the node does not answer. Returns whether there is such a node.
    pub fn interview(&mut self, node: NodeAddr) -> bool {
        let Some(place) = self.find_peer(node) else { return false };
        self.doubt(place);
        true
    }

    /// Has a node asked who it is, because another one can have its address since. An interview that is under way begins anew.
    pub(super) fn doubt(&mut self, place: u32) {
        let peer = self.peer_mut(place);
        peer.info.is_ready = false;
        peer.is_doubted = true;
        let is_waiting = matches!(peer.stage, Stage::Waiting(_));
        if is_waiting {
            self.wait_for_step(place, Step::Profile);
        } else {
            self.start_interview(place);
        }
    }

    /// Begins the interview of a node, unless it is under way.
    pub(super) fn start_interview(&mut self, place: u32) {
        let is_wanted = self.config.interview != Interview::Nothing && !self.config.listens_only;
        if is_wanted && self.peer(place).stage == Stage::Idle {
            self.wait_for_step(place, Step::Profile);
        }
    }

    /// Takes the steps for which there is room.
    pub(super) fn continue_interviews(&mut self, now: Instant) {
        while self.has_room() {
            let Some(place) = self.interviews.pop_front() else { return };
            let peer = self.peer_mut(place);
            let Stage::Waiting(step) = peer.stage else { continue };
            let addr = peer.info.addr;
            peer.is_doubted &= step != Step::Profile;
            let (eoj, operation) = match step {
                Step::Profile => (peer.info.profile, Operation::Get(&[0x82, 0x83, 0x8A, 0xD3, 0xD6])),
                Step::Serial => (peer.info.profile, Operation::Get(&[0x8D])),
                Step::MoreInstances => (peer.info.profile, Operation::InfReq(&[0xD5])),
                Step::Maps(eoj) => (eoj, Operation::Get(&[0x9D, 0x9E, 0x9F])),
            };
            let request = Request::new(eoj, operation).fresh();
            if self.enqueue(now, Some(addr), &request, Owner::Interview(step)).is_err() {
                // The node has as many requests as it may have; one of them ends some time.
                self.interviews.push_back(place);
                return;
            }
            self.peer_mut(place).stage = Stage::Asked;
        }
    }

    /// Ends a step. The facts of the answer are known already.
    pub(super) fn interviewed(&mut self, now: Instant, place: u32, step: Step, result: Result<Answer, Failure>) {
        let wants_maps = self.config.interview == Interview::Everything;
        let peer = self.peer_mut(place);
        peer.stage = Stage::Idle;
        if peer.is_joined {
            return;
        }
        if core::mem::take(&mut peer.is_doubted) {
            return self.wait_for_step(place, Step::Profile);
        }
        match self.next_step(place, step, result.is_ok()) {
            Next::Ask(step) if wants_maps || !matches!(step, Step::Maps(_)) => self.wait_for_step(place, step),
            Next::BreakOff => self.break_off(now, place),
            Next::Ask(_) | Next::Nothing => {
                let peer = self.peer_mut(place);
                peer.broken_off = 0;
                let info = &mut peer.info;
                if !core::mem::replace(&mut info.is_ready, true) {
                    let addr = info.addr;
                    self.tell(Event::NodeReady(addr));
                }
            }
        }
    }

    /// Has an interview begin again later that a node did not answer, though it may be there: all tries can be lost on their way.
    /// A silent node is interviewed when it is heard again.
    fn break_off(&mut self, now: Instant, place: u32) {
        let peer = self.peer_mut(place);
        if !peer.response_time.is_silent() {
            let at = now + RESUMED_AFTER * (1 << peer.broken_off.min(6));
            peer.broken_off = peer.broken_off.saturating_add(1);
            self.resumptions.set(place, at);
        }
    }

    /// Begins interviews again whose time has come.
    pub(super) fn resume_interviews(&mut self, now: Instant) {
        while let Some(place) = self.resumptions.take_due(now) {
            if self.peers[place as usize].as_ref().is_some_and(|peer| !peer.info.is_ready && !peer.is_joined) {
                self.start_interview(place);
            }
        }
    }

    /// Chooses the request that follows a step.
    fn next_step(&mut self, place: u32, step: Step, is_answered: bool) -> Next {
        let peer = self.peer_mut(place);
        match (step, is_answered) {
            (Step::Profile | Step::Maps(_), false) => return Next::BreakOff,
            (Step::Profile, true) if peer.info.identification.is_none() && peer.info.id.is_none() => {
                return Next::Ask(Step::Serial);
            }
            // Few nodes have one, and some do not answer.
            (Step::Serial, _) => peer.info.id = peer.info.id.or_else(|| NodeId::likeness(&peer.info)),
            (Step::Maps(eoj), true) => {
                peer.settle_maps(eoj);
                return first_unmapped(peer, Some(eoj));
            }
            // Some nodes do not answer this; the instances of their list are known nevertheless.
            (Step::MoreInstances, _) => return first_unmapped(peer, None),
            (Step::Profile, true) => {}
        }
        let counted = peer.info.instance_count.unwrap_or(0) as usize;
        if counted > LISTED_AT_ONCE && counted > peer.info.objects.len() {
            return Next::Ask(Step::MoreInstances);
        }
        first_unmapped(peer, None)
    }

    /// Puts a node in the line for a step; of one that is in it already, this is the step.
    fn wait_for_step(&mut self, place: u32, step: Step) {
        let before = core::mem::replace(&mut self.peer_mut(place).stage, Stage::Waiting(step));
        if !matches!(before, Stage::Waiting(_)) {
            self.interviews.push_back(place);
        }
    }

    /// Learns from an answer to Get what it says about the node.
    pub(super) fn learn(&mut self, now: Instant, place: u32, from: NodeAddr, message: &Message<'_>) {
        let limit = self.config.max_objects;
        let eoj = message.seoj();
        let is_profile = eoj.class_code() == Eoj::NODE_PROFILE.class_code();
        let place = if is_profile { self.recognize(now, place, from, message) } else { place };
        let peer = self.peer_mut(place);
        if is_profile {
            peer.info.profile = eoj;
            let identified = learn_profile(&mut peer.info, message);
            let listed: Option<Vec<Eoj>> = message.properties().find(0xD6).and_then(instances);
            if let Some(listed) = listed {
                let is_part = listed.len() >= LISTED_AT_ONCE;
                let changed = peer.info.learn_objects(&listed, is_part, limit);
                self.objects_changed(place, changed);
            }
            if identified {
                self.look_for_namesake(place);
            }
        }
        let find =
            |epc| message.properties().find(epc).filter(|map| !map.is_empty()).map(PropertySet::decode_map_lenient);
        let maps = [find(0x9D), find(0x9E), find(0x9F)];
        if maps.iter().any(Option::is_some) {
            let changed = self.peer_mut(place).learn_maps(eoj, maps);
            self.objects_changed(place, changed);
        }
    }

    /// Learns from what a node profile announces: its instances when it starts, when its address changes, when they change,
    /// and when it is asked to.
    pub(super) fn learn_announcement(
        &mut self,
        now: Instant,
        place: u32,
        from: NodeAddr,
        message: &Message<'_>,
        was_asked: bool,
    ) {
        let mut listed = Vec::new();
        let mut is_list = false;
        for property in message.properties().filter(|property| property.epc == 0xD5) {
            is_list = true;
            listed.extend(instances(property.edt).into_iter().flatten());
        }
        if !is_list {
            return;
        }
        let limit = self.config.max_objects;
        let peer = self.peer_mut(place);
        peer.info.profile = message.seoj();
        let counted = peer.info.instance_count.unwrap_or(0) as usize;
        let is_part = listed.len() == LISTED_AT_ONCE || (listed.len() > LISTED_AT_ONCE && listed.len() < counted);
        let is_other =
            !was_asked && matches!(peer.info.id, Some(NodeId::Likeness(_))) && !is_alike(&peer.info, &listed);
        let changed = peer.info.learn_objects(&listed, is_part, limit);
        if !was_asked {
            peer.restarted(now);
            peer.ask_at(from);
            let addr = peer.info.addr;
            self.tell(Event::NodeAnnounced(addr));
            self.read_again(now, place);
        }
        self.objects_changed(place, changed);
        if is_other {
            self.replace(Instant::ZERO, place);
        } else if was_asked {
            self.start_interview(place);
        } else {
            self.doubt(place);
        }
    }

    /// Sends reads again that a node has not answered before it began anew: it has lost them. Otherwise each waits for its time,
    /// and the interview behind it. A write is sent once, and waits for its answer.
    fn read_again(&mut self, now: Instant, place: u32) {
        for (slot, index) in self.slots.iter_mut().zip(0..) {
            let is_of = (slot.target, slot.state) == (Target::Peer(place), State::Outstanding);
            if is_of && slot.service == Esv::Get && slot.checks().is_none() {
                slot.tried = slot.tried.saturating_sub(1);
                self.deadlines.set(index, now);
            }
        }
    }

    /// The place of the node that a node profile speaks for: if it tells another identity than the node that was known at its
    /// address, that one is forgotten there.
    fn recognize(&mut self, now: Instant, place: u32, from: NodeAddr, message: &Message<'_>) -> u32 {
        let info = &self.peer(place).info;
        let is_same = match (info.id, number(message)) {
            (Some(NodeId::Number(known)), Some(told)) => known == told,
            (Some(NodeId::Number(_)), None) => !tells_no_number(message),
            (Some(NodeId::Likeness(_)), Some(_)) => false,
            (Some(NodeId::Likeness(_)), None) => is_like(info, message),
            (None, _) => true,
        };
        if is_same {
            return place;
        }
        if info.addrs.len() > 1 {
            return self.part(now, place, from).unwrap_or(place);
        }
        self.replace(now, place);
        place
    }

    /// Forgets the node at a place, whose address another one has now.
    fn replace(&mut self, now: Instant, place: u32) {
        let peer = self.peer_mut(place);
        peer.replaced();
        let addr = peer.info.addr;
        self.tell(Event::NodeReplaced(addr));
        for index in 0..self.slots.len() as u32 {
            let slot = &self.slots[index as usize];
            if (slot.target, slot.state) == (Target::Peer(place), State::Queued) && slot.is_restricted() {
                let failure = slot.diverted(now);
                self.finish(now, index, None, Some(failure));
            }
        }
        self.doubt(place);
    }

    /// One of the addresses of a node is another node's: that one gets a place of its own, if there is one.
    fn part(&mut self, now: Instant, place: u32, from: NodeAddr) -> Option<u32> {
        let named = self.peer(place).info.addr;
        self.peer_mut(place).leave_address(from);
        self.tell(Event::NodeReplaced(from));
        let to = self.peer(place).info.addr;
        if to != named {
            self.tell(Event::NodeMoved { from: named, to });
        }
        self.doubt(place);
        self.places.remove(&from);
        let other = self.add_peer(now, from, false)?;
        self.tell(Event::NodeFound(from));
        self.start_interview(other);
        Some(other)
    }

    /// Tells that the objects of a node that was known well have changed; it is asked about the new ones.
    fn objects_changed(&mut self, place: u32, changed: bool) {
        let info = &mut self.peer_mut(place).info;
        if changed && core::mem::replace(&mut info.is_ready, false) {
            let addr = info.addr;
            self.tell(Event::NodeChanged(addr));
        }
    }

    /// A node has told its identification number: is it one that is known at another address?
    fn look_for_namesake(&mut self, place: u32) {
        let peer = self.peer(place);
        if peer.is_joined {
            return;
        }
        let (to, identification) = (peer.info.addr, &peer.info.identification);
        let others = self.peers.iter().zip(0..).filter_map(|(peer, other)| Some((peer.as_ref()?, other)));
        let namesakes = others
            .filter(|(other, at)| *at != place && !other.is_joined && other.info.identification == *identification);
        let (mut moved, mut same, mut count) = (None, None, 0);
        for (other, at) in namesakes {
            count += 1;
            if other.info.addrs.iter().any(|addr| addr.ip().is_ipv4() == to.ip().is_ipv4()) {
                moved = Some((at, other.info.addr));
            } else if other.info.is_same_node(&peer.info) {
                same = Some(at);
            }
        }
        if let Some((at, from)) = moved {
            self.tell(Event::NodeMoved { from, to });
            self.doubt(at);
        }
        // Where several have the number, it says nothing.
        if let Some(node) = same.filter(|_| count == 1) {
            self.join(node, place);
        }
    }
}

/// Takes what a node profile says of itself; returns whether its identification number is one that was not known.
fn learn_profile(info: &mut NodeInfo, message: &Message<'_>) -> bool {
    let mut identified = false;
    if let Some(number) = number(message) {
        identified = info.id != Some(NodeId::Number(number));
        info.identification = Some(number.into());
        info.id = Some(NodeId::Number(number));
    }
    for property in message.properties() {
        match (property.epc, property.edt.len()) {
            (0x82, 4) => info.version = property.edt.first_chunk().copied(),
            (0x8A, 3) => info.maker = property.edt.first_chunk().copied(),
            (0x8D, 1..) => info.serial = Some(property.edt.into()),
            (0xD3, 3) => {
                info.instance_count = Some(property.edt.iter().fold(0, |count, byte| count << 8 | u32::from(*byte)));
            }
            _ => {}
        }
    }
    identified
}

/// The identification number that a node profile tells. Numbers of zeros are those of nodes that were never given one.
fn number(message: &Message<'_>) -> Option<[u8; 17]> {
    let number = message.properties().find(0x83)?;
    number.first_chunk::<17>().copied().filter(|bytes| number.len() == 17 && bytes[4..].iter().any(|byte| *byte != 0))
}

/// Whether a node profile has refused its identification number, and not all that it was asked for.
fn tells_no_number(message: &Message<'_>) -> bool {
    let is_refused = message.properties().find(0x83).is_some_and(<[u8]>::is_empty);
    is_refused && message.properties().any(|property| !property.edt.is_empty())
}

/// Whether a node profile without an identification number says nothing that contradicts what is known of a node.
fn is_like(info: &NodeInfo, message: &Message<'_>) -> bool {
    let said = |epc| message.properties().find(epc).filter(|edt| !edt.is_empty());
    let is_known = |known: Option<&[u8]>, epc| said(epc).is_none_or(|said| known.is_none_or(|known| known == said));
    let is_listed = said(0xD6).and_then(instances).is_none_or(|listed| is_alike(info, &listed));
    is_known(info.maker.as_ref().map(<[u8; 3]>::as_slice), 0x8A) && is_known(info.serial.as_deref(), 0x8D) && is_listed
}

/// The objects of a list of instances: as many as it counts, or as there are if it counts wrong.
fn instances(list: &[u8]) -> Option<Vec<Eoj>> {
    let (count, eojs) = list.split_first()?;
    let eojs = eojs.chunks_exact(3).map(|eoj| Eoj::new(eoj[0], eoj[1], eoj[2]));
    Some(eojs.take(usize::from(*count)).collect())
}

/// The first object whose property maps are not known, after one that was asked; the node profile is the last. An interview asks again for
/// those that an earlier one was refused.
fn first_unmapped(peer: &Peer, after: Option<Eoj>) -> Next {
    let info = &peer.info;
    if after == Some(info.profile) {
        return Next::Nothing;
    }
    let start = after.map_or(0, |after| info.objects.partition_point(|object| object.eoj <= after));
    let is_unknown = |maps: bool, eoj| maps || peer.has_refused_maps(eoj);
    let mut objects = info.objects[start..].iter();
    let object = objects.find(|object| is_unknown(object.maps.is_none(), object.eoj)).map(|object| object.eoj);
    let object = object.or_else(|| is_unknown(info.profile_maps.is_none(), info.profile).then_some(info.profile));
    object.map_or(Next::Nothing, |eoj| Next::Ask(Step::Maps(eoj)))
}

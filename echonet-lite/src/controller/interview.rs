//! Getting to know nodes: what they announce, what they answer to a search, and what they are asked because of it.

use std::vec::Vec;

use super::slot::Owner;
use super::{Answer, Controller, Event, Failure, Interview, NodeAddr, NodeInfo, Operation, Request};
use crate::node::Instant;
use crate::wire::{Eoj, Message, PropertySet};

/// How many instances one list of them can name (a value has 253 bytes for them).
const LISTED_AT_ONCE: usize = 84;

/// What a node is asked next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Who it is, and its list of instances.
    Profile,
    /// An announcement of its instances, which can name more than a list that is read.
    MoreInstances,
    /// The property maps of an object.
    Maps(Eoj),
}

/// How far the interview of a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not begun, ended, or broken off.
    Idle,
    /// In the line for its next step.
    Waiting(Step),
    /// Asked.
    Asked,
}

impl Controller {
    /// Asks a node what [`Config::interview`](super::Config::interview) says, again if it has been asked before. Ends with
    /// [`Event::NodeReady`], unless the node does not answer. Returns whether there is such a node.
    pub fn interview(&mut self, node: NodeAddr) -> bool {
        let Some(place) = self.find_peer(node) else { return false };
        self.peer_mut(place).info.is_ready = false;
        self.start_interview(place);
        true
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
            let (eoj, operation) = match step {
                Step::Profile => (peer.info.profile, Operation::Get(&[0x82, 0x83, 0x8A, 0xD3, 0xD6])),
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

    /// A step has ended. What was answered is known already.
    pub(super) fn interviewed(&mut self, place: u32, step: Step, result: Result<Answer, Failure>) {
        let wants_maps = self.config.interview == Interview::Everything;
        let peer = self.peer_mut(place);
        peer.stage = Stage::Idle;
        if peer.is_joined {
            return;
        }
        let next = match (step, result) {
            // Some nodes do not answer this; what they list is known nevertheless.
            (Step::MoreInstances, _) => first_unmapped(&peer.info, None),
            (Step::Profile | Step::Maps(_), Err(_)) => return,
            (Step::Profile, Ok(_)) => {
                let counted = peer.info.instance_count.unwrap_or(0) as usize;
                if counted > LISTED_AT_ONCE && counted > peer.info.objects.len() {
                    Some(Step::MoreInstances)
                } else {
                    first_unmapped(&peer.info, None)
                }
            }
            (Step::Maps(eoj), Ok(_)) => {
                peer.settle_maps(eoj);
                first_unmapped(&peer.info, Some(eoj))
            }
        };
        match next {
            Some(step) if wants_maps || !matches!(step, Step::Maps(_)) => self.wait_for_step(place, step),
            _ => {
                let addr = peer.info.addr;
                if !core::mem::replace(&mut peer.info.is_ready, true) {
                    self.tell(Event::NodeReady(addr));
                }
            }
        }
    }

    fn wait_for_step(&mut self, place: u32, step: Step) {
        self.peer_mut(place).stage = Stage::Waiting(step);
        self.interviews.push_back(place);
    }

    /// Learns from an answer to Get what it says about the node.
    pub(super) fn learn(&mut self, place: u32, message: &Message<'_>) {
        let limit = self.config.max_objects;
        let peer = self.peer_mut(place);
        let eoj = message.seoj();
        if eoj.class_code() == Eoj::NODE_PROFILE.class_code() {
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
            self.peer_mut(place).learn_maps(eoj, maps);
        }
    }

    /// Learns from what a node profile announces: its instances when it starts, when its address changes, when they change,
    /// and when it is asked to.
    pub(super) fn learn_announcement(&mut self, place: u32, message: &Message<'_>, was_asked: bool) {
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
        let changed = peer.info.learn_objects(&listed, is_part, limit);
        if !was_asked {
            peer.restarted();
            let addr = peer.info.addr;
            self.tell(Event::NodeAnnounced(addr));
        }
        self.objects_changed(place, changed);
        self.start_interview(place);
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
                moved = Some(other.info.addr);
            } else if other.info.is_same_node(&peer.info) {
                same = Some(at);
            }
        }
        if let Some(from) = moved {
            self.tell(Event::NodeMoved { from, to });
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
    for property in message.properties() {
        match (property.epc, property.edt.len()) {
            (0x82, 4) => info.version = property.edt.first_chunk().copied(),
            // Numbers of zeros are those of nodes that were never given one.
            (0x83, 17) if property.edt[4..].iter().any(|byte| *byte != 0) => {
                identified = info.identification.as_deref() != Some(property.edt);
                info.identification = Some(property.edt.into());
            }
            (0x8A, 3) => info.maker = property.edt.first_chunk().copied(),
            (0xD3, 3) => {
                info.instance_count = Some(property.edt.iter().fold(0, |count, byte| count << 8 | u32::from(*byte)));
            }
            _ => {}
        }
    }
    identified
}

/// The objects of a list of instances: as many as it counts, or as there are if it counts wrong.
fn instances(list: &[u8]) -> Option<Vec<Eoj>> {
    let (count, eojs) = list.split_first()?;
    let eojs = eojs.chunks_exact(3).map(|eoj| Eoj::new(eoj[0], eoj[1], eoj[2]));
    Some(eojs.take(usize::from(*count)).collect())
}

/// The first object whose property maps are not known, after one that was asked; the node profile is the last.
fn first_unmapped(info: &NodeInfo, after: Option<Eoj>) -> Option<Step> {
    if after == Some(info.profile) {
        return None;
    }
    let start = after.map_or(0, |after| info.objects.partition_point(|object| object.eoj <= after));
    let object = info.objects[start..].iter().find(|object| object.maps.is_none()).map(|object| object.eoj);
    object.or_else(|| info.profile_maps.is_none().then_some(info.profile)).map(Step::Maps)
}

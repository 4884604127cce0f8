//! A controller's knowledge of nodes.

use core::time::Duration;
use std::vec;
use std::vec::Vec;

use super::{NodeAddr, NodeId};
use crate::node::Instant;
use crate::wire::{Eoj, PropertySet};

/// The known facts about a node.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeInfo {
    /// Its address, which names it in answers, notifications and events, for as long as it is known.
    pub addr: NodeAddr,
    /// All its addresses, of both families; [`addr`](Self::addr) is the first. Requests to any of them go to the node, by
    /// the address at which it answers.
    pub addrs: Vec<NodeAddr>,
    /// Its node profile: 0EF001, or 0EF002 of a node that only sends.
    pub profile: Eoj,
    /// Its objects, in ascending order, without the node profile.
    pub objects: Vec<ObjectInfo>,
    /// How many objects it says it has (D3), without the node profile. Can be more than are known.
    pub instance_count: Option<u32>,
    /// The property maps of its node profile.
    pub profile_maps: Option<PropertyMaps>,
    /// Its identification number (83): the same wherever it is.
    pub identification: Option<Vec<u8>>,
    /// The code of its maker (8A).
    pub maker: Option<[u8; 3]>,
    /// The serial number of its node profile (8D): asked for only where there is no identification number.
    pub serial: Option<Vec<u8>>,
    /// See [`id`](Self::id).
    pub(super) id: Option<NodeId>,
    /// The version of the standard that it keeps (82).
    pub version: Option<[u8; 4]>,
    /// When anything was last heard from it.
    pub last_heard: Option<Instant>,
    /// How long its answers take.
    pub response_time: Option<Duration>,
    /// How many properties it answers at a time, if it has shown to have a limit.
    pub properties_at_once: Option<u8>,
    /// Whether all is known that [`Config::interview`](super::Config::interview) asks for. False from the time that the node
    /// announces itself or is heard again after it was lost, until it has been asked who it is: another node can have its
    /// address by then.
    pub is_ready: bool,
    /// Whether it was heard once, and has not answered for so long that it seems to be gone.
    pub is_lost: bool,
}

impl NodeInfo {
    pub(super) fn new(addr: NodeAddr) -> Self {
        Self {
            addr,
            addrs: vec![addr],
            profile: Eoj::NODE_PROFILE,
            objects: Vec::new(),
            instance_count: None,
            profile_maps: None,
            identification: None,
            maker: None,
            serial: None,
            id: None,
            version: None,
            last_heard: None,
            response_time: None,
            properties_at_once: None,
            is_ready: false,
            is_lost: false,
        }
    }

    /// Its identity at every address: `None` until it has told.
    pub fn id(&self) -> Option<NodeId> {
        self.id
    }

    /// The known facts about one of its objects.
    pub fn object(&self, eoj: Eoj) -> Option<&ObjectInfo> {
        let place = self.objects.binary_search_by_key(&eoj, |object| object.eoj).ok()?;
        Some(&self.objects[place])
    }

    /// The property maps of one of its objects or of its node profile, if they are known.
    pub fn maps(&self, eoj: Eoj) -> Option<&PropertyMaps> {
        if eoj == self.profile {
            return self.profile_maps.as_ref();
        }
        self.object(eoj)?.maps.as_ref()
    }

    /// Whether something that came from `source` can come from this node.
    pub(super) fn covers(&self, source: NodeAddr) -> bool {
        self.addrs.iter().any(|addr| addr.covers(source))
    }

    /// Whether another node with the same identification number is surely this one, at an address of the other family: it has
    /// the same objects. Of the same family, it can be another device of a maker who gives all the same number.
    pub(super) fn is_same_node(&self, other: &Self) -> bool {
        let objects = |info: &Self| info.objects.iter().map(|object| object.eoj).collect::<Vec<_>>();
        let is_v4 = |addr: &NodeAddr| addr.ip().is_ipv4();
        let apart = self.addrs.iter().all(|mine| other.addrs.iter().all(|theirs| is_v4(mine) != is_v4(theirs)));
        apart && objects(self) == objects(other)
    }

    pub(super) fn set_maps(&mut self, eoj: Eoj, maps: PropertyMaps) {
        if eoj == self.profile {
            self.profile_maps = Some(maps);
        } else if let Ok(place) = self.objects.binary_search_by_key(&eoj, |object| object.eoj) {
            self.objects[place].maps = Some(maps);
        }
    }

    /// Takes what a list of instances says; returns whether the objects changed. Part of a list only adds.
    pub(super) fn learn_objects(&mut self, listed: &[Eoj], is_part: bool, limit: usize) -> bool {
        let mut changed = false;
        if !is_part {
            let before = self.objects.len();
            self.objects.retain(|object| listed.contains(&object.eoj));
            changed = self.objects.len() != before;
        }
        for eoj in listed {
            let is_profile = (eoj.group(), eoj.class()) == (0x0E, 0xF0);
            if is_profile || eoj.instance() == 0 || self.objects.len() >= limit {
                continue;
            }
            if let Err(place) = self.objects.binary_search_by_key(eoj, |object| object.eoj) {
                self.objects.insert(place, ObjectInfo { eoj: *eoj, maps: None });
                changed = true;
            }
        }
        changed
    }
}

/// The known facts about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectInfo {
    /// Which one.
    pub eoj: Eoj,
    /// Its property maps.
    pub maps: Option<PropertyMaps>,
}

/// The access to the properties of an object (9D, 9E, 9F).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PropertyMaps {
    /// Those that it announces when they change.
    pub announced: PropertySet,
    /// Those that can be written.
    pub writable: PropertySet,
    /// Those that can be read.
    pub readable: PropertySet,
}

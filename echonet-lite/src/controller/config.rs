//! The settings of a controller.

use core::time::Duration;
use std::vec::Vec;

use crate::wire::{ClassCode, Eoj, PORT, PropertySet};

/// The settings of a [`Controller`](super::Controller). Take [`Config::new`] and change what matters.
#[derive(Clone, Debug)]
pub struct Config {
    /// The object that asks, and that others answer and notify: the controller class, instance 1 (05FF01).
    pub eoj: Eoj,
    /// Objects of this node, besides [`Self::eoj`] and the node profile, whose notifications are confirmed: devices of a
    /// gateway.
    pub objects: Vec<Eoj>,
    /// Seed of the first transaction identifier: different in each life of a program, so that answers to the life
    /// before are not taken for answers to this one.
    pub seed: u64,
    /// The controller sends nothing, as with `listen_only` of an endpoint: it refuses requests and interviews no node.
    pub listens_only: bool,
    /// The port that everything is sent to. Devices know no other than 3610.
    pub port: u16,
    /// How many requests may be outstanding at one node. 1 as the guidelines want it: one after the other.
    pub window: u16,
    /// The time to leave between two requests to one node.
    pub spacing: Spacing,
    /// How often a request that reads is sent before it is given up. Each time with a fresh transaction identifier.
    pub tries: u8,
    /// Properties that may be written twice without harm, by class: writes of these alone are sent as often as reads. Empty
    /// unless chosen, and a write is sent once then: when its answer is lost, it has been carried out, and to step a shutter
    /// up or to start a bath again is not what was asked for. "On" is: `(class, PropertySet::of(&[0x80]))`.
    pub repeatable_writes: Vec<(ClassCode, PropertySet)>,
    /// How long to wait for a node that has not answered anything yet.
    pub first_timeout: Duration,
    /// The least time to wait for an answer, however fast a node has been so far.
    pub min_timeout: Duration,
    /// The longest time to wait for an answer, except where the class of the object asks for more patience.
    pub max_timeout: Duration,
    /// How long answers to a request to all nodes, or to all instances of a class, are collected.
    pub gathering: Duration,
    /// How often the search for nodes is sent, because no node notices that a multicast datagram was lost.
    pub searches: u8,
    /// How much to find out about a node that is new.
    pub interview: Interview,
    /// How long a property that an object refused to read is not asked for again.
    /// [`Request::fresh`](super::Request::fresh) asks nevertheless.
    pub refusal_memory: Duration,
    /// How long the transaction identifier of a request that was given up is not used again.
    pub tid_rest: Duration,
    /// Within what time two equal notifications with the same transaction identifier are one.
    pub duplicate_window: Duration,
    /// Requests at a time, waiting or outstanding (at most 32,512).
    pub max_requests: usize,
    /// Requests at a time to one node.
    pub max_requests_per_node: usize,
    /// Nodes that are remembered.
    pub max_nodes: usize,
    /// Objects that are remembered of one node.
    pub max_objects: usize,
    /// Notifications, gathered answers and news of nodes that wait to be taken; past it the oldest are dropped, and
    /// [`Event::Missed`](super::Event::Missed) says how many.
    pub max_events: usize,
    /// The size of the largest datagram to send.
    pub max_frame: usize,
}

impl Config {
    /// The usual settings.
    pub fn new(seed: u64) -> Self {
        Self {
            eoj: Eoj::CONTROLLER,
            objects: Vec::new(),
            seed,
            listens_only: false,
            port: PORT,
            window: 1,
            spacing: Spacing::Adaptive,
            tries: 3,
            repeatable_writes: Vec::new(),
            first_timeout: Duration::from_secs(3),
            min_timeout: Duration::from_millis(500),
            max_timeout: Duration::from_secs(20),
            gathering: Duration::from_secs(5),
            searches: 3,
            interview: Interview::Everything,
            refusal_memory: Duration::from_secs(600),
            tid_rest: Duration::from_secs(300),
            duplicate_window: Duration::from_secs(20),
            max_requests: 4096,
            max_requests_per_node: 512,
            max_nodes: 1024,
            max_objects: 1024,
            max_events: 4096,
            // The most bytes that fit into an Ethernet frame by IPv6.
            max_frame: 1452,
        }
    }
}

impl Config {
    /// How often a request to an object that writes these properties is sent, unless it says so itself.
    pub(super) fn tries_of(&self, eoj: Eoj, writes: PropertySet) -> u8 {
        let class = eoj.class_code();
        let known = self.repeatable_writes.iter().filter(|(of, _)| *of == class);
        let repeatable = known.fold(PropertySet::EMPTY, |all, (_, epcs)| all.union(*epcs));
        if writes.difference(repeatable).is_empty() { self.tries } else { 1 }
    }
}

/// The time left between two requests to one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// None after the answers of a node that answers within 5 ms; a quarter of its usual response time, up to 500 ms,
    /// for slower ones.
    Adaptive,
    /// Always this.
    Fixed(Duration),
}

/// How much a controller finds out by itself about a node that it hears of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interview {
    /// Nothing: a node is known by its messages alone; no request is sent.
    Nothing,
    /// The node profile: the objects of the node, and its maker.
    Profile,
    /// The node profile, and the property maps of every object.
    Everything,
}

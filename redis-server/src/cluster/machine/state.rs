//! The state of a node, which every part of the machine works on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::moves::Moves;
use crate::cluster::nodes::{Key, Nodes};
use crate::cluster::packet::Kind;
use crate::cluster::random::Random;
use crate::cluster::{Action, Facts, Link, Millis, NodeId, Routing, Settings, SlotSet};

/// A node of the cluster.
#[derive(Debug)]
pub struct Machine {
    pub(super) settings: Settings,
    pub(super) random: Random,
    pub(super) facts: Facts,
    pub(super) nodes: Nodes,
    pub(super) links: BTreeMap<Link, LinkState>,
    pub(super) next_link: u64,
    /// The highest epoch that has been seen.
    pub(super) current_epoch: u64,
    /// The last epoch in which this node has voted.
    pub(super) last_vote_epoch: u64,
    /// Slots of this node's that are on their way to others.
    pub(super) migrating: BTreeMap<u16, Key>,
    /// Slots of others that are on their way to this node.
    pub(super) importing: BTreeMap<u16, Key>,
    pub(super) health: Health,
    pub(super) election: Election,
    pub(super) manual: Manual,
    /// Pauses of writes so far.
    pub(super) pauses: u64,
    pub(super) moves: Moves,
    /// Nodes that are not to come back through gossip, and until when.
    pub(super) banned: BTreeMap<NodeId, Millis>,
    pub(super) periods: u64,
    pub(super) next_period: Millis,
    /// Numbers packets with gossip.
    pub(super) told: u64,
    pub(super) counters: Counters,
    /// The kind of packets to ignore: tests simulate lost packets with it.
    pub(super) dropped: Option<Kind>,
    /// The work to do before the call ends.
    pub(super) agenda: Agenda,
    /// Slots that are gone, and whose keys must go.
    pub(super) doomed: SlotSet,
    /// The slots of this node's shard, as was told.
    pub(super) served: SlotSet,
    pub(super) saving: Saving,
    pub(super) routing: Arc<Routing>,
    pub(super) outbox: Vec<Action>,
    pub(super) actions: VecDeque<Action>,
}

/// The counters of CLUSTER INFO.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) sent: [u64; Kind::ALL.len()],
    pub(super) received: [u64; Kind::ALL.len()],
    /// Nodes that do not answer, as of the last look.
    pub(super) not_answering: usize,
    pub(super) overflowed_links: u64,
}

/// The consequences of a change. Each is done once, even if several changes entail it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Agenda {
    pub(super) health: bool,
    pub(super) election: bool,
    pub(super) manual: bool,
    /// The owners of slots have changed.
    pub(super) route: bool,
    /// A part of the view has changed that does not concern the owners of slots.
    pub(super) show: bool,
    pub(super) promote: bool,
}

/// An election of this replica's.
#[derive(Clone, Debug, Default)]
pub(super) struct Election {
    /// When votes are asked for, or were.
    pub(super) at: Millis,
    /// Whether that is still to come.
    pub(super) is_due: bool,
    pub(super) has_asked: bool,
    pub(super) epoch: u64,
    pub(super) rank: u64,
    pub(super) votes: Vec<Key>,
    /// Why it does not go on, as the log was told.
    pub(super) told: Option<Obstacle>,
}

impl Election {
    /// When it goes on.
    pub(super) fn due(&self) -> Option<Millis> {
        self.is_due.then_some(self.at)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Health {
    pub(super) is_ok: bool,
    pub(super) started_at: Millis,
    /// When it was seen last that the majority is out of reach.
    pub(super) minority_at: Millis,
}

impl Health {
    pub(super) fn new(now: Millis) -> Self {
        Self { is_ok: false, started_at: now, minority_at: 0 }
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct LinkState {
    /// The node at the other end; `None` for an inbound link until its first packet.
    pub(super) node: Option<Key>,
    pub(super) is_inbound: bool,
    pub(super) created: Millis,
    /// When the last whole packet came; before the first, when it was made.
    pub(super) heard: Millis,
    pub(super) is_open: bool,
    pub(super) peer_ip: String,
    pub(super) local_ip: String,
    /// The bytes of an incomplete packet.
    pub(super) buffer: Vec<u8>,
}

impl LinkState {
    /// Whether another has made it that has not said which node it is.
    pub(super) fn is_strangers(&self) -> bool {
        self.is_inbound && self.node.is_none()
    }
}

/// A manual failover, on either side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manual {
    pub(super) ends_at: Option<Millis>,
    /// On the primary: the replica that takes over.
    pub(super) replica: Option<Key>,
    /// On the primary: writes are paused.
    pub(super) is_paused: bool,
    /// On the replica: where the primary's stream ends.
    pub(super) end_offset: Option<u64>,
    /// On the replica: it has all, or need not.
    pub(super) has_all: bool,
}

impl Manual {
    pub(super) fn is_under_way(&self) -> bool {
        self.ends_at.is_some()
    }

    pub(super) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Whether an election may begin.
    pub(super) fn can_start(&self) -> bool {
        self.is_under_way() && self.has_all
    }
}

/// The need to write the file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Saving {
    pub(super) is_due: bool,
    pub(super) is_urgent: bool,
    /// In Redis 7.2's form.
    pub(super) names_shards: bool,
}

impl Saving {
    /// Soon: a crash only loses information that other nodes send again.
    pub(super) fn ask(&mut self) {
        self.is_due = true;
    }

    /// Before anything else leaves this node.
    pub(super) fn ask_now(&mut self) {
        self.is_urgent = true;
    }

    pub(super) fn is_urgent(self) -> bool {
        self.is_urgent
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    DataAge,
    Expired,
}

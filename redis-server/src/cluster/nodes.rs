//! The node table: the nodes, the primary of each replica, and the owner of each slot.

use std::collections::HashMap;

use super::packet::Flags;
use super::slot_set::SlotRanges;
use super::{Link, Millis, NodeId, SLOTS, SlotSet};

/// How many nodes are known at most, hellos included: indexes of the routing view are numbers of 16 bits.
pub const MAX_NODES: usize = 16_384;

/// A node's place in the table, as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key(u16);

impl Key {
    /// Below [`Nodes::places`].
    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// One node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) id: NodeId,
    pub(super) shard: NodeId,
    /// Whether the shard is the node's own word, or its primary's; otherwise it was made up.
    pub(super) says_shard: bool,
    pub(super) flags: Flags,
    pub(super) ip: String,
    pub(super) port: u16,
    pub(super) tls_port: u16,
    pub(super) bus_port: u16,
    pub(super) hostname: String,
    pub(super) nodename: String,
    pub(super) config_epoch: u64,
    /// The slots that it owns, consistent with [`Nodes`].
    pub(super) slots: SlotRanges,
    pub(super) primary: Option<Key>,
    pub(super) replicas: Vec<Key>,
    pub(super) created: Millis,
    /// When the ping was sent that is not answered yet; 0 if there is none.
    pub(super) ping_sent: Millis,
    pub(super) pong_received: Millis,
    pub(super) data_received: Millis,
    pub(super) failed_at: Millis,
    /// When this node voted for one of its replicas.
    pub(super) voted_at: Millis,
    pub(super) offset: u64,
    /// Since when it is a primary without replicas; 0 if it is not.
    pub(super) orphaned_since: Millis,
    /// Our connection to it.
    pub(super) link: Option<Link>,
    /// Its connection to us.
    pub(super) inbound: Option<Link>,
    /// The nodes that report it as failing, each with the time of its last report.
    pub(super) reports: Vec<(Key, Millis)>,
    /// The last packet of ours that told of it.
    pub(super) told_in: u64,
    /// How many packets it has sent that could have named its shard and did not.
    pub(super) shardless: u8,
}

impl Node {
    pub(super) fn new(id: NodeId, shard: NodeId, flags: Flags, now: Millis) -> Self {
        Self {
            id,
            shard,
            says_shard: false,
            flags,
            ip: String::new(),
            port: 0,
            tls_port: 0,
            bus_port: 0,
            hostname: String::new(),
            nodename: String::new(),
            config_epoch: 0,
            slots: SlotRanges::default(),
            primary: None,
            replicas: Vec::new(),
            created: now,
            ping_sent: 0,
            pong_received: 0,
            data_received: 0,
            failed_at: 0,
            voted_at: 0,
            offset: 0,
            orphaned_since: 0,
            link: None,
            inbound: None,
            reports: Vec::new(),
            told_in: 0,
            shardless: 0,
        }
    }

    pub(super) fn is_primary(&self) -> bool {
        self.flags.any(Flags::PRIMARY)
    }

    pub(super) fn is_replica(&self) -> bool {
        self.flags.any(Flags::REPLICA)
    }

    pub(super) fn is_handshake(&self) -> bool {
        self.flags.any(Flags::HANDSHAKE)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.flags.any(Flags::FAILED)
    }

    pub(super) fn is_myself(&self) -> bool {
        self.flags.any(Flags::MYSELF)
    }

    /// Whether its word counts where the majority decides: a primary with slots.
    pub(super) fn has_vote(&self) -> bool {
        self.is_primary() && self.slots.len() > 0
    }
}

/// All nodes.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    places: Vec<Option<Box<Node>>>,
    free: Vec<Key>,
    by_id: HashMap<NodeId, Key>,
    owners: Vec<Option<Key>>,
    /// Slots whose owner no longer claims them, and that no other node claims: any node may take them.
    unclaimed: SlotSet,
    assigned: usize,
    me: Key,
    handshakes: usize,
}

impl Nodes {
    /// This node alone.
    pub(super) fn new(me: Node) -> Self {
        let key = Key(0);
        Self {
            by_id: HashMap::from([(me.id, key)]),
            places: vec![Some(Box::new(me))],
            free: Vec::new(),
            owners: vec![None; SLOTS],
            unclaimed: SlotSet::EMPTY,
            assigned: 0,
            me: key,
            handshakes: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// How many places there are, empty ones included.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// How many have not said their names yet.
    pub(super) fn handshakes(&self) -> usize {
        self.handshakes
    }

    pub(super) fn me(&self) -> Key {
        self.me
    }

    pub(super) fn myself(&self) -> &Node {
        self.at(self.me)
    }

    pub(super) fn myself_mut(&mut self) -> &mut Node {
        self.at_mut(self.me)
    }

    pub(super) fn at(&self, key: Key) -> &Node {
        self.places[usize::from(key.0)].as_ref().expect("keys of nodes that go are forgotten")
    }

    pub(super) fn at_mut(&mut self, key: Key) -> &mut Node {
        self.places[usize::from(key.0)].as_mut().expect("keys of nodes that go are forgotten")
    }

    pub(super) fn find(&self, id: NodeId) -> Option<Key> {
        self.by_id.get(&id).copied()
    }

    /// All, in the order of their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &Node)> {
        self.places.iter().enumerate().filter_map(|(at, node)| Some((Key(at as u16), node.as_deref()?)))
    }

    /// The keys of all.
    pub(super) fn keys(&self) -> Vec<Key> {
        self.iter().map(|(key, _)| key).collect()
    }

    /// One by chance.
    pub(super) fn random(&self, mut random: impl FnMut() -> u64) -> Key {
        loop {
            let at = random() as usize % self.places.len();
            if self.places[at].is_some() {
                return Key(at as u16);
            }
        }
    }

    /// Adds a node; none if there are too many, or one of this name.
    pub(super) fn add(&mut self, node: Node) -> Option<Key> {
        if self.len() >= MAX_NODES || self.by_id.contains_key(&node.id) {
            return None;
        }
        let key = self.free.pop().unwrap_or(Key(self.places.len() as u16));
        self.by_id.insert(node.id, key);
        self.handshakes += usize::from(node.is_handshake());
        if usize::from(key.0) == self.places.len() {
            self.places.push(None);
        }
        self.places[usize::from(key.0)] = Some(Box::new(node));
        Some(key)
    }

    /// Forgets a node, and all that others have to do with it.
    pub(super) fn remove(&mut self, key: Key) -> Node {
        for slot in self.at(key).slots.clone().iter() {
            self.unassign(slot);
        }
        self.detach(key);
        for replica in std::mem::take(&mut self.at_mut(key).replicas) {
            self.at_mut(replica).primary = None;
        }
        for node in self.places.iter_mut().flatten() {
            node.reports.retain(|(reporter, _)| *reporter != key);
        }
        let node = self.places[usize::from(key.0)].take().expect("it is there");
        self.by_id.remove(&node.id);
        self.handshakes -= usize::from(node.is_handshake());
        self.free.push(key);
        *node
    }

    /// Gives a node that has said hello its name.
    pub(super) fn rename(&mut self, key: Key, id: NodeId) {
        let old = std::mem::replace(&mut self.at_mut(key).id, id);
        self.by_id.remove(&old);
        self.by_id.insert(id, key);
    }

    /// Clears the flags of a handshake.
    pub(super) fn end_handshake(&mut self, key: Key) {
        if self.at_mut(key).flags.clear(Flags::HANDSHAKE.and(Flags::MEET)) {
            self.handshakes -= 1;
        }
    }

    // Slots.

    pub(super) fn owner(&self, slot: u16) -> Option<Key> {
        self.owners[usize::from(slot)]
    }

    /// How many slots have an owner.
    pub(super) fn assigned(&self) -> usize {
        self.assigned
    }

    /// Whether anybody may take it.
    pub(super) fn is_unclaimed(&self, slot: u16) -> bool {
        self.owner(slot).is_none() || self.unclaimed.has(slot)
    }

    /// Its owner says that it has it not, or again that it has.
    pub(super) fn set_unclaimed(&mut self, slot: u16, is_unclaimed: bool) {
        if is_unclaimed {
            self.unclaimed.add(slot)
        } else {
            self.unclaimed.remove(slot)
        };
    }

    /// Gives a slot to a node, whoever had it.
    pub(super) fn assign(&mut self, slot: u16, key: Key) {
        self.unassign(slot);
        self.owners[usize::from(slot)] = Some(key);
        self.assigned += 1;
        let node = self.at_mut(key);
        node.slots.add(slot);
        // A primary that comes to slots in a cluster whose primaries have replicas is to get one, too.
        if self.at(key).slots.len() == 1 && self.iter().any(|(_, node)| node.is_primary() && !node.replicas.is_empty())
        {
            self.at_mut(key).flags.set(Flags::MIGRATE_TO);
        }
    }

    /// Takes a slot from its owner.
    pub(super) fn unassign(&mut self, slot: u16) -> Option<Key> {
        let key = self.owners[usize::from(slot)].take()?;
        self.unclaimed.remove(slot);
        self.assigned -= 1;
        let node = self.at_mut(key);
        node.slots.remove(slot);
        Some(key)
    }

    // Primaries and replicas.

    /// The primary of a node, or the node itself if it is one; `None` if it is not known.
    pub(super) fn primary_of(&self, key: Key) -> Option<Key> {
        let node = self.at(key);
        if node.is_replica() { node.primary } else { Some(key) }
    }

    /// Makes a node another one's replica, whatever it was.
    pub(super) fn attach(&mut self, key: Key, primary: Key) {
        self.detach(key);
        let shard = self.at(primary).shard;
        let node = self.at_mut(key);
        node.flags.clear(Flags::PRIMARY.and(Flags::MIGRATE_TO));
        node.flags.set(Flags::REPLICA);
        node.primary = Some(primary);
        node.shard = shard;
        let primary = self.at_mut(primary);
        primary.replicas.push(key);
        primary.flags.set(Flags::MIGRATE_TO);
    }

    /// A replica is one of nobody that is known.
    pub(super) fn detach(&mut self, key: Key) {
        let Some(primary) = self.at_mut(key).primary.take() else { return };
        let primary = self.at_mut(primary);
        primary.replicas.retain(|replica| *replica != key);
        if primary.replicas.is_empty() {
            primary.flags.clear(Flags::MIGRATE_TO);
        }
    }

    /// Makes a replica a primary; whether it was one.
    pub(super) fn promote(&mut self, key: Key) -> bool {
        if self.at(key).is_primary() {
            return false;
        }
        if self.at(key).primary.is_some() {
            self.detach(key);
            if key != self.me {
                self.at_mut(key).flags.set(Flags::MIGRATE_TO);
            }
        }
        let node = self.at_mut(key);
        node.flags.clear(Flags::REPLICA);
        node.flags.set(Flags::PRIMARY);
        true
    }

    /// How many replicas of a node are there.
    pub(super) fn good_replicas(&self, key: Key) -> usize {
        self.at(key).replicas.iter().filter(|replica| !self.at(**replica).has_failed()).count()
    }
}

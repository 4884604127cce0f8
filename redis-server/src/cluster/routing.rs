//! The routing of slots to nodes, as the execution of commands sees it: a snapshot of the node table that never changes.

use std::collections::BTreeMap;

use super::{Millis, NodeId, SLOTS, SlotSet};

/// No node.
pub const NOBODY: u16 = u16::MAX;

/// A node as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name.
    pub id: NodeId,
    /// Its address; empty while it is not known.
    pub ip: String,
    /// Its port without TLS; 0 if there is none.
    pub port: u16,
    /// Its port with TLS; 0 if there is none.
    pub tls_port: u16,
    /// Its host's name; empty if it has told none.
    pub hostname: String,
    /// Its primary; [`NOBODY`] if it is a primary, or if its primary is not known.
    pub primary: u16,
    /// Whether it follows another one.
    pub is_replica: bool,
    /// Whether the cluster agrees that it is not there.
    pub has_failed: bool,
    /// Whether clients are sent to it as to a replica: it has not failed, and has something of a stream of changes.
    pub is_available: bool,
}

impl Endpoint {
    /// A node that has only a name.
    pub fn of_new(id: NodeId) -> Self {
        let (ip, hostname) = (String::new(), String::new());
        let (is_replica, has_failed, is_available) = (false, false, false);
        Self { id, ip, port: 0, tls_port: 0, hostname, primary: NOBODY, is_replica, has_failed, is_available }
    }
}

/// The owner of each slot.
#[derive(Clone, Debug)]
pub struct Routing {
    /// Whether the cluster serves its slots.
    pub is_ok: bool,
    /// This node, among `nodes`.
    pub me: u16,
    /// The primary that it follows; [`NOBODY`] if it is a primary.
    pub primary: u16,
    /// Every node that the cluster has, but for those that have only said hello.
    pub nodes: Vec<Endpoint>,
    /// The owner of each slot, or [`NOBODY`].
    pub owners: Box<[u16; SLOTS]>,
    /// Slots of this node's that are on their way to another one.
    pub migrating: BTreeMap<u16, u16>,
    /// Slots that are on their way from another node to this one.
    pub importing: BTreeMap<u16, u16>,
    /// Slots of this node's to which nobody writes: they are about to be another one's.
    pub held: SlotSet,
    /// Until when clients are held that want to.
    pub held_until: Millis,
}

impl Routing {
    /// A node that is alone and has nothing.
    pub fn alone(me: Endpoint) -> Self {
        Self {
            is_ok: false,
            me: 0,
            primary: NOBODY,
            nodes: vec![me],
            owners: vec![NOBODY; SLOTS].try_into().expect("its length is that of the array"),
            migrating: BTreeMap::new(),
            importing: BTreeMap::new(),
            held: SlotSet::EMPTY,
            held_until: 0,
        }
    }

    /// The node of an index that stands here; none for [`NOBODY`].
    pub fn node(&self, index: u16) -> Option<&Endpoint> {
        self.nodes.get(usize::from(index))
    }
}

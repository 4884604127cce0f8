//! A node of a cluster: the owners of slots, and the errors for clients that ask the wrong node.
//!
//! A slot is a shard of database 0, so the thread that has locked its keys decides about them alone. A call is judged on
//! admission, where the genuine server does so, among all other reasons to refuse it. It is judged again under its locks, because
//! slots leave and keys move in between. For nearly all calls the second judgement is one bit for each key.

mod clients;
mod file;
mod judge;
mod lost;
mod moving;
mod node;
mod saver;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, PoisonError, RwLock};

pub(crate) use judge::{
    HELD, Refused, judge_alone, judge_locked, judge_on_admission, judge_script_call, port_for, preferred,
};
pub(crate) use moving::note_of_imports;
pub use moving::{Landing, Line};
pub use node::{DISABLED, bus_port, replication_port, settings_of};

use crate::clients::client::Client;
use crate::cluster::{Endpoint, NOBODY, NodeId, Routing, SLOTS};
use crate::config::{Config, settings};
use crate::exec::instance::Instance;
use crate::keyspace::{Access, Key};

/// Words with a bit for each slot.
const WORDS: usize = SLOTS / 64;

/// A set of slots that threads read while one writes it.
type Slots = Box<[AtomicU64; WORDS]>;

/// A server's state as a node of a cluster, if it is one.
#[derive(Debug)]
pub struct Cluster {
    is_enabled: bool,
    routing: RwLock<Arc<Routing>>,
    /// Slots whose calls this node serves whatever they are.
    served: Slots,
    /// Slots whose reads it serves for clients that have said READONLY.
    readable: Slots,
    /// The number of the set of slots that take no writes: another number for each set, 0 for none.
    holding: AtomicU64,
    /// How many such sets there were.
    holdings: AtomicU64,
    moving: moving::Moving,
    node: node::Node,
}

impl Cluster {
    /// A cluster in which no node has any slot yet.
    pub fn new(config: &Config) -> Self {
        let is_enabled = config.is_on(settings::CLUSTER_ENABLED);
        let slots = || Box::new([const { AtomicU64::new(0) }; WORDS]);
        let me = Endpoint {
            id: NodeId::from_random(|| 0),
            ip: String::new(),
            port: 0,
            tls_port: 0,
            hostname: String::new(),
            primary: NOBODY,
            is_replica: false,
            has_failed: false,
            is_available: false,
        };
        let routing = RwLock::new(Arc::new(Routing::alone(me)));
        Self {
            is_enabled,
            routing,
            served: slots(),
            readable: slots(),
            holding: AtomicU64::new(0),
            holdings: AtomicU64::new(0),
            moving: moving::Moving::default(),
            node: node::Node::default(),
        }
    }

    /// Whether this server is a node of a cluster.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Whether this node has slots that take no writes, as they are about to be another one's.
    #[inline]
    pub fn holds_slots(&self) -> bool {
        self.holding() != 0
    }

    /// A number for the set of slots that take no writes: another one for each set, 0 for none. A connection that waits for some of
    /// them looks again when the number has changed.
    pub fn holding(&self) -> u64 {
        self.holding.load(SeqCst)
    }

    /// The owners of the slots.
    pub fn routing(&self) -> Arc<Routing> {
        Arc::clone(&self.routing.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where the node is that this one follows, if it follows one.
    pub fn primary(&self, config: &Config) -> Option<(String, u16)> {
        let routing = self.routing();
        let primary = routing.node(routing.primary)?;
        Some((primary.ip.clone(), replication_port(config, primary.port, primary.tls_port)))
    }

    /// Whether this node is a primary, as others know, and its data still a replica's: that is turned behind what comes of the stream.
    pub fn is_turning_primary(&self, instance: &Instance) -> bool {
        let is_primary = |routing: &Routing| routing.node(routing.me).is_some_and(|me| !me.is_replica);
        instance.replication.is_replica() && is_primary(&self.routing())
    }

    /// Replaces the owners of the slots.
    ///
    /// Does not wait for calls that have locked keys of a slot before. To be sure that no more of them run, lock the slot once.
    pub fn route(&self, routing: Arc<Routing>) {
        let (mut served, mut readable) = (vec![0u64; WORDS], vec![0u64; WORDS]);
        let words = routing.owners.as_chunks::<64>().0.iter().zip(served.iter_mut().zip(&mut readable));
        for (owners, (served, readable)) in words.filter(|_| routing.is_ok) {
            *served = bits_of(owners, routing.me);
            // A primary follows nobody, and slots may be nobody's.
            *readable = *served | if routing.primary == NOBODY { 0 } else { bits_of(owners, routing.primary) };
        }
        for slot in routing.migrating.keys().map(|slot| usize::from(*slot)) {
            let bit = 1 << (slot % 64);
            readable[slot / 64] &= !(served[slot / 64] & bit);
            served[slot / 64] &= !bit;
        }
        // Each of their calls is asked whether it writes.
        for (word, bits) in routing.held.bitmap().as_chunks().0.iter().enumerate() {
            served[word] &= !u64::from_le_bytes(*bits);
        }
        let mut current = self.routing.write().unwrap_or_else(PoisonError::into_inner);
        let (before, after) = (&current.held, &routing.held);
        if after.is_empty() {
            self.holding.store(0, SeqCst);
        } else if before != after {
            self.holdings.fetch_add(1, Relaxed);
            self.holding.store(self.holdings.load(Relaxed), SeqCst);
        }
        *current = routing;
        drop(current);
        for (words, bits) in [(&self.served, served), (&self.readable, readable)] {
            words.iter().zip(bits).for_each(|(word, bits)| word.store(bits, SeqCst));
        }
    }

    /// How many of these calls' keys, one each, are served without a further question, from the first on; they are locked.
    #[inline]
    pub(crate) fn served(&self, client: &Client, keys: &[(Key<'_>, Access)]) -> usize {
        if client.reads_from_replicas {
            return self.served_by_replica(keys);
        }
        let is_served = |(key, _): &(Key<'_>, _)| has(&self.served, key);
        // Mostly all are, so it is asked of all at once.
        if keys.iter().fold(true, |all, key| all & is_served(key)) {
            return keys.len();
        }
        keys.iter().take_while(|key| is_served(key)).count()
    }

    /// [`Cluster::served`] for a client that has said READONLY.
    fn served_by_replica(&self, keys: &[(Key<'_>, Access)]) -> usize {
        let slots = |access| if access == Access::Read { &self.readable } else { &self.served };
        keys.iter().take_while(|(key, access)| has(slots(*access), key)).count()
    }
}

/// Whether a key's slot is among them.
#[inline]
fn has(slots: &Slots, key: &Key<'_>) -> bool {
    slots[key.shard() as usize / 64 % WORDS].load(Relaxed) >> (key.shard() % 64) & 1 != 0
}

/// Those of 64 slots that one node owns; most rows of slots are all one node's.
fn bits_of(owners: &[u16; 64], node: u16) -> u64 {
    if owners.iter().all(|owner| *owner == owners[0]) {
        return if owners[0] == node { u64::MAX } else { 0 };
    }
    owners.iter().enumerate().fold(0, |bits, (at, owner)| bits | u64::from(*owner == node) << at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_rows_and_of_mixed_slots() {
        let mut owners = [3; 64];
        assert_eq!((bits_of(&owners, 3), bits_of(&owners, 4)), (u64::MAX, 0));
        (owners[0], owners[63]) = (4, NOBODY);
        assert_eq!((bits_of(&owners, 3), bits_of(&owners, 4)), (u64::MAX >> 1 & !1, 1));
    }
}

//! The state of a cluster node that all threads share.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::task::Waker;
use std::thread::JoinHandle;

use atomic_waker::AtomicWaker;

use super::saver::Saver;
use crate::clients::client::Client;
use crate::cluster::moves::Order;
use crate::cluster::{Action, Endpoint, Link, Machine, Millis, NOBODY, NodeId, Routing, SLOTS, SlotSet};
use crate::config::{Config, settings};
use crate::exec::core::clock::{Tick, now_ms};
use crate::keyspace::{Access, Key};

/// Words with a bit for each slot.
pub(super) const WORDS: usize = SLOTS / 64;

/// A set of slots that threads read while one writes it.
pub(super) type Slots = Box<[AtomicU64; WORDS]>;

/// A server's state as a node of a cluster, if it is one.
#[derive(Debug)]
pub struct Cluster {
    pub(super) is_enabled: bool,
    pub(super) routing: RwLock<Arc<Routing>>,
    /// Slots whose calls this node serves whatever they are.
    pub(super) served: Slots,
    /// Slots whose reads it serves for clients that have said READONLY.
    pub(super) readable: Slots,
    /// The number of the set of slots that take no writes: another number for each set, 0 for none.
    pub(super) holding: AtomicU64,
    /// How many such sets there were.
    pub(super) holdings: AtomicU64,
    pub(super) moving: Moving,
    pub(super) node: Node,
}

/// Whether a key's slot is among them.
#[inline]
pub(super) fn has(slots: &Slots, key: &Key<'_>) -> bool {
    slots[key.shard() as usize / 64 % WORDS].load(Relaxed) >> (key.shard() % 64) & 1 != 0
}

/// Those of 64 slots that one node owns; most rows of slots are all one node's.
pub(super) fn bits_of(owners: &[u16; 64], node: u16) -> u64 {
    if owners.iter().all(|owner| *owner == owners[0]) {
        return if owners[0] == node { u64::MAX } else { 0 };
    }
    owners.iter().enumerate().fold(0, |bits, (at, owner)| bits | u64::from(*owner == node) << at)
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
            moving: Moving::default(),
            node: Node::default(),
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
    pub fn is_turning_primary(&self, is_replica: bool) -> bool {
        let is_primary = |routing: &Routing| routing.node(routing.me).is_some_and(|me| !me.is_replica);
        is_replica && is_primary(&self.routing())
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
    pub(super) fn served_by_replica(&self, keys: &[(Key<'_>, Access)]) -> usize {
        let slots = |access| if access == Access::Read { &self.readable } else { &self.served };
        keys.iter().take_while(|(key, access)| has(slots(*access), key)).count()
    }
}

/// The node's part of a command that concerns the whole cluster.
impl Cluster {
    /// Returns true if other nodes may have a part in such a command: there are other primaries, or this is a replica.
    pub fn has_others(&self) -> bool {
        if !self.is_enabled {
            return false;
        }
        let routing = self.routing();
        let mut others = routing.nodes.iter().enumerate().filter(|(at, _)| *at != usize::from(routing.me));
        routing.primary != NOBODY || others.any(|(_, node)| !node.is_replica)
    }

    /// Returns true if slots that are not this node's have keys here, as they come or go.
    pub fn has_foreign_keys(&self) -> bool {
        !lock(&self.node.lost.slots).is_empty() || !self.routing().importing.is_empty()
    }
}

/// How far the bus port is from the port, where nothing else is said.
pub(super) const BUS_PORT: u16 = 10_000;

/// The machine and what belongs to it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) machine: Mutex<Option<Machine>>,
    pub(super) saver: Arc<Saver>,
    /// Actions of the bus's thread, in this order, each with the number of the text that must be on disk before.
    pub(super) outbox: Mutex<VecDeque<(u64, Action)>>,
    pub(super) waker: Arc<AtomicWaker>,
    /// Bytes that wait on each link.
    pub(super) unsent: Mutex<BTreeMap<Link, Arc<AtomicU64>>>,
    /// Slots of which others are the owners now, and whose keys are to be removed.
    pub(super) lost: LostSlots,
    pub(super) began: (Millis, Tick),
    /// Whether slots have changed hands since the bus's thread looked around.
    pub(super) routed: AtomicBool,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            machine: Mutex::default(),
            saver: Arc::default(),
            outbox: Mutex::default(),
            waker: Arc::default(),
            unsent: Mutex::default(),
            lost: LostSlots::default(),
            began: (now_ms(), Tick::now()),
            routed: AtomicBool::new(false),
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The port at which other nodes find this one.
pub fn bus_port(config: &Config) -> u16 {
    let port = |setting| u16::try_from(config.int(setting)).unwrap_or(0);
    let base = match config.is_on(settings::TLS_CLUSTER) {
        true => port(settings::TLS_PORT),
        false => port(settings::PORT),
    };
    match port(settings::CLUSTER_PORT) {
        0 => base.saturating_add(BUS_PORT),
        port => port,
    }
}

/// At which of its ports another node's data is asked for.
pub fn replication_port(config: &Config, port: u16, tls_port: u16) -> u16 {
    if config.is_on(settings::TLS_REPLICATION) { tls_port } else { port }
}

impl Cluster {
    /// The server ends: the node says nothing more, and its file is nobody's.
    pub fn end(&self) {
        *lock(&self.node.machine) = None;
        self.node.saver.end();
    }

    /// The time, which never runs back.
    pub fn now(&self) -> Millis {
        let (at, tick) = self.node.began;
        at + tick.elapsed().as_millis() as u64
    }

    /// Leaves an action to the bus's thread, behind the texts that must be on disk before.
    pub(super) fn leave(&self, action: Action) -> bool {
        let vital = self.node.saver.vital();
        lock(&self.node.outbox).push_back((vital, action));
        true
    }

    /// The next action of the bus's thread. An action that waits for the disk comes when the disk has its text.
    pub fn next_action(&self) -> Option<Action> {
        let mut outbox = lock(&self.node.outbox);
        let (_, action) = outbox.pop_front_if(|(vital, _)| self.node.saver.has_written(*vital))?;
        Some(action)
    }

    /// Whether there is something for it to do now.
    pub fn is_asked(&self) -> bool {
        let can_be_done = |(vital, _): &(u64, Action)| self.node.saver.has_written(*vital);
        lock(&self.node.outbox).front().is_some_and(can_be_done) || self.node.routed.load(Relaxed)
    }

    /// Where a link that begins says how many bytes wait on it.
    pub fn count_unsent(&self, link: Link) -> Arc<AtomicU64> {
        let unsent = Arc::<AtomicU64>::default();
        let mut all = lock(&self.node.unsent);
        all.retain(|_, unsent| Arc::strong_count(unsent) > 1);
        all.insert(link, Arc::clone(&unsent));
        unsent
    }

    /// Bytes that wait on all links.
    pub fn all_unsent(&self) -> u64 {
        lock(&self.node.unsent).values().map(|unsent| unsent.load(Relaxed)).sum()
    }

    /// How many bytes wait on a link.
    pub fn unsent(&self, link: Link) -> u64 {
        lock(&self.node.unsent).get(&link).map_or(0, |unsent| unsent.load(Relaxed))
    }

    /// Wakes this task when there is something to be done.
    pub fn wake_by(&self, waker: &Waker) {
        self.node.waker.register(waker);
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct LostSlots {
    pub(super) slots: Mutex<SlotSet>,
    /// The thread that removes keys, or has done so.
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

impl Default for LostSlots {
    fn default() -> Self {
        Self { slots: Mutex::new(SlotSet::EMPTY), thread: Mutex::default() }
    }
}

/// The way of orders to the owner of a move's connection.
#[derive(Debug, Default)]
pub struct Line {
    pub(super) orders: Mutex<VecDeque<Order>>,
    pub(super) waker: AtomicWaker,
}

impl Line {
    pub(super) fn push(&self, order: Order) {
        lock(&self.orders).push_back(order);
        self.waker.wake();
    }

    /// The next order.
    pub fn take(&self) -> Option<Order> {
        lock(&self.orders).pop_front()
    }

    /// Whether the end of the connection is among what is to be done.
    pub(super) fn is_ended(&self) -> bool {
        lock(&self.orders).iter().any(|order| matches!(order, Order::End))
    }

    /// Wakes this task when there is something to be done.
    pub fn wake_by(&self, waker: &Waker) {
        self.waker.register(waker);
    }
}

/// The state of moves beside the machine.
#[derive(Debug, Default)]
pub(super) struct Moving {
    pub(super) lines: Mutex<BTreeMap<NodeId, Arc<Line>>>,
    /// Imports that have failed, whose keys are being removed.
    pub(super) dropping: Mutex<Vec<(NodeId, Arc<SlotSet>)>>,
}

impl Moving {
    pub(super) fn open(&self, name: NodeId) -> Arc<Line> {
        Arc::clone(lock(&self.lines).entry(name).or_default())
    }

    /// Orders the end of the connection, if there still is one.
    pub(super) fn close(&self, name: NodeId) {
        let line = lock(&self.lines).remove(&name);
        line.iter().for_each(|line| line.push(Order::End));
    }
}

impl Cluster {
    /// A client brings the slots of a move: its connection is to be given to `Landing`.
    pub(crate) fn expect(&self, name: NodeId) {
        self.moving.open(name);
    }

    /// Ends the connection of a move that is not expected any more.
    pub(crate) fn expect_no_more(&self, name: NodeId) {
        self.moving.close(name);
    }
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

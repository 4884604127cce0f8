//! The contents of PING and PONG, and their receivers.

use bytes::Bytes;

use super::{Key, Kind, Link, Machine, Millis, Node, NodeId};
use crate::cluster::SlotSet;
use crate::cluster::packet::{Draft, Extension, FORCE_VOTE, Flags, Gossip, HAS_EXTENSIONS, Header, IS_PAUSED};

/// Every so many periods somebody is asked by chance: once a second.
const CHANCE_PERIODS: u64 = 10;

/// Of so many the one that has been silent for longest is asked.
const CANDIDATES: usize = 5;

/// A packet tells of one in so many nodes: within two timeouts a failing node is told of to all by four packets of each, 80 % of
/// the others have a say in that many.
const TOLD_SHARE: usize = 10;

/// It tells of so many at least.
const TOLD_LEAST: usize = 3;

/// Draws for each node that is to be told of, before a packet is sent with fewer.
const DRAWS: usize = 3;

/// Nodes to forget that a packet tells of at most.
const MAX_FORGOTTEN: usize = 64;

impl Machine {
    /// Once a second one by chance is asked, or rather the one that has been silent for longest of some by chance.
    pub(super) fn ping_longest_silent_candidate(&mut self, now: Millis) {
        self.periods += 1;
        if !self.periods.is_multiple_of(CHANCE_PERIODS) {
            return;
        }
        let mut silent: Option<Key> = None;
        for _ in 0..CANDIDATES {
            let key = self.nodes.random(|| self.random.next());
            let node = self.nodes.at(key);
            let is_asked = node.link.is_none() || node.ping_sent != 0;
            if is_asked || node.flags.any(Flags::MYSELF.and(Flags::HANDSHAKE)) {
                continue;
            }
            if silent.is_none_or(|other| node.pong_received < self.nodes.at(other).pong_received) {
                silent = Some(key);
            }
        }
        if let Some(key) = silent {
            self.ping_node(key, now);
        }
    }

    /// Asks a node on our connection to it.
    pub(super) fn ping_node(&mut self, key: Key, now: Millis) {
        if let Some(link) = self.nodes.at(key).link {
            self.ping(link, Kind::Ping, now);
        }
    }

    /// Answers.
    pub(super) fn pong(&mut self, link: Link, now: Millis) {
        self.ping(link, Kind::Pong, now);
    }

    /// Tells all, or only those of this shard, what has changed here.
    pub(super) fn tell_all(&mut self, only_shard: bool, now: Millis) {
        for key in self.nodes.keys() {
            let node = self.nodes.at(key);
            let Some(link) = node.link else { continue };
            if !node.is_myself() && !node.is_handshake() && (!only_shard || self.is_my_shard(key)) {
                self.pong(link, now);
            }
        }
    }

    /// Says PING, PONG or MEET, with what is known of some others.
    pub(super) fn ping(&mut self, link: Link, kind: Kind, now: Millis) {
        let Some(state) = self.links.get(&link).filter(|state| state.is_open) else { return };
        let (to, is_inbound) = (state.node, state.is_inbound);
        if let (Some(key), Kind::Ping | Kind::Meet, false) = (to, kind, is_inbound) {
            self.nodes.at_mut(key).ping_sent = now;
        }
        let told = self.choose_told(to);
        let mut draft = self.draft(kind);
        for key in told {
            draft.gossip(&self.gossip(key));
        }
        self.add_extensions(&mut draft, to, now);
        self.send(link, kind, Bytes::from(draft.finish()));
    }

    /// Of whom a packet tells: some by chance, and all that do not answer.
    fn choose_told(&mut self, to: Option<Key>) -> Vec<Key> {
        self.told += 1;
        let others = self.nodes.len().saturating_sub(2);
        let wanted = (self.nodes.len() / TOLD_SHARE).max(TOLD_LEAST).min(others);
        let mut told = Vec::with_capacity(wanted);
        let mut draws = DRAWS * wanted;
        while told.len() < wanted && draws > 0 {
            draws -= 1;
            let key = self.nodes.random(|| self.random.next());
            let node = self.nodes.at(key);
            let is_unfit = node.is_myself()
                || node.flags.any(Flags::HANDSHAKE.and(Flags::NO_ADDRESS).and(Flags::MAYBE_FAILED))
                || (node.link.is_none() && node.slots.len() == 0)
                || node.told_in == self.told
                || to == Some(key);
            if !is_unfit {
                self.nodes.at_mut(key).told_in = self.told;
                told.push(key);
            }
        }
        if self.counters.not_answering > 0 {
            let is_silent = |node: &Node| node.flags.any(Flags::MAYBE_FAILED) && !node.flags.any(Flags::NO_ADDRESS);
            told.extend(self.nodes.iter().filter(|(_, node)| is_silent(node)).map(|(key, _)| key));
        }
        told
    }

    fn gossip(&self, key: Key) -> Gossip<'_> {
        let node = self.nodes.at(key);
        let (port, other_port) = self.order_ports(node);
        let seconds = |at: Millis| (at / 1000) as u32;
        Gossip {
            id: node.id,
            ping_sent: seconds(node.ping_sent),
            pong_received: seconds(node.pong_received),
            ip: &node.ip,
            port,
            bus_port: node.bus_port,
            flags: node.flags,
            other_port,
        }
    }

    /// The port that the cluster uses for clients, and the other one.
    pub(super) fn order_ports(&self, node: &Node) -> (u16, u16) {
        if self.settings.tls { (node.tls_port, node.port) } else { (node.port, node.tls_port) }
    }

    /// A packet with what stands in front of every one.
    fn draft(&self, kind: Kind) -> Draft {
        let slots = self.my_primary().map_or(SlotSet::EMPTY, |key| self.nodes.at(key).slots.to_set());
        Draft::new(&self.header(kind, &slots))
    }

    fn header<'a>(&'a self, kind: Kind, slots: &'a SlotSet) -> Header<'a> {
        let me = self.nodes.myself();
        let primary = me.primary.map(|key| self.nodes.at(key));
        let owner = primary.unwrap_or(me);
        let (port, other_port) = self.order_ports(me);
        let mut message_flags = HAS_EXTENSIONS;
        if me.is_primary() && self.manual.is_paused() {
            message_flags |= IS_PAUSED;
        }
        if kind == Kind::AuthRequest && self.manual.is_under_way() {
            message_flags |= FORCE_VOTE;
        }
        Header {
            kind,
            sender: me.id,
            current_epoch: self.current_epoch,
            config_epoch: owner.config_epoch,
            offset: self.facts.offset,
            slots: slots.bitmap(),
            primary: primary.map(|primary| primary.id),
            ip: Some(&*self.settings.announce_ip).filter(|ip| !ip.is_empty()),
            port,
            other_port,
            bus_port: me.bus_port,
            flags: me.flags,
            is_down: !self.health.is_ok,
            message_flags,
            count: 0,
            extensions: 0,
        }
    }

    /// Says the name of the host to all, strangers as well, as Redis 7.0 does; the rest is not known to all.
    fn add_extensions(&self, draft: &mut Draft, to: Option<Key>, now: Millis) {
        let me = self.nodes.myself();
        if !me.hostname.is_empty() {
            draft.extension(&Extension::Hostname(&me.hostname));
        }
        if !to.is_some_and(|to| self.nodes.at(to).flags.any(Flags::EXTENSIONS) && self.knows_shards(to)) {
            return;
        }
        if !me.nodename.is_empty() {
            draft.extension(&Extension::Nodename(&me.nodename));
        }
        let banned = self.banned.iter().filter(|(_, until)| **until > now);
        for (id, until) in banned.take(MAX_FORGOTTEN) {
            draft.extension(&Extension::Forgotten { id: *id, ttl: (until - now).div_ceil(1000) });
        }
        draft.extension(&Extension::Shard(me.shard));
    }

    /// A packet that is only a header.
    pub(super) fn plain(&self, kind: Kind) -> Bytes {
        Bytes::from(self.draft(kind).finish())
    }

    /// Gives a client's message to the other nodes: to all, or to those of this shard.
    pub fn publish(&mut self, channel: &[u8], message: &[u8], is_sharded: bool, now: Millis) {
        let kind = if is_sharded { Kind::PublishShard } else { Kind::Publish };
        let mut draft = self.draft(kind);
        draft.publish(channel, message);
        let bytes = Bytes::from(draft.finish());
        if is_sharded {
            for key in self.nodes.keys() {
                if key != self.nodes.me() && self.is_my_shard(key) {
                    self.send_to(key, kind, bytes.clone());
                }
            }
        } else {
            self.broadcast(kind, &bytes);
        }
        self.settle(now);
    }

    /// Tells a node who has slots that it claims.
    pub(super) fn send_update(&mut self, to: Key, owner: Key) {
        let owner = self.nodes.at(owner);
        let mut draft = self.draft(Kind::Update);
        draft.update(owner.config_epoch, owner.id, &owner.slots.to_set());
        self.send_to(to, Kind::Update, Bytes::from(draft.finish()));
    }

    /// Tells all who has failed.
    pub(super) fn send_failed(&mut self, id: NodeId) {
        let mut draft = self.draft(Kind::Fail);
        draft.fail(id);
        self.broadcast(Kind::Fail, &Bytes::from(draft.finish()));
    }

    pub(super) fn new_id(&mut self) -> NodeId {
        NodeId::from_random(|| self.random.next())
    }
}

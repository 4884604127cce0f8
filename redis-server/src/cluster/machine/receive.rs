//! Handling of packets. Only a member's word changes anything, but for MEET, by which an operator's node comes to ask for the membership.

use bytes::Bytes;

use super::{Action, Key, Kind, Level, Link, Machine, Millis, Node, NodeId};
use crate::cluster::nodes::MAX_NODES;
use crate::cluster::packet::{Body, Extension, FORCE_VOTE, Flags, Gossip, Header, IS_PAUSED, Packet, Ping};

/// How many may be in the middle of a handshake: all of a large cluster may be introduced to one node at once.
const MAX_HANDSHAKES: usize = 4096;

/// How far in the future an answer may lie that others tell of: clocks differ.
const CLOCK_SKEW: Millis = 500;

/// A node that could have named its shard in so many packets, and did not, is of a version that knows none.
const SHARDLESS: u8 = 8;

impl Machine {
    /// A packet that has its length.
    pub(super) fn take_packet(&mut self, link: Link, bytes: &[u8], now: Millis) {
        // Packets that cannot be parsed count, too.
        if let Some(kind) = Kind::of(bytes) {
            self.counters.received[kind as usize] += 1;
        }
        let Some(packet) = Packet::parse(bytes) else { return };
        let header = &packet.header;
        if self.dropped == Some(header.kind) {
            return;
        }
        let sender = self.nodes.find(header.sender).filter(|key| !self.nodes.at(*key).is_handshake());
        if let Some(sender) = sender {
            self.heard(link, sender, header, now);
        }
        match (packet.body, sender) {
            (Body::Ping(ping), _) => self.take_ping(link, sender, header, ping, now),
            (_, None) => {}
            (Body::Fail(id), Some(sender)) => self.take_fail(sender, id, now),
            (Body::Publish { channel, message }, _) => {
                let (channel, message) = (Bytes::copy_from_slice(channel), Bytes::copy_from_slice(message));
                self.act(Action::Publish { channel, message, is_sharded: header.kind == Kind::PublishShard });
            }
            (Body::Update { config_epoch, id, slots }, _) => self.take_update(id, config_epoch, slots),
            (Body::Plain, Some(sender)) => match header.kind {
                Kind::AuthRequest => {
                    let is_forced = header.message_flags & FORCE_VOTE != 0;
                    self.consider_vote(
                        sender,
                        (header.current_epoch, header.config_epoch),
                        header.slots,
                        is_forced,
                        now,
                    );
                }
                Kind::AuthAck => self.count_vote(sender, header.current_epoch),
                Kind::ManualFailover => self.stand_aside(link, sender, now),
                _ => {}
            },
        }
    }

    /// Handles the header, which every packet of a member has.
    fn heard(&mut self, link: Link, sender: Key, header: &Header<'_>, now: Millis) {
        if sender == self.nodes.me() {
            return;
        }
        self.identify(link, sender);
        if header.current_epoch > self.current_epoch {
            self.current_epoch = header.current_epoch;
            self.saving.ask();
        }
        let node = self.nodes.at_mut(sender);
        if header.has_extensions() {
            node.flags.set(Flags::EXTENSIONS);
        }
        node.data_received = now;
        // Clients are sent to a replica that has something.
        self.agenda.show |= (node.offset == 0) != (header.offset == 0);
        node.offset = header.offset;
        if header.config_epoch > node.config_epoch {
            node.config_epoch = header.config_epoch;
            self.saving.ask_now();
        }
        if header.message_flags & IS_PAUSED != 0 {
            self.take_offset_of_paused(sender, header.offset);
        }
    }

    fn take_ping(&mut self, link: Link, sender: Option<Key>, header: &Header<'_>, ping: Ping<'_>, now: Millis) {
        if matches!(header.kind, Kind::Ping | Kind::Meet) {
            self.learn_my_address(link, header.kind);
            if sender.is_none() && header.kind == Kind::Meet {
                self.meet_back(link, header, now);
            }
            self.pong(link, now);
        }
        let is_answer = match self.links.get(&link) {
            Some(state) if !state.is_inbound => state.node,
            Some(_) => None,
            None => return,
        };
        let sender = match is_answer {
            None => sender,
            Some(key) => match self.take_answer(link, key, sender, header, now) {
                Some(sender) => sender,
                None => return,
            },
        };
        let Some(sender) = sender.filter(|sender| *sender != self.nodes.me()) else { return };
        if header.kind == Kind::Ping {
            self.update_address(sender, link, header);
        }
        let no_failover = header.flags.only(Flags::NO_FAILOVER);
        let node = self.nodes.at_mut(sender);
        node.flags = node.flags.without(Flags::NO_FAILOVER).and(no_failover);
        self.take_role(sender, header.primary);
        self.take_slots(sender, header.config_epoch, header.slots);
        if header.kind == Kind::Pong && is_answer.is_some() {
            self.hear_verdict(sender, now);
        }
        self.settle_collision(sender, header.config_epoch);
        for gossip in ping.gossip() {
            self.take_gossip(sender, &gossip, now);
        }
        self.take_extensions(sender, ping, now);
    }

    /// A PONG, or any PING, on our own connection to a node. None if nothing more of it is to be believed; otherwise the sender.
    fn take_answer(
        &mut self,
        link: Link,
        key: Key,
        sender: Option<Key>,
        header: &Header<'_>,
        now: Millis,
    ) -> Option<Option<Key>> {
        let mut sender = sender;
        if self.nodes.at(key).is_handshake() {
            if let Some(known) = sender {
                self.update_address(known, link, header);
                self.forget(key);
                return None;
            }
            if self.nodes.find(header.sender).is_some() {
                // Two handshakes with one node: the other one goes on.
                self.forget(key);
                return None;
            }
            self.log(Level::Debug, format!("Handshake with node {} completed.", header.sender));
            self.nodes.rename(key, header.sender);
            self.nodes.end_handshake(key);
            let node = self.nodes.at_mut(key);
            node.flags.set(header.flags.only(Flags::PRIMARY.and(Flags::REPLICA)));
            if !node.flags.any(Flags::REPLICA) {
                node.flags.set(Flags::PRIMARY);
            }
            self.changed();
            sender = Some(key);
            self.heard(link, key, header, now);
        } else if self.nodes.at(key).id != header.sender {
            // Another node is at this address now.
            let node = self.nodes.at_mut(key);
            node.flags.set(Flags::NO_ADDRESS);
            node.ip.clear();
            (node.port, node.tls_port, node.bus_port) = (0, 0, 0);
            self.close(link);
            self.touched();
            return None;
        }
        if header.kind == Kind::Pong {
            let node = self.nodes.at_mut(key);
            (node.pong_received, node.ping_sent) = (now, 0);
            if node.flags.clear(Flags::MAYBE_FAILED) {
                self.agenda.health = true;
                self.saving.ask();
            } else if node.has_failed() {
                self.pardon(key, now);
            }
        }
        Some(sender)
    }

    /// Handles MEET: adds the sender as a node in handshake, which asks it for its name.
    fn meet_back(&mut self, link: Link, header: &Header<'_>, now: Millis) {
        if self.nodes.handshakes() >= MAX_HANDSHAKES {
            return;
        }
        let Some(ip) = self.address_of(link, header) else { return };
        let (id, shard) = (self.new_id(), self.new_id());
        let mut node = Node::new(id, shard, Flags::HANDSHAKE, now);
        node.ip = ip;
        self.set_ports(&mut node, header.port, header.other_port, header.bus_port);
        self.nodes.add(node);
        self.saving.ask();
    }

    /// The sender's address according to the packet, or that of the connection.
    fn address_of(&self, link: Link, header: &Header<'_>) -> Option<String> {
        let ip = header.ip.or_else(|| self.links.get(&link).map(|state| &*state.peer_ip))?;
        (!ip.is_empty()).then(|| ip.to_owned())
    }

    /// The address at which somebody has reached us is ours, until there is a better one.
    fn learn_my_address(&mut self, link: Link, kind: Kind) {
        let Some(state) = self.links.get(&link).filter(|state| !state.local_ip.is_empty()) else { return };
        let me = self.nodes.myself_mut();
        let asks = kind == Kind::Meet || me.ip.is_empty();
        if asks && self.settings.announce_ip.is_empty() && me.ip != state.local_ip {
            me.ip.clone_from(&state.local_ip);
            let line = format!("IP address for this node updated to {}", me.ip);
            self.log(Level::Notice, line);
            self.agenda.route = true;
            self.saving.ask();
        }
    }

    pub(super) fn set_ports(&self, node: &mut Node, port: u16, other_port: u16, bus_port: u16) {
        (node.port, node.tls_port) = if self.settings.tls { (other_port, port) } else { (port, other_port) };
        node.bus_port = bus_port;
    }

    /// A member asks from another address than we know: it has moved.
    fn update_address(&mut self, key: Key, link: Link, header: &Header<'_>) {
        if self.nodes.at(key).link == Some(link) || key == self.nodes.me() {
            return;
        }
        let Some(ip) = self.address_of(link, header) else { return };
        let (old, mut new) = (self.nodes.at(key), self.nodes.at(key).clone());
        new.ip = ip;
        self.set_ports(&mut new, header.port, header.other_port, header.bus_port);
        let place = |node: &Node| (node.ip.clone(), node.port, node.tls_port, node.bus_port);
        if place(old) != place(&new) {
            self.move_to(key, new);
        }
    }

    /// A node has another address.
    fn move_to(&mut self, key: Key, new: Node) {
        if let Some(link) = self.nodes.at(key).link {
            self.close(link);
        }
        let node = self.nodes.at_mut(key);
        (node.ip, node.port, node.tls_port, node.bus_port) = (new.ip, new.port, new.tls_port, new.bus_port);
        node.flags.clear(Flags::NO_ADDRESS);
        let line = format!("Address updated for node {}, now {}:{}", node.id, node.ip, node.port);
        self.log(Level::Notice, line);
        if self.nodes.myself().primary == Some(key) {
            self.follow_address(key);
        }
        self.changed();
    }

    /// A node is a primary, or somebody's replica.
    fn take_role(&mut self, sender: Key, primary: Option<NodeId>) {
        let Some(primary) = primary else {
            if self.nodes.promote(sender) {
                self.changed();
            }
            return;
        };
        let primary = self.nodes.find(primary).filter(|primary| *primary != sender);
        if self.nodes.at(sender).is_primary() {
            for slot in self.nodes.at(sender).slots.clone().iter() {
                self.nodes.unassign(slot);
            }
            let node = self.nodes.at_mut(sender);
            node.flags.clear(Flags::PRIMARY.and(Flags::MIGRATE_TO));
            node.flags.set(Flags::REPLICA);
            self.changed();
        }
        if let Some(primary) = primary.filter(|primary| self.nodes.at(sender).primary != Some(*primary)) {
            self.nodes.attach(sender, primary);
            self.changed();
        }
    }

    /// Handles the gossip of a member about another node.
    fn take_gossip(&mut self, sender: Key, gossip: &Gossip<'_>, now: Millis) {
        let is_down = gossip.flags.any(Flags::FAILED.and(Flags::MAYBE_FAILED));
        let Some(key) = self.nodes.find(gossip.id) else {
            return self.take_newcomer(gossip, now);
        };
        if key == self.nodes.me() || self.nodes.at(key).is_handshake() {
            return;
        }
        if self.nodes.at(sender).has_vote() && key != sender {
            self.take_report(key, sender, is_down, now);
        }
        let window = 2 * self.settings.node_timeout;
        let tls = self.settings.tls;
        let node = self.nodes.at_mut(key);
        if !is_down && node.ping_sent == 0 && !node.reports.iter().any(|(_, at)| now.saturating_sub(*at) <= window) {
            let pong = Millis::from(gossip.pong_received) * 1000;
            if pong <= now + CLOCK_SKEW && pong > node.pong_received {
                node.pong_received = pong;
            }
        }
        // A node that answers others but not this one has a new address.
        let suspected = node.flags.any(Flags::FAILED.and(Flags::MAYBE_FAILED));
        let has_address = !is_down && !gossip.flags.any(Flags::NO_ADDRESS) && !gossip.ip.is_empty();
        let port = if tls { node.tls_port } else { node.port };
        let is_elsewhere = node.ip != gossip.ip || port != gossip.port || node.bus_port != gossip.bus_port;
        if suspected && has_address && is_elsewhere {
            let mut new = node.clone();
            gossip.ip.clone_into(&mut new.ip);
            self.set_ports(&mut new, gossip.port, gossip.other_port, gossip.bus_port);
            self.move_to(key, new);
        }
    }

    /// A member tells of a node that we do not know.
    fn take_newcomer(&mut self, gossip: &Gossip<'_>, now: Millis) {
        let is_banned = self.banned.get(&gossip.id).is_some_and(|until| *until > now);
        if gossip.flags.any(Flags::NO_ADDRESS.and(Flags::HANDSHAKE)) || gossip.ip.is_empty() || is_banned {
            return;
        }
        let kept =
            Flags::PRIMARY.and(Flags::REPLICA).and(Flags::FAILED).and(Flags::MAYBE_FAILED).and(Flags::NO_FAILOVER);
        let shard = self.new_id();
        let mut node = Node::new(gossip.id, shard, gossip.flags.only(kept), now);
        if !node.is_replica() {
            node.flags.set(Flags::PRIMARY);
        } else {
            node.flags.clear(Flags::PRIMARY);
        }
        if node.has_failed() {
            node.failed_at = now;
            node.flags.clear(Flags::MAYBE_FAILED);
        }
        gossip.ip.clone_into(&mut node.ip);
        self.set_ports(&mut node, gossip.port, gossip.other_port, gossip.bus_port);
        if self.nodes.len() < MAX_NODES && self.nodes.add(node).is_some() {
            self.touched();
        }
    }

    /// Handles the extensions, in which a member describes itself.
    fn take_extensions(&mut self, sender: Key, ping: Ping<'_>, now: Millis) {
        let (mut hostname, mut nodename, mut shard) = ("", "", None);
        for extension in ping.extensions() {
            match extension {
                Extension::Hostname(name) => hostname = name,
                Extension::Nodename(name) => nodename = name,
                Extension::Shard(id) => shard = Some(id),
                Extension::Forgotten { id, ttl } => self.forget_as_told(sender, id, ttl, now),
            }
        }
        let node = self.nodes.at_mut(sender);
        if node.hostname != hostname || node.nodename != nodename {
            hostname.clone_into(&mut node.hostname);
            nodename.clone_into(&mut node.nodename);
            self.touched();
        }
        let node = self.nodes.at_mut(sender);
        match shard {
            None => node.shardless = node.shardless.saturating_add(u8::from(node.flags.any(Flags::EXTENSIONS))),
            Some(shard) => {
                node.shardless = 0;
                if node.shard != shard || !node.says_shard {
                    (node.shard, node.says_shard) = (shard, true);
                    self.saving.ask();
                }
            }
        }
    }

    /// Whether a node is to be told our shard: those that know none complain.
    pub(super) fn knows_shards(&self, key: Key) -> bool {
        self.nodes.at(key).shardless < SHARDLESS
    }

    /// Another node's operator has forgotten a node: so do we.
    fn forget_as_told(&mut self, sender: Key, id: NodeId, ttl: u64, now: Millis) {
        let Some(key) = self.nodes.find(id) else { return };
        if key == sender || key == self.nodes.me() || self.nodes.myself().primary == Some(key) || ttl == 0 {
            return;
        }
        self.ban(id, now, ttl.saturating_mul(1000));
        self.forget(key);
    }
}

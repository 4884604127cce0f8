//! Connections. For each node that it knows a node has one of its own, on which it asks; it answers on the one on which it was asked.

use bytes::Bytes;

use super::Machine;
use crate::cluster::machine::state::LinkState;
use crate::cluster::nodes::{Key, MAX_NODES};
use crate::cluster::packet::{self, Kind, PREFIX};
use crate::cluster::{Action, ID, Level, Link, Millis, NodeId};
use crate::protocol::error::Error;

/// Connections from others at most. Each of the nodes needs one, and has two while it replaces one that is lost.
const MAX_INBOUND: usize = 2 * MAX_NODES;

/// The longest packet of a member: a message, or a channel, may be as long as a client's argument.
const MAX_PACKET: usize = 1 << 30;

/// Of those so many may be strangers: all of a large cluster may be introduced to one node at once. One more takes the place of
/// the stranger that has been silent longest, so that sockets that say nothing shut no node out.
const MAX_STRANGERS: usize = 4096;

/// The longest packet of a stranger: a PING that tells of 600 nodes, as one of 6,000 does.
const MAX_HELLO: usize = 64 << 10;

/// Where the sender's name begins in a packet.
const SENDER: usize = 40;

impl Machine {
    /// Registers a connection to the bus port. None if there are too many: the connection is to be closed.
    pub fn accept(&mut self, peer_ip: &str, local_ip: &str, now: Millis) -> Option<Link> {
        let members = self.links.values().filter(|link| link.is_inbound && !link.is_strangers()).count();
        let strangers = self.links.iter().filter(|(_, link)| link.is_strangers());
        if strangers.clone().count() >= MAX_STRANGERS.min(MAX_INBOUND.saturating_sub(members)) {
            let silent = strangers.min_by_key(|(_, link)| link.heard).map(|(link, _)| *link)?;
            self.close(silent);
            self.settle(now);
        }
        let link = self.new_link(None, now);
        let state = self.links.get_mut(&link).expect("it was just made");
        (state.is_inbound, state.is_open) = (true, true);
        (state.peer_ip, state.local_ip) = (peer_ip.to_owned(), local_ip.to_owned());
        Some(link)
    }

    /// A connection that was asked for is there.
    pub fn opened(&mut self, link: Link, peer_ip: &str, local_ip: &str, now: Millis) {
        let Some(state) = self.links.get_mut(&link) else { return };
        state.is_open = true;
        (state.peer_ip, state.local_ip) = (peer_ip.to_owned(), local_ip.to_owned());
        let Some(key) = state.node else { return };
        // A lost connection must not look like an answer: the time of the ping that was not answered stays.
        let node = self.nodes.at_mut(key);
        let pinged = node.ping_sent;
        let kind = if node.flags.any(packet::Flags::MEET) { Kind::Meet } else { Kind::Ping };
        self.ping(link, kind, now);
        let node = self.nodes.at_mut(key);
        if pinged != 0 {
            node.ping_sent = pinged;
        }
        // MEET is sent once: a node that has answered it knows this one.
        node.flags.clear(packet::Flags::MEET);
        self.settle(now);
    }

    /// A connection is lost, or could not be made. `has_overflowed` says that more was waiting to be sent than
    /// `cluster-link-sendbuf-limit` allows.
    pub fn closed(&mut self, link: Link, has_overflowed: bool, now: Millis) {
        self.counters.overflowed_links += u64::from(has_overflowed);
        self.drop_link(link);
        self.settle(now);
    }

    /// The next bytes of a connection, cut anywhere.
    pub fn receive(&mut self, link: Link, bytes: &[u8], now: Millis) {
        let Some(state) = self.links.get_mut(&link) else { return };
        if let Some(key) = state.node {
            self.nodes.at_mut(key).data_received = now;
        }
        // Complete packets are parsed in place.
        let mut buffer = std::mem::take(&mut state.buffer);
        if buffer.is_empty() {
            let used = self.receive_whole(link, bytes, now);
            buffer.extend_from_slice(&bytes[used..]);
        } else {
            buffer.extend_from_slice(bytes);
            let used = self.receive_whole(link, &buffer, now);
            buffer.drain(..used);
        }
        if let Some(state) = self.links.get_mut(&link) {
            if buffer.is_empty() {
                buffer = Vec::new();
            }
            state.buffer = buffer;
        }
        self.settle(now);
    }

    /// Takes all packets that are whole; how many bytes they are.
    fn receive_whole(&mut self, link: Link, bytes: &[u8], now: Millis) -> usize {
        let mut used = 0;
        while let Some(prefix) = bytes[used..].first_chunk::<PREFIX>() {
            let rest = &bytes[used..];
            let length = packet::length(prefix).filter(|length| self.is_acceptable(*length, rest));
            let Some(length) = length else {
                self.log(Level::Warning, "Bad message length or signature received from Cluster bus.".to_owned());
                self.close(link);
                return bytes.len();
            };
            let Some(packet) = rest.get(..length) else { break };
            used += length;
            if let Some(state) = self.links.get_mut(&link) {
                state.heard = now;
            }
            self.take_packet(link, packet, now);
            if !self.links.contains_key(&link) {
                return bytes.len();
            }
        }
        used
    }

    /// Strangers may only say hello.
    fn is_acceptable(&self, length: usize, packet: &[u8]) -> bool {
        if length <= MAX_HELLO {
            return true;
        }
        if length > MAX_PACKET {
            return false;
        }
        let sender = packet.get(SENDER..SENDER + ID);
        sender.is_none_or(|sender| NodeId::parse(sender).is_some_and(|id| self.nodes.find(id).is_some()))
    }

    /// Connects to all to whom there is no connection, and gives up those who do not say their names, and strangers who say
    /// nothing for as long.
    pub(super) fn look_after_links(&mut self, now: Millis) {
        let handshake_timeout = self.settings.node_timeout.max(1000);
        let is_silent = |state: &LinkState| state.is_strangers() && now.saturating_sub(state.heard) > handshake_timeout;
        let silent: Vec<Link> =
            self.links.iter().filter(|(_, state)| is_silent(state)).map(|(link, _)| *link).collect();
        silent.into_iter().for_each(|link| self.close(link));
        self.counters.not_answering = 0;
        for key in self.nodes.keys() {
            let node = self.nodes.at(key);
            if node.flags.any(packet::Flags::MYSELF.and(packet::Flags::NO_ADDRESS)) {
                continue;
            }
            self.counters.not_answering += usize::from(node.flags.any(packet::Flags::MAYBE_FAILED));
            if node.is_handshake() && now.saturating_sub(node.created) > handshake_timeout {
                self.forget(key);
            } else if node.link.is_none() {
                let (ip, port) = (node.ip.clone(), node.bus_port);
                let link = self.new_link(Some(key), now);
                let node = self.nodes.at_mut(key);
                node.link = Some(link);
                // A node that cannot be connected to counts as asked and not answering.
                if node.ping_sent == 0 {
                    node.ping_sent = now;
                }
                self.act(Action::Connect { link, ip, port });
            }
        }
    }

    fn new_link(&mut self, node: Option<Key>, now: Millis) -> Link {
        let link = Link(self.next_link);
        self.next_link += 1;
        let (peer_ip, local_ip, buffer) = (String::new(), String::new(), Vec::new());
        let state =
            LinkState { node, is_inbound: false, created: now, heard: now, is_open: false, peer_ip, local_ip, buffer };
        self.links.insert(link, state);
        link
    }

    /// Ends a connection of our own accord.
    pub(super) fn close(&mut self, link: Link) {
        if self.drop_link(link).is_some() {
            self.act(Action::Close { link });
        }
    }

    /// Ends connections with a node: our own, that of its own, or both.
    ///
    /// # Errors
    /// There is no such node.
    pub fn kill_links(&mut self, id: &[u8], ours: bool, its: bool, now: Millis) -> Result<(), Error> {
        let key = self.find_known(id, "ERR Unknown node")?;
        let node = self.nodes.at(key);
        let wanted = [node.link.filter(|_| ours), node.inbound.filter(|_| its)];
        wanted.into_iter().flatten().for_each(|link| self.close(link));
        self.settle(now);
        Ok(())
    }

    fn drop_link(&mut self, link: Link) -> Option<LinkState> {
        let state = self.links.remove(&link)?;
        if let Some(key) = state.node {
            let node = self.nodes.at_mut(key);
            let place = if state.is_inbound { &mut node.inbound } else { &mut node.link };
            if *place == Some(link) {
                *place = None;
            }
        }
        Some(state)
    }

    /// Notes the node that made an inbound link. Closes an earlier inbound link of that node.
    pub(super) fn identify(&mut self, link: Link, key: Key) {
        let Some(state) = self.links.get_mut(&link).filter(|state| state.is_inbound && state.node != Some(key)) else {
            return;
        };
        let before = state.node.replace(key);
        if let Some(before) = before.map(|key| self.nodes.at_mut(key)) {
            before.inbound = before.inbound.filter(|other| *other != link);
        }
        if let Some(old) = self.nodes.at_mut(key).inbound.replace(link) {
            self.close(old);
            self.nodes.at_mut(key).inbound = Some(link);
        }
    }

    /// Sends a packet.
    pub(super) fn send(&mut self, link: Link, kind: Kind, bytes: Bytes) {
        if self.links.get(&link).is_some_and(|state| state.is_open) {
            self.counters.sent[kind as usize] += 1;
            self.act(Action::Send { link, bytes });
        }
    }

    /// Sends a packet to a node, on our connection to it.
    pub(super) fn send_to(&mut self, key: Key, kind: Kind, bytes: Bytes) {
        if let Some(link) = self.nodes.at(key).link {
            self.send(link, kind, bytes);
        }
    }

    /// Sends a packet to all who are members.
    pub(super) fn broadcast(&mut self, kind: Kind, bytes: &Bytes) {
        for key in self.nodes.keys() {
            let node = self.nodes.at(key);
            if !node.is_myself() && !node.is_handshake() {
                self.send_to(key, kind, bytes.clone());
            }
        }
    }
}

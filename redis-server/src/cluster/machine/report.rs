//! The replies of CLUSTER's subcommands.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::RangeInclusive;

use super::persist::FLAG_NAMES;
use super::{Flags, Key, Kind, Link, Machine, Millis, Node, NodeId};
use crate::cluster::{Endpoint, NOBODY, Routing, SLOTS};
use crate::protocol::error::Error;

/// For whom a node is described.
#[derive(Clone, Copy, Debug)]
pub(super) enum Audience {
    /// A client, with or without TLS.
    Client { has_tls: bool },
    /// The file, with or without what Redis 7.2 adds.
    File { names_shards: bool },
}

/// A connection, for CLUSTER LINKS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkInfo {
    /// Which one.
    pub link: Link,
    /// Whether it was made from here.
    pub is_outbound: bool,
    /// The other node.
    pub node: NodeId,
    /// When it was made.
    pub created: Millis,
}

/// A primary and its replicas, for CLUSTER SHARDS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardInfo {
    /// Its slots.
    pub slots: Vec<RangeInclusive<u16>>,
    /// The primary first.
    pub nodes: Vec<ShardNode>,
}

/// One of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardNode {
    /// Its name.
    pub id: NodeId,
    /// Its address.
    pub ip: String,
    /// Its port without TLS, or 0.
    pub port: u16,
    /// Its port with TLS, or 0.
    pub tls_port: u16,
    /// Its host's name, or nothing.
    pub hostname: String,
    /// Whether it follows another one.
    pub is_replica: bool,
    /// Where its stream of changes is.
    pub offset: u64,
    /// `online`, `loading` or `fail`.
    pub health: &'static str,
}

impl Machine {
    /// This node's name.
    pub fn my_id(&self) -> NodeId {
        self.nodes.myself().id
    }

    /// Its shard's.
    pub fn my_shard_id(&self) -> NodeId {
        self.nodes.myself().shard
    }

    /// How many nodes there are, with those that have only said hello.
    pub fn known_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// CLUSTER NODES, for a client with or without TLS.
    pub fn nodes_text(&self, has_tls: bool) -> String {
        let mut text = String::new();
        for (key, node) in self.nodes.iter() {
            self.write_node(&mut text, key, node, Audience::Client { has_tls });
        }
        text
    }

    /// CLUSTER REPLICAS: a line for each.
    ///
    /// # Errors
    /// As the genuine server's.
    pub fn replica_lines(&self, id: &[u8], has_tls: bool) -> Result<Vec<String>, Error> {
        let key = self.find_known(id, "ERR Unknown node")?;
        let node = self.nodes.at(key);
        if node.is_replica() {
            return Err(Error::Static("ERR The specified node is not a master"));
        }
        let line = |key: &Key| {
            let mut line = String::new();
            self.write_node(&mut line, *key, self.nodes.at(*key), Audience::Client { has_tls });
            line.truncate(line.trim_end().len());
            line
        };
        Ok(node.replicas.iter().map(line).collect())
    }

    /// Appends a node's line.
    pub(super) fn write_node(&self, text: &mut String, key: Key, node: &Node, audience: Audience) {
        let (main, other) = self.order_ports(node);
        let port = match audience {
            Audience::Client { has_tls: false } if self.settings.tls => other,
            _ => main,
        };
        let mut put = |arguments: std::fmt::Arguments<'_>| text.write_fmt(arguments).expect("a string takes all");
        put(format_args!("{} {}:{port}@{}", node.id, node.ip, node.bus_port));
        if !node.hostname.is_empty() {
            put(format_args!(",{}", node.hostname));
        }
        if let Audience::File { names_shards: true } = audience {
            let comma = if node.hostname.is_empty() { "," } else { "" };
            let nodename = if node.nodename.is_empty() { "" } else { ",nodename=" };
            put(format_args!("{comma}{nodename}{},shard-id={}", node.nodename, node.shard));
        }
        let mut separator = " ";
        for (_, name) in FLAG_NAMES.iter().filter(|(flag, _)| node.flags.any(*flag)) {
            put(format_args!("{separator}{name}"));
            separator = ",";
        }
        if separator == " " {
            put(format_args!(" noflags"));
        }
        let primary = node.primary.map(|primary| self.nodes.at(primary));
        match primary {
            Some(primary) => put(format_args!(" {}", primary.id)),
            None => put(format_args!(" -")),
        }
        let epoch = primary.unwrap_or(node).config_epoch;
        let is_connected = node.is_myself() || self.is_connected(key);
        let state = if is_connected { "connected" } else { "disconnected" };
        put(format_args!(" {} {} {epoch} {state}", node.ping_sent, node.pong_received));
        for range in node.slots.ranges() {
            match range.start() == range.end() {
                true => put(format_args!(" {}", range.start())),
                false => put(format_args!(" {}-{}", range.start(), range.end())),
            }
        }
        if node.is_myself() {
            for (slot, to) in &self.migrating {
                put(format_args!(" [{slot}->-{}]", self.nodes.at(*to).id));
            }
            for (slot, from) in &self.importing {
                put(format_args!(" [{slot}-<-{}]", self.nodes.at(*from).id));
            }
        }
        put(format_args!("\n"));
    }

    fn is_connected(&self, key: Key) -> bool {
        self.nodes.at(key).link.and_then(|link| self.links.get(&link)).is_some_and(|state| state.is_open)
    }

    /// CLUSTER INFO.
    pub fn info_text(&self) -> String {
        let (mut suspected, mut failed, mut size) = (0, 0, 0);
        for (_, node) in self.nodes.iter() {
            if node.has_failed() {
                failed += node.slots.len();
            } else if node.flags.any(Flags::MAYBE_FAILED) {
                suspected += node.slots.len();
            }
            size += usize::from(node.has_vote());
        }
        let assigned = self.nodes.assigned();
        let me = self.nodes.myself();
        let my_epoch = me.primary.map_or(me.config_epoch, |primary| self.nodes.at(primary).config_epoch);
        let mut text = String::new();
        let mut line = |name: &str, value: &dyn std::fmt::Display| {
            write!(text, "{name}:{value}\r\n").expect("a string takes all");
        };
        line("cluster_state", &if self.health.is_ok { "ok" } else { "fail" });
        line("cluster_slots_assigned", &assigned);
        line("cluster_slots_ok", &(assigned - suspected - failed));
        line("cluster_slots_pfail", &suspected);
        line("cluster_slots_fail", &failed);
        line("cluster_known_nodes", &self.nodes.len());
        line("cluster_size", &size);
        line("cluster_current_epoch", &self.current_epoch);
        line("cluster_my_epoch", &my_epoch);
        for (counts, way) in [(self.counters.sent, "sent"), (self.counters.received, "received")] {
            for (kind, count) in Kind::ALL.iter().zip(counts).filter(|(_, count)| *count > 0) {
                line(&format!("cluster_stats_messages_{}_{way}", kind.name()), &count);
            }
            line(&format!("cluster_stats_messages_{way}"), &counts.iter().sum::<u64>());
        }
        line("total_cluster_links_buffer_limit_exceeded", &self.counters.overflowed_links);
        text
    }

    /// CLUSTER LINKS: connections whose other end is known.
    pub fn links(&self) -> Vec<LinkInfo> {
        let known = self.links.iter().filter_map(|(link, state)| Some((link, state, state.node?)));
        known
            .map(|(link, state, node)| LinkInfo {
                link: *link,
                is_outbound: !state.is_inbound,
                node: self.nodes.at(node).id,
                created: state.created,
            })
            .collect()
    }

    /// CLUSTER SHARDS.
    pub fn shards(&self) -> Vec<ShardInfo> {
        let primaries = self.nodes.iter().filter(|(_, node)| !node.is_handshake() && node.primary.is_none());
        primaries
            .map(|(key, node)| {
                let nodes = std::iter::once(&key).chain(&node.replicas).map(|key| self.shard_node(*key)).collect();
                ShardInfo { slots: node.slots.ranges().collect(), nodes }
            })
            .collect()
    }

    fn shard_node(&self, key: Key) -> ShardNode {
        let node = self.nodes.at(key);
        let offset = self.offset_of(node);
        let health = if node.has_failed() {
            "fail"
        } else if node.is_replica() && offset == 0 || node.is_myself() && self.facts.is_loading {
            "loading"
        } else {
            "online"
        };
        ShardNode {
            id: node.id,
            ip: node.ip.clone(),
            port: node.port,
            tls_port: node.tls_port,
            hostname: node.hostname.clone(),
            is_replica: node.is_replica(),
            offset,
            health,
        }
    }

    /// How far a node is in its stream of changes.
    fn offset_of(&self, node: &Node) -> u64 {
        if node.is_myself() { self.facts.offset } else { node.offset }
    }

    /// The current routing, as clients see it.
    pub(super) fn view(&self) -> Routing {
        let mut places = vec![NOBODY; self.nodes.places()];
        let members: Vec<(Key, &Node)> = self.nodes.iter().filter(|(_, node)| !node.is_handshake()).collect();
        for (at, (key, _)) in members.iter().enumerate() {
            places[key.index()] = at as u16;
        }
        let place = |key: Option<Key>| key.map_or(NOBODY, |key| places[key.index()]);
        let open = |slots: &BTreeMap<u16, Key>| slots.iter().map(|(slot, key)| (*slot, place(Some(*key)))).collect();
        let nodes = members.iter().map(|(_, node)| Endpoint {
            id: node.id,
            ip: node.ip.clone(),
            port: node.port,
            tls_port: node.tls_port,
            hostname: node.hostname.clone(),
            primary: place(node.primary),
            is_replica: node.is_replica(),
            has_failed: node.has_failed(),
            is_available: !node.has_failed() && self.offset_of(node) > 0,
        });
        let me = self.nodes.me();
        let mut owners: Box<[u16; SLOTS]> = vec![NOBODY; SLOTS].try_into().expect("its length is that of the array");
        for (key, node) in &members {
            for range in node.slots.ranges() {
                owners[usize::from(*range.start())..=usize::from(*range.end())].fill(place(Some(*key)));
            }
        }
        let (held, held_until) = self.moves.held();
        Routing {
            is_ok: self.health.is_ok,
            me: place(Some(me)),
            primary: place(self.nodes.myself().primary),
            nodes: nodes.collect(),
            owners,
            migrating: open(&self.migrating),
            importing: open(&self.importing),
            held,
            held_until,
        }
    }
}

//! The file of the cluster's state, `nodes.conf`: lines as CLUSTER NODES has them, and the epochs.
//!
//! Redis 7.2 adds the name for people and the shard behind the host's name, which 7.0 would take for a part of it. A file that
//! was found in one form is written in that form again; a new one has 7.0's, and this node's shard among the variables, where
//! both pass by what they do not know.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::Machine;
use super::moves::{self, LetGo, Moves};
use super::report::Audience;
use super::state::{Election, Health, Manual};
use crate::cluster::machine::state::{Agenda, Counters, Saving};
use crate::cluster::nodes::{Node, Nodes};
use crate::cluster::packet::Flags;
use crate::cluster::random::Random;
use crate::cluster::{Action, Endpoint, Facts, Millis, NodeId, Routing, Settings, SlotSet, parse_slot};

/// A file that is no node's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedError {
    /// The line, from 1.
    pub line: usize,
    /// The fault in it.
    pub reason: &'static str,
}

impl fmt::Display for SavedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for SavedError {}

impl Machine {
    /// A node as its file says; or a new one if there is none, or an empty one. `seed` makes its name, and must not be
    /// used twice.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn new(settings: Settings, seed: [u64; 4], saved: Option<&str>, now: Millis) -> Result<Self, SavedError> {
        let mut random = Random::new(seed);
        let mut new_id = || NodeId::from_random(|| random.next());
        let (id, shard) = (new_id(), new_id());
        let me = Node::new(id, shard, Flags::MYSELF.and(Flags::PRIMARY), now);
        let endpoint = Endpoint::of_new(id);
        let mut machine = Self {
            settings,
            random,
            facts: Facts::default(),
            nodes: Nodes::new(me),
            links: BTreeMap::new(),
            next_link: 0,
            current_epoch: 0,
            last_vote_epoch: 0,
            migrating: BTreeMap::new(),
            importing: BTreeMap::new(),
            health: Health::new(now),
            election: Election::default(),
            manual: Manual::default(),
            pauses: 0,
            moves: Moves::default(),
            banned: BTreeMap::new(),
            periods: 0,
            next_period: now,
            told: 0,
            counters: Counters::default(),
            dropped: None,
            agenda: Agenda::default(),
            doomed: SlotSet::EMPTY,
            served: SlotSet::EMPTY,
            saving: Saving::default(),
            routing: Arc::new(Routing::alone(endpoint)),
            outbox: Vec::new(),
            actions: VecDeque::new(),
        };
        match saved.filter(|text| !text.trim().is_empty()) {
            Some(text) => machine.restore(text, now)?,
            None => machine.saving.ask_now(),
        }
        machine.introduce_myself();
        machine.agenda.route = true;
        if let Some(primary) = machine.nodes.myself().primary {
            machine.follow_address(primary);
        }
        machine.settle(now);
        Ok(machine)
    }

    /// Takes what a file says.
    fn restore(&mut self, text: &str, now: Millis) -> Result<(), SavedError> {
        let mut lines: Vec<SavedLine<'_>> = parse(text)?;
        let is_mine = |line: &&SavedLine<'_>| matches!(line, SavedLine::Node(node) if node.flags.any(Flags::MYSELF));
        if lines.iter().filter(is_mine).count() != 1 {
            return Err(SavedError { line: 1, reason: "not exactly one node is this one" });
        }
        let mut saved = Vec::new();
        for line in &lines {
            match line {
                SavedLine::Node(node) => saved.push((self.restore_node(node, now)?, node)),
                SavedLine::Vars { current_epoch, last_vote_epoch, shard, .. } => {
                    (self.current_epoch, self.last_vote_epoch) = (*current_epoch, *last_vote_epoch);
                    if let Some(shard) = shard {
                        self.nodes.myself_mut().shard = *shard;
                    }
                }
            }
        }
        let find = |machine: &Self, id: NodeId, at: usize| {
            machine.nodes.find(id).ok_or(SavedError { line: at, reason: "a node that is named has no line" })
        };
        for (key, node) in &saved {
            for slot in node.slots.iter().cloned().flatten() {
                if self.nodes.owner(slot).is_some() {
                    return Err(SavedError { line: node.at, reason: "a slot has two owners" });
                }
                self.nodes.assign(slot, *key);
            }
            if let Some(primary) = node.primary {
                let shard = self.nodes.at(*key).shard;
                let primary = find(self, primary, node.at)?;
                if primary == *key {
                    return Err(SavedError { line: node.at, reason: "a node follows itself" });
                }
                // Of this node alone it is known for certain which shard it is of.
                if *key == self.nodes.me() && !self.nodes.at(primary).says_shard {
                    self.nodes.at_mut(primary).shard = shard;
                }
                self.nodes.attach(*key, primary);
            }
            for (slot, other, is_import) in &node.open {
                let other = find(self, *other, node.at)?;
                let open = if *is_import { &mut self.importing } else { &mut self.migrating };
                open.insert(*slot, other);
            }
        }
        for line in &mut lines {
            if let SavedLine::Vars { let_go, .. } = line {
                let_go.drain(..).for_each(|let_go| self.restore_let_go(let_go, now));
            }
        }
        self.current_epoch = self.highest_epoch();
        Ok(())
    }

    fn restore_node(&mut self, saved: &SavedNode<'_>, now: Millis) -> Result<super::Key, SavedError> {
        let error = |reason| SavedError { line: saved.at, reason };
        let is_me = saved.flags.any(Flags::MYSELF);
        let shard = saved.shard.unwrap_or_else(|| NodeId::from_random(|| self.random.next()));
        let mut node = Node::new(saved.id, shard, saved.flags, now);
        node.says_shard = saved.shard.is_some();
        self.saving.names_shards |= saved.shard.is_some();
        saved.ip.clone_into(&mut node.ip);
        saved.hostname.clone_into(&mut node.hostname);
        saved.nodename.clone_into(&mut node.nodename);
        let (port, other_port) = (saved.port, saved.other_port);
        self.set_ports(&mut node, port, other_port, saved.bus_port);
        node.config_epoch = saved.config_epoch;
        if node.has_failed() {
            node.failed_at = now;
        }
        if is_me {
            let me = self.nodes.me();
            if self.nodes.find(saved.id).is_some_and(|key| key != me) {
                return Err(error("a node has two lines"));
            }
            self.nodes.rename(me, saved.id);
            *self.nodes.myself_mut() = node;
            return Ok(me);
        }
        self.nodes.add(node).ok_or_else(|| error("a node has two lines"))
    }

    /// Has the file written if something was asked for.
    pub(super) fn write_if_due(&mut self) {
        if self.saving.is_due {
            self.write(false);
        }
    }

    /// Has the file written ahead of all that is still to leave.
    pub(super) fn write(&mut self, sync: bool) {
        (self.saving.is_due, self.saving.is_urgent) = (false, false);
        let text = self.saved_text();
        self.actions.push_back(Action::Save { text, sync });
    }

    /// The file as it is now.
    pub fn saved_text(&self) -> String {
        let mut text = String::new();
        for (key, node) in self.nodes.iter().filter(|(_, node)| !node.is_handshake()) {
            let audience = Audience::File { names_shards: self.saving.names_shards };
            self.write_node(&mut text, key, node, audience);
        }
        let shard = self.nodes.myself().shard;
        text.push_str(&format!("vars currentEpoch {} lastVoteEpoch {}", self.current_epoch, self.last_vote_epoch));
        if !self.saving.names_shards {
            text.push_str(&format!(" shardId {shard}"));
        }
        self.write_let_go(&mut text);
        text.push('\n');
        text
    }
}

/// A line of the file.
#[derive(Debug)]
enum SavedLine<'a> {
    Node(SavedNode<'a>),
    Vars { current_epoch: u64, last_vote_epoch: u64, shard: Option<NodeId>, let_go: Vec<LetGo> },
}

/// The words of a node's line.
#[derive(Debug)]
struct SavedNode<'a> {
    at: usize,
    id: NodeId,
    ip: &'a str,
    port: u16,
    other_port: u16,
    bus_port: u16,
    hostname: &'a str,
    nodename: &'a str,
    shard: Option<NodeId>,
    flags: Flags,
    primary: Option<NodeId>,
    config_epoch: u64,
    slots: Vec<RangeInclusive<u16>>,
    /// Slots on their way, the other node, and whether they come here.
    open: Vec<(u16, NodeId, bool)>,
}

fn parse(text: &str) -> Result<Vec<SavedLine<'_>>, SavedError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let parsed = match *words {
                ["vars", ref vars @ ..] => parse_vars(vars),
                [id, address, flags, primary, _ping, _pong, epoch, _link, ref slots @ ..] => {
                    parse_node(at + 1, [id, address, flags, primary, epoch], slots)
                }
                _ => Err("neither a node nor variables"),
            };
            parsed.map_err(|reason| SavedError { line: at + 1, reason })
        })
        .collect()
}

fn parse_vars<'a>(vars: &[&str]) -> Result<SavedLine<'a>, &'static str> {
    let (pairs, []) = vars.as_chunks::<2>() else { return Err("a variable has no value") };
    let (mut current_epoch, mut last_vote_epoch, mut shard, mut let_go) = (0, 0, None, Vec::new());
    for [name, value] in pairs {
        let number = || value.parse::<u64>().map_err(|_| "an epoch is no number");
        match *name {
            "currentEpoch" => current_epoch = number()?,
            "lastVoteEpoch" => last_vote_epoch = number()?,
            "shardId" => shard = Some(NodeId::parse(value.as_bytes()).ok_or("a shard has no name")?),
            moves::LET_GO => let_go.push(LetGo::parse(value).ok_or("slots that are let go have no target")?),
            _ => {}
        }
    }
    Ok(SavedLine::Vars { current_epoch, last_vote_epoch, shard, let_go })
}

fn parse_node<'a>(
    at: usize,
    [id, address, flags, primary, epoch]: [&'a str; 5],
    slots: &[&str],
) -> Result<SavedLine<'a>, &'static str> {
    let name = |word: &str| NodeId::parse(word.as_bytes()).ok_or("a node's name is none");
    let mut node = SavedNode {
        at,
        id: name(id)?,
        flags: parse_flags(flags)?,
        primary: if primary == "-" { None } else { Some(name(primary)?) },
        config_epoch: epoch.parse().map_err(|_| "an epoch is no number")?,
        ..parse_address(at, name(id)?, address)?
    };
    if node.primary.is_some() && !node.flags.any(Flags::REPLICA) {
        return Err("a primary follows a node");
    }
    for word in slots {
        let slot = |word: &str| parse_slot(word.as_bytes()).map_err(|_| "a slot is none");
        let open = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
        if let Some(open) = open {
            let parts = open.split_once("->-").map(|parts| (parts, false));
            let parts = parts.or_else(|| open.split_once("-<-").map(|parts| (parts, true)));
            let ((number, id), is_import) = parts.ok_or("a slot is on no way")?;
            node.open.push((slot(number)?, name(id)?, is_import));
            continue;
        }
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        node.slots.push(slot(first)?..=slot(last)?);
    }
    Ok(SavedLine::Node(node))
}

/// `ip:port@bus[,host[,name=value]…]`
fn parse_address(at: usize, id: NodeId, address: &str) -> Result<SavedNode<'_>, &'static str> {
    let mut parts = address.split(',');
    let place = parts.next().unwrap_or_default();
    let hostname = parts.next().unwrap_or_default();
    let (ip, ports) = place.rsplit_once(':').ok_or("an address has no port")?;
    let number = |word: &str| word.parse::<u16>().map_err(|_| "a port is no number");
    let (port, bus_port) = match ports.split_once('@') {
        Some((port, bus_port)) => (number(port)?, number(bus_port)?),
        None => (number(ports)?, number(ports)?.wrapping_add(10_000)),
    };
    let (mut nodename, mut shard, mut other_port) = ("", None, 0);
    for part in parts {
        match part.split_once('=').ok_or("a field has no value")? {
            ("shard-id", id) => shard = Some(NodeId::parse(id.as_bytes()).ok_or("a shard has no name")?),
            ("nodename", name) => nodename = name,
            ("tcp-port" | "tls-port", other) => {
                other_port = Some(number(other)?).filter(|other| *other != port).unwrap_or(other_port);
            }
            _ => {}
        }
    }
    let (flags, slots, open) = (Flags::default(), Vec::new(), Vec::new());
    let (primary, config_epoch) = (None, 0);
    Ok(SavedNode {
        at,
        id,
        ip,
        port,
        other_port,
        bus_port,
        hostname,
        nodename,
        shard,
        flags,
        primary,
        config_epoch,
        slots,
        open,
    })
}

/// Names of flags in the file and in CLUSTER NODES, in the order in which they stand there.
pub(super) const FLAG_NAMES: [(Flags, &str); 8] = [
    (Flags::MYSELF, "myself"),
    (Flags::PRIMARY, "master"),
    (Flags::REPLICA, "slave"),
    (Flags::MAYBE_FAILED, "fail?"),
    (Flags::FAILED, "fail"),
    (Flags::HANDSHAKE, "handshake"),
    (Flags::NO_ADDRESS, "noaddr"),
    (Flags::NO_FAILOVER, "nofailover"),
];

fn parse_flags(text: &str) -> Result<Flags, &'static str> {
    let mut flags = Flags::default();
    for name in text.split(',').filter(|name| *name != "noflags") {
        let (flag, _) = FLAG_NAMES.iter().find(|(_, known)| *known == name).ok_or("an unknown flag")?;
        flags.set(*flag);
    }
    // A node that has said no more than its name is a primary until it says otherwise.
    if !flags.any(Flags::REPLICA) {
        flags.set(Flags::PRIMARY);
    }
    Ok(flags.without(Flags::HANDSHAKE))
}

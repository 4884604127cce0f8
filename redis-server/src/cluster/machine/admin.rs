//! CLUSTER's subcommands that change something. Their errors have the genuine texts.

use std::net::IpAddr;

use super::{Action, Flags, Key, Kind, Level, Machine, Millis, Node, NodeId};
use crate::cluster::SlotSet;
use crate::protocol::error::{Error, echo};

/// A node that was forgotten does not come back through gossip for so long.
const BAN: Millis = 60_000;

/// How many nodes may be forgotten at a time.
const MAX_BANNED: usize = 16_384;

/// Bytes of a client's word that an error repeats.
const MAX_ECHO: usize = 128;

/// A replica's way to its primary's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failover {
    /// The primary is asked to stand aside.
    Ask,
    /// The primary is not asked; the others are.
    Force,
    /// The node asks neither the primary nor the other nodes.
    Takeover,
}

/// The new state of a slot in CLUSTER SETSLOT. Nodes are named by clients' words.
#[derive(Clone, Copy, Debug)]
pub enum SetSlot<'a> {
    /// It is on its way to this node.
    Migrating(&'a [u8]),
    /// It is on its way from this node.
    Importing(&'a [u8]),
    /// It is on no way.
    Stable,
    /// It belongs to this node.
    Node(&'a [u8]),
}

impl Machine {
    /// CLUSTER MEET, with ports as clients say them.
    ///
    /// # Errors
    /// It is no address.
    pub fn meet(&mut self, ip: &[u8], port: i64, bus_port: i64, now: Millis) -> Result<(), Error> {
        let text = std::str::from_utf8(ip).ok().and_then(|text| text.parse::<IpAddr>().ok());
        let number = |port: i64| u16::try_from(port).ok().filter(|port| *port > 0);
        let (Some(address), Some(client_port), Some(bus_port)) = (text, number(port), number(bus_port)) else {
            let ip = echo(ip, MAX_ECHO);
            return Err(Error::Message(format!("ERR Invalid node address specified: {ip}:{port}")));
        };
        let ip = address.to_string();
        let is_same = |node: &Node| node.is_handshake() && node.ip == ip && node.bus_port == bus_port;
        if self.nodes.iter().any(|(_, node)| is_same(node)) {
            return Ok(());
        }
        let (id, shard) = (self.new_id(), self.new_id());
        let mut node = Node::new(id, shard, Flags::HANDSHAKE.and(Flags::MEET), now);
        node.ip = ip;
        self.set_ports(&mut node, client_port, 0, bus_port);
        self.nodes.add(node);
        self.next_period = now;
        Ok(())
    }

    /// CLUSTER ADDSLOTS and ADDSLOTSRANGE.
    ///
    /// # Errors
    /// A slot has an owner.
    pub fn add_slots(&mut self, slots: &SlotSet, now: Millis) -> Result<(), Error> {
        if let Some(slot) = slots.iter().find(|slot| self.nodes.owner(*slot).is_some()) {
            return Err(Error::Message(format!("ERR Slot {slot} is already busy")));
        }
        let me = self.nodes.me();
        for slot in slots.iter() {
            self.importing.remove(&slot);
            self.nodes.assign(slot, me);
        }
        self.saving.ask_now();
        self.done(now)
    }

    /// CLUSTER DELSLOTS and DELSLOTSRANGE.
    ///
    /// # Errors
    /// A slot has no owner.
    pub fn del_slots(&mut self, slots: &SlotSet, now: Millis) -> Result<(), Error> {
        if let Some(slot) = slots.iter().find(|slot| self.nodes.owner(*slot).is_none()) {
            return Err(Error::Message(format!("ERR Slot {slot} is already unassigned")));
        }
        for slot in slots.iter() {
            self.nodes.unassign(slot);
        }
        self.done(now)
    }

    /// CLUSTER FLUSHSLOTS, of a node that has keys or none.
    ///
    /// # Errors
    /// There are keys.
    pub fn flush_slots(&mut self, has_keys: bool, now: Millis) -> Result<(), Error> {
        if has_keys {
            return Err(Error::Static("ERR DB must be empty to perform CLUSTER FLUSHSLOTS."));
        }
        for slot in self.nodes.myself().slots.clone().iter() {
            self.nodes.unassign(slot);
        }
        self.done(now)
    }

    /// CLUSTER SETSLOT, of a slot with so many keys here.
    ///
    /// # Errors
    /// As the genuine server's.
    pub fn set_slot(&mut self, slot: u16, what: SetSlot<'_>, keys: usize, now: Millis) -> Result<(), Error> {
        if self.nodes.myself().is_replica() {
            return Err(Error::Static("ERR Please use SETSLOT only with masters."));
        }
        if self.is_in_move(slot) {
            return Err(Error::Message(format!("ERR Slot {slot} is on its way by CLUSTER MIGRATESLOTS")));
        }
        let is_mine = self.nodes.owner(slot) == Some(self.nodes.me());
        match what {
            SetSlot::Migrating(_) if !is_mine => {
                return Err(Error::Message(format!("ERR I'm not the owner of hash slot {slot}")));
            }
            SetSlot::Importing(_) if is_mine => {
                return Err(Error::Message(format!("ERR I'm already the owner of hash slot {slot}")));
            }
            SetSlot::Migrating(id) => {
                let key = self.find_primary(id, "ERR I don't know about node")?;
                self.migrating.insert(slot, key);
            }
            SetSlot::Importing(id) => {
                let key = self.find_primary(id, "ERR I don't know about node")?;
                self.importing.insert(slot, key);
            }
            SetSlot::Stable => {
                self.migrating.remove(&slot);
                self.importing.remove(&slot);
            }
            SetSlot::Node(id) => {
                let key = self.find_primary(id, "ERR Unknown node")?;
                self.give_slot(slot, key, keys, now)?;
            }
        }
        self.done(now)
    }

    fn give_slot(&mut self, slot: u16, key: Key, keys: usize, now: Millis) -> Result<(), Error> {
        let me = self.nodes.me();
        let was_mine = self.nodes.owner(slot) == Some(me);
        if was_mine && key != me && keys > 0 {
            return Err(Error::Message(format!(
                "ERR Can't assign hashslot {slot} to a different node while I still hold keys for this hash slot."
            )));
        }
        if key == me && self.importing.contains_key(&slot) {
            if self.moves.are_letting_go() {
                return Err(Error::Static("ERR Can't take a slot over while others of this node are let go"));
            }
            // The epoch in which it would be this node's may be that of an election that this node cannot hear of.
            if self.is_cut_off() {
                return Err(Error::Static("ERR Can't take a slot over while most masters are out of reach"));
            }
        }
        if keys == 0 {
            self.migrating.remove(&slot);
        }
        self.nodes.assign(slot, key);
        if key == me {
            // Its former owner may forget it as soon as this is answered.
            self.saving.ask_now();
        }
        let is_left_empty = was_mine && key != me && self.nodes.myself().slots.len() == 0;
        if is_left_empty && self.settings.allow_replica_migration {
            let id = self.nodes.at(key).id;
            let line = format!("Configuration change detected. Reconfiguring myself as a replica of {id}");
            self.log(Level::Warning, line);
            self.follow(key);
        }
        if key == me && self.importing.remove(&slot).is_some() {
            // No vote took place. The new epoch makes the other nodes accept the claim, once the former owner has released the slot.
            self.bump_epoch_alone();
            self.changed();
            self.tell_all(false, now);
        }
        Ok(())
    }

    /// CLUSTER FORGET.
    ///
    /// # Errors
    /// As the genuine server's.
    pub fn forget_node(&mut self, id: &[u8], now: Millis) -> Result<(), Error> {
        let parsed = NodeId::parse(id);
        let Ok(key) = self.find_known(id, "ERR Unknown node") else {
            // Another node's operator may have been faster.
            let is_banned = parsed.is_some_and(|id| self.banned.get(&id).is_some_and(|until| *until > now));
            return if is_banned { Ok(()) } else { Err(unknown("ERR Unknown node", id)) };
        };
        if key == self.nodes.me() {
            return Err(Error::Static("ERR I tried hard but I can't forget myself..."));
        }
        if self.nodes.myself().primary == Some(key) {
            return Err(Error::Static("ERR Can't forget my master!"));
        }
        self.ban(self.nodes.at(key).id, now, BAN);
        self.forget(key);
        self.done(now)
    }

    pub(super) fn ban(&mut self, id: NodeId, now: Millis, ttl: Millis) {
        self.banned.retain(|_, until| *until > now);
        if self.banned.len() < MAX_BANNED {
            self.banned.insert(id, now.saturating_add(ttl));
        }
    }

    /// CLUSTER REPLICATE, of a node that has keys or none.
    ///
    /// # Errors
    /// As the genuine server's.
    pub fn replicate(&mut self, id: &[u8], has_keys: bool, now: Millis) -> Result<(), Error> {
        let key = self.find_known(id, "ERR Unknown node")?;
        let me = self.nodes.myself();
        if key == self.nodes.me() {
            return Err(Error::Static("ERR Can't replicate myself"));
        }
        if self.nodes.at(key).is_replica() {
            return Err(Error::Static("ERR I can only replicate a master, not a replica."));
        }
        if me.is_primary() && (me.slots.len() > 0 || has_keys) {
            return Err(Error::Static("ERR To set a master the node must be empty and without assigned slots."));
        }
        self.follow(key);
        self.done(now)
    }

    /// CLUSTER FAILOVER.
    ///
    /// # Errors
    /// As the genuine server's.
    pub fn failover(&mut self, how: Failover, now: Millis) -> Result<(), Error> {
        if self.nodes.myself().is_primary() {
            return Err(Error::Static("ERR You should send CLUSTER FAILOVER to a replica"));
        }
        let Some(primary) = self.nodes.myself().primary else {
            return Err(Error::Static("ERR I'm a replica but my master is unknown to me"));
        };
        let node = self.nodes.at(primary);
        if (node.has_failed() || node.link.is_none()) && how == Failover::Ask {
            return Err(Error::Static("ERR Master is down or failed, please use CLUSTER FAILOVER FORCE"));
        }
        self.begin_manual(how != Failover::Ask, now);
        match how {
            Failover::Ask => {
                self.log(Level::Notice, "Manual failover user request accepted.".to_owned());
                let request = self.plain(Kind::ManualFailover);
                self.send_to(primary, Kind::ManualFailover, request);
            }
            Failover::Force => {
                self.log(Level::Notice, "Forced failover user request accepted.".to_owned());
                self.agenda.election = true;
            }
            Failover::Takeover => {
                self.log(Level::Notice, "Taking over the master (user request).".to_owned());
                self.bump_epoch_alone();
                self.replace_primary(now);
            }
        }
        self.settle(now);
        Ok(())
    }

    /// CLUSTER RESET, of a node that has keys or none.
    ///
    /// # Errors
    /// A primary has keys.
    pub fn reset(&mut self, is_hard: bool, has_keys: bool, now: Millis) -> Result<(), Error> {
        if self.nodes.myself().is_primary() && has_keys {
            return Err(Error::Static("ERR CLUSTER RESET can't be called with master nodes containing keys"));
        }
        let me = self.nodes.me();
        if self.nodes.promote(me) {
            self.agenda.promote = true;
            self.act(Action::DeleteAll);
        }
        self.migrating.clear();
        self.importing.clear();
        self.end_manual();
        self.end_election();
        for key in self.nodes.keys() {
            if key != me {
                self.forget(key);
            }
        }
        for slot in self.nodes.myself().slots.clone().iter() {
            self.nodes.unassign(slot);
        }
        self.nodes.myself_mut().shard = NodeId::from_random(|| self.random.next());
        if is_hard {
            (self.current_epoch, self.last_vote_epoch) = (0, 0);
            let id = self.new_id();
            self.nodes.rename(me, id);
            self.nodes.myself_mut().config_epoch = 0;
            self.log(Level::Notice, format!("Node hard reset, now I'm {id}"));
        }
        self.saving.ask_now();
        self.done(now)
    }

    /// CLUSTER SET-CONFIG-EPOCH.
    ///
    /// # Errors
    /// As the genuine server's.
    pub fn set_config_epoch(&mut self, epoch: i64, now: Millis) -> Result<(), Error> {
        let Ok(new) = u64::try_from(epoch) else {
            return Err(Error::Message(format!("ERR Invalid config epoch specified: {epoch}")));
        };
        if self.nodes.len() > 1 {
            return Err(Error::Static(
                "ERR The user can assign a config epoch only when the node does not know any other node.",
            ));
        }
        if self.nodes.myself().config_epoch != 0 {
            return Err(Error::Static("ERR Node config epoch is already non-zero"));
        }
        self.nodes.myself_mut().config_epoch = new;
        self.current_epoch = self.current_epoch.max(new);
        self.log(Level::Notice, format!("configEpoch set to {new} via CLUSTER SET-CONFIG-EPOCH"));
        self.saving.ask_now();
        self.done(now)
    }

    /// CLUSTER BUMPEPOCH; the reply.
    pub fn bump_epoch(&mut self, now: Millis) -> String {
        let may_rise = !self.moves.are_letting_go();
        let word = if may_rise && self.bump_epoch_alone() { "BUMPED" } else { "STILL" };
        self.settle(now);
        format!("{word} {}", self.nodes.myself().config_epoch)
    }

    /// CLUSTER SAVECONFIG: the next action saves.
    pub fn save_config(&mut self, now: Millis) {
        self.saving.ask_now();
        self.settle(now);
    }

    /// CLUSTER COUNT-FAILURE-REPORTS.
    ///
    /// # Errors
    /// No such node.
    pub fn count_failure_reports(&mut self, id: &[u8], now: Millis) -> Result<usize, Error> {
        let key = self.find_known(id, "ERR Unknown node")?;
        Ok(self.count_reports(key, now))
    }

    /// All keys are loaded. Slots that have some and no owner are this node's; those of others are on their way here.
    pub fn data_loaded(&mut self, with_keys: &SlotSet, now: Millis) {
        if self.nodes.myself().is_replica() {
            return;
        }
        let me = self.nodes.me();
        for slot in with_keys.iter() {
            match self.nodes.owner(slot) {
                Some(owner) if owner == me || self.importing.contains_key(&slot) || self.is_in_move(slot) => continue,
                None => {
                    self.log(
                        Level::Notice,
                        format!("I have keys for unassigned slot {slot}. Taking responsibility for it."),
                    );
                    self.nodes.assign(slot, me);
                }
                Some(owner) => {
                    let line = format!(
                        "I have keys for slot {slot}, but the slot is assigned to another node. Setting it to importing state."
                    );
                    self.log(Level::Notice, line);
                    self.importing.insert(slot, owner);
                }
            }
            self.changed();
        }
        self.settle(now);
    }

    /// A change is complete.
    #[expect(clippy::unnecessary_wraps, reason = "the end of what may fail")]
    fn done(&mut self, now: Millis) -> Result<(), Error> {
        self.changed();
        self.settle(now);
        Ok(())
    }

    /// The node of a client's word.
    pub(super) fn find_known(&self, id: &[u8], complaint: &str) -> Result<Key, Error> {
        NodeId::parse(id).and_then(|id| self.nodes.find(id)).ok_or_else(|| unknown(complaint, id))
    }

    fn find_primary(&self, id: &[u8], complaint: &str) -> Result<Key, Error> {
        let key = self.find_known(id, complaint)?;
        match self.nodes.at(key).is_replica() {
            true => Err(Error::Static("ERR Target node is not a master")),
            false => Ok(key),
        }
    }
}

fn unknown(complaint: &str, id: &[u8]) -> Error {
    Error::Message(format!("{complaint} {}", echo(id, MAX_ECHO)))
}

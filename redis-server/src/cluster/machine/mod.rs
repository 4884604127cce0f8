//! A node of the cluster: bytes and the time go in, [`Action`]s come out.
//!
//! Every method that takes the time may make actions, which [`Machine::poll`] gives in the order in which they are to be done. A
//! change that must survive a crash is saved ahead of the packets that tell of it; so a node that has promised its vote cannot
//! promise it twice.
//!
//! - `links` connections, and packets out of their bytes
//! - `receive` handling of packets
//! - `ping` the contents of PING and PONG, and their receivers
//! - `failure` failure detection: nodes that do not answer, and nodes that have failed by the word of the majority
//! - `ownership` the owner of each slot, and its epoch
//! - `election` how a replica becomes a primary, and the votes for it
//! - `manual` how both change places because an operator says so
//! - `moves` how slots go to another node as a whole
//! - `adoption` how a replica goes to a primary that has none
//! - `health` whether the cluster serves its slots
//! - `admin` CLUSTER's subcommands
//! - `persist` the file of the cluster's state
//! - `report` the replies of CLUSTER's subcommands

mod admin;
mod adoption;
mod election;
mod failure;
mod health;
mod links;
mod manual;
mod moves;
mod ownership;
mod persist;
mod ping;
mod receive;
mod report;
mod state;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::nodes::{Key, Node};
use super::packet::{Flags, Kind};
use super::{Action, Facts, Level, Link, Millis, NodeId, Routing, Settings};

pub use admin::{Failover, SetSlot};
pub use persist::SavedError;
pub use report::{LinkInfo, ShardInfo, ShardNode};
pub use state::Machine;

/// How often a node looks after the others, in milliseconds.
const PERIOD: Millis = 100;

/// How often it looks while a manual failover is under way: clients wait for its end.
const HURRIED: Millis = 10;

impl Machine {
    /// Looks at what has not happened. To be called at [`deadline`](Self::deadline), or at any other time.
    pub fn tick(&mut self, now: Millis) {
        if now >= self.next_period {
            self.next_period = now + if self.manual.is_under_way() { HURRIED } else { PERIOD };
            self.look_after_links(now);
            self.ping_longest_silent_candidate(now);
            let orphans = self.look_after_nodes(now);
            if self.nodes.myself().is_replica() {
                self.leave_chain();
                self.adopt(orphans, now);
            }
            self.look_after_moves(now);
            self.agenda.health |= !self.health.is_ok;
            self.write_if_due();
            self.agenda.route |= std::mem::take(&mut self.agenda.show);
        }
        self.end_manual_if_late(now);
        self.agenda.manual |= self.manual.is_under_way();
        self.agenda.election = true;
        self.settle(now);
    }

    /// When [`tick`](Self::tick) is to be called.
    pub fn deadline(&self) -> Millis {
        self.election.due().map_or(self.next_period, |due| due.min(self.next_period))
    }

    /// The next action.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The current routing.
    pub fn routing(&self) -> Arc<Routing> {
        Arc::clone(&self.routing)
    }

    /// Takes the data owner's facts. To be called before [`tick`](Self::tick) and before subcommands.
    pub fn observe(&mut self, facts: Facts) {
        self.agenda.show |= (self.facts.offset == 0) != (facts.offset == 0);
        self.facts = facts;
    }

    /// The settings as they are.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Some setting has changed.
    pub fn set_settings(&mut self, settings: Settings, now: Millis) {
        self.settings = settings;
        self.introduce_myself();
        self.agenda.health = true;
        self.agenda.route = true;
        self.saving.ask();
        self.settle(now);
    }

    /// Packets of this type are not read from now on; none: all are.
    pub fn drop_packets(&mut self, kind: Option<Kind>) {
        self.dropped = kind;
    }

    /// Copies the announced properties of this node from the settings.
    fn introduce_myself(&mut self) {
        let settings = &self.settings;
        let me = self.nodes.myself_mut();
        if !settings.announce_ip.is_empty() {
            me.ip.clone_from(&settings.announce_ip);
        }
        (me.port, me.tls_port, me.bus_port) = (settings.port, settings.tls_port, settings.bus_port);
        me.hostname.clone_from(&settings.hostname);
        me.nodename.clone_from(&settings.nodename);
        match settings.replica_no_failover {
            true => me.flags.set(Flags::NO_FAILOVER),
            false => _ = me.flags.clear(Flags::NO_FAILOVER),
        }
    }

    /// Does what the changes of this call entail, and puts all in order.
    fn settle(&mut self, now: Millis) {
        let is_replica = self.nodes.myself().is_replica();
        if std::mem::take(&mut self.agenda.manual) && is_replica {
            self.go_on_with_manual();
            self.agenda.election = true;
        }
        if std::mem::take(&mut self.agenda.election) && is_replica {
            self.go_on_with_election(now);
        }
        if std::mem::take(&mut self.agenda.health) {
            self.judge_health(now);
        }
        if self.agenda.route {
            self.review_moves(now);
        }
        if self.saving.is_urgent() {
            self.write(true);
        }
        if std::mem::take(&mut self.agenda.promote) {
            self.actions.push_back(Action::Promote);
        }
        if std::mem::take(&mut self.agenda.route) {
            self.settle_losses();
            self.routing = Arc::new(self.view());
            self.actions.push_back(Action::Route(self.routing()));
        }
        self.actions.extend(self.outbox.drain(..));
    }

    fn act(&mut self, action: Action) {
        self.outbox.push(action);
    }

    fn log(&mut self, level: Level, line: String) {
        self.act(Action::Log(level, line));
    }

    /// This node if it is a primary, otherwise the primary that it follows.
    fn my_primary(&self) -> Option<Key> {
        self.nodes.primary_of(self.nodes.me())
    }

    fn is_my_shard(&self, key: Key) -> bool {
        self.nodes.primary_of(key).is_some_and(|primary| self.my_primary() == Some(primary))
    }

    /// Makes this node a replica.
    fn follow(&mut self, primary: Key) {
        let me = self.nodes.me();
        if self.nodes.myself().is_primary() {
            self.migrating.clear();
            self.importing.clear();
        }
        self.nodes.attach(me, primary);
        self.end_manual();
        self.end_election();
        self.follow_address(primary);
        self.changed();
    }

    /// Has the data follow a node where it is now.
    fn follow_address(&mut self, primary: Key) {
        let Node { ip, port, tls_port, .. } = self.nodes.at(primary);
        let action = Action::Follow { ip: ip.clone(), port: *port, tls_port: *tls_port };
        self.act(action);
    }

    /// Roles or slots have changed.
    fn changed(&mut self) {
        self.agenda.health = true;
        self.agenda.route = true;
        self.saving.ask();
    }

    /// Something has changed that clients can see, but no role and no slot.
    fn touched(&mut self) {
        self.agenda.show = true;
        self.saving.ask();
    }

    fn forget(&mut self, key: Key) {
        for open in [&mut self.migrating, &mut self.importing] {
            open.retain(|_, node| *node != key);
        }
        if self.manual.replica == Some(key) {
            self.end_manual();
        }
        self.election.votes.retain(|voter| *voter != key);
        for link in [self.nodes.at(key).link, self.nodes.at(key).inbound].into_iter().flatten() {
            self.close(link);
        }
        self.nodes.remove(key);
        self.changed();
    }
}

//! Failure detection: nodes that do not answer, and nodes that have failed.
//!
//! A node that does not answer for `cluster-node-timeout` **may have failed**: that is one node's opinion, which gossip carries as a
//! report. It **has failed** when a majority of the primaries with slots reports it within a window. The first node that sees the majority
//! tells all others.

use super::{Flags, Key, Level, Machine, Millis, NodeId};

/// A report counts for so many timeouts.
const REPORT_TIMEOUTS: u64 = 2;

/// A primary that comes back keeps its slots for so many timeouts at the disposal of its replicas.
const PARDON_TIMEOUTS: u64 = 2;

/// The figures of all nodes that decide whether a replica migrates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Orphans {
    /// Primaries with slots that have no replica any more.
    pub(super) orphaned: usize,
    /// Replicas of the primary that has most.
    pub(super) most: usize,
    /// Replicas of this node's primary.
    pub(super) ours: usize,
}

impl Machine {
    /// Asks those who have been silent, and suspects those who do not answer.
    pub(super) fn look_after_nodes(&mut self, now: Millis) -> Orphans {
        let timeout = self.settings.node_timeout;
        let is_replica = self.nodes.myself().is_replica();
        let mut orphans = Orphans::default();
        for key in self.nodes.keys() {
            let node = self.nodes.at(key);
            if node.flags.any(Flags::MYSELF.and(Flags::NO_ADDRESS).and(Flags::HANDSHAKE)) {
                continue;
            }
            if is_replica && node.is_primary() && !node.has_failed() {
                let replicas = self.nodes.good_replicas(key);
                let is_orphan = replicas == 0 && node.slots.len() > 0 && node.flags.any(Flags::MIGRATE_TO);
                orphans.orphaned += usize::from(is_orphan);
                orphans.most = orphans.most.max(replicas);
                if self.nodes.myself().primary == Some(key) {
                    orphans.ours = replicas;
                }
            }
            self.look_after_node(key, timeout, now);
        }
        orphans
    }

    fn look_after_node(&mut self, key: Key, timeout: Millis, now: Millis) {
        let node = self.nodes.at(key);
        let since = |at: Millis| now.saturating_sub(at);
        let mut link = node.link.and_then(|link| Some((link, self.links.get(&link)?)));
        // Half of the time is left to try another connection.
        let is_stuck =
            node.ping_sent != 0 && since(node.ping_sent) > timeout / 2 && since(node.data_received) > timeout / 2;
        if let Some((stuck, _)) = link.filter(|(_, state)| is_stuck && since(state.created) > timeout) {
            self.close(stuck);
            link = None;
        }
        let node = self.nodes.at(key);
        let is_open = link.is_some_and(|(_, state)| state.is_open);
        if is_open && node.ping_sent == 0 && since(node.pong_received) > timeout / 2 {
            return self.ping_node(key, now);
        }
        // A replica that is to take over learns from our pings how far it must get.
        if is_open && self.manual.replica == Some(key) && self.nodes.myself().is_primary() {
            return self.ping_node(key, now);
        }
        if node.ping_sent == 0 {
            return;
        }
        let silent = since(node.ping_sent).min(since(node.data_received));
        if silent > timeout && !node.flags.any(Flags::MAYBE_FAILED.and(Flags::FAILED)) {
            self.log(Level::Debug, format!("*** NODE {} possibly failing", self.nodes.at(key).id));
            self.nodes.at_mut(key).flags.set(Flags::MAYBE_FAILED);
            self.counters.not_answering += 1;
            self.agenda.health = true;
            // Where this node is the majority, nobody else need say anything.
            self.fail_if_majority(key, now);
        }
    }

    /// A primary with slots says of a node that it does not answer, or that it does.
    pub(super) fn take_report(&mut self, key: Key, reporter: Key, is_down: bool, now: Millis) {
        let node = self.nodes.at_mut(key);
        let report = node.reports.iter_mut().find(|(by, _)| *by == reporter);
        let id = |machine: &Self, key: Key| machine.nodes.at(key).id;
        match (report, is_down) {
            (Some((_, at)), true) => *at = now,
            (None, true) => {
                node.reports.push((reporter, now));
                let line = format!("Node {} reported node {} as not reachable.", id(self, reporter), id(self, key));
                self.log(Level::Verbose, line);
            }
            (Some(_), false) => {
                node.reports.retain(|(by, _)| *by != reporter);
                let line = format!("Node {} reported node {} is back online.", id(self, reporter), id(self, key));
                self.log(Level::Verbose, line);
            }
            (None, false) => return,
        }
        if is_down {
            self.fail_if_majority(key, now);
        }
    }

    /// How many report a node; old reports are dropped.
    pub(super) fn count_reports(&mut self, key: Key, now: Millis) -> usize {
        let window = REPORT_TIMEOUTS * self.settings.node_timeout;
        let node = self.nodes.at_mut(key);
        node.reports.retain(|(_, at)| now.saturating_sub(*at) <= window);
        node.reports.len()
    }

    /// How many votes decide.
    pub(super) fn majority(&self) -> usize {
        self.nodes.iter().filter(|(_, node)| node.has_vote()).count() / 2 + 1
    }

    fn fail_if_majority(&mut self, key: Key, now: Millis) {
        let node = self.nodes.at(key);
        if !node.flags.any(Flags::MAYBE_FAILED) || node.has_failed() {
            return;
        }
        let reports = self.count_reports(key, now) + usize::from(self.nodes.myself().has_vote());
        if reports < self.majority() {
            return;
        }
        let id = self.nodes.at(key).id;
        self.log(Level::Notice, format!("Marking node {id} as failing (quorum reached)."));
        self.set_failed(key, now);
        self.send_failed(id);
    }

    fn set_failed(&mut self, key: Key, now: Millis) {
        let node = self.nodes.at_mut(key);
        node.flags.clear(Flags::MAYBE_FAILED);
        node.flags.set(Flags::FAILED);
        node.failed_at = now;
        self.changed();
    }

    /// A member says that a node has failed.
    pub(super) fn take_fail(&mut self, sender: Key, id: NodeId, now: Millis) {
        let Some(key) = self.nodes.find(id) else { return };
        if self.nodes.at(key).flags.any(Flags::FAILED.and(Flags::MYSELF).and(Flags::HANDSHAKE)) {
            return;
        }
        self.log(Level::Notice, format!("FAIL message received from {} about {id}", self.nodes.at(sender).id));
        self.set_failed(key, now);
    }

    /// A node that has failed answers again.
    pub(super) fn pardon(&mut self, key: Key, now: Millis) {
        let node = self.nodes.at_mut(key);
        let window = PARDON_TIMEOUTS * self.settings.node_timeout;
        let what = if node.is_replica() {
            "replica is reachable again."
        } else if node.slots.len() == 0 {
            "master without slots is reachable again."
        } else if now.saturating_sub(node.failed_at) > window {
            "is reachable again and nobody is serving its slots after some time."
        } else {
            return;
        };
        node.flags.clear(Flags::FAILED);
        let line = format!("Clear FAIL state for node {}: {what}", node.id);
        self.log(Level::Notice, line);
        self.changed();
    }
}

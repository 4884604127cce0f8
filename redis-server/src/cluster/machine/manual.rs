//! A replica and its primary change places because an operator says so. The primary lets nobody write, and says where its stream
//! ends; the replica waits until it has all of that, and asks for votes that do not depend on a failure.

use super::Machine;
use crate::cluster::machine::state::Manual;
use crate::cluster::nodes::Key;
use crate::cluster::packet::Kind;
use crate::cluster::{Action, Level, Millis};

/// The primary lets nobody write for so many times `cluster-manual-failover-timeout`: the replica may succeed in the last moment, and is
/// then to be heard.
const PAUSE: Millis = 2;

impl Machine {
    /// On the replica: begins. `has_all` says that the primary is not asked.
    pub(super) fn begin_manual(&mut self, has_all: bool, now: Millis) {
        self.end_manual();
        self.end_election();
        let ends_at = Some(now + self.settings.manual_failover_timeout);
        self.manual = Manual { ends_at, has_all, ..Manual::default() };
        self.next_period = now;
    }

    /// On the primary: a replica wants to take over.
    pub(super) fn stand_aside(&mut self, link: super::Link, sender: Key, now: Millis) {
        if self.nodes.myself().is_replica() || self.nodes.at(sender).primary != Some(self.nodes.me()) {
            return;
        }
        self.end_manual();
        let timeout = self.settings.manual_failover_timeout;
        self.manual = Manual { ends_at: Some(now + timeout), replica: Some(sender), ..Manual::default() };
        self.next_period = now;
        self.log(Level::Warning, format!("Manual failover requested by replica {}.", self.nodes.at(sender).id));
        self.pauses += 1;
        self.act(Action::PauseWrites { number: self.pauses, until: now + PAUSE * timeout });
        // On the link of the request the answer comes first; the final offset follows once writes are paused.
        self.ping(link, Kind::Ping, now);
    }

    /// The writes are paused, as the pause of this number requested, and the replication offset is final. The offset of an earlier
    /// pause counts for nothing: writes have followed it.
    pub fn writes_paused(&mut self, number: u64, offset: u64, now: Millis) {
        let Some(replica) = self.manual.replica.filter(|_| number == self.pauses) else { return };
        self.facts.offset = offset;
        self.manual.is_paused = true;
        self.ping_node(replica, now);
        self.settle(now);
    }

    /// On the replica: a primary says where its stream ends.
    pub(super) fn take_offset_of_paused(&mut self, sender: Key, offset: u64) {
        let awaits = self.manual.is_under_way() && !self.manual.has_all && self.manual.end_offset.is_none();
        if awaits && self.nodes.myself().is_replica() && self.nodes.myself().primary == Some(sender) {
            self.manual.end_offset = Some(offset);
            self.agenda.manual = true;
            let line = format!("Received replication offset for paused master manual failover: {offset}");
            self.log(Level::Warning, line);
        }
    }

    /// On the replica: goes on as soon as it has all.
    pub(super) fn go_on_with_manual(&mut self) {
        let has_all = self.manual.end_offset.is_some_and(|end| self.facts.offset >= end);
        if self.manual.is_under_way() && !self.manual.has_all && has_all {
            self.manual.has_all = true;
            let line = "All master replication stream processed, manual failover can start.";
            self.log(Level::Warning, line.to_owned());
        }
    }

    pub(super) fn end_manual_if_late(&mut self, now: Millis) {
        if self.manual.ends_at.is_some_and(|end| now > end) {
            self.log(Level::Warning, "Manual failover timed out.".to_owned());
            self.end_manual();
        }
    }

    /// However it ends, clients may write again: here, or where they are sent.
    pub(super) fn end_manual(&mut self) {
        let manual = std::mem::take(&mut self.manual);
        if manual.replica.is_some() {
            self.act(Action::ResumeWrites);
        }
    }
}

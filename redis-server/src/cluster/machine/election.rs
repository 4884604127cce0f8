//! How a replica becomes the primary of slots whose primary has failed: it asks all primaries with slots for their votes in a
//! new epoch, and a majority decides.
//!
//! Each has one vote in an epoch, and its file says so before the vote leaves. So no two replicas win in one epoch.

use super::Machine;
use super::ownership::EpochKind;
use super::state::Obstacle;
use crate::cluster::machine::state::Election;
use crate::cluster::nodes::Key;
use crate::cluster::packet::{Flags, Kind};
use crate::cluster::{BITMAP, Level, Millis, PrimaryLink, SlotSet};

/// The failure must have time to become known to the voters.
const DELAY: Millis = 500;

/// Replicas of one primary are to begin at different times.
const SPREAD: Millis = 500;

/// The delay of an election for each replica whose replication offset is larger.
const RANK_DELAY: Millis = 1000;

/// Votes must be in within so many timeouts, and at least [`LEAST_TIMEOUT`]; another election begins after twice that.
const TIMEOUTS: u64 = 2;

/// The least time for votes to come in.
const LEAST_TIMEOUT: Millis = 2000;

impl Machine {
    /// Of no use any more.
    pub(super) fn end_election(&mut self) {
        self.election = Election::default();
    }

    pub(super) fn go_on_with_election(&mut self, now: Millis) {
        let is_manual = self.manual.can_start();
        let Some(primary) = self.nodes.myself().primary.filter(|primary| self.may_replace(*primary, is_manual)) else {
            self.election.is_due = false;
            return;
        };
        if !is_manual && !self.is_data_fresh(now) {
            return self.complain(Obstacle::DataAge);
        }
        let timeout = (TIMEOUTS * self.settings.node_timeout).max(LEAST_TIMEOUT);
        if now.saturating_sub(self.election.at) > 2 * timeout && !self.election.is_due {
            return self.schedule(primary, now);
        }
        if !self.election.has_asked && !self.manual.is_under_way() {
            self.wait_for_better(primary);
        }
        if now < self.election.at {
            return;
        }
        self.election.is_due = false;
        if now - self.election.at > timeout {
            return self.complain(Obstacle::Expired);
        }
        if !self.election.has_asked {
            return self.ask_for_votes();
        }
        if self.election.votes.len() >= self.majority() {
            self.log(Level::Notice, "Failover election won: I'm the new master.".to_owned());
            let epoch = self.election.epoch;
            let me = self.nodes.myself_mut();
            me.config_epoch = me.config_epoch.max(epoch);
            self.log(Level::Notice, format!("configEpoch set to {epoch} after successful failover"));
            self.replace_primary(now);
        }
    }

    fn may_replace(&self, primary: Key, is_manual: bool) -> bool {
        let primary = self.nodes.at(primary);
        primary.slots.len() > 0 && (is_manual || (primary.has_failed() && !self.settings.replica_no_failover))
    }

    /// A replica that has not heard its primary for long has old data.
    fn is_data_fresh(&self, now: Millis) -> bool {
        let factor = self.settings.replica_validity_factor;
        let age = match self.facts.primary_link {
            PrimaryLink::Never => Millis::MAX,
            PrimaryLink::Up { heard_at } => now.saturating_sub(heard_at),
            PrimaryLink::Down { since } => now.saturating_sub(since),
        };
        let timeout = self.settings.node_timeout;
        let allowed = self.settings.replica_ping_period.saturating_add(timeout.saturating_mul(factor));
        factor == 0 || age.saturating_sub(timeout) <= allowed
    }

    fn schedule(&mut self, primary: Key, now: Millis) {
        let is_manual = self.manual.is_under_way();
        let rank = if is_manual { 0 } else { self.rank(primary) };
        let delay = if is_manual { 0 } else { DELAY + self.random.below(SPREAD) + rank * RANK_DELAY };
        self.election = Election { at: now + delay, is_due: true, rank, ..Election::default() };
        let offset = self.facts.offset;
        let line = format!("Start of election delayed for {delay} milliseconds (rank #{rank}, offset {offset}).");
        self.log(Level::Notice, line);
        // The others of this shard learn how far we are, and can tell their ranks.
        self.tell_all(true, now);
        // A manual one begins at once.
        if is_manual {
            self.go_on_with_election(now);
        }
    }

    /// Another replica has turned out to have more of the stream.
    fn wait_for_better(&mut self, primary: Key) {
        let rank = self.rank(primary);
        if rank > self.election.rank {
            let added = (rank - self.election.rank) * RANK_DELAY;
            (self.election.rank, self.election.at) = (rank, self.election.at + added);
            self.election.is_due = true;
            let line = format!("Replica rank updated to #{rank}, added {added} milliseconds of delay.");
            self.log(Level::Notice, line);
        }
    }

    /// How many replicas of the primary have more of its stream.
    fn rank(&self, primary: Key) -> u64 {
        let me = self.nodes.me();
        let others = self.nodes.at(primary).replicas.iter().filter(|key| **key != me).map(|key| self.nodes.at(*key));
        let better = others.filter(|node| !node.flags.any(Flags::NO_FAILOVER) && node.offset > self.facts.offset);
        better.count() as u64
    }

    fn ask_for_votes(&mut self) {
        self.election.epoch = self.next_epoch(EpochKind::Voted);
        self.election.has_asked = true;
        self.log(Level::Notice, format!("Starting a failover election for epoch {}.", self.current_epoch));
        let request = self.plain(Kind::AuthRequest);
        self.broadcast(Kind::AuthRequest, &request);
        self.saving.ask_now();
    }

    fn complain(&mut self, obstacle: Obstacle) {
        self.election.is_due = false;
        if self.election.told.replace(obstacle) != Some(obstacle) {
            let why = match obstacle {
                Obstacle::DataAge => {
                    "Disconnected from master for longer than allowed. Please check the 'cluster-replica-validity-factor' configuration option."
                }
                Obstacle::Expired => "Failover attempt expired.",
            };
            self.log(Level::Notice, format!("Currently unable to failover: {why}"));
        }
    }

    /// For tests of the tests: a voter that may vote again.
    #[cfg(test)]
    pub(in crate::cluster) fn forget_votes(&mut self) {
        self.last_vote_epoch = 0;
        for key in self.nodes.keys() {
            self.nodes.at_mut(key).voted_at = 0;
        }
    }

    /// A vote has come.
    pub(super) fn count_vote(&mut self, sender: Key, epoch: u64) {
        let counts = self.election.has_asked && epoch == self.election.epoch && self.nodes.at(sender).has_vote();
        if counts && !self.election.votes.contains(&sender) {
            self.election.votes.push(sender);
            self.agenda.election = true;
        }
    }

    /// A replica asks for this node's vote. `epochs` are the election's, and the one since which its primary has its slots.
    pub(super) fn consider_vote(
        &mut self,
        candidate: Key,
        epochs: (u64, u64),
        slots: &[u8; BITMAP],
        is_forced: bool,
        now: Millis,
    ) {
        if !self.nodes.myself().has_vote() {
            return;
        }
        let id = self.nodes.at(candidate).id;
        match self.find_objection(candidate, epochs, slots, is_forced, now) {
            Err(why) => self.log(Level::Notice, format!("Failover auth denied to {id}: {why}")),
            Ok(primary) => {
                self.nodes.at_mut(primary).voted_at = now;
                self.last_vote_epoch = self.current_epoch;
                self.saving.ask_now();
                let vote = self.plain(Kind::AuthAck);
                self.send_to(candidate, Kind::AuthAck, vote);
                self.log(Level::Notice, format!("Failover auth granted to {id} for epoch {}", self.current_epoch));
            }
        }
    }

    /// Why a replica does not get the vote, or else its primary.
    fn find_objection(
        &self,
        candidate: Key,
        (epoch, config_epoch): (u64, u64),
        slots: &[u8; BITMAP],
        is_forced: bool,
        now: Millis,
    ) -> Result<Key, String> {
        if epoch < self.current_epoch {
            return Err(format!("reqEpoch ({epoch}) < curEpoch({})", self.current_epoch));
        }
        if self.last_vote_epoch == self.current_epoch {
            return Err(format!("already voted for epoch {}", self.current_epoch));
        }
        let node = self.nodes.at(candidate);
        if node.is_primary() {
            return Err("it is a master node".to_owned());
        }
        let key = node.primary.ok_or("I don't know its master")?;
        let primary = self.nodes.at(key);
        if !primary.has_failed() && !is_forced {
            return Err("its master is up".to_owned());
        }
        let since = now.saturating_sub(primary.voted_at);
        let window = TIMEOUTS * self.settings.node_timeout;
        if since < window {
            return Err(format!("can't vote about this master before {} milliseconds", window - since));
        }
        for slot in SlotSet::from_bitmap(slots).iter().filter(|slot| !self.nodes.is_unclaimed(*slot)) {
            let owner = self.nodes.owner(slot).expect("a slot without an owner is unclaimed");
            let newer = self.nodes.at(owner).config_epoch;
            if newer > config_epoch {
                return Err(format!("slot {slot} epoch ({newer}) > reqEpoch ({config_epoch})"));
            }
        }
        Ok(key)
    }
}

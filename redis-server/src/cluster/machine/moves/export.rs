//! The side of the node whose slots go.

use super::job::{Job, SLACK, Stage};
use crate::cluster::machine::Machine;
use crate::cluster::moves::{Departure, LEASE, Order, Progress, Word};
use crate::cluster::nodes::Key;
use crate::cluster::{Level, Millis, NodeId, SlotSet};
use crate::protocol::error::{Error, shown};

/// A round of the stream that had no more than this shows that nothing waits: some bytes are always written meanwhile.
const CAUGHT_UP: u64 = 64 * 1024;

impl Machine {
    /// CLUSTER MIGRATESLOTS: some slots to a node, and others to others.
    ///
    /// # Errors
    /// As the genuine server's; then none of them moves.
    pub fn migrate_slots(&mut self, wanted: &[(SlotSet, &[u8])], now: Millis) -> Result<(), Error> {
        self.check_may_move()?;
        let mut targets = Vec::with_capacity(wanted.len());
        for (at, (slots, target)) in wanted.iter().enumerate() {
            self.check_source(slots)?;
            if wanted[..at].iter().any(|(others, _)| slots.iter().any(|slot| others.has(slot))) {
                return Err(Error::Static("ERR Slot ranges in migrations overlap"));
            }
            targets.push(self.find_target(target)?);
        }
        for ((slots, _), target) in wanted.iter().zip(targets) {
            let (name, node) = (self.new_id(), self.nodes.at(target));
            let source = self.my_id();
            let job = Job::new(name, false, slots.clone(), Some((source, node.id)), now);
            let departure = Departure {
                source,
                ip: node.ip.clone(),
                port: node.port,
                tls_port: node.tls_port,
                slots: std::sync::Arc::clone(&job.slots),
            };
            self.add_job(job);
            self.order(self.moves.0.len() - 1, Order::Connect(departure));
        }
        self.settle(now);
        Ok(())
    }

    fn check_source(&self, slots: &SlotSet) -> Result<(), Error> {
        if let Some(slot) = slots.iter().find(|slot| self.nodes.owner(*slot).is_none()) {
            return Err(Error::Message(format!("ERR Slot {slot} has no node served.")));
        }
        match self.common_owner(slots) {
            None => return Err(Error::Static("ERR Requested slots span multiple shards")),
            Some(owner) if owner != self.nodes.me() => {
                return Err(Error::Static("ERR Slots are not served by this node."));
            }
            Some(_) => {}
        }
        match slots.iter().find(|slot| self.is_in_move(*slot)) {
            Some(slot) => Err(Error::Message(format!("ERR I am already migrating slot {slot}."))),
            None => Ok(()),
        }
    }

    fn find_target(&self, id: &[u8]) -> Result<Key, Error> {
        let parsed = NodeId::parse(id);
        let Some(id) = parsed else {
            return Err(Error::Message(format!("ERR Invalid node name: {}", shown(id))));
        };
        let found = self.nodes.find(id).filter(|key| !self.nodes.at(*key).is_handshake());
        let key = found.ok_or_else(|| Error::Message(format!("ERR Unknown node name: {id}")))?;
        if key == self.nodes.me() {
            return Err(Error::Static("ERR Target node can not be this node."));
        }
        match self.nodes.at(key).is_replica() {
            true => Err(Error::Static("ERR Target node is not a master")),
            false => Ok(key),
        }
    }

    /// CLUSTER CANCELSLOTMIGRATIONS. Slots that were released are taken back: the operator knows that the target is gone for good.
    ///
    /// # Errors
    /// There is none; or one whose slots cannot be taken back, as the others are out of reach.
    pub fn cancel_moves(&mut self, now: Millis) -> Result<(), Error> {
        let all = self.moves.places(|job| !job.is_import && job.stage.is_own());
        if all.is_empty() {
            return Err(Error::Static("ERR No migrations ongoing"));
        }
        let is_let_go = |at: &usize| matches!(self.moves.0[*at].stage, Stage::Granted { .. });
        if all.iter().any(is_let_go) && self.is_cut_off() {
            return Err(Error::Static("ERR Can't take slots back while most masters are out of reach"));
        }
        for at in all {
            if matches!(self.moves.0[at].stage, Stage::Granted { .. }) {
                self.take_back(at, now);
            }
            self.end_move(at, Stage::Cancelled, "", now);
        }
        self.settle(now);
        Ok(())
    }

    pub(super) fn export_progress(&mut self, at: usize, progress: Progress, now: Millis) {
        let stage = self.moves.0[at].stage;
        if !stage.is_under_way() {
            return;
        }
        match (stage, progress) {
            // The target may have taken the slots, whatever becomes of the connection.
            (Stage::Granted { .. }, _) => {}
            (Stage::Connecting, Progress::Connected) => self.set_stage(at, Stage::Establishing, now),
            (Stage::Establishing, Progress::Established) => {
                self.moves.0[at].acknowledged = now;
                self.set_stage(at, Stage::Snapshotting, now);
                // The target takes no word for one of the move's before it has heard this.
                self.say(at, Word::Ack, now);
                self.order(at, Order::Send);
            }
            (_, Progress::Said(Word::Ack) | Progress::Alive) => {}
            (Stage::Snapshotting, Progress::Sent) => self.set_stage(at, Stage::Streaming, now),
            (Stage::Streaming, Progress::Said(Word::RequestPause)) => self.set_stage(at, Stage::WaitingToPause, now),
            (_, Progress::Behind { round, waiting }) => self.follow_stream(at, round, waiting, now),
            (Stage::Paused(_), Progress::Said(Word::RequestFailover { epoch })) => self.let_go(at, epoch, now),
            (_, Progress::Failed(why)) => self.fail_move(at, &why, now),
            (_, Progress::Ended) => {
                let why = "Connection lost to target. Check CLUSTER GETSLOTMIGRATIONS on the target node for more information.";
                self.fail_move(at, why, now);
            }
            (
                _,
                Progress::Connected | Progress::Established | Progress::Sent | Progress::Dropped | Progress::Said(_),
            ) => {
                self.fail_move(at, "Unexpected state machine transition", now);
            }
        }
    }

    /// The stream is so far: clients are held when little is left of it.
    fn follow_stream(&mut self, at: usize, round: u64, waiting: u64, now: Millis) {
        let limit = self.settings.replica_buffer_limit;
        if limit > 0 && waiting > limit {
            return self.fail_move(at, "What waits for the target has passed client-output-buffer-limit", now);
        }
        let is_near = self.settings.max_failover_repl_bytes.is_none_or(|most| round <= most.max(CAUGHT_UP));
        if self.moves.0[at].stage == Stage::WaitingToPause && is_near {
            self.set_stage(at, Stage::Paused(now + self.settings.manual_failover_timeout), now);
            self.order(at, Order::Drain);
        }
    }

    /// Releases the slots; from now on the target decides. The file says so before the target is told.
    fn let_go(&mut self, at: usize, seen: Option<u64>, now: Millis) {
        let epoch = self.epoch_above(seen.unwrap_or(0));
        self.saving.ask_now();
        self.set_stage(at, Stage::Granted { epoch, lapsed: now + LEASE + SLACK, is_asked: false, denied: None }, now);
        self.say(at, Word::FailoverGranted { epoch: Some(epoch) }, now);
    }

    /// Looks for somebody who knows whether the target has taken what it was given.
    pub(super) fn seek_verdict(&mut self, at: usize, now: Millis) {
        let job = &self.moves.0[at];
        let (Stage::Granted { epoch, lapsed, is_asked, denied }, Some((_, target))) = (job.stage, job.nodes) else {
            return;
        };
        if now < lapsed {
            return;
        }
        let Some(key) = self.nodes.find(target) else {
            // An operator has had it forgotten.
            if !self.is_cut_off() && self.have_been_heard(lapsed) {
                self.take_back(at, now);
                self.fail_move(at, "The target was forgotten", now);
            }
            return;
        };
        let node = self.nodes.at(key);
        let would_know = lapsed.max(node.failed_at);
        if node.has_failed() && !self.is_cut_off() && self.has_successor(key) && self.have_been_heard(would_know) {
            self.take_back(at, now);
            return self.fail_move(at, "The target has failed, and who has taken its place has not got the slots", now);
        }
        if denied.is_some_and(|denied| self.have_been_heard(denied)) && !self.is_cut_off() && self.has_all(at) {
            return self.fail_move(at, "Nobody has taken the slots", now);
        }
        // Only the answer to a question that was asked now tells what is true now.
        if !is_asked && node.ping_sent == 0 && node.link.is_some() {
            self.ping_node(key, now);
            if self.nodes.at(key).ping_sent != 0 {
                self.moves.0[at].stage = Stage::Granted { epoch, lapsed, is_asked: true, denied };
            }
        }
    }

    /// Whether all primaries in reach have sent a packet since then, which includes claims of this node's slots.
    fn have_been_heard(&self, since: Millis) -> bool {
        let mut others = self.nodes.iter().filter(|(key, node)| {
            *key != self.nodes.me() && node.is_primary() && !node.has_failed() && !node.is_handshake()
        });
        others.all(|(_, node)| node.data_received > since)
    }

    /// Whether somebody else of a failed node's shard has its slots.
    fn has_successor(&self, failed: Key) -> bool {
        let shard = self.nodes.at(failed).shard;
        let mut nodes = self.nodes.iter().filter(|(key, node)| *key != failed && node.shard == shard);
        self.nodes.at(failed).slots.len() == 0 && nodes.any(|(_, node)| node.is_primary() && node.slots.len() > 0)
    }

    /// A node has answered a question on our connection, so its claims are known. It has not taken slots that it was given and does not
    /// claim, and never will. But if it has the epoch that it was given, or a later one, it may have taken and passed them on.
    pub(in crate::cluster::machine) fn hear_verdict(&mut self, sender: Key, now: Millis) {
        let (id, own_epoch) = (self.nodes.at(sender).id, self.nodes.at(sender).config_epoch);
        for at in self.moves.places(|job| job.nodes.is_some_and(|(_, target)| target == id)) {
            let Stage::Granted { epoch, lapsed, is_asked: true, denied } = self.moves.0[at].stage else { continue };
            if !self.has_all(at) {
                continue;
            }
            match own_epoch < epoch {
                true => self.fail_move(at, "The target has not taken the slots", now),
                false => {
                    let denied = denied.or(Some(now));
                    self.moves.0[at].stage = Stage::Granted { epoch, lapsed, is_asked: true, denied };
                }
            }
        }
    }

    /// Whether all slots of a move are this node's, as far as it has heard.
    fn has_all(&self, at: usize) -> bool {
        self.common_owner(&self.moves.0[at].slots) == Some(self.nodes.me())
    }

    /// Takes the slots back with a new epoch. A node that still believes to own them then has an older epoch.
    fn take_back(&mut self, at: usize, now: Millis) {
        let name = self.moves.0[at].name;
        self.log(Level::Warning, format!("The slots of migration {name} are taken back with a new epoch"));
        self.bump_epoch_alone();
        self.changed();
        self.tell_all(false, now);
    }
}

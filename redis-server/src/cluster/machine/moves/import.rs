//! The side of the node that gets slots, and of its replicas.

use std::sync::Arc;

use super::job::{Job, Stage};
use crate::cluster::machine::Machine;
use crate::cluster::moves::{LEASE, Order, Progress, Settled, Word};
use crate::cluster::{Level, Millis, NodeId, SlotSet};
use crate::protocol::error::Error;

impl Machine {
    /// CLUSTER SYNCSLOTS ESTABLISH: a node has slots for this one.
    ///
    /// # Errors
    /// As the genuine server's.
    pub fn establish(&mut self, source: &[u8], name: NodeId, slots: SlotSet, now: Millis) -> Result<(), Error> {
        self.check_may_move()?;
        let known = NodeId::parse(source).and_then(|id| self.nodes.find(id));
        let source = known.ok_or(Error::Static("ERR Target node does not know the source node"))?;
        if source == self.nodes.me() {
            return Err(Error::Static("ERR Source node is target node itself"));
        }
        self.check_new(name, &slots)?;
        if self.common_owner(&slots) != Some(source) {
            return Err(Error::Static("ERR Target node does not agree about current slot ownership"));
        }
        let nodes = (self.nodes.at(source).id, self.my_id());
        self.add_job(Job::new(name, true, slots, Some(nodes), now));
        self.hide_last();
        self.settle(now);
        Ok(())
    }

    fn check_new(&self, name: NodeId, slots: &SlotSet) -> Result<(), Error> {
        if self.moves.find(name).is_some() {
            return Err(Error::Static("ERR There is a slot migration of this name"));
        }
        match slots.iter().any(|slot| self.is_in_move(slot)) {
            true => {
                let why = "ERR Slot is already being imported on the target by a different migration";
                Err(Error::Static(why))
            }
            false => Ok(()),
        }
    }

    /// The primary has slots that are not to be seen here either; or this node had, when its file was written.
    ///
    /// # Errors
    /// They are on their way already.
    pub fn watch_import(&mut self, name: NodeId, slots: SlotSet, now: Millis) -> Result<(), Error> {
        self.check_new(name, &slots)?;
        self.add_job(Job::new(name, true, slots, None, now));
        self.hide_last();
        self.settle(now);
        Ok(())
    }

    fn hide_last(&mut self) {
        let at = self.moves.0.len() - 1;
        let slots = Arc::clone(&self.moves.0[at].slots);
        self.order(at, Order::Hide(slots));
    }

    /// The primary says how an import has ended that is watched.
    ///
    /// # Errors
    /// It is not known.
    pub fn watched_import_ended(
        &mut self,
        name: NodeId,
        is_success: bool,
        message: &str,
        now: Millis,
    ) -> Result<(), Error> {
        let watched = |at: &usize| self.moves.0[*at].stage == Stage::OnPrimary;
        let at = self.moves.find(name).filter(watched).ok_or(Error::Static("ERR No such slot migration job"))?;
        message.clone_into(&mut self.moves.0[at].message);
        self.set_stage(at, if is_success { Stage::Succeeded } else { Stage::Failed }, now);
        self.settle_import(at, is_success, false);
        self.settle(now);
        Ok(())
    }

    /// The data is another server's now, of whose imports this node is told anew.
    pub fn forget_watched_imports(&mut self, now: Millis) {
        for at in self.moves.places(|job| job.stage == Stage::OnPrimary) {
            "Full resynchronization occurred".clone_into(&mut self.moves.0[at].message);
            self.set_stage(at, Stage::Failed, now);
            self.settle_import(at, false, false);
        }
        self.settle(now);
    }

    pub(super) fn import_progress(&mut self, at: usize, progress: Progress, now: Millis) {
        let stage = self.moves.0[at].stage;
        match (stage, progress) {
            (Stage::Stopping, Progress::Ended) => self.clean_up(at, now),
            (Stage::CleaningUp, Progress::Dropped) => {
                self.set_stage(at, Stage::Failed, now);
                self.settle_import(at, false, true);
            }
            (stage, _) if !stage.is_own() => {}
            (Stage::WaitingForAck, Progress::Said(Word::Ack)) => self.set_stage(at, Stage::ReceivingSnapshot, now),
            (_, Progress::Said(Word::Ack) | Progress::Alive) => {}
            (Stage::ReceivingSnapshot, Progress::Said(Word::SnapshotEnd)) => {
                self.set_stage(at, Stage::WaitingForPaused, now);
                self.say(at, Word::RequestPause, now);
            }
            (Stage::WaitingForPaused, Progress::Said(Word::Paused)) => {
                self.set_stage(at, Stage::FailoverRequested(now + LEASE), now);
                self.say(at, Word::RequestFailover { epoch: Some(self.current_epoch) }, now);
            }
            (Stage::FailoverRequested(until), Progress::Said(Word::FailoverGranted { epoch })) => {
                match self.refusal_to_take(until, now) {
                    Some(why) => self.fail_move(at, why, now),
                    None => self.take_over(at, epoch, now),
                }
            }
            (_, Progress::Failed(why)) => {
                self.fail_move(at, &why, now);
            }
            (_, Progress::Ended) => {
                let why = "Connection lost to source. Check CLUSTER GETSLOTMIGRATIONS on the source node for more information.";
                self.fail_move(at, why, now);
                // There is nothing more to be waited for.
                self.clean_up(at, now);
            }
            (
                _,
                Progress::Said(_)
                | Progress::Connected
                | Progress::Established
                | Progress::Sent
                | Progress::Behind { .. }
                | Progress::Dropped,
            ) => self.fail_move(at, "Unexpected state machine transition", now),
        }
    }

    /// Why what was granted is not taken.
    fn refusal_to_take(&self, until: Millis, now: Millis) -> Option<&'static str> {
        if now >= until {
            return Some("Timed out before the source has let go of the slots");
        }
        if self.moves.are_letting_go() {
            return Some("Other slots of this node are being let go");
        }
        // As with slots that move one by one: the epoch may be that of an election that this node cannot hear of.
        self.is_cut_off().then_some("Most primaries are out of reach")
    }

    /// The slots are this node's. The file says so before anybody is told.
    fn take_over(&mut self, at: usize, epoch: Option<u64>, now: Millis) {
        let slots = Arc::clone(&self.moves.0[at].slots);
        let me = self.nodes.me();
        for slot in slots.iter() {
            self.nodes.assign(slot, me);
        }
        // Valkey leaves it to the target.
        let epoch = epoch.unwrap_or_else(|| self.epoch_above(0));
        self.current_epoch = self.current_epoch.max(epoch);
        let node = self.nodes.myself_mut();
        node.config_epoch = node.config_epoch.max(epoch);
        self.saving.ask_now();
        self.changed();
        self.end_move(at, Stage::Succeeded, "", now);
        self.judge_health(now);
        self.tell_all(false, now);
        let line = format!("Slot migration {}: this node is now the owner of the slots", self.moves.0[at].name);
        self.log(Level::Notice, line);
    }

    /// This node is now a replica: the primary's data replaces the imported keys, or the primary continues the import.
    pub(super) fn become_onlooker(&mut self, at: usize, now: Millis) {
        self.order(at, Order::End);
        self.set_stage(at, Stage::OnPrimary, now);
        self.moves.0[at].nodes = None;
    }

    /// Deletes the imported keys once the connection is closed.
    pub(super) fn clean_up(&mut self, at: usize, now: Millis) {
        let slots = Arc::clone(&self.moves.0[at].slots);
        let others: SlotSet = slots.iter().filter(|slot| self.nodes.owner(*slot) != Some(self.nodes.me())).collect();
        self.set_stage(at, Stage::CleaningUp, now);
        self.order(at, Order::Drop(Arc::new(others)));
    }

    pub(super) fn settle_import(&mut self, at: usize, is_success: bool, is_told: bool) {
        let job = &self.moves.0[at];
        let (slots, message) = (Arc::clone(&job.slots), job.message.clone());
        self.order(at, Order::Settle(Settled { slots, is_success, message, is_told }));
    }
}

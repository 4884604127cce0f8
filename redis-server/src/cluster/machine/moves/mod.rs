//! Slots that move as a whole. The source sends the slots' keys to the target, and the changes that clients make meanwhile. It then pauses
//! writes to the slots for a moment and releases them. All that can fail before that leaves them where they were.
//!
//! ```text
//! source                                                      target
//! connecting ── ESTABLISH ──────────────────────────────────▶ waiting-for-ack
//! reading-establish-response ◀───────────────────────── OK ──
//! snapshotting ── ACK, keys, changes ───────────────────────▶ receiving-snapshot
//! replicating ── SNAPSHOT-EOF, changes ─────────────────────▶ waiting-for-paused
//! waiting-to-pause ◀───────────────────────── REQUEST-PAUSE ──
//! failover-paused ── the last changes, PAUSED ──────────────▶ failover-requested
//!    (on disk) ◀─────────────────── REQUEST-FAILOVER EPOCH c ──
//! failover-granted ── FAILOVER-GRANTED EPOCH e ─────────────▶ (on disk, then told to all)
//! success ◀──────────────────────────────────────────────────── success
//! ```
//!
//! The source does not take released slots back after a timeout: the target may own them, and no node that knows may be in reach. It keeps
//! the slots closed for writes, also over a restart, until the owner is certain. The target decides by a claim. It also decides by an
//! answer without a claim, if the question was sent after the permission had lapsed ([`LEASE`](crate::cluster::moves::LEASE)). The replica
//! that is elected in place of a failed target decides, too, and so does an operator (`CLUSTER CANCELSLOTMIGRATIONS`). Where the target may
//! have passed them on meanwhile, all other primaries must have been heard as well. Where the source takes them back, and the target could
//! still believe to have them, it takes an epoch above the one that it gave.

mod export;
mod import;
mod job;
mod saved;

use std::sync::Arc;

use super::Machine;
use crate::cluster::moves::{MoveInfo, Order, Progress, Ranges, Word};
use crate::cluster::nodes::Key;
use crate::cluster::{Action, Level, Millis, NodeId, SlotSet};
use crate::protocol::error::Error;
use job::{Job, Stage};

pub(super) use job::{LetGo, Moves};
pub(super) use saved::NAME as LET_GO;

/// How often the other node hears that this one is there.
const ACKNOWLEDGE: Millis = 1000;

impl Machine {
    /// CLUSTER GETSLOTMIGRATIONS: the newest first.
    pub fn moves(&self) -> Vec<MoveInfo> {
        self.moves.0.iter().rev().map(Job::info).collect()
    }

    /// Slots of imports that are not over, by their names; a node that starts with this node's data needs them.
    pub fn imports(&self) -> Vec<(NodeId, Arc<SlotSet>)> {
        let imports = self.moves.0.iter().filter(|job| job.is_import && !job.stage.is_over());
        imports.map(|job| (job.name, Arc::clone(&job.slots))).collect()
    }

    /// Something has become known of a move.
    pub fn progress(&mut self, name: NodeId, progress: Progress, now: Millis) {
        if let Some(at) = self.moves.find(name) {
            if matches!(progress, Progress::Said(_) | Progress::Alive) {
                self.moves.0[at].acknowledged = now;
            }
            match self.moves.0[at].is_import {
                true => self.import_progress(at, progress, now),
                false => self.export_progress(at, progress, now),
            }
        }
        self.settle(now);
    }

    /// All data was deleted, so moves under way are no longer consistent.
    pub fn flushed(&mut self, now: Millis) {
        self.fail_flushed(|_| true, now);
    }

    /// As [`Machine::flushed`], of one slot.
    pub fn slot_flushed(&mut self, slot: u16, now: Millis) {
        self.fail_flushed(|slots| slots.has(slot), now);
    }

    fn fail_flushed(&mut self, concerns: impl Fn(&SlotSet) -> bool, now: Millis) {
        let is_let_go = |job: &Job| matches!(job.stage, Stage::Granted { .. });
        for at in self.moves.places(|job| job.stage.is_own() && !is_let_go(job) && concerns(&job.slots)) {
            self.fail_move(at, "Data was flushed", now);
        }
        self.settle(now);
    }

    /// Roles, or owners of slots, have changed.
    pub(super) fn review_moves(&mut self, now: Millis) {
        for at in self.moves.places(|job| job.stage.is_own()) {
            let job = &self.moves.0[at];
            let owner = self.common_owner(&job.slots);
            let Some((source, target)) = job.nodes else { continue };
            let is_known = self.nodes.find(if job.is_import { source } else { target }).is_some();
            let is_of = |id: NodeId| owner.is_some_and(|owner| self.nodes.at(owner).id == id);
            if !job.is_import && is_of(target) {
                // A primary that has no other slots follows the target from now on.
                self.end_move(at, Stage::Succeeded, "", now);
            } else if self.nodes.myself().is_replica() {
                match job.is_import {
                    true => self.become_onlooker(at, now),
                    false => self.fail_move(at, "This node is not a primary any more", now),
                }
            } else if matches!(job.stage, Stage::Granted { .. }) {
                // The target may have passed some of them on before it was heard: they are held until each is known to be somebody's.
                if job.slots.iter().all(|slot| self.nodes.owner(slot) != Some(self.nodes.me())) {
                    self.end_move(at, Stage::Succeeded, "", now);
                }
            } else if !is_known {
                self.fail_move(at, "The other node was forgotten", now);
            } else if is_of(source) {
                // It is as it was.
            } else if job.is_import {
                let mine = owner == Some(self.nodes.me());
                let why = match mine {
                    true => "Slots were unexpectedly assigned to myself during import",
                    false => "Slots are no longer owned by source node",
                };
                self.fail_move(at, why, now);
            } else {
                self.fail_move(at, "Slots are no longer owned by myself", now);
            }
        }
    }

    /// Handles timeouts.
    pub(super) fn look_after_moves(&mut self, now: Millis) {
        for at in self.moves.places(|job| job.stage.is_own()) {
            let job = &self.moves.0[at];
            let is_silent = now.saturating_sub(job.acknowledged) > self.settings.repl_timeout;
            match job.stage {
                Stage::Granted { .. } => self.seek_verdict(at, now),
                Stage::Paused(until) if now >= until => {
                    self.fail_move(at, "Timed out before streaming completed", now);
                }
                Stage::FailoverRequested(until) if now >= until => {
                    self.fail_move(at, "Timed out before the source has let go of the slots", now);
                }
                _ if is_silent => self.fail_move(at, "Timed out after too long with no interaction", now),
                stage if stage.acknowledges() && now.saturating_sub(job.told) >= ACKNOWLEDGE => {
                    self.say(at, Word::Ack, now);
                }
                _ => {}
            }
        }
        // The rest of the file or of the replication stream may still end the move.
        if self.nodes.myself().is_primary() && !self.facts.is_loading && !self.facts.follows {
            for at in self.moves.places(|job| job.stage == Stage::OnPrimary) {
                self.fail_move(at, "A failover occurred during slot import", now);
            }
        }
        let most = self.settings.migration_log_max_len;
        while self.moves.0.len() > most
            && let Some(oldest) = self.moves.0.iter().position(|job| job.stage.is_over())
        {
            self.moves.0.remove(oldest);
        }
    }

    /// The owner of all these slots, if it is one.
    fn common_owner(&self, slots: &SlotSet) -> Option<Key> {
        let mut owners = slots.iter().map(|slot| self.nodes.owner(slot));
        let first = owners.next().flatten()?;
        owners.all(|owner| owner == Some(first)).then_some(first)
    }

    /// Whether a slot is on its way in either direction by another command (`CLUSTER SETSLOT`).
    fn check_may_move(&self) -> Result<(), Error> {
        if self.nodes.myself().is_replica() {
            return Err(Error::Static("ERR Slot migration can only be used on primary nodes."));
        }
        if !self.importing.is_empty() {
            return Err(Error::Static("ERR Slots are being manually imported"));
        }
        match self.migrating.is_empty() {
            true => Ok(()),
            false => Err(Error::Static("ERR Slots are being manually migrated")),
        }
    }

    /// Whether a slot is part of a move that is not over.
    pub(super) fn is_in_move(&self, slot: u16) -> bool {
        self.moves.0.iter().any(|job| !job.stage.is_over() && job.slots.has(slot))
    }

    /// A deliberate fault for a test to find: released slots are served again.
    #[cfg(test)]
    pub(in crate::cluster) fn forget_what_is_let_go(&mut self) {
        self.moves.0.retain(|job| !matches!(job.stage, Stage::Granted { .. }));
        self.agenda.route = true;
    }

    fn add_job(&mut self, job: Job) {
        let way = if job.is_import { "import" } else { "export" };
        self.log(Level::Notice, format!("New slot {way} job {}: {}", job.name, Ranges(&job.slots)));
        self.moves.0.push(job);
    }

    fn set_stage(&mut self, at: usize, stage: Stage, now: Millis) {
        let job = &mut self.moves.0[at];
        let (before, name) = (job.stage, job.name);
        (job.stage, job.updated) = (stage, now);
        // The routing includes the slots that are closed for writes.
        self.agenda.route = true;
        if before.name() != stage.name() {
            let line = format!("Slot migration {name} state transition: {} -> {}", before.name(), stage.name());
            self.log(Level::Notice, line);
        }
    }

    fn order(&mut self, at: usize, order: Order) {
        let name = self.moves.0[at].name;
        self.act(Action::Move { name, order });
    }

    fn say(&mut self, at: usize, word: Word, now: Millis) {
        self.moves.0[at].told = now;
        self.order(at, Order::Say(word));
    }

    fn fail_move(&mut self, at: usize, why: &str, now: Millis) {
        self.end_move(at, Stage::Failed, why, now);
    }

    /// Ends a move. The keys of a failed import are deleted before that.
    fn end_move(&mut self, at: usize, stage: Stage, why: &str, now: Millis) {
        let job = &mut self.moves.0[at];
        why.clone_into(&mut job.message);
        let (name, before, is_import) = (job.name, job.stage, job.is_import);
        if matches!(before, Stage::Granted { .. }) {
            // The file says that the slots are let go.
            self.saving.ask_now();
        }
        if before != Stage::OnPrimary {
            self.order(at, Order::End);
        }
        match (is_import, stage, before) {
            (true, Stage::Succeeded, _) => {
                self.set_stage(at, stage, now);
                self.settle_import(at, true, true);
            }
            // There is no connection whose end is to be waited for.
            (true, _, Stage::OnPrimary) => self.clean_up(at, now),
            (true, ..) => self.set_stage(at, Stage::Stopping, now),
            (false, ..) => self.set_stage(at, stage, now),
        }
        let level = if stage == Stage::Failed { Level::Warning } else { Level::Notice };
        let why = if why.is_empty() { "none" } else { why };
        self.log(level, format!("Slot migration {name} finished. State: {}, Message: {why}", stage.name()));
    }
}

//! Slots that move as a whole, as far as they are data and connections. This module carries out the orders of the machine
//! (`cluster::moves`).
//!
//! - `export` the source's connection, on a thread of its own
//! - `dump` the content of a slot, as commands
//! - `changes` the part of the journal that concerns the slots
//! - `import` the target's thread, which runs what comes

mod changes;
mod dump;
mod export;
mod import;

use std::sync::Arc;

use super::Cluster;
use crate::cluster::moves::{MoveInfo, Order, Progress, Settled};
use crate::cluster::note::{note_of_imports, parse_note};
use crate::cluster::{NodeId, SlotSet};
use crate::exec::cluster::state::lock;
use crate::exec::core::Instance;

pub use import::Landing;

impl Cluster {
    /// Does what is ordered for a move. Only the bus's thread does so: in this order.
    pub fn perform(&self, instance: &Arc<Instance>, name: NodeId, order: Order) {
        match order {
            Order::Connect(departure) => export::begin(instance, self.moving.open(name), name, departure),
            Order::Send | Order::Drain | Order::Say(_) | Order::End => {
                let line = lock(&self.moving.lines).get(&name).cloned();
                line.iter().for_each(|line| line.push(order.clone()));
            }
            Order::Drop(slots) => {
                self.node.lost.add(&slots);
                lock(&self.moving.dropping).push((name, slots));
            }
            Order::Hide(_) | Order::Settle(_) => unreachable!("what can be done at once is not left to this thread"),
        }
    }

    /// Hides the slots before any client sees the machine's decision.
    pub(super) fn hide(instance: &Instance, slots: &SlotSet) {
        instance.database(0).hide(slots.iter());
    }

    /// An import is over: nothing is hidden any more, and readers of the stream of changes are told.
    pub(super) fn settle(instance: &Instance, name: NodeId, settled: &Settled) {
        instance.database(0).show_slots(settled.slots.iter());
        if !settled.is_told || instance.replication.is_replica() {
            return;
        }
        let state = if settled.is_success { "success" } else { "failed" };
        let mut words = vec!["CLUSTER", "SYNCSLOTS", "FINISH", "STATE", state, "NAME", name.as_str()];
        if !settled.message.is_empty() {
            words.extend(["MESSAGE", &settled.message]);
        }
        instance.journal.tell(0, &words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
    }

    /// Tells the machine of imports of which nothing is left.
    pub(super) fn look_after_drops(&self, instance: &Instance) {
        let is_empty = |slots: &SlotSet| {
            let mut slots = slots.iter();
            slots.all(|slot| instance.database(0).settled_keys_in_slot(slot) == 0)
        };
        let mut done = Vec::new();
        lock(&self.moving.dropping).retain(|(name, slots)| {
            let is_done = is_empty(slots);
            done.extend(is_done.then_some(*name));
            !is_done
        });
        for name in done {
            self.progress(instance, name, Progress::Dropped);
        }
    }

    /// Something has become known of a move.
    pub fn progress(&self, instance: &Instance, name: NodeId, progress: Progress) {
        let is_end = progress == Progress::Ended;
        self.with(instance, |machine, now| machine.progress(name, progress, now));
        if is_end {
            self.moving.close(name);
        }
    }

    /// All data was deleted.
    pub(crate) fn flushed(&self, instance: &Instance) {
        if self.is_enabled() {
            self.with(instance, |machine, now| machine.flushed(now));
        }
    }

    /// All keys of a slot are deleted.
    pub(crate) fn slot_flushed(&self, instance: &Instance, slot: u16) {
        self.with(instance, |machine, now| machine.slot_flushed(slot, now));
    }

    /// The connection that was to bring slots is no more.
    pub(crate) fn lost_import(&self, instance: &Instance, name: NodeId) {
        self.progress(instance, name, Progress::Ended);
    }

    /// Moves that are under way, and the last that are over.
    pub(crate) fn moves(&self, instance: &Instance) -> Option<Vec<MoveInfo>> {
        self.with(instance, |machine, _| machine.moves())
    }

    /// Imports that are under way.
    pub(crate) fn imports(&self, instance: &Instance) -> Vec<(NodeId, Arc<SlotSet>)> {
        if !self.is_enabled() {
            return Vec::new();
        }
        self.with(instance, |machine, _| machine.imports()).unwrap_or_default()
    }

    /// A snapshot's note of imports that are under way: their names and slots. Empty if there are none.
    pub(crate) fn note_of_imports(&self, instance: &Instance) -> String {
        note_of_imports(&self.imports(instance))
    }

    /// Reads the note by [`Cluster::note_of_imports`] in the snapshot that is loaded now.
    pub(crate) fn take_note_of_imports(&self, instance: &Instance, note: &str) {
        for import in note.split(';') {
            let Some((name, slots)) = parse_note(import) else {
                tracing::warn!("what a snapshot says of slots that move is not understood: {import}");
                continue;
            };
            let watched = self.with(instance, |machine, now| machine.watch_import(name, slots, now));
            if let Some(Err(error)) = watched {
                tracing::warn!("slots of the snapshot that move: {error}");
            }
        }
    }

    /// The data is another server's now.
    pub(crate) fn forget_watched_imports(&self, instance: &Instance) {
        if self.is_enabled() {
            self.with(instance, |machine, now| machine.forget_watched_imports(now));
        }
    }
}

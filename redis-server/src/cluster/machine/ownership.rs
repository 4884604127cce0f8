//! The ownership of slots. Every claim carries the epoch in which its owner got the slots; the newer one is right.

use super::{Action, Flags, Key, Level, Machine, NodeId};
use crate::cluster::{BITMAP, SLOTS, SlotSet};

/// How a node comes by an epoch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EpochKind {
    /// Without having asked anybody.
    Alone,
    /// By the votes of a majority.
    Voted,
}

impl Machine {
    /// A member says which slots it has, or its primary.
    pub(super) fn take_slots(&mut self, sender: Key, config_epoch: u64, slots: &[u8; BITMAP]) {
        let Some(owner) = self.nodes.primary_of(sender) else { return };
        if self.nodes.at(owner).slots.to_set().bitmap() == slots {
            return;
        }
        let claimed = SlotSet::from_bitmap(slots);
        if owner == sender {
            self.take_claim(sender, config_epoch, &claimed);
        }
        // Tells a node about slots that it claims and that belong to another node with a newer epoch.
        let newer = claimed.iter().filter(|slot| !self.nodes.is_unclaimed(*slot)).find_map(|slot| {
            let owner = self.nodes.owner(slot)?;
            (owner != sender && self.nodes.at(owner).config_epoch > config_epoch).then_some(owner)
        });
        if let Some(owner) = newer {
            self.send_update(sender, owner);
        }
    }

    /// Handles UPDATE: another node has newer information on the owner of slots.
    pub(super) fn take_update(&mut self, id: NodeId, config_epoch: u64, slots: &[u8; BITMAP]) {
        let Some(owner) = self.nodes.find(id).filter(|owner| *owner != self.nodes.me()) else { return };
        if self.nodes.at(owner).is_handshake() || self.nodes.at(owner).config_epoch >= config_epoch {
            return;
        }
        self.nodes.promote(owner);
        self.nodes.at_mut(owner).config_epoch = config_epoch;
        self.changed();
        self.saving.ask_now();
        self.take_claim(owner, config_epoch, &SlotSet::from_bitmap(slots));
    }

    /// A primary claims slots since an epoch.
    fn take_claim(&mut self, claimant: Key, config_epoch: u64, claimed: &SlotSet) {
        let me = self.nodes.me();
        if claimant == me {
            return;
        }
        let ours = self.my_primary();
        let (mut lost, mut changed) = (SlotSet::EMPTY, false);
        for slot in 0..SLOTS as u16 {
            let owner = self.nodes.owner(slot);
            if owner == Some(claimant) {
                // A slot that its owner has not any more is nobody's, but stays known as its.
                self.nodes.set_unclaimed(slot, !claimed.has(slot));
                continue;
            }
            // Only the operator changes a slot that is being imported.
            if !claimed.has(slot) || self.importing.contains_key(&slot) {
                continue;
            }
            let is_older = owner.is_none_or(|owner| self.nodes.at(owner).config_epoch < config_epoch);
            if is_older || self.nodes.is_unclaimed(slot) {
                if owner.is_some() && owner == ours {
                    lost.add(slot);
                }
                self.migrating.remove(&slot);
                self.nodes.assign(slot, claimant);
                changed = true;
            }
        }
        if !changed {
            return;
        }
        self.changed();
        self.saving.ask_now();
        self.after_loss(claimant, &lost, claimed.len());
    }

    /// Adapts this node after `taker` took `lost` slots from it or its primary. `claimed` is the number of slots that `taker` claims.
    fn after_loss(&mut self, taker: Key, lost: &SlotSet, claimed: usize) {
        let nothing_left = self.my_primary().is_some_and(|ours| self.nodes.at(ours).slots.len() == 0);
        let may_follow = self.settings.allow_replica_migration || claimed == lost.len();
        if !lost.is_empty() && nothing_left && may_follow {
            let line = format!(
                "Configuration change detected. Reconfiguring myself as a replica of {}",
                self.nodes.at(taker).id
            );
            self.log(Level::Notice, line);
            self.follow(taker);
            return;
        }
        if self.nodes.myself().is_primary() {
            for slot in lost.iter() {
                self.doomed.add(slot);
            }
        }
        self.leave_chain();
    }

    /// A replica of a replica follows that one's primary.
    pub(super) fn leave_chain(&mut self) {
        let above = self.nodes.myself().primary.and_then(|primary| self.nodes.at(primary).primary);
        if let Some(above) = above.filter(|above| *above != self.nodes.me()) {
            let line = format!("I'm a sub-replica! Reconfiguring myself to follow {}", self.nodes.at(above).id);
            self.log(Level::Notice, line);
            self.follow(above);
        }
    }

    /// Two primaries with one epoch: the one of the smaller name takes a new one.
    pub(super) fn settle_collision(&mut self, sender: Key, config_epoch: u64) {
        let (me, node) = (self.nodes.myself(), self.nodes.at(sender));
        let collides = config_epoch == me.config_epoch && me.is_primary() && node.is_primary();
        // Released slots belong to an epoch above this one. The collision is settled when their owner is known.
        if !collides || node.id <= me.id || self.moves.are_letting_go() {
            return;
        }
        let other = node.id;
        self.take_new_epoch();
        let line = format!(
            "WARNING: configEpoch collision with node {other}. configEpoch set to {}",
            self.nodes.myself().config_epoch
        );
        self.log(Level::Verbose, line);
    }

    /// Takes a new epoch for itself, without having asked anybody. Whether it needed one.
    pub(super) fn bump_epoch_alone(&mut self) -> bool {
        let highest = self.highest_epoch();
        let mine = self.nodes.myself().config_epoch;
        if mine != 0 && mine == highest {
            return false;
        }
        self.current_epoch = highest;
        self.take_new_epoch();
        let line = format!("New configEpoch set to {}", self.nodes.myself().config_epoch);
        self.log(Level::Notice, line);
        true
    }

    /// The highest epoch that this node has seen.
    pub(super) fn highest_epoch(&self) -> u64 {
        self.nodes.iter().map(|(_, node)| node.config_epoch).fold(self.current_epoch, u64::max)
    }

    /// A new epoch above `seen`, and above all that this node has seen.
    pub(super) fn epoch_above(&mut self, seen: u64) -> u64 {
        self.current_epoch = self.highest_epoch().max(seen);
        self.next_epoch(EpochKind::Alone)
    }

    fn take_new_epoch(&mut self) {
        self.nodes.myself_mut().config_epoch = self.next_epoch(EpochKind::Alone);
        self.saving.ask_now();
    }

    /// Begins the next epoch of its kind. Epochs taken alone are odd, those of elections even: so who takes one while others vote,
    /// as a node that gets a slot does and a takeover, never has slots in the epoch of somebody who has won them.
    pub(super) fn next_epoch(&mut self, kind: EpochKind) -> u64 {
        let next = self.current_epoch.saturating_add(1);
        let is_of_kind = next.is_multiple_of(2) == (kind == EpochKind::Voted);
        self.current_epoch = if is_of_kind { next } else { next.saturating_add(1) };
        self.current_epoch
    }

    /// Makes this node the primary of its primary's slots.
    pub(super) fn replace_primary(&mut self, now: u64) {
        let me = self.nodes.me();
        let Some(old) = self.nodes.myself().primary.filter(|_| !self.nodes.myself().is_primary()) else { return };
        self.nodes.promote(me);
        for slot in self.nodes.at(old).slots.clone().iter() {
            self.nodes.assign(slot, me);
        }
        self.nodes.myself_mut().flags.clear(Flags::REPLICA);
        self.agenda.promote = true;
        self.changed();
        self.saving.ask_now();
        self.end_election();
        // The others hear it in this very packet.
        self.judge_health(now);
        self.tell_all(false, now);
        self.end_manual();
    }

    /// Reports lost slots to the owner of the data, for subscribers, waiting clients and keys to delete.
    pub(super) fn settle_losses(&mut self) {
        let served = self.my_primary().map_or(SlotSet::EMPTY, |key| self.nodes.at(key).slots.to_set());
        let before = std::mem::replace(&mut self.served, served);
        let doomed = std::mem::replace(&mut self.doomed, SlotSet::EMPTY);
        let lost = before.without(&self.served);
        let kept = lost.without(&doomed);
        let dropped = lost.without(&kept);
        for (slots, delete_keys) in [(kept, false), (dropped, true)] {
            if !slots.is_empty() {
                self.act(Action::SlotsLost { slots: Box::new(slots), delete_keys });
            }
        }
    }
}

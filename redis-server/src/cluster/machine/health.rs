//! Whether the cluster serves its slots, as this node sees it.

use super::Machine;
use crate::cluster::packet::Flags;
use crate::cluster::{Level, Millis, SLOTS};

/// After its start a primary refuses writes for so long: others may have taken its slots meanwhile, and must get to say so.
const WRITABLE_DELAY: Millis = 2000;

/// A primary that was with the minority waits for a timeout before it takes writes again, within these bounds.
const REJOIN_DELAY: [Millis; 2] = [500, 5000];

impl Machine {
    pub(super) fn judge_health(&mut self, now: Millis) {
        let is_primary = self.nodes.myself().is_primary();
        if is_primary && !self.health.is_ok && now.saturating_sub(self.health.started_at) < WRITABLE_DELAY {
            return;
        }
        let failed_owner = self.nodes.iter().any(|(_, node)| node.slots.len() > 0 && node.has_failed());
        let is_covered = self.nodes.assigned() == SLOTS && !failed_owner;
        let (votes, reachable) = self.count_votes();
        let has_majority = reachable > votes / 2;
        if !has_majority {
            self.health.minority_at = now;
        }
        let is_ok = has_majority && (is_covered || !self.settings.require_full_coverage);
        if is_ok == self.health.is_ok {
            return;
        }
        let [least, most] = REJOIN_DELAY;
        let delay = self.settings.node_timeout.clamp(least, most);
        if is_ok && is_primary && now.saturating_sub(self.health.minority_at) < delay {
            return;
        }
        self.health.is_ok = is_ok;
        self.agenda.route = true;
        self.log(Level::Notice, format!("Cluster state changed: {}", if is_ok { "ok" } else { "fail" }));
    }

    /// Whether there are primaries with slots, and most of them are out of reach.
    pub(super) fn is_cut_off(&self) -> bool {
        let (votes, reachable) = self.count_votes();
        votes > 0 && reachable <= votes / 2
    }

    /// The number of nodes with a vote, and how many of them are reachable.
    fn count_votes(&self) -> (usize, usize) {
        self.nodes.iter().filter(|(_, node)| node.has_vote()).fold((0, 0), |(votes, reachable), (_, node)| {
            (votes + 1, reachable + usize::from(!node.flags.any(Flags::FAILED.and(Flags::MAYBE_FAILED))))
        })
    }
}

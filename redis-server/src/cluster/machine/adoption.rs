//! A replica of a primary that has several goes to one that has none any more (`cluster-allow-replica-migration`).

use super::failure::Orphans;
use super::{Flags, Key, Level, Machine, Millis};

/// A primary must have been without replicas for so long: they may only be restarting.
const DELAY: Millis = 5000;

impl Machine {
    pub(super) fn adopt(&mut self, orphans: Orphans, now: Millis) {
        self.note_orphans(now);
        let may = self.settings.allow_replica_migration && self.health.is_ok;
        if !may || orphans.orphaned == 0 || orphans.most < 2 || orphans.ours != orphans.most {
            return;
        }
        let Some(primary) = self.nodes.myself().primary else { return };
        if self.nodes.good_replicas(primary) <= self.settings.migration_barrier || !self.is_candidate(orphans.most) {
            return;
        }
        let waits = self.nodes.iter().filter(|(_, node)| node.orphaned_since != 0);
        let target = waits.min_by_key(|(_, node)| node.id).map(|(key, node)| (key, node.orphaned_since));
        if let Some((target, _)) = target.filter(|(_, since)| now.saturating_sub(*since) > DELAY) {
            self.log(Level::Notice, format!("Migrating to orphaned master {}", self.nodes.at(target).id));
            self.follow(target);
        }
    }

    /// Notes since when primaries have been without replicas.
    fn note_orphans(&mut self, now: Millis) {
        for key in self.nodes.keys() {
            let is_orphan = self.is_orphan(key);
            let node = self.nodes.at_mut(key);
            node.orphaned_since = match (is_orphan, node.orphaned_since) {
                (false, _) => 0,
                (true, 0) => now,
                (true, since) => since,
            };
        }
    }

    fn is_orphan(&self, key: Key) -> bool {
        let node = self.nodes.at(key);
        node.is_primary()
            && !node.has_failed()
            && node.slots.len() > 0
            && node.flags.any(Flags::MIGRATE_TO)
            && self.nodes.good_replicas(key) == 0
    }

    /// Of all replicas of primaries that have so many, the one of the smallest name goes.
    fn is_candidate(&self, most: usize) -> bool {
        let me = self.nodes.myself().id;
        let rich = self
            .nodes
            .iter()
            .filter(|(key, node)| node.is_primary() && !node.has_failed() && self.nodes.good_replicas(*key) == most);
        let mut replicas = rich.flat_map(|(_, node)| &node.replicas).map(|key| self.nodes.at(*key));
        replicas.all(|node| node.has_failed() || node.id >= me)
    }
}

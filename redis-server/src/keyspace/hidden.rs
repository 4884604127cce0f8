//! Slots whose keys are on their way to this node. The keys are invisible, and neither expire nor are evicted, as the source node decides
//! on both.

use std::sync::atomic::Ordering::SeqCst;

use super::database::Database;
use super::entry::Entry;
use super::table;
use super::view::View;

impl Database {
    /// Walks, counts and chance pass by the keys of these slots from now on.
    pub fn hide(&self, slots: impl Iterator<Item = u16>) {
        let words = self.hidden.words();
        slots.for_each(|slot| _ = words[usize::from(slot) / 64].fetch_or(1 << (slot % 64), SeqCst));
    }

    /// Takes [`Database::hide`] back.
    pub fn show_slots(&self, slots: impl Iterator<Item = u16>) {
        let words = self.hidden.words();
        slots.for_each(|slot| _ = words[usize::from(slot) / 64].fetch_and(!(1 << (slot % 64)), SeqCst));
    }

    /// Returns true if any slots are hidden.
    pub fn hides_slots(&self) -> bool {
        self.hidden.words().iter().any(|word| word.load(SeqCst) != 0)
    }

    /// Number of keys that are hidden.
    pub(super) fn hidden_keys(&self) -> usize {
        self.hidden.slots().filter(|slot| self.hidden.has(*slot)).map(|slot| self.len_of(slot)).sum()
    }

    /// [`Database::len`] without what is hidden.
    pub fn shown_len(&self) -> usize {
        self.len().saturating_sub(self.hidden_keys())
    }
}

impl View<'_> {
    /// The shards that have entries and are not hidden.
    pub(super) fn shown_shards(&self) -> impl Iterator<Item = usize> {
        self.used_shards().filter(|&shard| !self.db.hidden.has(shard))
    }

    /// [`View::for_each`] without what is hidden.
    pub fn for_each_shown(&self, mut visit: impl FnMut(&Entry) -> bool) {
        for shard in self.shown_shards() {
            let mut live = |entry: &Entry| entry.is_expired(self.expired_by) || visit(entry);
            let more = self.with_shard(shard, |table| table::entries(table).all(&mut live));
            if !more {
                return;
            }
        }
    }

    /// [`View::len`] without what is hidden.
    pub fn shown_len(&self) -> usize {
        self.len().saturating_sub(self.db.hidden_keys())
    }
}

#[cfg(test)]
mod tests {
    use foldhash::quality::RandomState;

    use super::*;
    use crate::cluster::slot_of;
    use crate::keyspace::{Access, Value};

    #[test]
    fn hidden_keys_are_invisible_and_do_not_expire() {
        let db = Database::by_slot(RandomState::default());
        for name in ["{a}1", "{a}2", "b"] {
            let key = db.key(name.as_bytes());
            db.lock([(key.shard(), Access::Write)].into_iter(), 1).set(&key, Value::Int(1), Some(5));
        }
        let walk = || {
            let (view, mut met) = (db.lock_none(1), Vec::new());
            let next = view.scan(0, 100, |_| true, |entry| met.push(entry.key().to_vec()));
            assert_eq!(next, 0);
            let mut listed = Vec::new();
            view.for_each_shown(|entry| {
                listed.push(entry.key().to_vec());
                true
            });
            assert_eq!(met, listed);
            let mut random = 0;
            let drawn = view.random_key(|| {
                random += 1;
                random
            });
            (met, view.shown_len(), drawn.is_some())
        };
        assert_eq!((walk().0.len(), walk().1), (3, 3));
        let slot = slot_of(b"a");
        db.hide([slot, 3].into_iter());
        assert_eq!(walk(), (vec![b"b".to_vec()], 1, true));
        assert_eq!((db.len(), db.keys_in_slot(slot)), (3, 2), "they are there");
        let removed = db.expire_shard(slot.into(), 10, 10);
        assert!(removed.entries.is_empty(), "who sends them says when they go");
        db.hide([slot_of(b"b")].into_iter());
        assert_eq!(walk(), (Vec::new(), 0, false));
        db.show_slots([slot, 3, slot_of(b"b")].into_iter());
        assert_eq!((walk().0.len(), walk().1), (3, 3));
        assert_eq!(db.expire_shard(slot.into(), 10, 10).entries.len(), 2);
    }
}

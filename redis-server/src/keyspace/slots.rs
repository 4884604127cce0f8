//! Operations of a cluster node on a whole hash slot, which is a shard of its database ([`Database::by_slot`]).

use super::database::Database;
use super::entry::Entry;
use super::key::{Access, Happening, Key};
use super::reaper::Removed;
use super::table;
use super::view::View;

impl Database {
    /// Number of keys of a slot, expired ones that nobody has met yet included.
    pub fn keys_in_slot(&self, slot: u16) -> usize {
        self.len_of(slot.into())
    }

    /// [`Database::keys_in_slot`], when those have ended who have locked the slot by now.
    pub fn settled_keys_in_slot(&self, slot: u16) -> usize {
        self.made().map_or(0, |shards| shards.guard(slot.into(), Access::Read).table().len())
    }

    /// Passes the entries of a slot to `read`. Meanwhile, only slow calls that have borrowed them may change them ([`Database::is_lent`]).
    pub fn read_slot<R>(&self, slot: u16, read: impl FnOnce(&mut dyn Iterator<Item = &Entry>) -> R) -> R {
        let guard = self.guard(slot.into(), Access::Read);
        let mut entries = table::entries(guard.table());
        read(&mut entries)
    }

    /// Whether what a key holds is lent, and may be elsewhere; exact under its shard's lock.
    pub fn is_lent(&self, key: &[u8]) -> bool {
        self.loans.has_any() && self.loans.has(self.hash(key))
    }

    /// Up to `most` keys of a slot.
    pub fn slot_keys(&self, slot: u16, most: usize) -> Vec<Box<[u8]>> {
        let Some(shards) = self.made() else { return Vec::new() };
        let guard = shards.guard(slot.into(), Access::Read);
        table::entries(guard.table()).take(most).map(|entry| entry.key().into()).collect()
    }

    /// Removes up to `limit` entries of a slot that another node has now, and returns them, so that the caller drops them without the lock.
    /// Entries that are lent stay, and so do large ones that a snapshot has to save first. Returns `None` if the lock is taken.
    pub fn drop_slot(&self, slot: u16, limit: usize) -> Option<Vec<Entry>> {
        let Some(shards) = self.made() else { return Some(Vec::new()) };
        let shard = usize::from(slot);
        let mut guard = shards.try_exclusive(shard)?;
        let hashes: Vec<u64> = table::entries(&guard.table)
            .filter(|entry| !self.saves_vast_first(entry))
            .map(|entry| self.hash(entry.key()))
            .filter(|&hash| !self.loans.has(hash))
            .take(limit)
            .collect();
        let take = |hash: u64| {
            let entry = table::take(&mut guard.table, hash, |_| true, self.rehash())?;
            self.save_first(&entry);
            let key = Key::new(entry.key(), hash, slot.into());
            if entry.expire_at().is_some() {
                self.deadlines(shard).forget_evicted(hash);
            }
            self.gone(&key);
            self.tell(Happening::Gone { is_evicted: false }, key.bytes);
            Some(entry)
        };
        Some(hashes.into_iter().filter_map(take).collect())
    }
}

impl View<'_> {
    /// The keys of a slot, those whose time is over too.
    pub fn slot_keys(&self, slot: u16) -> Vec<Box<[u8]>> {
        self.with_shard(slot.into(), |table| table::entries(table).map(|entry| entry.key().into()).collect())
    }

    /// Takes every entry of a slot out, to be given to [`Database::save_removed`]. Its shard must be locked exclusively.
    pub fn clear_slot(&mut self, slot: u16) -> Removed {
        let db = self.database();
        if let Some(shards) = db.made().filter(|shards| shards.earliest(slot.into()) != u64::MAX) {
            shards.deadlines(slot.into()).clear();
        }
        let table = std::mem::take(self.table_mut(&Key::new(b"", 0, slot.into())));
        table::entries(&table).for_each(|entry| db.note_change(entry));
        Removed { table, epoch: db.cut.epoch() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use foldhash::quality::RandomState;

    use super::*;
    use crate::cluster::{SLOTS, slot_of};
    use crate::keyspace::Value;

    /// 3000 keys, half of them of one slot, a third of which expire.
    fn filled() -> (Database, u16) {
        let db = Database::by_slot(RandomState::default());
        let names: Vec<String> =
            (0..3000).map(|n| if n % 2 == 0 { format!("{{a}}{n}") } else { format!("k{n}") }).collect();
        for names in names.chunks(32) {
            let mut keys: Vec<_> = names.iter().map(|name| (db.key(name.as_bytes()), Access::Write)).collect();
            let mut view = db.lock_keys(&mut keys, 1);
            for (at, (key, _)) in keys.iter().enumerate() {
                view.set(key, Value::Int(at as i64), (at % 3 == 0).then_some(1_000_000));
            }
        }
        (db, slot_of(b"a"))
    }

    #[test]
    fn a_slot_s_keys_are_counted_and_listed() {
        let (db, slot) = filled();
        assert_eq!((db.len(), db.shards()), (3000, SLOTS));
        let all: BTreeSet<_> = db.slot_keys(slot, usize::MAX).into_iter().collect();
        assert!(all.len() >= 1500 && all.iter().all(|key| slot_of(key) == slot));
        assert_eq!(db.keys_in_slot(slot), all.len());
        assert_eq!(db.slot_keys(slot, 7).len(), 7);
        let sum: usize = (0..SLOTS as u16).map(|slot| db.keys_in_slot(slot)).sum();
        assert_eq!(sum, 3000);
    }

    #[test]
    fn keys_of_many_slots_are_found_under_common_locks() {
        let (db, _) = filled();
        let names: Vec<String> = (0..32).map(|n| format!("k{}", 2 * n + 1)).collect();
        let mut keys: Vec<_> = names.iter().map(|name| (db.key(name.as_bytes()), Access::Read)).collect();
        let view = db.lock_keys(&mut keys, 1);
        view.prefetch(&mut keys);
        assert!(keys.iter().all(|(key, _)| view.get(key).is_some()));
    }

    #[test]
    fn a_walk_meets_every_key_once() {
        let (db, _) = filled();
        let (mut cursor, mut seen) = (0, Vec::new());
        loop {
            cursor = db.lock_none(1).scan(cursor, 10, |_| true, |entry| seen.push(entry.key().to_vec()));
            if cursor == 0 {
                break;
            }
        }
        assert_eq!((seen.len(), seen.iter().collect::<BTreeSet<_>>().len()), (3000, 3000));
    }

    #[test]
    fn a_slot_that_has_gone_is_emptied_in_slices_and_no_other_is() {
        let (db, slot) = filled();
        let (before, expiring) = (db.keys_in_slot(slot), db.expiring());
        let first = db.drop_slot(slot, 100).unwrap();
        assert_eq!((first.len(), db.keys_in_slot(slot)), (100, before - 100));
        let rest = db.drop_slot(slot, usize::MAX).unwrap();
        assert_eq!((rest.len(), db.keys_in_slot(slot), db.len()), (before - 100, 0, 3000 - before));
        let gone = first.iter().chain(&rest).filter(|entry| entry.expire_at().is_some()).count();
        assert_eq!(db.expiring(), expiring - gone);
        let key = db.key(b"{a}0");
        let guard = db.lock([(key.shard(), Access::Write)].into_iter(), 1);
        assert!(db.drop_slot(slot, 1).is_none(), "nobody waits for its lock");
        drop(guard);
    }
}

//! The place of one key: looked up once, it is read, changed, filled or emptied.

use super::entry::Entry;
use super::key::{Happening, Key, UNPLACED};
use super::table;
use super::value::Value;
use super::view::View;

/// Where an entry is, or would be.
pub struct Slot<'v, 'a, 'k> {
    view: &'v mut View<'a>,
    /// With its bucket, if there is an entry.
    key: Key<'k>,
}

impl<'a> View<'a> {
    /// The place of `key`, for a command that changes it. An existing entry counts as used. An expired one is removed first.
    pub fn slot<'v, 'k>(&'v mut self, key: &Key<'k>) -> Slot<'v, 'a, 'k> {
        let (db, by, mut key) = (self.db, self.expired_by, *key);
        let index = table::live_index(self.table_mut(&key), &key, by, |entry| db.expired(&key, entry));
        key.bucket = index.map_or(UNPLACED, |index| index as u32);
        let slot = Slot { view: self, key };
        if let Some(entry) = slot.entry() {
            slot.view.trace.leave(entry);
        }
        slot
    }

    /// Replaces only the value; the expiry stays.
    pub fn set_keep_ttl(&mut self, key: &Key<'_>, value: Value<'_>) {
        self.db.note_value(key.bytes, &value);
        match self.get_mut(key) {
            Some(entry) => {
                if let Some(old) = entry.replace_value(value) {
                    self.db.discard(old);
                }
            }
            None => self.set(key, value, None),
        }
    }

    /// Stores a new object under `key`, without expiry, in the place of the entry that is returned, if there was one.
    pub fn replace(&mut self, key: &Key<'_>, value: Value<'_>) -> Option<Entry> {
        let entry = self.new_entry(key, value, None);
        let slot = self.slot(key);
        if slot.entry().is_none() {
            slot.view.db.tell(Happening::Added, key.bytes);
        }
        slot.put(entry)
    }

    /// Stores a whole entry, which was made for `key`, with its expiry; returns the one that was there. The key counts
    /// as new in any case, as in the genuine server.
    pub fn put(&mut self, key: &Key<'_>, entry: Entry) -> Option<Entry> {
        let slot = self.slot(key);
        slot.view.db.tell(Happening::Added, key.bytes);
        slot.put(entry)
    }

    /// Stores a whole entry, which was made for `key`, with its expiry, and tells nobody; false if the key is there, and
    /// keeps what it has.
    pub fn add(&mut self, key: &Key<'_>, entry: Entry) -> bool {
        let is_new = !self.holds(key);
        if is_new {
            self.insert(key, entry);
        }
        is_new
    }

    /// Removes a live entry and returns it.
    pub fn remove(&mut self, key: &Key<'_>) -> Option<Entry> {
        self.slot(key).take()
    }

    /// Sets or clears the expiry of a live entry, in milliseconds of Unix time; false if there is none.
    pub fn expire(&mut self, key: &Key<'_>, at: Option<u64>) -> bool {
        self.slot(key).expire(at)
    }
}

impl Slot<'_, '_, '_> {
    /// The entry of the key.
    pub fn entry(&self) -> Option<&Entry> {
        table::entry_at(self.view.table(&self.key), self.key.bucket as usize, self.key.bytes)
    }

    /// The entry of the key, for changes. Expiry is changed by [`Slot::expire`] only.
    pub fn entry_mut(&mut self) -> Option<&mut Entry> {
        let (key, db) = (self.key, self.view.db);
        let entry = table::entry_at_mut(self.view.table_mut(&key), key.bucket as usize, key.bytes)?;
        // A snapshot in the making has to see it first.
        db.save_first(entry);
        Some(entry)
    }

    /// Takes out what is there.
    pub fn take(&mut self) -> Option<Entry> {
        let (key, db) = (self.key, self.view.db);
        self.entry_mut()?;
        let entry = table::take_at(self.view.table_mut(&key), key.bucket as usize, key.bytes, db.rehash())?;
        self.key.bucket = UNPLACED;
        if entry.expire_at().is_some() {
            self.view.reindex(&key, true, None);
        }
        Some(entry)
    }

    /// Stores an entry, which was made for this key; returns the one that was there.
    pub fn put(mut self, entry: Entry) -> Option<Entry> {
        let replaced = self.take();
        self.view.insert(&self.key, entry);
        replaced
    }

    /// Sets or clears the expiry of what is there, in milliseconds of Unix time; false if nothing is.
    pub fn expire(mut self, at: Option<u64>) -> bool {
        let Some(entry) = self.entry_mut() else { return false };
        let had = entry.expire_at().is_some();
        entry.set_expire_at(at);
        self.view.reindex(&self.key, had, at);
        true
    }
}

#[cfg(test)]
mod tests {
    use foldhash::quality::RandomState;

    use super::*;
    use crate::keyspace::{Access, Database};

    #[test]
    fn a_slot_is_read_changed_emptied_and_filled() {
        let db = Database::new(4, RandomState::default());
        let key = db.key(b"k");
        let mut view = db.lock([(key.shard(), Access::Write)].into_iter(), 1_000);
        assert!(view.slot(&key).entry().is_none() && view.slot(&key).take().is_none());
        assert!(!view.slot(&key).expire(Some(5_000)), "nothing expires where nothing is");
        assert!(view.put(&key, Entry::new(b"k", Value::Int(1), None)).is_none());
        let mut slot = view.slot(&key);
        drop(slot.entry_mut().unwrap().replace_value(Value::Int(2)));
        assert_eq!(slot.entry().unwrap().string().unwrap().to_vec(), b"2");
        assert!(slot.expire(Some(5_000)));
        assert_eq!((view.len(), db.expiring()), (1, 1));
        let replaced = view.replace(&key, Value::Int(3)).unwrap();
        assert_eq!((replaced.expire_at(), db.expiring()), (Some(5_000), 0));
        let mut slot = view.slot(&key);
        assert_eq!(slot.take().unwrap().string().unwrap().to_vec(), b"3");
        assert!(slot.entry().is_none() && slot.entry_mut().is_none(), "what was taken is not there any more");
        assert_eq!(view.len(), 0);
    }

    #[test]
    fn an_entry_whose_time_is_over_is_in_no_slot() {
        let db = Database::new(4, RandomState::default());
        let key = db.key(b"k");
        let mut view = db.lock([(key.shard(), Access::Write)].into_iter(), 1_000);
        view.set(&key, Value::Int(1), Some(999));
        assert!(view.holds(&key) && !view.holds_live(&key));
        assert!(view.slot(&key).entry().is_none());
        assert!(!view.holds(&key), "it is removed");
        assert_eq!(db.expired_count(), 1);
    }
}

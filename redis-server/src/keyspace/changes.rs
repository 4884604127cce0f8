//! Names of documents that have changed: of keys that hold, or held, a hash or a JSON document.
//!
//! A writer notes the key under the exclusive lock of its shard, before the change. The reader of the names locks the shard after it has
//! taken them, and so finds the key as it is behind the change. Without a reader a writer looks at one flag.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::database::Database;
use super::entry::Entry;
use super::key::{Access, Happening, Key};
use super::table;
use super::value::{Object, Value, ValueRef};
use crate::keyspace::parts::PARTS;

/// The keys that have changed since the last look.
#[derive(Debug, Default)]
pub struct Changed {
    /// Every key may have changed.
    pub all: bool,
    /// The names of those that have changed, in the order of their last changes.
    pub keys: Vec<Box<[u8]>>,
}

/// The outcome of [`Database::drop_key`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// The key was removed.
    Gone,
    /// There is no such key.
    Absent,
    /// A slow call has borrowed it.
    Lent,
}

/// Whether a value is one that documents are made of.
pub(super) fn is_document(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Hash(_) | ValueRef::Json(_))
}

/// [`is_document`] of a value to be stored.
pub(super) fn stores_document(value: &Value<'_>) -> bool {
    matches!(value, Value::Object(Object::Hash(_) | Object::Json(_)))
}

impl Database {
    /// Begins or ends to note the names of changed documents.
    pub fn note_changes(&self, is_on: bool) {
        self.changes.is_on.store(is_on, SeqCst);
        if !is_on {
            drop(self.take_changes());
        }
    }

    /// The names of documents that have changed since the last call.
    pub fn take_changes(&self) -> Changed {
        let all = self.changes.all.swap(false, SeqCst);
        let taken = (0..PARTS).flat_map(|part| std::mem::take(&mut *self.changes.part(part)));
        let mut keys: Vec<(Box<[u8]>, u64)> = taken.collect();
        keys.sort_unstable_by_key(|(_, number)| *number);
        Changed { all, keys: keys.into_iter().map(|(key, _)| key).collect() }
    }

    /// Whether a document has changed since the last call of [`Database::take_changes`].
    pub fn has_changes(&self) -> bool {
        self.changes.all.load(Relaxed) || (0..PARTS).any(|part| !self.changes.part(part).is_empty())
    }

    /// An entry is about to change, to go, or has come. The caller has its shard locked exclusively.
    #[inline]
    pub(super) fn note_change(&self, entry: &Entry) {
        if self.changes.is_on.load(Relaxed) && is_document(entry.value()) {
            self.changes.add(entry.key());
        }
    }

    /// The key gets this value in an entry that is there.
    #[inline]
    pub(super) fn note_value(&self, key: &[u8], value: &Value<'_>) {
        if self.changes.is_on.load(Relaxed) && stores_document(value) {
            self.changes.add(key);
        }
    }

    /// All entries change at once. The caller has all shards locked exclusively.
    pub(super) fn note_all(&self) {
        if self.changes.is_on.load(Relaxed) {
            self.changes.all.store(true, SeqCst);
        }
    }

    /// Whether a slow call has borrowed what `key` holds to change it; exact under the lock of its shard.
    pub fn is_away(&self, key: &Key<'_>) -> bool {
        self.loans.has_any() && self.loans.has_for(key.hash, Access::Write)
    }

    /// Removes a key and frees what it holds. The caller holds no lock of a shard, and no thread is alone meanwhile.
    pub fn drop_key(&self, name: &[u8]) -> Dropped {
        let key = self.key(name);
        let Some(shards) = self.made() else { return Dropped::Absent };
        let mut guard = shards.guard(key.shard as usize, Access::Write);
        if self.loans.has(key.hash) {
            return Dropped::Lent;
        }
        let taken = table::take(guard.table_mut(), key.hash, |entry| entry.key() == name, self.rehash());
        let Some(entry) = taken else { return Dropped::Absent };
        self.save_first(&entry);
        if entry.expire_at().is_some() {
            self.deadlines(key.shard as usize).forget_evicted(key.hash);
        }
        self.gone(&key);
        self.tell(Happening::Gone { is_evicted: false }, name);
        drop(guard);
        self.discard(entry);
        Dropped::Gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::View;
    use crate::types::{Hash, HashLimits};

    fn locked<'a>(db: &'a Database, key: &Key<'_>) -> View<'a> {
        db.lock([(key.shard(), Access::Write)].into_iter(), 1)
    }

    fn hash() -> Value<'static> {
        let mut hash = Hash::default();
        hash.set(b"field", b"value", HashLimits::default());
        Value::Object(Object::Hash(Box::new(hash)))
    }

    fn names(db: &Database) -> Vec<Vec<u8>> {
        let mut names: Vec<Vec<u8>> = db.take_changes().keys.iter().map(|name| name.to_vec()).collect();
        names.sort();
        names
    }

    #[test]
    fn every_way_of_a_document_is_noted_once_and_strings_are_not() {
        let db = Database::new(4, foldhash::quality::RandomState::default());
        let (key, other, text) = (db.key(b"h"), db.key(b"i"), db.key(b"s"));
        locked(&db, &key).replace(&key, hash());
        assert!(!db.has_changes(), "nobody has asked");
        db.note_changes(true);
        locked(&db, &text).set(&text, Value::Int(1), None);
        assert_eq!(names(&db), Vec::<Vec<u8>>::new());
        locked(&db, &other).replace(&other, hash());
        locked(&db, &key).get_mut(&key);
        locked(&db, &key).expire(&key, Some(100));
        assert_eq!(names(&db), [b"h", b"i"]);
        assert_eq!(names(&db), Vec::<Vec<u8>>::new());
        locked(&db, &other).set(&other, Value::Int(1), None);
        locked(&db, &text).replace(&text, hash());
        assert_eq!(names(&db), [b"i", b"s"], "one is no document any more, the other has become one");
        (0..4).for_each(|shard| drop(db.expire_shard(shard, 200, 16)));
        assert_eq!(db.drop_key(b"s"), Dropped::Gone);
        assert_eq!(db.drop_key(b"s"), Dropped::Absent);
        assert_eq!(names(&db), [b"h", b"s"]);
        drop(db.lock_all(Access::Write, 1).clear());
        assert!(db.take_changes().all);
    }

    /// A key that a slow call changes is noted when it is back.
    #[test]
    fn a_loan_is_noted_when_it_is_given_back() {
        let db = Database::new(2, foldhash::quality::RandomState::default());
        let key = db.key(b"h");
        locked(&db, &key).replace(&key, hash());
        db.note_changes(true);
        let mut view = db.lock_none(1);
        // SAFETY: there is no other view.
        #[allow(unsafe_code, reason = "the test holds the only view")]
        unsafe {
            view.lend(&[(key, Access::Write)]);
        }
        assert!(db.is_away(&key));
        names(&db);
        drop(view);
        assert!(!db.is_away(&key));
        assert_eq!(names(&db), [b"h"]);
    }
}

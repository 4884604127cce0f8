//! Loans: a slow call works on what its keys hold while their shards are unlocked, so that nobody waits for their neighbours.
//!
//! A read-only key's value stays in place: the loan has a second pointer to the block. A value that may change moves into the loan, and a
//! stand-in takes its place, with the key, the type and the deadline. A walk through the database (SCAN, KEYS, DBSIZE, RANDOMKEY) therefore
//! finds the keys as they were when the call began.
//!
//! A loan keeps its entries from those who are not asked to wait for slow calls, the removal of expired entries and eviction:
//! both leave out the [`Loans`](super::parts::Loans) of a database. From all others they are kept by the marks of slow calls
//! ([`Database::lend`](View::lend) says what must hold).
#![allow(unsafe_code, reason = "one entry is read by a slow call and by others, and no lock says for how long")]

use dashmap::SharedValue;

use super::database::Database;
use super::entry::Entry;
use super::key::{Access, Key};
use super::shards::{self, Guard};
use super::table::{self, Table};
use super::value::{Object, Value, ValueRef};
use super::view::View;
use crate::keyspace::parts::{Hashes, access};

/// The entries that one call has borrowed.
pub(super) struct Loan<'a> {
    db: &'a Database,
    hashes: Hashes,
    /// Second pointers to entries, which must not be dropped.
    read: Table,
    write: Table,
    stand_ins: Vec<StandIn>,
    /// Whether a snapshot in the making has yet to save some of `write`.
    has_unsaved: bool,
    /// Entries that had expired, were taken out, and are yet to be saved.
    expired: Vec<Entry>,
}

/// An entry that stands in its shard's table for one that is lent.
struct StandIn {
    shard: u32,
    hash: u64,
    address: *const u8,
    expire_at: Option<u64>,
}

impl StandIn {
    fn is(&self, entry: &Entry) -> bool {
        entry.address() == self.address
    }
}

impl<'a> View<'a> {
    /// Borrows what `keys` hold, those that have expired excepted. The view has locked nothing, and finds only these keys.
    ///
    /// # Safety
    /// Until the view is dropped, nobody else may hold a view that finds one of the keys for which `Access::Write` is said here,
    /// nor one that finds any of them and may change what it holds. Views that walk may meet all of them.
    pub unsafe fn lend(&mut self, keys: &[(Key<'_>, Access)]) {
        let db = self.database();
        let mut sorted: Vec<(Key<'_>, Access)> = keys.to_vec();
        // Of a key that comes several times the last is kept, and Write sorts behind Read.
        sorted.sort_unstable_by_key(|(key, access)| (key.shard, key.hash, key.bytes, *access));
        sorted.reverse();
        sorted.dedup_by_key(|(key, _)| (key.hash, key.bytes));
        let mut hashes: Vec<(u64, Access)> = sorted.iter().map(|(key, access)| (key.hash, *access)).collect();
        hashes.sort_unstable_by(|a, b| b.cmp(a));
        hashes.dedup_by_key(|(hash, _)| *hash);
        hashes.reverse();
        let hashes: Hashes = hashes.into();
        db.loans.add(&hashes);
        let (read, write) = (Table::new(), Table::new());
        let (stand_ins, expired) = (Vec::new(), Vec::new());
        let mut loan = Loan { db, hashes, read, write, stand_ins, has_unsaved: false, expired };
        // Reserves space before the locks are taken, because growing a table moves all its entries.
        sorted.iter_mut().for_each(|(key, access)| *access = loan.access(key).unwrap_or(*access));
        let written = sorted.iter().filter(|(_, access)| *access == Access::Write).count();
        loan.read.reserve(sorted.len() - written, db.rehash());
        loan.write.reserve(written, db.rehash());
        for keys in sorted.chunk_by(|(a, _), (b, _)| a.shard == b.shard) {
            let access = keys.iter().map(|(_, access)| *access).max().unwrap_or(Access::Read);
            let mut guard = db.guard(keys[0].0.shard as usize, access);
            for (key, access) in keys {
                match access {
                    Access::Write => loan.borrow_mut(&mut guard, key, self.now()),
                    Access::Read if !loan.borrow(&guard, key, self.now()) => self.meets_expired(key),
                    Access::Read => {}
                }
            }
        }
        loan.save_first();
        self.loan = Some(Box::new(loan));
    }
}

impl Loan<'_> {
    fn access(&self, key: &Key<'_>) -> Option<Access> {
        access(&self.hashes, key.hash)
    }

    /// Has a snapshot in the making save what is to be changed. No lock is held, so it may take long.
    fn save_first(&mut self) {
        if std::mem::take(&mut self.has_unsaved) {
            table::entries(&self.write).for_each(|entry| self.db.save_lent(entry));
        }
        for entry in std::mem::take(&mut self.expired) {
            self.db.save_lent(&entry);
            self.db.discard(entry);
        }
    }

    /// Borrows what a key holds to read it; false if its time is over.
    fn borrow(&mut self, guard: &Guard<'_>, key: &Key<'_>, now: u64) -> bool {
        let Some((entry, _)) = guard.table().get(key.hash, |(entry, _)| entry.key() == key.bytes) else { return true };
        let is_expired = entry.is_expired(now);
        if !is_expired {
            // SAFETY: until this loan ends, no thread changes or frees the entry. The caller of `View::lend` has
            // promised that no view which may change it finds it. The removal of expired entries and eviction find it
            // among the database's loans, where it is since before its shard was locked. The second pointer is only
            // lent out shared, by `table`, and forgotten in `drop`.
            let second = unsafe { entry.second() };
            self.read.insert(key.hash, (second, SharedValue::new(())), self.db.rehash());
        }
        !is_expired
    }

    /// Takes what a key holds, to change it; an expired one is removed.
    fn borrow_mut(&mut self, guard: &mut Guard<'_>, key: &Key<'_>, now: u64) {
        let db = self.db;
        let expired = |entry: Entry| {
            if db.saves_vast_first(&entry) {
                db.lend_expired(key);
                self.expired.push(entry);
            } else {
                db.expired(key, entry);
            }
        };
        let Some(entry) = table::live_mut(guard.table_mut(), key, now, expired) else { return };
        let expire_at = entry.expire_at();
        let stand_in = Entry::new(key.bytes, nothing_like(entry.value()), expire_at);
        stand_in.set_access(entry.access());
        self.has_unsaved |= db.lend(entry, &stand_in);
        self.stand_ins.push(StandIn { shard: key.shard, hash: key.hash, address: stand_in.address(), expire_at });
        let entry = std::mem::replace(entry, stand_in);
        self.write.insert(key.hash, (entry, SharedValue::new(())), db.rehash());
    }

    /// The table that has what `key` holds.
    pub(super) fn table(&self, key: &Key<'_>) -> &Table {
        match self.access(key) {
            Some(Access::Read) => &self.read,
            Some(Access::Write) => &self.write,
            None => unreachable!("all declared keys are lent"),
        }
    }

    /// The table that has what `key` holds, to be changed.
    pub(super) fn table_mut(&mut self, key: &Key<'_>) -> &mut Table {
        match self.access(key) {
            Some(Access::Write) => &mut self.write,
            Some(Access::Read) | None => unreachable!("a command that writes declares its keys for writing"),
        }
    }

    pub(super) fn is_writable(&self, key: &Key<'_>) -> bool {
        self.access(key) == Some(Access::Write)
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.hashes.iter().any(|(_, access)| *access == Access::Write)
    }

    /// Puts what was lent to be changed in the place of its stand-in.
    fn give_back(&mut self, stand_in: &StandIn) {
        let StandIn { shard, hash, expire_at, .. } = *stand_in;
        let mut guard = self.db.guard(shard as usize, Access::Write);
        let table = guard.table_mut();
        let (there, _) = table.get_mut(hash, |(entry, _)| stand_in.is(entry)).expect("who is lent stays where it is");
        let left = self.write.remove_entry(hash, |(entry, _)| entry.key() == there.key());
        let now = left.as_ref().and_then(|(entry, _)| entry.expire_at());
        let holds_fields = |entry: &Entry| entry.hash_object().is_some_and(|fields| fields.expires());
        let key = left.as_ref().filter(|(entry, _)| holds_fields(entry)).map(|(entry, _)| entry.key().to_vec());
        self.db.note_change(there);
        if let Some((entry, _)) = &left {
            self.db.note_change(entry);
        }
        match left {
            Some((entry, _)) => *there = entry,
            None => _ = table::take(table, hash, |entry| stand_in.is(entry), self.db.rehash()),
        }
        if expire_at != now {
            self.db.reindex(table, (shard, hash), expire_at.is_some(), now);
        }
        if let Some(key) = &key {
            self.db.index_fields(table, &Key::new(key, hash, shard));
        }
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        self.read.clear_no_drop();
        // As with exclusive locks, entries that a panic left half changed are not given back.
        if cfg!(not(test)) && self.is_exclusive() && std::thread::panicking() {
            shards::end_process();
        }
        for stand_in in std::mem::take(&mut self.stand_ins) {
            self.give_back(&stand_in);
        }
        // The remaining entries are new.
        for (entry, _) in std::mem::take(&mut self.write) {
            let (shard, hash, expire_at) = {
                let key = self.db.key(entry.key());
                (key.shard, key.hash, entry.expire_at())
            };
            let fields_of = entry.hash_object().filter(|fields| fields.expires()).map(|_| entry.key().to_vec());
            let mut guard = self.db.guard(shard as usize, Access::Write);
            self.db.note_change(&entry);
            table::insert(guard.table_mut(), hash, entry, self.db.rehash());
            if expire_at.is_some() {
                self.db.reindex(guard.table(), (shard, hash), false, expire_at);
            }
            if let Some(key) = fields_of {
                self.db.index_fields(guard.table_mut(), &Key::new(&key, hash, shard));
            }
        }
        self.db.loans.remove(&self.hashes);
    }
}

/// The least of the same type.
fn nothing_like(value: ValueRef<'_>) -> Value<'static> {
    Value::Object(match value {
        ValueRef::Str(_) => return Value::Int(0),
        ValueRef::List(_) => Object::List(Box::default()),
        ValueRef::Hash(_) => Object::Hash(Box::default()),
        ValueRef::Set(_) => Object::Set(Box::default()),
        ValueRef::SortedSet(_) => Object::SortedSet(Box::default()),
        ValueRef::Stream(_) => Object::Stream(Box::default()),
        ValueRef::Json(_) => Object::Json(Box::default()),
        ValueRef::Bloom(_) => Object::Bloom(Box::default()),
        ValueRef::VectorSet(_) => Object::VectorSet(Box::default()),
    })
}

/// [`View::lend`] for a test that has no other view.
#[cfg(test)]
pub(super) fn lend_alone(view: &mut View<'_>, keys: &[(Key<'_>, Access)]) {
    // SAFETY: there is no other view.
    unsafe { view.lend(keys) };
}

#[cfg(test)]
mod tests {
    use foldhash::quality::RandomState;

    use super::*;
    use crate::types::{Hash, HashLimits};

    /// A slow call that gives fields less time has that known when it gives the hash back.
    #[test]
    fn fields_of_a_lent_hash_expire() {
        let db = Database::new(2, RandomState::default());
        let key = db.key(b"h");
        let mut hash = Hash::default();
        for field in [b"a", b"b"] {
            hash.set(field, b"v", HashLimits::default());
            hash.expire(field, Some(1000));
        }
        let value = Value::Object(Object::Hash(Box::new(hash)));
        drop(db.lock([(key.shard(), Access::Write)].into_iter(), 1).replace(&key, value));
        let mut view = db.lock_none(1);
        lend_alone(&mut view, &[(key, Access::Write)]);
        let Some(Object::Hash(fields)) = view.get_mut(&key).and_then(Entry::object_mut) else { panic!("no hash") };
        fields.expire(b"b", Some(10));
        view.fields_expire(&key);
        let expire = || (0..2).for_each(|shard| while !db.expire_shard(shard, 100, 16).is_done {});
        expire();
        assert_eq!(db.expired_fields(), 0);
        drop(view);
        expire();
        assert_eq!((db.expired_fields(), db.with_fields()), (1, 1));
    }
}

//! The tracking and removal of expired hash fields.
//!
//! A shard's index of deadlines has a record for each hash of which fields expire: the time of the first one, and the hash
//! of its key. The hash knows by which record it is watched; all other records are stale.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard, PoisonError};

use super::database::Database;
use super::entry::Entry;
use super::key::{Happening, Key};
use super::table::{self, Table};
use super::view::View;
use crate::types::SmallBytes;

impl View<'_> {
    /// Must follow every change by which a field of the hash at `key` expires earlier than any did.
    pub fn fields_expire(&mut self, key: &Key<'_>) {
        if self.loan.is_none() {
            let db = self.database();
            db.index_fields(self.table_mut(key), key);
        }
    }
}

impl Database {
    /// Counts keys that hold hashes of which fields expire.
    pub(super) fn fields_count(&self) -> MutexGuard<'_, Arc<AtomicUsize>> {
        self.counts.with_fields.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All entries were taken out; they are freed later.
    pub(super) fn count_fields_anew(&self) {
        self.note_all();
        *self.fields_count() = Arc::default();
    }

    /// The entries of two databases have changed places.
    pub(super) fn swap_fields(&self, other: &Self) {
        self.note_all();
        other.note_all();
        if !std::ptr::eq(self, other) {
            std::mem::swap(&mut *self.fields_count(), &mut *other.fields_count());
        }
    }

    /// Has the index know when the first field of the hash at `key` expires; `table` is its shard's, locked exclusively.
    #[cold]
    pub(super) fn index_fields(&self, table: &mut Table, key: &Key<'_>) {
        let found = table.get_mut(key.hash, |(entry, _)| entry.key() == key.bytes);
        let Some(fields) = found.and_then(|(entry, _)| entry.hash_object_mut()) else { return };
        let Some(at) = fields.unwatched() else { return };
        fields.watch(at, &self.fields_count());
        self.note_deadline();
        let mut index = self.deadlines(key.shard as usize);
        if index.add_fields(at, key.hash) {
            index.tidy_fields(|at, hash| table.get(hash, |(entry, _)| is_watched(entry, at)).is_some());
        }
    }

    /// Takes up to `most` fields out of shard `shard` that are due at `now`, and from `removed` on the entries that have none
    /// left. Returns whether nothing else is due. `table` is the shard's, locked exclusively.
    pub(super) fn expire_fields(
        &self,
        (shard, table): (usize, &mut Table),
        now: u64,
        most: usize,
        removed: &mut Vec<Entry>,
    ) -> bool {
        let (mut left, mut waiting, mut is_done) = (most, Vec::new(), false);
        while left > 0 {
            let Some((at, hash)) = self.deadlines(shard).pop_due_fields(now) else {
                is_done = true;
                break;
            };
            if self.loans.has(hash) || self.is_awaited(table, hash, |entry| is_watched(entry, at)) {
                waiting.push((at, hash));
                continue;
            }
            // A stale record takes time, too.
            left -= 1;
            let Some((entry, _)) = table.get_mut(hash, |(entry, _)| is_watched(entry, at)) else { continue };
            self.save_first(entry);
            let name = entry.key().to_vec();
            let key = Key::new(&name, hash, shard as u32);
            let Some(fields) = entry.hash_object_mut() else { continue };
            let taken = fields.take_over(now, left + 1);
            left = (left + 1).saturating_sub(taken.len());
            let is_last = fields.is_empty();
            fields.unwatch();
            if is_last && let Some(entry) = table::take(table, hash, |entry| entry.key() == key.bytes, self.rehash()) {
                if entry.expire_at().is_some() {
                    self.deadlines(shard).forget();
                }
                removed.push(entry);
            }
            self.index_fields(table, &key);
            self.have_expired(&key, &taken, is_last);
        }
        let mut index = self.deadlines(shard);
        waiting.into_iter().for_each(|(at, hash)| _ = index.add_fields(at, hash));
        is_done
    }

    /// Accounts for fields that were found expired and taken out, under their shard's exclusive lock.
    fn have_expired(&self, key: &Key<'_>, fields: &[SmallBytes], is_last: bool) {
        if fields.is_empty() {
            return;
        }
        self.count_expired_fields(fields.len());
        if is_last {
            self.gone(key);
        } else {
            self.touch(key);
        }
        self.tell(Happening::FieldsExpired { fields, is_last }, key.bytes);
    }

    /// So many fields more have expired.
    pub fn count_expired_fields(&self, fields: usize) {
        self.counts.expired_fields.fetch_add(fields as u64, Relaxed);
    }
}

/// Whether an entry's hash is watched by the record of this time.
fn is_watched(entry: &Entry, at: u64) -> bool {
    entry.hash_object().is_some_and(|fields| fields.watched() == Some(at))
}

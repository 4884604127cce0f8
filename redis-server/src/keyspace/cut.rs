//! Copy-before-write for snapshots: an unsaved entry goes to the snapshot before it changes.
//!
//! A snapshot shows one moment, the **cut**, and is written while everything goes on. Entries and databases have a bit, the epoch. An entry
//! whose bit is its database's is saved, or newer than the cut; between two snapshots all are. The cut turns the databases' bits, so that
//! every entry is unsaved. A thread that changes an unsaved entry, removes it or empties its database hands it to the [`Saver`] first. The
//! snapshot's own thread walks through the other entries. Both turn the entry's bit.
//!
//! So every entry of the cut is saved once, as it was, whatever moves, grows or goes meanwhile.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, PoisonError};

use super::database::Database;
use super::entry::{EPOCH, Entry};
use super::key::Key;
use super::parts::Cut;
use super::reaper::Removed;
use super::table::{self, Table};
use super::view::View;
use crate::keyspace::Saver;

/// Where a walk through the unsaved entries of a shard stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// The shard was locked by others: nothing was visited.
    Busy,
    /// It goes on at this cursor.
    At(u64),
    /// All of the shard's entries are saved.
    Done,
}

impl Database {
    /// An entry is about to change, or has been taken out: if the snapshot has not saved it yet, it does now, and the key of
    /// a document is noted. The caller has
    /// its shard locked exclusively.
    #[inline]
    pub(super) fn save_first(&self, entry: &Entry) {
        if entry.is_unsaved(self.cut.epoch()) {
            self.save_now(entry);
        }
        self.note_change(entry);
    }

    #[cold]
    fn save_now(&self, entry: &Entry) {
        self.cut.cut.with_saver(|saver| saver.save(self.cut.number.load(Relaxed), entry));
        entry.set_epoch(self.cut.epoch());
    }

    /// An entry is about to be lent for changes, and `stand_in` takes its place. Returns whether [`Database::save_lent`] must follow.
    /// The caller must hold the exclusive lock of its shard.
    pub(super) fn lend(&self, entry: &Entry, stand_in: &Entry) -> bool {
        stand_in.set_epoch(self.cut.epoch());
        let is_unsaved = entry.is_unsaved(self.cut.epoch());
        if is_unsaved {
            self.cut.cut.lent.fetch_add(1, SeqCst);
        }
        is_unsaved
    }

    /// Saves an entry that is lent, if it is unsaved; nothing need be locked.
    pub(super) fn save_lent(&self, entry: &Entry) {
        if entry.is_unsaved(self.cut.epoch()) {
            self.save_now(entry);
            self.cut.cut.lent.fetch_sub(1, SeqCst);
        }
    }

    /// Whether a snapshot has to save an entry before it changes or goes, and that takes too long for the lock of its shard.
    pub fn saves_vast_first(&self, entry: &Entry) -> bool {
        entry.is_unsaved(self.cut.epoch()) && entry.is_vast()
    }

    /// [`Database::saves_vast_first`] of the entry that is `due`.
    pub(super) fn is_awaited(&self, table: &Table, hash: u64, due: impl Fn(&Entry) -> bool) -> bool {
        self.cut.cut.is_saving.load(Relaxed)
            && table.get(hash, |(entry, _)| due(entry)).is_some_and(|(entry, _)| self.saves_vast_first(entry))
    }

    /// An expired entry has been taken out that [`Database::saves_vast_first`]: [`Database::save_lent`] must follow.
    pub(super) fn lend_expired(&self, key: &Key<'_>) {
        self.has_expired(key);
        self.cut.cut.lent.fetch_add(1, SeqCst);
    }

    /// Passes removed entries to the snapshot if one runs, which then frees them. Otherwise returns them.
    pub fn save_removed(&self, removed: Vec<Removed>) -> Vec<Removed> {
        if !self.cut.cut.is_saving.load(Relaxed) {
            return removed;
        }
        self.cut.cut.with_saver(|saver| saver.save_removed(self.cut.number.load(Relaxed), removed));
        Vec::new()
    }

    /// The number that the entries' database had at the cut.
    pub fn number_at_cut(&self) -> usize {
        self.cut.number.load(SeqCst)
    }

    /// Calls `save` with unsaved entries of a shard, from `cursor` on, until some `count` entries were met; those of which it returns true
    /// count as saved then. The shard is locked meanwhile.
    pub fn walk_unsaved(&self, shard: usize, cursor: u64, count: usize, mut save: impl FnMut(&Entry) -> bool) -> Walk {
        let Some(shards) = self.made().filter(|shards| shards.len_of(shard) != 0) else { return Walk::Done };
        let Some(exclusive) = shards.try_exclusive(shard) else { return Walk::Busy };
        let epoch = self.cut.epoch();
        let (mut cursor, mut met) = (cursor, 0);
        loop {
            cursor = table::scan(
                &exclusive.table,
                cursor,
                |key| self.hash(key),
                |entry| {
                    met += 1;
                    if entry.is_unsaved(epoch) && save(entry) {
                        entry.set_epoch(epoch);
                    }
                },
            );
            if cursor == 0 {
                return Walk::Done;
            }
            if met >= count {
                return Walk::At(cursor);
            }
        }
    }
}

impl View<'_> {
    /// True if a change of what `key` holds takes long: a snapshot has to save that first, or a reply holds it and it is copied.
    pub fn is_slow_to_change(&self, key: &Key<'_>) -> bool {
        self.stored(key).is_some_and(|entry| self.database().saves_vast_first(entry) || entry.is_in_heavy_reply())
    }

    /// Calls `save` with the entry of `key`, if it is unsaved; then it counts as saved. The key is locked exclusively, or
    /// borrowed.
    pub fn save_key(&self, key: &Key<'_>, save: impl FnOnce(&Entry)) {
        let epoch = self.database().cut.epoch();
        if let Some(entry) = self.stored(key).filter(|entry| entry.is_unsaved(epoch)) {
            save(entry);
            entry.set_epoch(epoch);
        }
    }
}

#[cfg(test)]
mod tests;

impl Cut {
    /// Begins a snapshot of all these databases, in which nobody changes anything meanwhile; the last one has ended.
    pub fn begin(databases: &[Database], saver: Arc<dyn Saver>) {
        let Some(first) = databases.first() else { return };
        let cut = &first.cut.cut;
        *cut.saver.write().unwrap_or_else(PoisonError::into_inner) = Some(saver);
        cut.is_saving.store(true, SeqCst);
        for (number, database) in databases.iter().enumerate() {
            database.cut.number.store(number, SeqCst);
            database.cut.epoch.fetch_xor(EPOCH, SeqCst);
        }
    }

    /// Ends it: every entry is saved.
    pub fn end(databases: &[Database]) {
        let Some(first) = databases.first() else { return };
        let cut = &first.cut.cut;
        cut.is_saving.store(false, SeqCst);
        *cut.saver.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// How often two of these databases were exchanged: a walk through all of them has missed nothing if that is the same
    /// before and behind it.
    pub fn swaps(databases: &[Database]) -> u64 {
        databases.first().map_or(0, |first| first.cut.cut.swaps.load(SeqCst))
    }

    /// Whether every entry is in its place: a walk does not meet those that are lent to be changed before they are saved.
    pub fn is_settled(databases: &[Database]) -> bool {
        databases.first().is_none_or(|first| first.cut.cut.lent.load(SeqCst) == 0)
    }
}

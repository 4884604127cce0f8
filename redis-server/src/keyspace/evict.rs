//! Entries that might be evicted, and taking one out.

use super::database::Database;
use super::entry::Entry;
use super::key::{Access, Key};
use super::table;

/// Random shards whose lengths tell how many entries a shard may have.
const LENS: usize = 8;
/// Random shards that are drawn, where most are empty or short, before the next one is taken.
const TRIES: usize = 128;

/// Where an entry was when it was looked at. It may be gone by now, or another one may be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    shard: u32,
    hash: u64,
}

impl Database {
    /// Calls `visit` with `samples` random entries, of those that have a deadline if only `volatile` ones are asked for;
    /// returns whether there is any. One shard is locked at a time, so the caller must hold none.
    pub fn sample(
        &self,
        volatile: bool,
        samples: usize,
        random: &mut dyn FnMut() -> u64,
        visit: &mut dyn FnMut(Spot, &Entry),
    ) -> bool {
        let Some(shards) = self.made().filter(|_| !volatile || self.has_deadlines()) else { return false };
        let count = self.shards();
        let has_some = |shard: usize| match volatile {
            true => shards.earliest(shard) != u64::MAX,
            false => shards.len_of(shard) != 0,
        };
        let is_worth_it = |&shard: &usize| has_some(shard) && !self.hidden.has(shard);
        // A shard counts by its entries: it is taken as often as it holds a share of the most that some hold.
        let most = (0..LENS).map(|_| shards.len_of(random() as usize % count)).max().unwrap_or(0).max(1);
        // Each is of another shard: neighbours in a small shard would be met too often.
        (0..samples).all(|_| {
            let first = (0..TRIES).find_map(|_| {
                let shard = Some(random() as usize % count).filter(is_worth_it)?;
                (random() as usize % most < shards.len_of(shard)).then_some(shard)
            });
            let first = first.unwrap_or_else(|| random() as usize % count);
            let mut from_first = (0..count).map(|offset| (first + offset) % count).filter(is_worth_it);
            from_first.any(|shard| self.sample_shard(shard, volatile, random, visit))
        })
    }

    /// Calls `visit` with a random entry of one shard; whether there is any.
    fn sample_shard(
        &self,
        shard: usize,
        volatile: bool,
        random: &mut dyn FnMut() -> u64,
        visit: &mut dyn FnMut(Spot, &Entry),
    ) -> bool {
        let Some(guard) = self.try_guard(shard, Access::Read) else { return false };
        let table = guard.table();
        let mut visit = |hash, entry: &Entry| visit(Spot { shard: shard as u32, hash }, entry);
        if !volatile {
            let entry = table::random_entry(table, random, |_| true);
            return entry.map(|entry| visit(self.hash(entry.key()), entry)).is_some();
        }
        self.deadlines(shard).pick(random, |deadline, hash| {
            let found = table.get(hash, |(entry, _)| entry.expire_at() == Some(deadline));
            found.map(|(entry, _)| visit(hash, entry)).is_some()
        })
    }

    /// Takes out the entry at `spot`, if there is one that `is_due` still. The caller must hold no shard's lock; the entry
    /// is dropped without it. An entry that [`Database::saves_vast_first`] had better not be due: its shard would be locked for long.
    pub fn evict(&self, spot: Spot, is_due: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let shard = spot.shard as usize;
        let mut guard = self.try_guard(shard, Access::Write)?;
        if self.loans.has(spot.hash) {
            return None;
        }
        let is_it = |entry: &Entry| self.hash(entry.key()) == spot.hash && is_due(entry);
        let entry = table::take(guard.table_mut(), spot.hash, is_it, self.rehash())?;
        self.save_first(&entry);
        table::give_back_if_empty(guard.table_mut());
        self.has_been_evicted(&Key::new(entry.key(), spot.hash, spot.shard), &entry);
        Some(entry)
    }
}

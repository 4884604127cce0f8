//! How indexes follow the keys: changed documents, documents that expire, and scans.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::catalog::SearchIndex;
use super::extract::{Failure, extract};
use super::{Search, lock};
use crate::keyspace::{Access, Changed, Database, Entry, ValueRef};
use crate::protocol::error::shown;

/// Keys that a scan sees in one slice: some hundred microseconds.
const SLICE: usize = 256;
/// Postings and values that one step of compaction reads.
const COMPACTION: u64 = 10_000;
/// Removed documents below which no index is compacted. With 1,000, eviction emptied a small database: the index gave nothing back.
const COMPACT_MIN: u64 = 64;

/// The work that is left.
#[derive(Debug, Default)]
pub(super) struct Feed {
    /// Names of changed keys, the first first.
    names: VecDeque<Box<[u8]>>,
    deadlines: Deadlines,
    scans: VecDeque<Scan>,
}

/// A walk through all keys for one index.
#[derive(Debug)]
struct Scan {
    index: Arc<SearchIndex>,
    cursor: u64,
    /// Whether documents that the index has already are read again.
    again: bool,
}

/// When documents, or fields of them, expire.
#[derive(Debug, Default)]
struct Deadlines {
    by_key: HashMap<Box<[u8]>, u64>,
    in_order: BTreeSet<(u64, Box<[u8]>)>,
}

impl Deadlines {
    fn set(&mut self, key: &[u8], at: Option<u64>) {
        if let Some(old) = self.by_key.remove(key) {
            self.in_order.remove(&(old, key.into()));
        }
        if let Some(at) = at {
            self.by_key.insert(key.into(), at);
            self.in_order.insert((at, key.into()));
        }
    }

    /// Takes a key that is due.
    fn pop_due(&mut self, now: u64) -> Option<Box<[u8]>> {
        let (at, _) = self.in_order.first()?;
        if *at > now {
            return None;
        }
        let (_, key) = self.in_order.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }
}

/// The outcome of [`Search::catch_up`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Indexes show every change until the call.
    Done,
    /// The rest is borrowed by slow calls that change it.
    Waits,
    /// The time was over before.
    Late,
}

impl Search {
    /// Begins to fill an index from all keys: those that are no documents yet, or all `again`. The caller may have locked shards.
    pub fn scan(&self, index: &Arc<SearchIndex>, again: bool) {
        let mut wanted = lock(&self.wanted);
        // One scan serves all who want one before it begins, such as a thousand FT.SYNUPDATE of a file.
        if let Some((_, known)) = wanted.iter_mut().find(|(known, _)| Arc::ptr_eq(known, index)) {
            *known |= again;
            return;
        }
        index.scans.fetch_add(1, SeqCst);
        wanted.push((Arc::clone(index), again));
    }

    /// Brings all indexes to the state of `database`, which is number 0, at `now` in milliseconds of Unix time. Scans go on until it `is_over`.
    /// The caller holds no lock of a shard.
    pub fn catch_up(&self, database: &Database, now: u64, is_over: &dyn Fn() -> bool) -> Progress {
        let mut feed = lock(&self.feed);
        self.gather(&mut feed, database, now);
        let indexes = self.indexes();
        let mut away = Vec::new();
        loop {
            // Answered writes are indexed whatever the time; a scan may go on later.
            while let Some(name) = feed.names.pop_front() {
                if !update(&mut feed, &indexes, database, &name, now) {
                    away.push(name);
                }
            }
            if feed.scans.is_empty() {
                break;
            }
            if is_over() {
                feed.names.extend(away);
                return Progress::Late;
            }
            self.scan_slice(&mut feed, database, now);
        }
        let is_done = away.is_empty() && feed.names.is_empty();
        feed.names.extend(away);
        if is_done { Progress::Done } else { Progress::Waits }
    }

    /// Does a slice of the work; returns whether there is more.
    pub fn work(&self, database: &Database, now: u64) -> bool {
        let owed = self.owed();
        let mut feed = lock(&self.feed);
        self.gather(&mut feed, database, now);
        let indexes = self.indexes();
        let before = feed.names.len();
        for _ in 0..SLICE {
            let Some(name) = feed.names.pop_front() else { break };
            if !update(&mut feed, &indexes, database, &name, now) {
                feed.names.push_back(name);
            }
        }
        if before < SLICE && !feed.scans.is_empty() {
            self.scan_slice(&mut feed, database, now);
        }
        let (is_drained, is_scanning) = (feed.names.is_empty(), !feed.scans.is_empty());
        drop(feed);
        let is_busy = before > SLICE || is_scanning;
        let has_more = is_busy || indexes.iter().map(|index| self.compact(index)).filter(|more| *more).count() > 0;
        if is_drained && (is_scanning || !has_more) {
            self.owed.fetch_sub(owed, Relaxed);
        }
        has_more
    }

    /// Removes what documents that are gone have left in an index, one step of it; returns whether there is more.
    fn compact(&self, index: &Arc<SearchIndex>) -> bool {
        let engine = index.engine();
        let is_due = engine.is_compacting() || engine.uncompacted() > COMPACT_MIN.max(engine.len() as u64 / 4);
        drop(engine);
        is_due
            && index.compact(COMPACTION).unwrap_or_else(|| {
                // A query that catches up in between would find an index that is empty and has no scan.
                let feed = lock(&self.feed);
                index.empty();
                self.scan(index, false);
                drop(feed);
                let name = shown(index.name());
                tracing::error!(index = %name, "a panic while an index was compacted: it is filled anew");
                true
            })
    }

    /// Does a slice of the first scan.
    fn scan_slice(&self, feed: &mut Feed, database: &Database, now: u64) {
        let Some(Scan { index, cursor, again }) = feed.scans.front_mut() else { return };
        let (index, definition, again) = (Arc::clone(index), index.definition(), *again);
        let mut view = database.lock_none(now);
        view.keep_expired();
        let (mut names, mut seen) = (Vec::new(), 0);
        *cursor = view.scan(
            *cursor,
            SLICE,
            |_| false,
            |entry| {
                seen += 1;
                if definition.takes(entry) {
                    names.push(Box::from(entry.key()));
                }
            },
        );
        let is_done = *cursor == 0;
        drop(view);
        index.scanned.fetch_add(seen, Relaxed);
        // Until now each change was noted before the scan met it, and is going to bring its document: brought twice, it would count twice in
        // scores until the index is compacted.
        if self.gather(feed, database, now) {
            return;
        }
        let only = [Arc::clone(&index)];
        for name in names {
            if feed.names.contains(&name) || !again && index.engine().contains(&name) {
                continue;
            }
            if !update(feed, &only, database, &name, now) {
                feed.names.push_back(name);
            }
        }
        if is_done && feed.scans.front().is_some_and(|scan| Arc::ptr_eq(&scan.index, &index)) {
            feed.scans.pop_front();
            index.scans.fetch_sub(1, SeqCst);
        }
    }

    /// Takes what has changed since the last look. True if that is everything: all scans begin anew.
    fn gather(&self, feed: &mut Feed, database: &Database, now: u64) -> bool {
        let Changed { all, keys } = database.take_changes();
        feed.names.extend(keys);
        // Scans come before the list of indexes: each index whose scan is wanted is in the list, unless it was dropped.
        let wanted = std::mem::take(&mut *lock(&self.wanted));
        let indexes = self.indexes();
        let is_there = |index: &Arc<SearchIndex>| indexes.iter().any(|known| Arc::ptr_eq(known, index));
        feed.scans.retain(|scan| is_there(&scan.index));
        for (index, again) in wanted.into_iter().filter(|(index, _)| is_there(index)) {
            index.scanned.store(0, Relaxed);
            // A scan of this index that is under way begins anew instead of being followed by another.
            if let Some(scan) = feed.scans.iter_mut().find(|scan| Arc::ptr_eq(&scan.index, &index)) {
                (scan.cursor, scan.again) = (0, scan.again || again);
                index.scans.fetch_sub(1, SeqCst);
                continue;
            }
            feed.scans.push_back(Scan { index, cursor: 0, again });
        }
        if all {
            // An exchange of all entries keeps all locks until the shards know their sizes, which the scan relies on.
            drop(database.lock_all(Access::Read, now));
            // Each key counts as changed by the scans.
            (feed.names, feed.deadlines) = Default::default();
            for scan in feed.scans.drain(..) {
                scan.index.scans.fetch_sub(1, SeqCst);
            }
            for index in indexes {
                index.empty();
                index.scanned.store(0, Relaxed);
                index.scans.fetch_add(1, SeqCst);
                feed.scans.push_back(Scan { index, cursor: 0, again: false });
            }
        }
        while let Some(key) = feed.deadlines.pop_due(now) {
            feed.names.push_back(key);
        }
        all
    }
}

/// When an entry, or a field of it, expires next.
fn expires(entry: &Entry, now: u64) -> Option<u64> {
    let fields = match entry.value() {
        ValueRef::Hash(hash) => match hash.earliest() {
            // It is over already, and not removed yet.
            Some(at) if at <= now => hash.at(now).iter_timed().filter_map(|(_, _, at)| at).min(),
            earliest => earliest,
        },
        _ => None,
    };
    [entry.expire_at(), fields].into_iter().flatten().min()
}

/// Reads a key for these indexes; false if a slow call has borrowed it to change it.
fn update(feed: &mut Feed, indexes: &[Arc<SearchIndex>], database: &Database, name: &[u8], now: u64) -> bool {
    let definitions = indexes.iter().map(|index| (index, index.definition()));
    let concerned: Vec<_> = definitions.filter(|(_, definition)| definition.covers(name)).collect();
    if concerned.is_empty() {
        feed.deadlines.set(name, None);
        return true;
    }
    let key = database.key(name);
    let mut view = database.lock([(key.shard(), Access::Read)].into_iter(), now);
    view.keep_expired();
    if database.is_away(&key) {
        return false;
    }
    let entry = view.peek(&key);
    let read = |(index, definition): &(&Arc<SearchIndex>, Arc<_>)| {
        let read = || entry.map_or(Ok(None), |entry| extract(definition, entry, now));
        (Arc::clone(index), catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(Failure::panic())))
    };
    let documents: Vec<_> = concerned.iter().map(read).collect();
    feed.deadlines.set(name, entry.and_then(|entry| expires(entry, now)));
    drop(view);
    for (index, document) in documents {
        if !index.update(name, document) {
            index.scans.fetch_add(1, SeqCst);
            index.scanned.store(0, Relaxed);
            feed.scans.push_back(Scan { index, cursor: 0, again: false });
        }
    }
    true
}

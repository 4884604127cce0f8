//! Records of a file, put in their places.

use std::borrow::Cow;
use std::thread;

use arrayvec::ArrayVec;

use super::files::delay;
use super::load::Merge;
use crate::config::settings;
use crate::exec::core::Instance;
use crate::keyspace::{Access, Database, Entry, Key, Object, Value, View};
use crate::persistence::Outcome;
use crate::persistence::rdb::{Batch, Fault, Limits, Loaded, Record};
use crate::protocol::error::shown;
use crate::threads;

/// Entries that are put in their places together: enough for their cache misses to overlap, few enough that other loading threads do not
/// wait long for their shards.
const GROUP: usize = 32;
/// Strings from this length on are stored in a buffer of their own.
const LARGE: usize = 16 * 1024;

/// Where records go.
pub(super) enum Place<'l, 'v> {
    /// Views of all databases in their order, each locked as a whole for writing.
    Locked(Vec<&'l mut View<'v>>),
    /// Databases that only the loading threads use, any number of them.
    Shared(&'l [Database]),
}

/// The rules for the records of a file.
#[derive(Clone, Copy)]
pub(super) struct Terms<'l> {
    pub(super) instance: &'l Instance,
    pub(super) limits: Limits,
    pub(super) merge: Merge,
    /// The moment of the load, in milliseconds of Unix time.
    pub(super) now: u64,
    /// Whether what is over by then is left out.
    pub(super) expires: bool,
}

/// A key that was there already.
pub(super) struct Twice {
    pub(super) database: usize,
    pub(super) key: Box<[u8]>,
    /// The place behind its record.
    pub(super) end: u64,
}

/// Puts records in their places, and counts them.
pub(super) struct Inserter<'l, 'v> {
    place: Place<'l, 'v>,
    terms: Terms<'l>,
    pub(super) outcome: Outcome,
    /// Keys that were there already, which keep what they have.
    pub(super) twice: Vec<Twice>,
}

/// An entry to be stored, its key, and the place in the file behind its record.
type Waiting<'b> = (Cow<'b, [u8]>, Entry, u64);

impl<'l, 'v> Inserter<'l, 'v> {
    pub(super) fn new(place: Place<'l, 'v>, terms: Terms<'l>) -> Self {
        Self { place, terms, outcome: Outcome::default(), twice: Vec::new() }
    }

    /// Stores what a batch holds, up to a fault.
    ///
    /// # Errors
    /// The first [`Fault`].
    pub(super) fn insert(&mut self, batch: &Batch, database: usize) -> Result<(), Fault> {
        let limits = self.terms.limits;
        let mut group: ArrayVec<Waiting<'_>, GROUP> = ArrayVec::new();
        let (mut begin, mut end) = (batch.offset(), batch.offset());
        let mut result = Ok(());
        for read in batch.records(&limits) {
            let (record, len) = match read {
                Ok(read) => read,
                Err(fault) => {
                    result = Err(fault);
                    break;
                }
            };
            end += len as u64;
            if let Some((key, entry)) = self.entry(record, database) {
                group.push((key, entry, end));
            }
            if let Some(delay) = delay(&self.terms.instance.config, settings::KEY_LOAD_DELAY) {
                thread::sleep(delay);
                threads::panic_point();
                if self.terms.instance.is_ending() {
                    break;
                }
            }
            if group.is_full() {
                self.store(&mut group, database);
                self.terms.instance.loading.advance(end - begin);
                begin = end;
            }
        }
        self.store(&mut group, database);
        self.terms.instance.loading.advance(end - begin);
        result
    }

    /// The entry that a record stores, if any.
    fn entry<'b>(&mut self, record: Record<'b>, database: usize) -> Option<(Cow<'b, [u8]>, Entry)> {
        let Record { key, value, expire_at, idle, frequency } = record;
        let Some(value) = value else {
            self.outcome.empty += 1;
            tracing::info!("skipping empty key: {}", shown(&key));
            return None;
        };
        let now = self.terms.now;
        let is_hash_over = |object: &Object| matches!(object, Object::Hash(hash) if hash.is_over(self.terms.now));
        if self.terms.expires && matches!(&value, Loaded::Object(object) if is_hash_over(object)) {
            self.outcome.expired += 1;
            return None;
        }
        if self.terms.is_over(expire_at) {
            self.outcome.expired += 1;
            return None;
        }
        let entry = match value {
            Loaded::Str(text) if text.len() < LARGE => Entry::new(&key, Value::Bytes(&text), expire_at),
            Loaded::Str(text) => Entry::new(&key, Value::Shared(text.into_owned().into()), expire_at),
            Loaded::Object(object) => Entry::new(&key, Value::Object(object), expire_at),
        };
        let usage = match &self.place {
            Place::Locked(views) => views[database].database().usage(),
            Place::Shared(databases) => databases[database].usage(),
        };
        entry.set_access(match frequency {
            Some(frequency) => usage.used(now, frequency),
            None => usage.idle(now, idle.unwrap_or(0)),
        });
        Some((key, entry))
    }

    fn store(&mut self, group: &mut ArrayVec<Waiting<'_>, GROUP>, database: usize) {
        let (mut names, mut entries) = (ArrayVec::<_, GROUP>::new(), ArrayVec::<_, GROUP>::new());
        for (name, entry, end) in group.drain(..) {
            names.push((name, end));
            entries.push(entry);
        }
        let hashed = |database: &Database| -> ArrayVec<(Key<'_>, Access), GROUP> {
            names.iter().map(|(name, _)| (database.key(name), Access::Write)).collect()
        };
        let merge = self.terms.merge;
        let was_there = match &mut self.place {
            Place::Locked(views) => {
                let view = &mut *views[database];
                add_all(view, &hashed(view.database()), entries, merge)
            }
            Place::Shared(databases) => {
                let mut keys = hashed(&databases[database]);
                let mut view = databases[database].lock_keys(&mut keys, self.terms.now);
                view.prefetch(&mut keys);
                add_all(&mut view, &keys, entries, merge)
            }
        };
        self.outcome.loaded += (names.len() - was_there.len()) as u64;
        let twice = |at: usize| Twice { database, key: (*names[at].0).into(), end: names[at].1 };
        self.twice.extend(was_there.into_iter().map(twice));
    }
}

/// Stores entries under their keys; returns which of the keys were there, and keep what they have.
fn add_all(
    view: &mut View<'_>,
    keys: &[(Key<'_>, Access)],
    entries: ArrayVec<Entry, GROUP>,
    merge: Merge,
) -> ArrayVec<usize, GROUP> {
    let mut was_there = ArrayVec::new();
    for (at, ((key, _), entry)) in keys.iter().zip(entries).enumerate() {
        match merge {
            Merge::Replace => drop(view.put(key, entry)),
            Merge::Refuse if view.add(key, entry) => {}
            Merge::Refuse => was_there.push(at),
        }
    }
    was_there
}

impl Terms<'_> {
    /// Whether a key of this deadline is left out.
    pub(super) fn is_over(&self, expire_at: Option<u64>) -> bool {
        self.expires && expire_at.is_some_and(|at| at < self.now)
    }
}

//! Old values, which a write hands over to a snapshot before it changes them (copy-before-write).

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::encoder::Encoder;
use super::save::Told;
use crate::keyspace::{Entry, Removed, Saver};
use crate::persistence::rdb::{Access, Encoded};

/// Bytes of records that go to the file together.
pub(super) const CHUNK: usize = 128 * 1024;
/// Room for a chunk and for the part of its last record beyond.
const ROOM: usize = CHUNK + CHUNK / 8;

/// The old values of entries that change before they are saved.
pub(super) struct Handover {
    /// The access data that the file gets, by the number of the database.
    told: Vec<Told>,
    /// The moment of the cut.
    at: u64,
    state: Mutex<State>,
}

struct State {
    encoder: Encoder,
    /// Full chunks.
    full: Vec<Encoded>,
    removed: Vec<(usize, Vec<Removed>)>,
    entries: u64,
    bytes: u64,
    /// Whether the snapshot takes no more values.
    is_closed: bool,
}

/// Values handed over since the last look.
pub(super) struct HandedOver {
    pub(super) encoded: Vec<Encoded>,
    /// Keys removed from databases, by the number that these had at the cut.
    pub(super) removed: Vec<(usize, Vec<Removed>)>,
    /// How many entries are encoded.
    pub(super) entries: u64,
    /// Bytes of all that was handed over since the cut.
    pub(super) bytes: u64,
}

impl Handover {
    pub(super) fn new(told: Vec<Told>, at: u64, encoder: Encoder) -> Self {
        let state = State { encoder, full: Vec::new(), removed: Vec::new(), entries: 0, bytes: 0, is_closed: false };
        Self { told, at, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The access data of an entry; its database had number `db` at the cut.
    pub(super) fn access(&self, db: usize, entry: &Entry) -> Access {
        self.told[db].access(entry, self.at)
    }

    /// Encodes an entry of what was database `db`.
    pub(super) fn encode(&self, encoder: &mut Encoder, db: usize, entry: &Entry) {
        encoder.add(db, (entry.key(), entry.value()), (entry.expire_at(), self.access(db, entry)));
    }

    /// Takes the values handed over since the last look.
    pub(super) fn take(&self) -> HandedOver {
        let mut state = self.state();
        let mut encoded = mem::take(&mut state.full);
        if !state.encoder.is_empty() {
            encoded.push(state.encoder.take(Encoded::default()));
        }
        let (removed, entries) = (mem::take(&mut state.removed), mem::take(&mut state.entries));
        HandedOver { encoded, removed, entries, bytes: state.bytes }
    }

    /// From now on values that are handed over go.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
    }
}

impl Saver for Handover {
    fn save(&self, db: usize, entry: &Entry) {
        let state = &mut *self.state();
        if state.is_closed {
            return;
        }
        if state.encoder.is_empty() {
            state.encoder.take(Encoded::with_room(ROOM));
        }
        let before = state.encoder.len();
        self.encode(&mut state.encoder, db, entry);
        state.entries += 1;
        state.bytes += (state.encoder.len() - before) as u64;
        if state.encoder.len() >= CHUNK {
            // The chunk grows no further: it would be copied while all clients wait.
            state.full.push(state.encoder.take(Encoded::default()));
        }
    }

    fn save_removed(&self, db: usize, entries: Vec<Removed>) {
        self.state().removed.push((db, entries));
    }
}

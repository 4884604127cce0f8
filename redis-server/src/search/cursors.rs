//! The rows of aggregations that clients read in pieces.

use std::collections::HashMap;

use query_engine::Rows;

/// The most cursors of one index, as in RediSearch.
const MAX_OF_INDEX: usize = 128;

/// An aggregation's rows that are left.
#[derive(Debug)]
pub struct Cursor {
    /// The index' name.
    pub index: Box<[u8]>,
    /// The rows; `None` if the index was dropped.
    pub rows: Option<Rows>,
    /// For FORMAT EXPAND: which columns show JSON.
    pub json: Option<Box<[bool]>>,
    /// Rows of one piece.
    pub count: usize,
    /// Milliseconds without a use after which it is closed.
    pub idle_ms: u64,
    /// When it was last used, in milliseconds of a steady clock.
    pub used_at: u64,
}

/// All cursors, by number.
#[derive(Debug, Default)]
pub struct Cursors {
    by_number: HashMap<u64, Cursor>,
}

impl Cursors {
    /// Keeps a cursor under a number that is free; `None` if the index has too many.
    pub fn add(&mut self, mut number: impl FnMut() -> u64, cursor: Cursor) -> Option<u64> {
        if self.of(&cursor.index) >= MAX_OF_INDEX {
            return None;
        }
        loop {
            let number = number() & 0x7fff_ffff;
            if number != 0 && !self.by_number.contains_key(&number) {
                self.by_number.insert(number, cursor);
                return Some(number);
            }
        }
    }

    /// Keeps a cursor under its number again.
    pub fn put_back(&mut self, number: u64, cursor: Cursor) {
        self.by_number.insert(number, cursor);
    }

    /// Takes a cursor out.
    pub fn take(&mut self, number: u64) -> Option<Cursor> {
        self.by_number.remove(&number)
    }

    /// Closes cursors that were not used for long, at a moment of the steady clock.
    pub fn expire(&mut self, now: u64) {
        self.by_number.retain(|_, cursor| now.saturating_sub(cursor.used_at) < cursor.idle_ms);
    }

    /// Takes their rows from all cursors of an index, which is dropped. Their next use is told why.
    pub fn drop_of(&mut self, index: &[u8]) {
        self.by_number.values_mut().filter(|cursor| *cursor.index == *index).for_each(|cursor| cursor.rows = None);
    }

    /// Cursors of an index.
    pub fn of(&self, index: &[u8]) -> usize {
        self.by_number.values().filter(|cursor| cursor.rows.is_some() && *cursor.index == *index).count()
    }

    /// All cursors with rows.
    pub fn len(&self) -> usize {
        self.by_number.values().filter(|cursor| cursor.rows.is_some()).count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn clear(&mut self) {
        self.by_number.clear();
    }
}

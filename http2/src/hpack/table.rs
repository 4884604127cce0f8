//! The dynamic table (RFC 7541 section 2.3.2): the last fields, oldest out first.

use std::collections::VecDeque;

use super::OVERHEAD;
use super::statics::STATIC;

/// The dynamic table. Texts stand one behind the other, so that an entry costs no allocation.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Texts of all entries, the oldest first, behind those that are gone.
    text: Vec<u8>,
    /// Bytes that came before the first one of `text`.
    before: u64,
    /// The oldest first.
    entries: VecDeque<Entry>,
    size: usize,
    limit: usize,
    /// Grows whenever an index means something else than before.
    version: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Bytes of all texts that came before it.
    start: u64,
    name: u16,
    value: u16,
}

impl Entry {
    fn length(self) -> usize {
        usize::from(self.name) + usize::from(self.value)
    }
}

impl Table {
    pub(super) const fn new(limit: usize) -> Self {
        Self { text: Vec::new(), before: 0, entries: VecDeque::new(), size: 0, limit, version: 0 }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        if limit != self.limit {
            self.limit = limit;
            self.version += 1;
            self.evict(0);
        }
    }

    /// The last index of both tables.
    pub(super) fn last_index(&self) -> usize {
        STATIC.len() + self.entries.len()
    }

    /// The field at an index of both tables, which begins at 1.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        if let Some(field) = STATIC.get(index.checked_sub(1)?) {
            return Some(*field);
        }
        self.find(index - STATIC.len() - 1)
    }

    /// The entry that is so many behind the newest.
    #[inline]
    fn find(&self, age: usize) -> Option<(&[u8], &[u8])> {
        let place = self.entries.len().checked_sub(age + 1)?;
        Some(self.text_of(self.entries[place]))
    }

    #[inline]
    fn text_of(&self, entry: Entry) -> (&[u8], &[u8]) {
        let start = (entry.start - self.before) as usize;
        self.text[start..start + entry.length()].split_at(usize::from(entry.name))
    }

    /// The index of a field, or else of its name, in the dynamic table.
    pub(super) fn search(&self, name: &[u8], value: &[u8]) -> (Option<usize>, Option<usize>) {
        let mut named = None;
        for (age, entry) in self.entries.iter().rev().enumerate() {
            if usize::from(entry.name) != name.len() {
                continue;
            }
            let (known, known_value) = self.text_of(*entry);
            if known == name {
                let index = STATIC.len() + 1 + age;
                if known_value == value {
                    return (Some(index), Some(index));
                }
                named = named.or(Some(index));
            }
        }
        (None, named)
    }

    /// Whether an entry of so many bytes of text would stay.
    pub(super) fn takes(&self, text: usize) -> bool {
        text + OVERHEAD <= self.limit
    }

    /// Adds an entry; one that is larger than the table empties it (RFC 7541 section 4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        self.version += 1;
        let length = name.len() + value.len();
        self.evict(length + OVERHEAD);
        let (true, Ok(name_length), Ok(value_length)) =
            (self.takes(length), u16::try_from(name.len()), u16::try_from(value.len()))
        else {
            return;
        };
        self.compact();
        self.entries.push_back(Entry {
            start: self.before + self.text.len() as u64,
            name: name_length,
            value: value_length,
        });
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        self.size += length + OVERHEAD;
    }

    /// Makes room for an entry.
    fn evict(&mut self, room: usize) {
        while self.size + room > self.limit {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.size -= oldest.length() + OVERHEAD;
        }
    }

    /// Moves the texts to the beginning when most of what is before them is gone: each byte moves about once.
    fn compact(&mut self) {
        let end = self.before + self.text.len() as u64;
        let gone = (self.entries.front().map_or(end, |oldest| oldest.start) - self.before) as usize;
        if gone > 256 && gone * 2 > self.text.len() {
            self.text.drain(..gone);
            self.before += gone as u64;
        }
    }
}

//! The entries of a stream, and what it remembers of those that are gone.

use std::collections::{BTreeMap, btree_map};

use super::super::listpack::Listpack;
use super::StreamId;
use super::block::{Block, Head, Pair, StreamEntry};

/// Most entries that a stream counts as added: XSETID takes no more, which an append-only file says.
const MAX_ADDED: u64 = i64::MAX as u64;
/// The most that a block may hold in bytes, whatever the setting says.
const MAX_BLOCK: usize = 1 << 30;

/// How large a block gets.
#[derive(Clone, Copy, Debug)]
pub struct StreamLimits {
    /// `stream-node-max-bytes`; 0 is no limit.
    pub node_max_bytes: usize,
    /// `stream-node-max-entries`; 0 is no limit.
    pub node_max_entries: u64,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self { node_max_bytes: 4096, node_max_entries: 100 }
    }
}

/// A trimming of a stream's front.
#[derive(Clone, Copy, Debug)]
pub struct Trim {
    /// Until when.
    pub to: TrimTo,
    /// Whether only whole blocks go.
    pub approximate: bool,
    /// The most entries that go; 0 is no limit.
    pub limit: u64,
}

/// The bound of a trimming.
#[derive(Clone, Copy, Debug)]
pub enum TrimTo {
    /// So many entries.
    Len(u64),
    /// Entries from this id on.
    MinId(StreamId),
}

/// Entries in the order of their ids.
#[derive(Clone, Default)]
pub struct Log {
    /// By the id that the first entry of a block had.
    blocks: BTreeMap<StreamId, Block>,
    len: u64,
    first_id: StreamId,
    last_id: StreamId,
    max_deleted_id: StreamId,
    entries_added: u64,
}

/// The parts of a log in a dump.
#[derive(Debug)]
pub struct LogParts {
    /// The blocks by key.
    pub blocks: Vec<(StreamId, Listpack)>,
    /// Number of entries.
    pub len: u64,
    /// See [`Log::last_id`].
    pub last_id: StreamId,
    /// See [`Log::max_deleted_id`].
    pub max_deleted_id: StreamId,
    /// See [`Log::entries_added`].
    pub entries_added: u64,
}

impl Log {
    /// The log of which all this is said; `None` if there can be none. No entry is behind the last id, and no fewer were added than
    /// there are: a payload of DUMP that says so is corrected.
    pub fn from_parts(parts: LogParts) -> Option<Self> {
        let LogParts { blocks, len, last_id, max_deleted_id, entries_added } = parts;
        let entries_added = entries_added.max(len).min(MAX_ADDED);
        let mut log = Self { len, last_id, max_deleted_id, entries_added, ..Self::default() };
        let mut live = 0;
        for (key, packed) in blocks {
            let block = Block::from_packed(packed)?;
            live += block.head().live;
            if log.blocks.insert(key, block).is_some() {
                return None;
            }
        }
        log.find_first();
        log.last_id = log.last_entry_id().map_or(last_id, |last| last.max(last_id));
        (live == len).then_some(log)
    }

    /// The blocks by key, as a dump holds them.
    pub fn packed_blocks(&self) -> impl Iterator<Item = (StreamId, &Listpack)> {
        self.blocks.iter().map(|(key, block)| (*key, block.packed()))
    }

    /// Number of entries.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first entry's id; 0-0 without one.
    pub fn first_id(&self) -> StreamId {
        self.first_id
    }

    /// The largest id that an entry has ever had, or that was set in its place.
    pub fn last_id(&self) -> StreamId {
        self.last_id
    }

    /// The largest id that was deleted one by one (trimming does not count).
    pub fn max_deleted_id(&self) -> StreamId {
        self.max_deleted_id
    }

    /// Number of entries that were ever added.
    pub fn entries_added(&self) -> u64 {
        self.entries_added
    }

    /// Sets what `XSETID` sets.
    pub fn set(&mut self, last_id: StreamId, entries_added: Option<u64>, max_deleted_id: Option<StreamId>) {
        self.last_id = last_id;
        self.entries_added = entries_added.unwrap_or(self.entries_added);
        self.max_deleted_id = max_deleted_id.unwrap_or(self.max_deleted_id);
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Keys of the blocks, ascending.
    pub fn block_keys(&self) -> impl Iterator<Item = StreamId> {
        self.blocks.keys().copied()
    }

    /// Heap bytes.
    pub fn memory(&self) -> usize {
        const SLOT: usize = size_of::<StreamId>() + size_of::<Block>();
        self.blocks.values().map(|block| SLOT + block.memory()).sum()
    }

    /// Adds the entry `id`, which is larger than [`Log::last_id`].
    pub fn append<'a>(&mut self, id: StreamId, pairs: impl Iterator<Item = Pair<'a>> + Clone, limits: StreamLimits) {
        let bytes: usize = pairs.clone().map(|(name, value)| name.len() + value.len()).sum();
        let last = self.blocks.last_entry().filter(|last| fits(last.get(), bytes, limits));
        match last {
            Some(mut last) => {
                let key = *last.key();
                last.get_mut().push(key, id, pairs);
            }
            None => {
                if let Some(mut full) = self.blocks.last_entry() {
                    full.get_mut().shrink();
                }
                let mut block = Block::new(pairs.clone());
                block.push(id, id, pairs);
                self.blocks.insert(id, block);
            }
        }
        self.len += 1;
        self.entries_added = (self.entries_added + 1).min(MAX_ADDED);
        self.last_id = id;
        if self.len == 1 {
            self.first_id = id;
        }
    }

    /// Deletes the entry `id`; whether there was one.
    pub fn delete(&mut self, id: StreamId) -> bool {
        let Some((&key, block)) = self.blocks.range_mut(..=id).next_back() else { return false };
        let head = block.head();
        let mut at = head.entries;
        let found = loop {
            if at >= block.end() {
                return false;
            }
            let item = block.item(key, &head, at);
            if item.id >= id {
                break item;
            }
            at = item.next;
        };
        if found.id != id || found.is_deleted {
            return false;
        }
        if head.live == 1 {
            self.blocks.remove(&key);
        } else {
            block.delete(&head, found.at);
        }
        self.len -= 1;
        self.max_deleted_id = self.max_deleted_id.max(id);
        if id == self.first_id || self.len == 0 {
            self.find_first();
        }
        true
    }

    /// Removes entries from the front; how many.
    pub fn trim(&mut self, trim: &Trim) -> u64 {
        let mut deleted = 0;
        while let Some(mut first) = self.blocks.first_entry() {
            if matches!(trim.to, TrimTo::Len(len) if self.len <= len) {
                break;
            }
            let key = *first.key();
            let block = first.get_mut();
            let live = block.head().live;
            if trim.limit > 0 && deleted + live > trim.limit {
                break;
            }
            let whole = match trim.to {
                TrimTo::Len(len) => self.len - live >= len,
                TrimTo::MinId(id) => block.last_id(key) < id,
            };
            if whole {
                first.remove();
                self.len -= live;
                deleted += live;
                continue;
            }
            if !trim.approximate {
                let count = match trim.to {
                    TrimTo::Len(len) => block.delete_front(key, self.len - len, StreamId::MAX),
                    TrimTo::MinId(id) => block.delete_front(key, u64::MAX, id),
                };
                self.len -= count;
                deleted += count;
            }
            break;
        }
        if deleted > 0 || self.len == 0 {
            self.find_first();
        }
        deleted
    }

    /// The entries that a trimming would look at and, as `may_go` says of each, take, in their order. Those that stay count as
    /// looked at for its limit, and of an approximate one whole blocks are looked at.
    pub fn to_trim(&self, trim: &Trim, mut may_go: impl FnMut(StreamId) -> bool) -> Vec<StreamId> {
        let (mut gone, mut seen) = (Vec::new(), 0);
        for (&key, block) in &self.blocks {
            let (head, len) = (block.head(), self.len - gone.len() as u64);
            let is_whole = match trim.to {
                TrimTo::Len(most) => len.saturating_sub(head.live) >= most,
                TrimTo::MinId(id) => block.last_id(key) < id,
            };
            seen += head.live;
            if trim.limit > 0 && seen > trim.limit || trim.approximate && !is_whole {
                break;
            }
            let mut at = head.entries;
            while at < block.end() {
                let item = block.item(key, &head, at);
                at = item.next;
                let is_enough = match trim.to {
                    TrimTo::Len(most) => self.len - gone.len() as u64 <= most,
                    TrimTo::MinId(id) => item.id >= id,
                };
                if is_enough {
                    return gone;
                }
                if !item.is_deleted && may_go(item.id) {
                    gone.push(item.id);
                }
            }
        }
        gone
    }

    fn find_first(&mut self) {
        self.first_id = self.range(StreamId::MIN, StreamId::MAX).next().map_or(StreamId::MIN, |entry| entry.id);
    }

    /// The entries from `start` to `end`, both included, ascending.
    pub fn range(&self, start: StreamId, end: StreamId) -> LogRange<'_> {
        self.walk(start, end, false)
    }

    /// The entries from `end` down to `start`, both included.
    pub fn range_backwards(&self, start: StreamId, end: StreamId) -> LogRange<'_> {
        self.walk(start, end, true)
    }

    fn walk(&self, start: StreamId, end: StreamId, backwards: bool) -> LogRange<'_> {
        let blocks = if start <= end {
            let first = self.blocks.range(..=start).next_back().map_or(start, |(key, _)| *key);
            self.blocks.range(first..=end)
        } else {
            self.blocks.range(end..end)
        };
        LogRange { blocks, start, end, backwards, current: None }
    }

    /// The entry `id`.
    pub fn get(&self, id: StreamId) -> Option<StreamEntry<'_>> {
        self.range(id, id).next()
    }

    /// The last entry's id.
    pub fn last_entry_id(&self) -> Option<StreamId> {
        self.range_backwards(StreamId::MIN, StreamId::MAX).next().map(|entry| entry.id)
    }

    /// Whether an entry behind `id` may have been deleted out of its turn; not `strict`: unless the first one of all stands behind that.
    pub fn has_gap_behind(&self, id: StreamId, strict: bool) -> bool {
        self.len > 0
            && self.max_deleted_id != StreamId::MIN
            && (strict || self.first_id <= self.max_deleted_id)
            && id <= self.max_deleted_id
    }

    /// How many entries were added up to the one with this id, where that can be told; `strict`: not if it may be none of them.
    pub fn added_until(&self, id: StreamId, strict: bool) -> Option<u64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        if self.len == 0 && id <= self.last_id || id == self.last_id {
            return Some(self.entries_added);
        }
        if strict && id != StreamId::MIN && id < self.max_deleted_id {
            return None;
        }
        let gap = self.max_deleted_id != StreamId::MIN && self.max_deleted_id >= self.first_id;
        if id > self.last_id || gap || id > self.first_id {
            return None;
        }
        Some(self.entries_added.wrapping_sub(self.len).wrapping_add(u64::from(id == self.first_id)))
    }
}

/// Whether an entry of `bytes` still goes into a block.
fn fits(block: &Block, bytes: usize, limits: StreamLimits) -> bool {
    let max = if limits.node_max_bytes == 0 { MAX_BLOCK } else { limits.node_max_bytes.min(MAX_BLOCK) };
    if block.bytes() + bytes >= max {
        return false;
    }
    let head = block.head();
    limits.node_max_entries == 0 || head.live + head.deleted < limits.node_max_entries
}

/// Walks the entries of a range.
pub struct LogRange<'a> {
    blocks: btree_map::Range<'a, StreamId, Block>,
    start: StreamId,
    end: StreamId,
    backwards: bool,
    current: Option<Place<'a>>,
}

/// Where a walk is inside of a block.
struct Place<'a> {
    key: StreamId,
    block: &'a Block,
    head: Head,
    at: usize,
}

impl<'a> Iterator for LogRange<'a> {
    type Item = StreamEntry<'a>;

    fn next(&mut self) -> Option<StreamEntry<'a>> {
        loop {
            let Some(place) = &mut self.current else {
                let (&key, block) = if self.backwards { self.blocks.next_back() } else { self.blocks.next() }?;
                let head = block.head();
                let at = if self.backwards { block.end() } else { head.entries };
                self.current = Some(Place { key, block, head, at });
                continue;
            };
            let (last, beyond) =
                if self.backwards { (place.head.entries, self.start) } else { (place.block.end(), self.end) };
            if place.at == last {
                self.current = None;
                continue;
            }
            if self.backwards {
                place.at = place.block.before(place.at);
            }
            let item = place.block.item(place.key, &place.head, place.at);
            if !self.backwards {
                place.at = item.next;
            }
            let is_over = if self.backwards { item.id < beyond } else { item.id > beyond };
            if is_over {
                return None;
            }
            if !item.is_deleted && item.id >= self.start && item.id <= self.end {
                return Some(place.block.entry(&place.head, &item));
            }
        }
    }
}

//! Streams: entries that are only ever added at the end, and groups of readers that share them.

mod block;
mod group;
mod id;
mod idempotence;
mod log;
mod radix;
mod references;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use block::{Fields, Pair, StreamEntry};
pub use group::{Consumer, Counting, Group, Pending, once_more};
pub use id::StreamId;
pub use idempotence::{IDMP_DURATION, IDMP_MAXSIZE, Idempotence, IdmpLimits, IdmpRecord};
pub use log::{Log, LogParts, LogRange, StreamLimits, Trim, TrimTo};
pub use references::{References, Trimmed};

/// A stream.
///
/// ```
/// use redis_server::types::{Stream, StreamId, StreamLimits};
///
/// let mut stream = Stream::default();
/// let id = stream.next_id(1000);
/// stream.log.append(id, [(&b"name"[..], &b"value"[..])].into_iter(), StreamLimits::default());
/// assert_eq!(stream.log.range(StreamId::MIN, StreamId::MAX).count(), 1);
/// ```
#[derive(Clone, Default)]
pub struct Stream {
    /// The entries.
    pub log: Log,
    /// The groups by name.
    pub groups: BTreeMap<Box<[u8]>, Group>,
    /// The recent idempotent ids of producers. `None` until the first call with such an id.
    pub idempotence: Option<Box<Idempotence>>,
}

impl Stream {
    /// The id of an entry added at `now_ms`; ids grow even when the clock goes back. The caller sees to it that there is
    /// one behind the last.
    pub fn next_id(&self, now_ms: u64) -> StreamId {
        let last = self.log.last_id();
        if now_ms > last.ms { StreamId { ms: now_ms, seq: 0 } } else { last.next().unwrap_or(last) }
    }

    /// The id `ms-*` of an entry that is added now; `None` if this millisecond is used up.
    pub fn next_seq(&self, ms: u64) -> Option<StreamId> {
        let last = self.log.last_id();
        let seq = if last.ms == ms { last.seq.checked_add(1)? } else { 0 };
        Some(StreamId { ms, seq })
    }

    /// `OBJECT ENCODING`.
    pub fn encoding(&self) -> &'static str {
        "stream"
    }

    /// Number of nodes of the genuine server's radix tree of these entries.
    pub fn radix_nodes(&self) -> usize {
        radix::nodes(self.log.block_keys())
    }

    /// Heap bytes.
    pub fn memory(&self) -> usize {
        let groups: usize =
            self.groups.iter().map(|(name, group)| name.len() + size_of::<Group>() + group.memory()).sum();
        self.log.memory() + groups + self.idempotence.as_ref().map_or(0, |known| known.memory())
    }

    /// About how many allocations the stream consists of.
    pub fn allocations(&self) -> usize {
        // Records of pending entries lie several to a block of the tree.
        self.log.blocks() + self.groups.values().map(|group| 1 + group.pending().len() / 4).sum::<usize>()
    }
}

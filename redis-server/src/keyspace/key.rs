//! A key that a call names, and the events of keys.

use crate::types::SmallBytes;
/// How a command uses a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// It only reads: others may read at the same time.
    Read,
    /// It may change the key.
    Write,
}

/// A key of a call, hashed once.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    /// The key's bytes.
    pub bytes: &'a [u8],
    pub(super) hash: u64,
    pub(super) shard: u32,
    /// Position of the shard's guard in the view that has locked it; [`UNPLACED`] until then.
    pub(super) guard: u32,
    /// Bucket of the shard's table in which the entry was, when it was prefetched; [`UNPLACED`] if it was not. The table may
    /// have changed since.
    pub(super) bucket: u32,
}

/// The guard of a key that was hashed on its own: the view searches for it.
pub(super) const UNPLACED: u32 = u32::MAX;

impl<'a> Key<'a> {
    /// A key that is in no view yet.
    #[inline]
    pub(super) fn new(bytes: &'a [u8], hash: u64, shard: u32) -> Self {
        Self { bytes, hash, shard, guard: UNPLACED, bucket: UNPLACED }
    }

    /// Number of the shard that holds it.
    #[inline]
    pub fn shard(&self) -> u32 {
        self.shard
    }

    /// Its hash.
    #[inline]
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

/// An event that a database itself causes, independent of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening<'a> {
    /// Its time was over when somebody looked for it; its entry is removed by now, or will be.
    Expired,
    /// Its entry was removed because memory was short.
    Evicted,
    /// Its entry was removed for one of these reasons: to make room, if it `is_evicted`.
    Gone {
        /// Whether memory was short; else its time was over.
        is_evicted: bool,
    },
    /// A command that only reads has met its entry, whose time is over and which is removed later.
    Met,
    /// A command that reads has not found it.
    Missed,
    /// It has an entry, and had none before.
    Added,
    /// Fields of its hash were removed because their time was over.
    FieldsExpired {
        /// Which.
        fields: &'a [SmallBytes],
        /// Whether they were the last ones, so that the entry is removed, too.
        is_last: bool,
    },
}

//! The data structures behind Redis values: bytes in, bytes out.
//!
//! Nothing here knows of keys, RESP, time or locks. Every type starts in a compact form and grows into a fast one at
//! the thresholds of Redis 7.2 (the `*Limits` arguments), so that `encoding()` is what `OBJECT ENCODING` answers.

pub mod bloom;
mod dense;
#[cfg(test)]
mod footprint;
pub mod geohash;
mod hash;
pub mod hyperloglog;
mod int_set;
pub mod json;
mod list;
mod listpack;
mod set;
mod small_bytes;
mod sorted_set;
mod stream;
#[cfg(test)]
pub(crate) mod testing;
pub mod vector_set;

pub use hash::{Hash, HashIter, HashLimits, LiveHash, Places};
pub use list::{List, ListIter, ListLimits};
pub(crate) use listpack::{GROWS_SLOWLY, allocated};
pub use listpack::{Listpack, ListpackIter, Text};
pub use set::{Set, SetIter, SetLimits};
pub use small_bytes::SmallBytes;
pub use sorted_set::{LexBound, LexRange, ScoreRange, SortedSet, SortedSetBuilder, SortedSetIter, SortedSetLimits};
pub use stream::{
    Consumer, Counting, Fields, Group, IDMP_DURATION, IDMP_MAXSIZE, Idempotence, IdmpLimits, IdmpRecord, Log, LogParts,
    LogRange, Pair, Pending, References, Stream, StreamEntry, StreamId, StreamLimits, Trim, TrimTo, Trimmed, once_more,
};

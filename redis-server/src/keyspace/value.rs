//! The values of keys.

use bytes::Bytes;

use super::buffer::{Buffer, InReply};
use super::entry::HEAVY_STRING;
use crate::types::bloom::Bloom;
use crate::types::json::Json;
use crate::types::vector_set::VectorSet;
use crate::types::{Hash, List, Set, SortedSet, Stream};

/// Allocations of an element of a vector set: its name, its attributes, and a share of the tree of names.
const BLOCKS_OF_VECTOR: usize = 3;

/// A value to be stored.
pub enum Value<'a> {
    /// A string as a client sent it: stored as an integer where it is one.
    Bytes(&'a [u8]),
    /// A string that stays text even where it reads as an integer.
    Text(&'a [u8]),
    /// A string that was put together by the server (`OBJECT ENCODING`: `raw`).
    Raw(&'a [u8]),
    /// An integer.
    Int(i64),
    /// A large string in a buffer of its own.
    Shared(Bytes),
    /// Anything but a string inside the entry.
    Object(Object),
}

/// A value that lives outside its entry.
#[derive(Clone)]
pub enum Object {
    /// A large string that replies share.
    Shared(Box<Bytes>),
    /// A string that grows or is written in place.
    Buffer(Buffer),
    /// A list.
    List(Box<List>),
    /// A hash.
    Hash(Box<Hash>),
    /// A set.
    Set(Box<Set>),
    /// A sorted set.
    SortedSet(Box<SortedSet>),
    /// A stream.
    Stream(Box<Stream>),
    /// A JSON document.
    Json(Box<Json>),
    /// A Bloom filter.
    Bloom(Box<Bloom>),
    /// A vector set.
    VectorSet(Box<VectorSet>),
}

/// A stored value, borrowed.
#[derive(Clone, Copy)]
pub enum ValueRef<'a> {
    /// A string.
    Str(StrRef<'a>),
    /// A list.
    List(&'a List),
    /// A hash.
    Hash(&'a Hash),
    /// A set.
    Set(&'a Set),
    /// A sorted set.
    SortedSet(&'a SortedSet),
    /// A stream.
    Stream(&'a Stream),
    /// A JSON document.
    Json(&'a Json),
    /// A Bloom filter.
    Bloom(&'a Bloom),
    /// A vector set.
    VectorSet(&'a VectorSet),
}

/// A stored string, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum StrRef<'a> {
    /// An integer.
    Int(i64),
    /// Bytes; `raw`: they were modified in place.
    Bytes {
        /// The string.
        bytes: &'a [u8],
        /// Whether `OBJECT ENCODING` says `raw` whatever the length.
        raw: bool,
    },
    /// A large string that replies share.
    Shared(&'a Bytes),
    /// A string that is written in place, which replies share, too.
    Buffer(&'a Buffer),
}

impl Value<'_> {
    /// A string that was put together by the server, or will be changed in place soon.
    pub fn written(bytes: Vec<u8>) -> Self {
        Self::Object(Object::Buffer(Buffer::new(bytes)))
    }
}

impl Object {
    /// The value, borrowed.
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Shared(bytes) => ValueRef::Str(StrRef::Shared(bytes)),
            Self::Buffer(buffer) => ValueRef::Str(StrRef::Buffer(buffer)),
            Self::List(list) => ValueRef::List(list),
            Self::Hash(hash) => ValueRef::Hash(hash),
            Self::Set(set) => ValueRef::Set(set),
            Self::SortedSet(set) => ValueRef::SortedSet(set),
            Self::Stream(stream) => ValueRef::Stream(stream),
            Self::Json(json) => ValueRef::Json(json),
            Self::Bloom(filter) => ValueRef::Bloom(filter),
            Self::VectorSet(set) => ValueRef::VectorSet(set),
        }
    }
}

impl ValueRef<'_> {
    /// The type's name, as `TYPE` prints it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Str(_) => "string",
            Self::List(_) => "list",
            Self::Hash(_) => "hash",
            Self::Set(_) => "set",
            Self::SortedSet(_) => "zset",
            Self::Stream(_) => "stream",
            // The modules' names in files, which TYPE prints too.
            Self::Json(_) => "ReJSON-RL",
            Self::Bloom(_) => "MBbloom--",
            Self::VectorSet(_) => "vectorset",
        }
    }

    /// Whether it is a collection without elements, which no command leaves behind; an empty stream is not one.
    pub fn is_empty_collection(&self) -> bool {
        match self {
            Self::Str(_) | Self::Stream(_) | Self::Json(_) | Self::Bloom(_) => false,
            Self::List(list) => list.is_empty(),
            Self::Hash(hash) => hash.is_empty(),
            Self::Set(set) => set.is_empty(),
            Self::SortedSet(set) => set.is_empty(),
            Self::VectorSet(set) => set.is_empty(),
        }
    }

    /// About how many allocations the value consists of.
    pub fn blocks(&self) -> usize {
        let elements = match self {
            Self::Str(_) | Self::Json(_) => return 1,
            Self::Bloom(filter) => return filter.filters(),
            Self::List(list) => list.len(),
            Self::Hash(hash) => hash.len(),
            Self::Set(set) => set.len(),
            Self::SortedSet(set) => set.len(),
            Self::VectorSet(set) => return set.len().saturating_mul(BLOCKS_OF_VECTOR),
            Self::Stream(stream) => return stream.allocations(),
        };
        if matches!(self.encoding(), "listpack" | "intset") { 1 } else { elements }
    }

    /// Bytes of the value itself, wherever they are.
    pub fn payload(&self) -> usize {
        match self {
            Self::Str(string) => string.len(),
            Self::List(list) => list.memory(),
            Self::Hash(hash) => hash.memory(),
            Self::Set(set) => set.memory(),
            Self::SortedSet(set) => set.memory(),
            Self::Stream(stream) => stream.memory(),
            Self::Json(json) => json.memory(),
            Self::Bloom(filter) => filter.memory(),
            Self::VectorSet(set) => set.memory(),
        }
    }

    /// The representation's name, as `OBJECT ENCODING` prints it.
    pub fn encoding(&self) -> &'static str {
        match self {
            Self::Str(string) => string.encoding(),
            Self::List(list) => list.encoding(),
            Self::Hash(hash) => hash.encoding(),
            Self::Set(set) => set.encoding(),
            Self::SortedSet(set) => set.encoding(),
            Self::Stream(stream) => stream.encoding(),
            Self::Json(_) | Self::Bloom(_) | Self::VectorSet(_) => "raw",
        }
    }
}

impl StrRef<'_> {
    /// Length in bytes.
    pub fn len(self) -> usize {
        match self {
            Self::Int(value) => itoa::Buffer::new().format(value).len(),
            Self::Bytes { bytes, .. } => bytes.len(),
            Self::Shared(bytes) => bytes.len(),
            Self::Buffer(buffer) => buffer.len(),
        }
    }

    /// Whether the string is empty.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Calls `read` with the string as one slice.
    pub fn with<R>(self, read: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Self::Int(value) => read(itoa::Buffer::new().format(value).as_bytes()),
            Self::Bytes { bytes, .. } => read(bytes),
            Self::Shared(bytes) => read(bytes),
            Self::Buffer(buffer) => read(buffer),
        }
    }

    /// The string for a reply. A large one is not copied: it stays as it is now as long as the reply has it.
    pub fn share(self) -> Bytes {
        match self {
            Self::Shared(bytes) if bytes.len() >= HEAVY_STRING => InReply::Shared(bytes.clone()).share(),
            Self::Shared(bytes) => bytes.clone(),
            Self::Buffer(buffer) => buffer.share(),
            Self::Int(_) | Self::Bytes { .. } => self.to_vec().into(),
        }
    }

    /// A copy.
    pub fn to_vec(self) -> Vec<u8> {
        self.with(<[u8]>::to_vec)
    }

    /// The value as a 64-bit integer, if its text is one.
    pub fn as_int(self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(value),
            Self::Bytes { bytes, .. } => crate::protocol::number::parse_i64(bytes),
            Self::Buffer(buffer) => crate::protocol::number::parse_i64(buffer),
            Self::Shared(_) => None,
        }
    }

    /// The representation's name: `embstr` up to 44 bytes, as in the genuine server.
    pub fn encoding(self) -> &'static str {
        match self {
            Self::Int(_) => "int",
            Self::Bytes { bytes, raw: false } if bytes.len() <= 44 => "embstr",
            Self::Bytes { .. } | Self::Shared(_) | Self::Buffer(_) => "raw",
        }
    }
}

//! `DEBUG DIGEST`: a fingerprint of data that does not depend on how it is stored.
//!
//! Equal data has equal digests within this program; the genuine server's digests of the same data are others.

use std::hash::{BuildHasher as _, Hasher as _};

use foldhash::quality::FixedState;

use crate::db::{Entry, ValueRef};
use crate::types::StreamId;

/// Independent hash functions whose results make up a digest.
const LANES: [u64; 3] = [1, 2, 3];

/// A fingerprint; all zeros for no data at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest([u64; LANES.len()]);

impl Digest {
    /// Of parts in their order.
    fn of(parts: &[&[u8]]) -> Self {
        Self(LANES.map(|seed| {
            let mut hasher = FixedState::with_seed(seed).build_hasher();
            for part in parts {
                hasher.write_usize(part.len());
                hasher.write(part);
            }
            hasher.finish()
        }))
    }

    /// Adds something whose place does not matter.
    fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(lane, other)| *lane ^= other);
    }

    /// Adds something behind what there is.
    fn append(&mut self, bytes: &[u8]) {
        *self = Self::of(&[&self.bytes(), bytes]);
    }

    /// Adds an entry of database `db`.
    pub(super) fn add_entry(&mut self, db: usize, entry: &Entry) {
        let mut one = Self::of(&[&db.to_le_bytes(), entry.key()]);
        one.append(&Self::value(entry).bytes());
        self.add(one);
    }

    /// Of an entry's value, its type and its expiry.
    pub(super) fn value(entry: &Entry) -> Self {
        let value = entry.value();
        let mut digest = Self::of(&[value.type_name().as_bytes()]);
        match value {
            ValueRef::Str(string) => string.with(|bytes| digest.append(bytes)),
            ValueRef::List(list) => list.iter().for_each(|element| digest.append(&element)),
            ValueRef::Set(set) => set.iter().for_each(|member| digest.add(Self::of(&[&member]))),
            ValueRef::Hash(hash) => {
                hash.iter().for_each(|(field, value)| digest.add(Self::of(&[&field, &value])));
            }
            ValueRef::SortedSet(set) => {
                set.iter().for_each(|(member, score)| digest.add(Self::of(&[&member, &score.to_le_bytes()])));
            }
            ValueRef::Stream(stream) => {
                for entry in stream.log.range(StreamId::MIN, StreamId::MAX) {
                    digest.append(&entry.id.to_be_bytes());
                    for (field, value) in entry.fields {
                        digest.append(&field);
                        digest.append(&value);
                    }
                }
            }
        }
        if let Some(at) = entry.expire_at() {
            digest.append(&at.to_le_bytes());
        }
        digest
    }

    fn bytes(self) -> Vec<u8> {
        self.0.iter().flat_map(|lane| lane.to_le_bytes()).collect()
    }

    /// Forty hexadecimal digits, as many as the genuine server prints.
    pub(super) fn hex(self) -> String {
        let mut text: String = self.0.iter().map(|lane| format!("{lane:016x}")).collect();
        text.truncate(40);
        text
    }
}

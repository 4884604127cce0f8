//! `DEBUG DIGEST`: a fingerprint of data that does not depend on how it is stored, by the genuine server's rules, so that
//! equal data has equal digests in both.

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest as sha1};

use crate::config::Level;
use crate::keyspace::{Entry, ValueRef};
use crate::protocol::number::{format_digits, format_f64};
use crate::types::StreamId;
use crate::types::json::{Kind, Node};

/// A fingerprint; all zeros for no data at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest([u8; 20]);

impl Digest {
    /// Adds something whose place among its likes does not matter.
    fn add(&mut self, bytes: &[u8]) {
        let hash = sha1(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
        self.0.iter_mut().zip(hash.as_ref()).for_each(|(byte, other)| *byte ^= other);
    }

    /// Adds something behind what there is.
    fn append(&mut self, bytes: &[u8]) {
        self.add(bytes);
        let hash = sha1(&SHA1_FOR_LEGACY_USE_ONLY, &self.0);
        self.0.copy_from_slice(hash.as_ref());
    }

    /// Of parts in their order.
    fn of(parts: [&[u8]; 2]) -> Self {
        let mut digest = Self::default();
        parts.iter().for_each(|part| digest.append(part));
        digest
    }

    /// Begins a database that holds something.
    pub(super) fn begin_database(&mut self, db: usize) {
        self.append(&(db as u32).to_be_bytes());
    }

    /// Adds an entry of the database that was begun last, as it is at `now`.
    pub(super) fn add_entry(&mut self, entry: &Entry, now: u64, level: Level) {
        let mut one = Self::default();
        one.append(entry.key());
        one.append_value(entry, now, level);
        self.add(&one.0);
    }

    /// Of an entry's value at `now`, its type and whether it expires.
    pub(super) fn value(entry: &Entry, now: u64, level: Level) -> Self {
        let mut digest = Self::default();
        digest.append_value(entry, now, level);
        digest
    }

    fn append_value(&mut self, entry: &Entry, now: u64, level: Level) {
        let value = entry.value();
        let digits = if level.is_72() { format_digits } else { format_f64 };
        self.append(&kind(value).to_be_bytes());
        match value {
            ValueRef::Str(string) => string.with(|bytes| self.append(bytes)),
            ValueRef::List(list) => list.iter().for_each(|element| self.append(&element)),
            ValueRef::Set(set) => set.iter().for_each(|member| self.add(&member)),
            ValueRef::Hash(hash) => {
                hash.at(now).iter().for_each(|(field, value)| self.add(&Self::of([&field, &value]).0));
            }
            ValueRef::SortedSet(set) => {
                set.iter().for_each(|(member, score)| self.add(&Self::of([&member, &digits(score)]).0));
            }
            ValueRef::Stream(stream) => {
                for entry in stream.log.range(StreamId::MIN, StreamId::MAX) {
                    self.append(format!("{}.{}", entry.id.ms, entry.id.seq).as_bytes());
                    for (field, value) in entry.fields {
                        self.append(&field);
                        self.append(&value);
                    }
                }
            }
            ValueRef::Json(json) => self.append_json(json.root()),
            ValueRef::VectorSet(set) => {
                let size = Self::of([set.len().to_string().as_bytes(), set.dimensions().to_string().as_bytes()]);
                let mut all = Self::default();
                all.add(&size.0);
                for node in set.nodes() {
                    let mut one = Self::of([&node.vector, node.name]);
                    if !node.attributes.is_empty() {
                        one.append(node.attributes);
                    }
                    all.add(&one.0);
                }
                self.add(&all.0);
            }
            ValueRef::Bloom(filter) => {
                self.append(&filter.header());
                filter.parts().for_each(|(_, bits)| self.append(bits));
            }
        }
        if entry.expire_at().is_some() {
            self.add(b"!!expire!!");
        }
    }

    /// A value of a document, whose members may come in any order. Recurses as deep as documents are.
    fn append_json(&mut self, value: Node<'_>) {
        match value.kind() {
            Kind::Array(elements) => {
                self.append(b"[");
                elements.for_each(|element| self.append_json(element));
                self.append(b"]");
            }
            Kind::Object(members) => {
                let mut all = Self::default();
                for (name, value) in members {
                    let mut member = Self::default();
                    member.append(name);
                    member.append_json(value);
                    all.add(&member.0);
                }
                self.append(b"{");
                self.append(&all.0);
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => self.append(value.raw()),
        }
    }

    /// Forty hexadecimal digits.
    pub(super) fn hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The number of a type in Redis.
fn kind(value: ValueRef<'_>) -> u32 {
    match value {
        ValueRef::Str(_) => 0,
        ValueRef::List(_) => 1,
        ValueRef::Set(_) => 2,
        ValueRef::SortedSet(_) => 3,
        ValueRef::Hash(_) => 4,
        ValueRef::Json(_) | ValueRef::Bloom(_) | ValueRef::VectorSet(_) => 5,
        ValueRef::Stream(_) => 6,
    }
}

//! Values to bytes.
//!
//! Large values go out piece by piece, so that memory never holds a second form of a whole value.

use super::{Fork, kind};
use crate::keyspace::ValueRef;
use crate::protocol::number;
use crate::types::{Hash, List, Listpack, Set, SortedSet};

/// Bytes of a list's node.
const NODE_MAX: usize = 8192;
/// Longest text that is written as an integer, where it is one: that of the smallest of 32 bits.
const INT_MAX_LEN: usize = 11;
/// A list's node that is a listpack.
const PACKED: u64 = 2;

/// The receiver of values' bytes.
pub(super) trait Sink {
    /// Takes bytes.
    fn put(&mut self, bytes: &[u8]);

    /// Takes the bytes of a string behind their length, in fewer bytes if it can.
    fn put_string(&mut self, text: &[u8]) {
        len(self, text.len() as u64);
        self.put(text);
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Counts.
impl Sink for usize {
    fn put(&mut self, bytes: &[u8]) {
        *self += bytes.len();
    }
}

/// The type of a value.
pub(super) fn kind(value: ValueRef<'_>, fork: Fork) -> u8 {
    match value {
        ValueRef::Str(_) => kind::STRING,
        ValueRef::List(_) => kind::LIST_QUICKLIST_2,
        ValueRef::Set(set) if set.is_intset() => kind::SET_INTSET,
        ValueRef::Set(_) => kind::SET,
        ValueRef::Hash(hash) if hash.expires() => match fork {
            Fork::Redis => kind::HASH_TTL,
            Fork::Valkey => kind::HASH_TTL_OF_VALKEY,
        },
        ValueRef::Hash(hash) if hash.encoding() == "listpack" => kind::HASH_LISTPACK,
        ValueRef::Hash(_) => kind::HASH,
        ValueRef::SortedSet(set) if set.encoding() == "listpack" => kind::SORTED_SET_LISTPACK,
        ValueRef::SortedSet(_) => kind::SORTED_SET,
        ValueRef::Stream(_) => kind::STREAM_2,
        ValueRef::Json(_) | ValueRef::Bloom(_) | ValueRef::VectorSet(_) => kind::MODULE_2,
    }
}

/// A value, behind its type.
pub(super) fn value(out: &mut impl Sink, value: ValueRef<'_>, fork: Fork) {
    match value {
        ValueRef::Str(text) => text.with(|text| string(out, text)),
        ValueRef::List(list) => save_list(out, list),
        ValueRef::Set(set) if set.is_intset() => save_ints(out, set),
        ValueRef::Set(set) => save_set(out, set),
        ValueRef::Hash(hash) if hash.expires() => save_expiring(out, hash, fork),
        ValueRef::Hash(hash) => save_hash(out, hash),
        ValueRef::SortedSet(set) => save_sorted_set(out, set),
        ValueRef::Stream(stream) => super::stream::save(out, stream),
        ValueRef::Json(json) => super::module::save_json(out, json),
        ValueRef::Bloom(filter) => super::module::save_bloom(out, filter),
        ValueRef::VectorSet(set) => super::module::save_vector_set(out, set),
    }
}

/// A length, or another number.
#[inline]
pub(super) fn len(out: &mut (impl Sink + ?Sized), len: u64) {
    match (len, u32::try_from(len)) {
        (0..64, _) => out.put(&[len as u8]),
        (64..16_384, _) => out.put(&[0x40 | (len >> 8) as u8, len as u8]),
        (_, Ok(len)) => {
            out.put(&[0x80]);
            out.put(&len.to_be_bytes());
        }
        (_, Err(_)) => {
            out.put(&[0x81]);
            out.put(&len.to_be_bytes());
        }
    }
}

/// A string, as an integer where it is a small one.
#[inline]
pub(super) fn string(out: &mut impl Sink, text: &[u8]) {
    let int = if text.len() <= INT_MAX_LEN { number::parse_i64(text) } else { None };
    match int.map(i32::try_from) {
        Some(Ok(int)) => {
            if let Ok(int) = i8::try_from(int) {
                out.put(&[0xc0, int as u8]);
            } else if let Ok(int) = i16::try_from(int) {
                out.put(&[0xc1]);
                out.put(&int.to_le_bytes());
            } else {
                out.put(&[0xc2]);
                out.put(&int.to_le_bytes());
            }
        }
        _ => out.put_string(text),
    }
}

/// Bytes that are no text of a client's.
pub(super) fn bytes(out: &mut impl Sink, bytes: &[u8]) {
    out.put_string(bytes);
}

/// How many elements each node of a list gets.
fn nodes(list: &List) -> impl Iterator<Item = usize> {
    /// Most bytes that a listpack adds to an element: its head and its length behind it.
    const AROUND: usize = 5 + 5;
    let mut lens = list.iter().map(|element| element.len() + AROUND).peekable();
    std::iter::from_fn(move || {
        let (mut bytes, mut count) = (lens.next()?, 1);
        while let Some(len) = lens.next_if(|len| bytes + len <= NODE_MAX) {
            bytes += len;
            count += 1;
        }
        Some(count)
    })
}

fn save_list(out: &mut impl Sink, list: &List) {
    len(out, nodes(list).count() as u64);
    let mut elements = list.iter();
    for count in nodes(list) {
        let mut node = Listpack::default();
        elements.by_ref().take(count).for_each(|element| node.push(&element));
        len(out, PACKED);
        bytes(out, &node.to_redis());
    }
}

fn save_set(out: &mut impl Sink, set: &Set) {
    len(out, set.len() as u64);
    set.iter().for_each(|member| string(out, &member));
}

fn save_ints(out: &mut impl Sink, set: &Set) {
    // Every member of such a set is one.
    let mut ints: Vec<i64> = set.iter().filter_map(|member| number::parse_i64(&member)).collect();
    ints.sort_unstable();
    let fits = |min: i64, max: i64| ints.iter().all(|int| (min..=max).contains(int));
    let size: u32 = match () {
        () if fits(i16::MIN.into(), i16::MAX.into()) => 2,
        () if fits(i32::MIN.into(), i32::MAX.into()) => 4,
        () => 8,
    };
    let mut packed = size.to_le_bytes().to_vec();
    packed.extend_from_slice(&(ints.len() as u32).to_le_bytes());
    ints.iter().for_each(|int| packed.extend_from_slice(&int.to_le_bytes()[..size as usize]));
    bytes(out, &packed);
}

fn save_hash(out: &mut impl Sink, hash: &Hash) {
    if hash.encoding() == "listpack" {
        let mut packed = Listpack::default();
        for (field, value) in hash.iter() {
            packed.push(&field);
            packed.push(&value);
        }
        return bytes(out, &packed.to_redis());
    }
    len(out, hash.len() as u64);
    for (field, value) in hash.iter() {
        string(out, &field);
        string(out, &value);
    }
}

/// A hash of which fields expire. Redis writes times from the first one on, which is 1, and 0 where there is none.
fn save_expiring(out: &mut impl Sink, hash: &Hash, fork: Fork) {
    let first = hash.earliest().unwrap_or(0);
    if fork == Fork::Redis {
        out.put(&first.to_le_bytes());
    }
    len(out, hash.len() as u64);
    for (field, value, at) in hash.at(0).iter_timed() {
        if fork == Fork::Redis {
            len(out, at.map_or(0, |at| at - first + 1));
        }
        string(out, &field);
        string(out, &value);
        if fork == Fork::Valkey {
            out.put(&at.map_or(-1, |at| at as i64).to_le_bytes());
        }
    }
}

fn save_sorted_set(out: &mut impl Sink, set: &SortedSet) {
    if set.encoding() == "listpack" {
        let mut packed = Listpack::default();
        for (member, score) in set.iter() {
            packed.push(&member);
            packed.push(&number::format_f64(score));
        }
        return bytes(out, &packed.to_redis());
    }
    len(out, set.len() as u64);
    for (member, score) in set.iter() {
        string(out, &member);
        out.put(&score.to_le_bytes());
    }
}

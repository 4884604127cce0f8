//! Values to bytes.

use super::kind;
use crate::keyspace::ValueRef;
use crate::protocol::number;
use crate::types::{Hash, List, Listpack, Set, SortedSet};

/// Bytes of a list's node.
const NODE_MAX: usize = 8192;
/// Longest text that is written as an integer, where it is one: that of the smallest of 32 bits.
const INT_MAX_LEN: usize = 11;
/// A list's node that is a listpack.
const PACKED: u64 = 2;

/// The type of a value, and the value.
pub(super) fn value(value: ValueRef<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        ValueRef::Str(text) => {
            out.push(kind::STRING);
            text.with(|text| string(&mut out, text));
        }
        ValueRef::List(list) => save_list(&mut out, list),
        ValueRef::Set(set) => save_set(&mut out, set),
        ValueRef::Hash(hash) => save_hash(&mut out, hash),
        ValueRef::SortedSet(set) => save_sorted_set(&mut out, set),
        ValueRef::Stream(stream) => {
            out.push(kind::STREAM_2);
            super::stream::save(&mut out, stream);
        }
    }
    out
}

/// A length, or another number.
pub(super) fn len(out: &mut Vec<u8>, len: u64) {
    match len {
        0..64 => out.push(len as u8),
        64..16_384 => out.extend_from_slice(&[0x40 | (len >> 8) as u8, len as u8]),
        _ => match u32::try_from(len) {
            Ok(len) => {
                out.push(0x80);
                out.extend_from_slice(&len.to_be_bytes());
            }
            Err(_) => {
                out.push(0x81);
                out.extend_from_slice(&len.to_be_bytes());
            }
        },
    }
}

/// A string, as an integer where it is a small one.
pub(super) fn string(out: &mut Vec<u8>, text: &[u8]) {
    let int = if text.len() <= INT_MAX_LEN { number::parse_i64(text) } else { None };
    match int.map(i32::try_from) {
        Some(Ok(int)) => {
            if let Ok(int) = i8::try_from(int) {
                out.extend_from_slice(&[0xc0, int as u8]);
            } else if let Ok(int) = i16::try_from(int) {
                out.push(0xc1);
                out.extend_from_slice(&int.to_le_bytes());
            } else {
                out.push(0xc2);
                out.extend_from_slice(&int.to_le_bytes());
            }
        }
        _ => bytes(out, text),
    }
}

/// Bytes as they are.
pub(super) fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    len(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn save_list(out: &mut Vec<u8>, list: &List) {
    out.push(kind::LIST_QUICKLIST_2);
    let mut nodes = Vec::new();
    let mut node = Listpack::default();
    for element in list.iter() {
        if !node.is_empty() && node.bytes() + element.len() > NODE_MAX {
            nodes.push(std::mem::take(&mut node));
        }
        node.push(&element);
    }
    nodes.push(node);
    len(out, nodes.len() as u64);
    for node in nodes {
        len(out, PACKED);
        bytes(out, &node.to_redis());
    }
}

fn save_set(out: &mut Vec<u8>, set: &Set) {
    let ints = if set.encoding() == "intset" {
        set.iter().map(|member| number::parse_i64(&member)).collect::<Option<Vec<i64>>>()
    } else {
        None
    };
    let Some(mut ints) = ints else {
        out.push(kind::SET);
        len(out, set.len() as u64);
        set.iter().for_each(|member| string(out, &member));
        return;
    };
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
    out.push(kind::SET_INTSET);
    bytes(out, &packed);
}

fn save_hash(out: &mut Vec<u8>, hash: &Hash) {
    if hash.encoding() == "listpack" {
        let mut packed = Listpack::default();
        for (field, value) in hash.iter() {
            packed.push(&field);
            packed.push(&value);
        }
        out.push(kind::HASH_LISTPACK);
        return bytes(out, &packed.to_redis());
    }
    out.push(kind::HASH);
    len(out, hash.len() as u64);
    for (field, value) in hash.iter() {
        string(out, &field);
        string(out, &value);
    }
}

fn save_sorted_set(out: &mut Vec<u8>, set: &SortedSet) {
    if set.encoding() == "listpack" {
        let mut packed = Listpack::default();
        for (member, score) in set.iter() {
            packed.push(&member);
            packed.push(&number::format_f64(score));
        }
        out.push(kind::SORTED_SET_LISTPACK);
        return bytes(out, &packed.to_redis());
    }
    out.push(kind::SORTED_SET);
    len(out, set.len() as u64);
    for (member, score) in set.iter() {
        string(out, &member);
        out.extend_from_slice(&score.to_le_bytes());
    }
}

//! Bytes to values.

use std::borrow::Cow;

use super::reader::Reader;
use super::{VALKEY, kind, module, stream, ziplist, zipmap};
use crate::keyspace::Object;
use crate::protocol::number::{self, IntText};
use crate::types::{Hash, HashLimits, List, ListLimits, Listpack, Set, SetLimits, SortedSetBuilder, SortedSetLimits};

/// The sizes at which collections change their representation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Of hashes.
    pub hash: HashLimits,
    /// Of lists.
    pub list: ListLimits,
    /// Of sets.
    pub set: SetLimits,
    /// Of sorted sets.
    pub sorted_set: SortedSetLimits,
}

/// A value that was read.
pub enum Loaded<'a> {
    /// A string.
    Str(Cow<'a, [u8]>),
    /// Any other.
    Object(Object),
}

impl Loaded<'_> {
    /// Whether it is a collection without elements, which some versions have left in files.
    pub(super) fn is_empty_collection(&self) -> bool {
        match self {
            Self::Str(_) => false,
            Self::Object(object) => object.as_ref().is_empty_collection(),
        }
    }
}

/// The value that `bytes` are, type first. A collection without elements is none.
pub(super) fn whole<'a>(bytes: &'a [u8], limits: &Limits) -> Option<Loaded<'a>> {
    let mut reader = Reader::new(bytes);
    let kind = reader.byte()?;
    let loaded = value(kind, &mut reader, limits)?;
    (reader.left() == 0 && !loaded.is_empty_collection()).then_some(loaded)
}

/// Whether there is a type of this number that is read.
pub(super) fn is_kind(kind: u8) -> bool {
    matches!(
        kind,
        kind::STRING..=kind::SORTED_SET
            | kind::MODULE_2
            | kind::HASH_ZIPMAP..=kind::STREAM_3
            | kind::HASH_TTL_OF_VALKEY
            | kind::HASH_TTL
            | kind::HASH_LISTPACK_TTL
    )
}

/// Whether a type is that of a release candidate of Redis 7.4, in what has this version.
pub(super) fn is_of_candidate(kind: u8, version: u16) -> bool {
    kind == kind::HASH_LISTPACK_TTL_OF_A_CANDIDATE || kind == kind::HASH_TTL_OF_VALKEY && version < VALKEY
}

/// A value of this type.
pub(super) fn value<'a>(kind: u8, reader: &mut Reader<'a>, limits: &Limits) -> Option<Loaded<'a>> {
    Some(match kind {
        kind::STRING => Loaded::Str(reader.string()?),
        kind::LIST | kind::LIST_ZIPLIST | kind::LIST_QUICKLIST | kind::LIST_QUICKLIST_2 => {
            Loaded::Object(list(kind, reader, limits.list)?)
        }
        kind::SET | kind::SET_INTSET | kind::SET_LISTPACK => Loaded::Object(set(kind, reader, limits.set)?),
        kind::HASH | kind::HASH_LISTPACK | kind::HASH_ZIPLIST | kind::HASH_ZIPMAP => {
            Loaded::Object(hash(kind, reader, limits.hash)?)
        }
        kind::HASH_TTL_OF_VALKEY | kind::HASH_TTL | kind::HASH_LISTPACK_TTL => {
            Loaded::Object(expiring_hash(kind, reader, limits.hash)?)
        }
        kind::SORTED_SET | kind::SORTED_SET_TEXT | kind::SORTED_SET_LISTPACK | kind::SORTED_SET_ZIPLIST => {
            Loaded::Object(sorted_set(kind, reader, limits.sorted_set)?)
        }
        kind::STREAM | kind::STREAM_2 | kind::STREAM_3 => {
            Loaded::Object(Object::Stream(Box::new(stream::load(kind, reader)?)))
        }
        kind::MODULE_2 => Loaded::Object(module::load(reader)?),
        _ => return None,
    })
}

/// The elements of a compact form in one string.
fn packed(kind: u8, reader: &mut Reader<'_>) -> Option<Vec<Vec<u8>>> {
    let bytes = reader.string()?;
    if kind == kind::HASH_ZIPMAP {
        return zipmap::entries(&bytes);
    }
    if matches!(kind, kind::LIST_ZIPLIST | kind::LIST_QUICKLIST | kind::HASH_ZIPLIST | kind::SORTED_SET_ZIPLIST) {
        return ziplist::entries(&bytes);
    }
    let list = Listpack::from_redis(&bytes)?;
    Some(list.iter().map(|element| element.to_vec()).collect())
}

fn list(kind: u8, reader: &mut Reader<'_>, limits: ListLimits) -> Option<Object> {
    /// A node of one element, as it is.
    const PLAIN: u64 = 1;
    /// A node that is a listpack.
    const PACKED: u64 = 2;
    let mut list = List::default();
    let nodes = if kind == kind::LIST_ZIPLIST { 1 } else { reader.len()? };
    for _ in 0..nodes {
        let container = if kind == kind::LIST_QUICKLIST_2 { reader.len()? } else { PACKED };
        match container {
            _ if kind == kind::LIST => list.push_back(&reader.string()?, limits),
            // Only what is large stands alone.
            PLAIN => list.push_back(reader.string().as_deref().filter(|element| !element.is_empty())?, limits),
            PACKED => packed(kind, reader)?.iter().for_each(|element| list.push_back(element, limits)),
            _ => return None,
        }
    }
    Some(Object::List(Box::new(list)))
}

fn set(kind: u8, reader: &mut Reader<'_>, limits: SetLimits) -> Option<Object> {
    let mut set = Set::default();
    let members: Vec<Cow<'_, [u8]>> = match kind {
        kind::SET_INTSET => ints(&reader.string()?)?.into_iter().map(|int| IntText::new(int).to_vec().into()).collect(),
        kind::SET_LISTPACK => packed(kind, reader)?.into_iter().map(Cow::Owned).collect(),
        _ => (0..reader.len()?).map(|_| reader.string()).collect::<Option<_>>()?,
    };
    // A member that occurs twice was not written by a server.
    let all_new = members.iter().all(|member| set.add(member, limits));
    all_new.then(|| Object::Set(Box::new(set)))
}

/// The members of an intset: size of each, their number, and they, in ascending order.
fn ints(mut bytes: &[u8]) -> Option<Vec<i64>> {
    let mut word = || Some(u32::from_le_bytes(bytes.split_off(..4)?.try_into().ok()?) as usize);
    let (size, count) = (word()?, word()?);
    if !matches!(size, 2 | 4 | 8) || bytes.len() != count.checked_mul(size)? {
        return None;
    }
    let int = |bytes: &[u8]| {
        let mut wide = [if bytes[size - 1] & 0x80 == 0 { 0 } else { 0xff }; 8];
        wide[..size].copy_from_slice(bytes);
        i64::from_le_bytes(wide)
    };
    let ints: Vec<i64> = bytes.chunks_exact(size).map(int).collect();
    ints.is_sorted_by(|a, b| a < b).then_some(ints)
}

/// Calls `add` with pairs of strings until it says no, which makes the value none.
fn pairs(kind: u8, reader: &mut Reader<'_>, mut add: impl FnMut(&[u8], &[u8]) -> bool) -> Option<()> {
    if kind == kind::HASH {
        for _ in 0..reader.len()? {
            let (name, value) = (reader.string()?, reader.string()?);
            add(&name, &value).then_some(())?;
        }
        return Some(());
    }
    let elements = packed(kind, reader)?;
    let (pairs, rest) = elements.as_chunks::<2>();
    (rest.is_empty() && pairs.iter().all(|[name, value]| add(name, value))).then_some(())
}

fn hash(kind: u8, reader: &mut Reader<'_>, limits: HashLimits) -> Option<Object> {
    let mut hash = Hash::default();
    // As in the genuine server, what was compact stays so, however long its elements are, but for zipmaps.
    let is_limited = matches!(kind, kind::HASH | kind::HASH_ZIPMAP);
    let max_listpack_value = if is_limited { limits.max_listpack_value } else { usize::MAX };
    let limits = HashLimits { max_listpack_value, ..limits };
    pairs(kind, reader, |field, value| hash.set(field, value, limits))?;
    Some(Object::Hash(Box::new(hash)))
}

/// A hash of which fields expire.
fn expiring_hash(kind: u8, reader: &mut Reader<'_>, limits: HashLimits) -> Option<Object> {
    let mut hash = Hash::default();
    let mut add = |field: &[u8], value: &[u8], at: Option<u64>| {
        (hash.set(field, value, limits) && hash.expire(field, at)).then_some(())
    };
    if kind == kind::HASH_TTL_OF_VALKEY {
        for _ in 0..reader.len()? {
            let (field, value) = (reader.string()?, reader.string()?);
            let at = i64::from_le_bytes(reader.array()?);
            add(&field, &value, if at == -1 { None } else { Some(u64::try_from(at).ok()?) })?;
        }
        return Some(Object::Hash(Box::new(hash)));
    }
    let first = reader.time()?;
    if kind == kind::HASH_TTL {
        for _ in 0..reader.len()? {
            let behind = reader.len()?;
            let (field, value) = (reader.string()?, reader.string()?);
            let at = behind.checked_sub(1).map(|behind| first.checked_add(behind));
            add(&field, &value, at.map_or(Some(None), |at| at.filter(is_time).map(Some))?)?;
        }
    } else {
        let elements = packed(kind, reader)?;
        let (triples, rest) = elements.as_chunks::<3>();
        for [field, value, at] in triples {
            let at = number::parse_i64(at).and_then(|at| u64::try_from(at).ok())?;
            add(field, value, Some(at).filter(|&at| at != 0))?;
        }
        rest.is_empty().then_some(())?;
    }
    Some(Object::Hash(Box::new(hash)))
}

/// Whether a server can have meant it.
fn is_time(at: &u64) -> bool {
    i64::try_from(*at).is_ok()
}

fn sorted_set(kind: u8, reader: &mut Reader<'_>, limits: SortedSetLimits) -> Option<Object> {
    let mut builder = SortedSetBuilder::default();
    let mut is_new = true;
    let mut add = |member: &[u8], score: f64| {
        builder.merge(member, score, |_, score| {
            is_new = false;
            score
        });
        is_new
    };
    let is_plain = matches!(kind, kind::SORTED_SET | kind::SORTED_SET_TEXT);
    if is_plain {
        for _ in 0..reader.len()? {
            let member = reader.string()?;
            let score = if kind == kind::SORTED_SET { reader.double()? } else { text_double(reader)? };
            add(&member, score).then_some(())?;
        }
    } else {
        pairs(kind, reader, |member, score| number::parse_f64(score).is_some_and(|score| add(member, score)))?;
    }
    let max_listpack_value = if is_plain { limits.max_listpack_value } else { usize::MAX };
    let set = builder.finish(SortedSetLimits { max_listpack_value, ..limits });
    Some(Object::SortedSet(Box::new(set)))
}

/// A double as text behind its length, which has values of its own for the infinities.
fn text_double(reader: &mut Reader<'_>) -> Option<f64> {
    match reader.byte()? {
        255 => Some(f64::NEG_INFINITY),
        254 => Some(f64::INFINITY),
        253 => None,
        len => number::parse_f64(reader.take(len.into())?),
    }
}

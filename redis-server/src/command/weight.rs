//! How much work a call is likely to be, estimated before it runs.

use super::args::Args;
use crate::keyspace::{Entry, Key, StrRef, ValueRef, View};

/// The estimated work of a command's calls, besides that of reading their arguments.
#[derive(Clone, Copy, Debug)]
pub enum Weight {
    /// Little, whatever they meet.
    Little,
    /// Much, whatever they meet.
    Much,
    /// Much, whatever they meet, or little, as the function says of their arguments.
    MuchIf(fn(Args<'_>) -> bool),
    /// As many elements as describe all clients.
    Clients,
    /// As many elements as there are channels with subscribers.
    Channels,
    /// The number of elements to be examined, moved or freed. The function counts under the locks of the call.
    Of(fn(&View<'_>, Args<'_>) -> usize),
}

/// Bytes of a string that take as long as one element of a collection.
pub const STRING_UNIT: usize = 512;

/// Elements of a value.
fn size(entry: &Entry) -> usize {
    match entry.value() {
        ValueRef::Str(string) => string.len() / STRING_UNIT,
        ValueRef::List(list) => list.len(),
        ValueRef::Hash(hash) => hash.len(),
        ValueRef::Set(set) => set.len(),
        ValueRef::SortedSet(set) => set.len(),
        ValueRef::Stream(stream) => stream.log.len() as usize,
        ValueRef::VectorSet(set) => set.work(),
        run @ (ValueRef::Json(_) | ValueRef::Bloom(_)) => run.payload() / STRING_UNIT,
    }
}

fn size_of_key(view: &View<'_>, key: &Key<'_>) -> usize {
    view.stored(key).map_or(0, size)
}

/// All elements of all keys.
pub fn values(view: &View<'_>, args: Args<'_>) -> usize {
    args.keys().iter().fold(0, |sum, key| sum.saturating_add(size_of_key(view, key)))
}

/// Of the first key's elements, those between the positions in arguments 2 and 3.
pub fn positions(view: &View<'_>, args: Args<'_>) -> usize {
    let len = args.keys().first().map_or(0, |key| size_of_key(view, key));
    let at = |index: usize| -> Option<usize> {
        let position = args.get(index).and_then(|_| args.int(index).ok())?;
        let from_end = usize::try_from(position.unsigned_abs()).unwrap_or(usize::MAX);
        Some(if position < 0 { len.saturating_sub(from_end) } else { from_end.min(len) })
    };
    let is_by_value = (4..args.len()).any(|at| args.is(at, "BYSCORE") || args.is(at, "BYLEX"));
    match (at(2), at(3)) {
        (Some(first), Some(last)) if !is_by_value => (last + 1).saturating_sub(first).min(len),
        _ => limited(len, args),
    }
}

/// Of the keys' elements, as many as `LIMIT offset count` or `COUNT count` ask for.
pub fn limits(view: &View<'_>, args: Args<'_>) -> usize {
    limited(values(view, args), args)
}

fn limited(len: usize, args: Args<'_>) -> usize {
    let number =
        |at: usize| args.get(at).and_then(|_| args.int(at).ok()).and_then(|number| usize::try_from(number).ok());
    let word = |word: &str| (2..args.len()).find(|&at| args.is(at, word));
    let wanted = match (word("LIMIT"), word("COUNT")) {
        (Some(at), _) => number(at + 1).zip(number(at + 2)).map(|(offset, count)| offset.saturating_add(count)),
        (None, Some(at)) => number(at + 1),
        (None, None) => None,
    };
    wanted.map_or(len, |wanted| wanted.min(len))
}

/// The argument of a scan's `COUNT`.
pub fn scanned(_: &View<'_>, args: Args<'_>) -> usize {
    let at = (2..args.len()).find(|&at| args.is(at, "COUNT"));
    let count = at.and_then(|at| args.get(at + 1).and_then(|_| args.int(at + 1).ok()));
    count.map_or(0, |count| usize::try_from(count).unwrap_or(0))
}

/// Of the first key's elements, as many as argument 2 asks for: without it, one.
pub fn count(view: &View<'_>, args: Args<'_>) -> usize {
    let Some(wanted) = args.get(2).and_then(|_| args.int(2).ok()) else { return 0 };
    let wanted = usize::try_from(wanted.unsigned_abs()).unwrap_or(usize::MAX);
    // With repetitions there may be more than the key has.
    let repeats = args.int(2).is_ok_and(|wanted| wanted < 0);
    let len = args.keys().first().map_or(0, |key| size_of_key(view, key));
    if repeats && len > 0 { wanted } else { wanted.min(len) }
}

/// Little for a read as a consumer group (`>`) or from a stream's end on (`$`); otherwise as [`limits`].
pub fn unread(view: &View<'_>, args: Args<'_>) -> usize {
    let is_new = args.iter().next_back().is_some_and(|id| id == b">" || id == b"$");
    if is_new { 0 } else { limits(view, args) }
}

/// Bytes of the arguments, in elements.
pub fn payload(_: &View<'_>, args: Args<'_>) -> usize {
    args.iter().map(<[u8]>::len).sum::<usize>() / STRING_UNIT
}

/// Of the first key's string, the bytes to be filled or copied so that it becomes as long as `len` says of the present length, in
/// elements.
pub fn filling(view: &View<'_>, args: Args<'_>, len: impl FnOnce(usize) -> Option<u64>) -> usize {
    let Some(key) = args.keys().first() else { return 0 };
    let entry = view.stored(key);
    let old = entry.and_then(Entry::string).map_or(0, StrRef::len);
    let Some(len) = len(old).and_then(|len| usize::try_from(len).ok()) else { return 0 };
    entry.map_or(len, |entry| entry.bytes_to_fill(len)) / STRING_UNIT
}

/// All elements of all keys, and the arguments.
pub fn values_and_payload(view: &View<'_>, args: Args<'_>) -> usize {
    values(view, args).saturating_add(payload(view, args))
}

/// The product of the lengths of two strings.
pub fn product(view: &View<'_>, args: Args<'_>) -> usize {
    let lens = args.keys().iter().map(|key| size_of_key(view, key).saturating_mul(STRING_UNIT).max(STRING_UNIT));
    lens.fold(1, usize::saturating_mul) / STRING_UNIT
}

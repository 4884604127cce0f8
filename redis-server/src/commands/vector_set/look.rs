//! Commands that look at a set or its elements.

use std::ops::Bound;

use super::stored;
use crate::command::{Args, Result};
use crate::commands::random::{self, Count};
use crate::exec::core::Ctx;
use crate::keyspace::View;
use crate::protocol::error::Error;
use crate::protocol::{Reply, number};
use crate::types::vector_set::{Projection, Quantization, VectorSet};

/// Numbers as text of a vector that take as long as one element of a collection.
const NUMBERS_UNIT: usize = 2;

/// VCARD key
pub(super) fn vcard(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let set = cx.db.vector_set(args.key(0))?;
    cx.reply.count(set.map_or(0, |set| set.len()));
    Ok(())
}

/// VDIM key
pub(super) fn vdim(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let set = cx.db.vector_set(args.key(0))?.ok_or(Error::Static("ERR key does not exist"))?;
    cx.reply.count(set.dimensions());
    Ok(())
}

/// VISMEMBER key element
pub(super) fn vismember(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let set = cx.db.vector_set(args.key(0))?;
    cx.reply.boolean(set.is_some_and(|set| set.contains(args.at(2))));
    Ok(())
}

/// VGETATTR key element
pub(super) fn vgetattr(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    match cx.db.vector_set(args.key(0))?.and_then(|set| set.attributes(args.at(2))) {
        Some(attributes) => cx.reply.bulk(attributes),
        None => cx.reply.null(),
    }
    Ok(())
}

fn quantization(set: &VectorSet) -> &'static str {
    match set.options().quantization {
        Quantization::None => "f32",
        Quantization::Q8 => "int8",
        Quantization::Binary => "bin",
    }
}

/// `VEMB key element [RAW]`
pub(super) fn vemb(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if (3..args.len()).any(|at| !args.is(at, "RAW")) {
        return Err(Error::Static("ERR invalid option"));
    }
    let Some(set) = cx.db.vector_set(args.key(0))?.filter(|set| set.contains(args.at(2))) else {
        cx.reply.null();
        return Ok(());
    };
    if args.len() > 3 {
        raw(cx.reply, set, args.at(2));
        return Ok(());
    }
    let vector = set.vector(args.at(2)).unwrap_or_default();
    cx.reply.array(vector.len());
    vector.into_iter().for_each(|element| cx.reply.double(element.into()));
    Ok(())
}

/// A vector as it is kept.
fn raw(reply: &mut Reply, set: &VectorSet, element: &[u8]) {
    let Some(node) = set.node_of(element) else { return reply.null() };
    let has_range = set.options().quantization == Quantization::Q8;
    reply.array(3 + usize::from(has_range));
    reply.simple(quantization(set));
    reply.bulk(&node.vector);
    reply.double(node.length.into());
    if has_range {
        reply.double(node.range.into());
    }
}

/// The numbers of a vector.
pub(super) fn dimensions(view: &View<'_>, args: Args<'_>) -> usize {
    stored(view, args).map_or(0, |set| set.dimensions() / NUMBERS_UNIT)
}

/// VINFO key
pub(super) fn vinfo(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let Some(set) = cx.db.vector_set(args.key(0))? else {
        cx.reply.null_array();
        return Ok(());
    };
    let options = set.options();
    let numbers = [
        ("hnsw-m", options.m as u64),
        ("vector-dim", set.dimensions() as u64),
        ("projection-input-dim", options.projection.as_ref().map_or(0, Projection::input) as u64),
        ("size", set.len() as u64),
        ("max-level", set.max_level() as u64),
        ("attributes-count", set.attributed() as u64),
        ("vset-uid", set.uid()),
        ("hnsw-max-node-uid", set.last_id()),
    ];
    cx.reply.map(1 + numbers.len());
    cx.reply.simple("quant-type");
    cx.reply.simple(quantization(set));
    for (name, number) in numbers {
        cx.reply.simple(name);
        cx.reply.int(number as i64);
    }
    Ok(())
}

/// `VLINKS key element [WITHSCORES]`
pub(super) fn vlinks(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let with_scores = args.len() == 4 && args.is(3, "WITHSCORES");
    if args.len() > 3 && !with_scores {
        return Err(Error::WrongArity("vlinks".into()));
    }
    let Some(levels) = cx.db.vector_set(args.key(0))?.and_then(|set| set.links(args.at(2))) else {
        cx.reply.null();
        return Ok(());
    };
    cx.reply.array(levels.len());
    for links in levels {
        if with_scores {
            cx.reply.map(links.len());
        } else {
            cx.reply.array(links.len());
        }
        for link in links {
            cx.reply.bulk(link.name);
            if with_scores {
                cx.reply.double(link.score);
            }
        }
    }
    Ok(())
}

/// The most links of an element.
pub(super) fn links(view: &View<'_>, args: Args<'_>) -> usize {
    stored(view, args).map_or(0, |set| set.work_of_search(4))
}

/// `VRANDMEMBER key [count]`
pub(super) fn vrandmember(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (key, random) = (args.key(0), cx.random());
    if args.len() > 3 {
        return Err(Error::WrongArity("vrandmember".into()));
    }
    if args.len() == 2 {
        match cx.db.vector_set(key)?.and_then(|set| set.member_at(random.below(set.len()))) {
            Some(member) => cx.reply.bulk(member),
            None => cx.reply.null(),
        }
        return Ok(());
    }
    let count = number::parse_i64(args.at(2)).ok_or(Error::Static("ERR COUNT value is not an integer"))?;
    let size = count.unsigned_abs() as usize;
    let count = if count < 0 { Count::Repeated(size) } else { Count::Distinct(size) };
    let set = if size == 0 { None } else { cx.db.vector_set(key)? };
    let Some(set) = set else {
        cx.reply.array(0);
        return Ok(());
    };
    cx.reply.array(count.of(set.len()));
    let (below, at) = (|bound| random.below(bound), |place| set.member_at(place));
    // Every place below the number of elements has one.
    let members = (0..set.len()).map(|place| set.member_at(place).unwrap_or_default());
    random::sample(cx.reply, count, members, at, below, |reply, member| reply.bulk(member))
}

/// `VRANGE key start end [count]`
pub(super) fn vrange(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() > 5 {
        return Err(Error::WrongArity("vrange".into()));
    }
    let count = args.get(4).map(|count| number::parse_i64(count).ok_or(Error::Static("ERR invalid COUNT value")));
    // A negative number is all.
    let count = count.transpose()?.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    let start = end_of_range(args.at(2)).ok_or(Error::Static("ERR invalid start range format"))?;
    let end = end_of_range(args.at(3)).ok_or(Error::Static("ERR invalid end range format"))?;
    let (RangeEnd::Least | RangeEnd::At(_), RangeEnd::Greatest | RangeEnd::At(_)) = (&start, &end) else {
        return Err(Error::Static("ERR '-' can only be used as first argument, '+' only as second"));
    };
    let Some(set) = cx.db.vector_set(args.key(0))? else {
        cx.reply.array(0);
        return Ok(());
    };
    let (mark, mut found) = (cx.reply.mark(), 0);
    for name in set.names(start.bound(), end.bound()).take(count) {
        cx.reply.bulk(name);
        found += 1;
    }
    cx.reply.array_at(mark, found);
    Ok(())
}

/// An end of a range of names.
enum RangeEnd<'a> {
    Least,
    Greatest,
    At(Bound<&'a [u8]>),
}

impl<'a> RangeEnd<'a> {
    fn bound(&self) -> Bound<&'a [u8]> {
        match self {
            Self::Least | Self::Greatest => Bound::Unbounded,
            Self::At(bound) => *bound,
        }
    }
}

fn end_of_range(text: &[u8]) -> Option<RangeEnd<'_>> {
    match text {
        b"-" => Some(RangeEnd::Least),
        b"+" => Some(RangeEnd::Greatest),
        [b'[', name @ ..] if !name.is_empty() => Some(RangeEnd::At(Bound::Included(name))),
        [b'(', name @ ..] if !name.is_empty() => Some(RangeEnd::At(Bound::Excluded(name))),
        _ => None,
    }
}

/// The names that a range may have.
pub(super) fn range(view: &View<'_>, args: Args<'_>) -> usize {
    let count = args.get(4).and_then(number::parse_i64).and_then(|count| usize::try_from(count).ok());
    stored(view, args).map_or(0, |set| set.len().min(count.unwrap_or(usize::MAX)))
}

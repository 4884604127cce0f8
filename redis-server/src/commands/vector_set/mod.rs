//! Vector sets (<https://redis.io/docs/latest/commands/?group=vector_set>).

mod add;
mod look;
mod similar;

use crate::command::{Args, Categories, Flags, Weight, read, update, weight};
use crate::commands::definition::{Family, cmd};
use crate::keyspace::{ValueRef, View};
use crate::protocol::error::Error;
use crate::protocol::number;
use crate::types::vector_set::{MAX_DIMENSIONS, VectorSet};

const INVALID_VECTOR: Error = Error::Static("ERR invalid vector specification");

/// A vector among the arguments: `FP32 blob` or `VALUES number value [value …]`.
struct Given {
    vector: Vec<f32>,
    /// The argument behind it.
    end: usize,
}

impl Given {
    /// The vector at argument `at`.
    fn parse(args: Args<'_>, at: usize) -> Option<Self> {
        let size = args.get(at + 1)?;
        if args.is(at, "FP32") {
            let (floats, rest) = size.as_chunks::<4>();
            let is_vector = rest.is_empty() && (1..=MAX_DIMENSIONS).contains(&floats.len());
            let vector = floats.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            return is_vector.then_some(Self { vector, end: at + 2 });
        }
        if !args.is(at, "VALUES") {
            return None;
        }
        let size = usize::try_from(number::parse_i64(size)?).ok();
        let size = size.filter(|size| (1..=MAX_DIMENSIONS).contains(size))?;
        let (first, end) = (at + 2, at + 2 + size);
        if args.len() < end {
            return None;
        }
        let values = (first..end).map(|at| number::parse_f64(args.at(at)).map(|value| value as f32));
        Some(Self { vector: values.collect::<Option<_>>()?, end })
    }
}

/// An integer above 0 at argument `at`.
fn positive(args: Args<'_>, at: usize) -> Option<usize> {
    let number = args.get(at).and_then(number::parse_i64)?;
    usize::try_from(number).ok().filter(|number| *number > 0)
}

/// The set of a call, if there is one.
fn stored<'v>(view: &'v View<'_>, args: Args<'_>) -> Option<&'v VectorSet> {
    match view.stored(args.keys().first()?)?.value() {
        ValueRef::VectorSet(set) => Some(set),
        _ => None,
    }
}

/// The number behind the last of these words from argument `from` on.
fn option(args: Args<'_>, from: usize, word: &str) -> Option<usize> {
    (from..args.len()).rev().find(|at| args.is(*at, word)).and_then(|at| positive(args, at + 1))
}

/// Where the arguments behind a vector begin, without reading it.
fn behind_vector(args: Args<'_>, at: usize) -> usize {
    let values = if args.is(at, "VALUES") { positive(args, at + 1).unwrap_or(0) } else { 0 };
    values.saturating_add(at + 2).min(args.len())
}

const READ: Flags = Flags::READONLY;
const READ_FAST: Flags = READ.and(Flags::FAST);
const WRITE_FAST: Flags = Flags::WRITE.and(Flags::FAST);
const GROW: Flags = Flags::WRITE.and(Flags::DENYOOM);

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "vector_set", category: Categories(0), commands: &[
    cmd("vadd",        -5, add::vadd,         GROW,       &[update(1)]).weighs(Weight::Of(add::weight)),
    cmd("vcard",        2, look::vcard,       READ_FAST,  &[read(1).flags("RO")]),
    cmd("vdim",         2, look::vdim,        READ_FAST,  &[read(1).flags("RO")]),
    cmd("vemb",        -3, look::vemb,        READ_FAST,  &[read(1)]).weighs(Weight::Of(look::dimensions)).batched_up_to(0),
    cmd("vgetattr",     3, look::vgetattr,    READ_FAST,  &[read(1)]),
    cmd("vinfo",        2, look::vinfo,       READ_FAST,  &[read(1).flags("RO")]),
    cmd("vismember",    3, look::vismember,   READ,       &[read(1).flags("RO")]).batched(),
    cmd("vlinks",      -3, look::vlinks,      READ_FAST,  &[read(1)]).weighs(Weight::Of(look::links)).batched_up_to(0),
    cmd("vrandmember", -2, look::vrandmember, READ,       &[read(1)]).tips(&["nondeterministic_output"]).weighs(Weight::Of(weight::count)),
    cmd("vrange",      -4, look::vrange,      READ,       &[read(1)]).weighs(Weight::Of(look::range)),
    cmd("vrem",         3, add::vrem,         Flags::WRITE, &[update(1).flags("RW delete")]).weighs(Weight::Of(add::weight_of_removal)),
    cmd("vsetattr",     4, add::vsetattr,     WRITE_FAST, &[update(1).flags("RW update")]),
    cmd("vsim",        -4, similar::vsim,     READ,       &[read(1)]).weighs(Weight::Of(similar::weight)),
] };

//! BITOP.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::EMPTY;
use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{Key, StrRef, Value, View};
use crate::protocol::error::Error;

/// Bytes of each source that are combined before the next source's turn: the result stays in the first-level cache.
const BLOCK: usize = 8 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    And,
    Or,
    Xor,
    Not,
    /// Bits that are set in the first source and in no other.
    Diff,
    /// Bits that are set in some other source but not in the first.
    Diff1,
    /// Bits that are set in the first source and in some other.
    AndOr,
    /// Bits that are set in exactly one source.
    One,
}

const OPERATIONS: [(&str, Operation); 8] = [
    ("AND", Operation::And),
    ("OR", Operation::Or),
    ("XOR", Operation::Xor),
    ("NOT", Operation::Not),
    ("DIFF", Operation::Diff),
    ("DIFF1", Operation::Diff1),
    ("ANDOR", Operation::AndOr),
    ("ONE", Operation::One),
];

/// `BITOP <AND | OR | XOR | NOT | DIFF | DIFF1 | ANDOR | ONE> destkey key [key …]`
pub(super) fn bitop(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let &(word, operation) = OPERATIONS.iter().find(|(word, _)| args.is(1, word)).ok_or(Error::Syntax)?;
    let [to, sources @ ..] = args.keys() else { return Err(Error::Syntax) };
    if operation == Operation::Not && sources.len() != 1 {
        return Err(Error::Static("ERR BITOP NOT must be called with a single source key."));
    }
    if matches!(operation, Operation::Diff | Operation::Diff1 | Operation::AndOr) && sources.len() < 2 {
        return Err(Error::Message(format!("ERR BITOP {word} must be called with at least two source keys.")));
    }
    let result = read_and_combine(&cx.db, operation, sources)?;
    let len = result.len();
    if len > 0 {
        cx.db.set(to, Value::written(result), None);
        cx.changed(to, Event::SET);
    } else if let Some(old) = cx.db.remove(to) {
        cx.discard(old, false);
        cx.changed(to, Event::DEL);
    }
    cx.reply.count(len);
    Ok(())
}

fn read_and_combine(db: &View<'_>, operation: Operation, keys: &[Key<'_>]) -> Result<Vec<u8>> {
    let mut sources: SmallVec<[Cow<'_, [u8]>; 8]> = SmallVec::new();
    for key in keys {
        sources.push(match db.string(key)?.unwrap_or(EMPTY) {
            StrRef::Int(value) => value.to_string().into_bytes().into(),
            StrRef::Bytes { bytes, .. } => bytes.into(),
            StrRef::Shared(bytes) => bytes[..].into(),
            StrRef::Buffer(buffer) => buffer[..].into(),
        });
    }
    Ok(combine(operation, &sources))
}

/// The combination, as long as the longest source; shorter ones go on with zeros.
fn combine<'s>(operation: Operation, sources: &'s [Cow<'s, [u8]>]) -> Vec<u8> {
    let len = sources.iter().map(|source| source.len()).max().unwrap_or(0);
    let mut result = vec![0; len];
    for (block, start) in result.chunks_mut(BLOCK).zip((0..).step_by(BLOCK)) {
        let end = start + block.len();
        let part = |source: &'s [u8]| &source[start.min(source.len())..end.min(source.len())];
        match operation {
            Operation::And | Operation::Or | Operation::Xor | Operation::Not => {}
            Operation::Diff | Operation::Diff1 | Operation::AndOr => {
                sources[1..].iter().for_each(|source| apply(Operation::Or, block, part(source)));
                against_first(operation, block, part(&sources[0]));
                continue;
            }
            Operation::One => {
                once(block, sources.iter().map(|source| part(source)));
                continue;
            }
        }
        for (source, first) in sources.iter().zip(std::iter::once(true).chain(std::iter::repeat(false))) {
            let source = &source[start.min(source.len())..(start + block.len()).min(source.len())];
            if first {
                block[..source.len()].copy_from_slice(source);
            } else {
                apply(operation, block, source);
            }
        }
        if operation == Operation::Not {
            block.iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
    result
}

/// Combines `source` into `block`, byte by byte: the compiler does it vector by vector.
fn apply(operation: Operation, block: &mut [u8], source: &[u8]) {
    let (common, rest) = block.split_at_mut(source.len());
    let pairs = common.iter_mut().zip(source);
    match operation {
        Operation::And => {
            pairs.for_each(|(byte, other)| *byte &= other);
            rest.fill(0);
        }
        Operation::Or => pairs.for_each(|(byte, other)| *byte |= other),
        Operation::Xor => pairs.for_each(|(byte, other)| *byte ^= other),
        // It has one source; the others are made of these.
        Operation::Not | Operation::Diff | Operation::Diff1 | Operation::AndOr | Operation::One => {}
    }
}

/// Ends an operation on the first source and all others, which are in `block` together.
fn against_first(operation: Operation, block: &mut [u8], first: &[u8]) {
    let (common, rest) = block.split_at_mut(first.len());
    let pairs = common.iter_mut().zip(first);
    match operation {
        Operation::Diff => pairs.for_each(|(byte, first)| *byte = first & !*byte),
        Operation::Diff1 => pairs.for_each(|(byte, first)| *byte &= !first),
        _ => pairs.for_each(|(byte, first)| *byte &= first),
    }
    if operation != Operation::Diff1 {
        rest.fill(0);
    }
}

/// The bits that just one source has.
fn once<'s>(block: &mut [u8], sources: impl Iterator<Item = &'s [u8]>) {
    let mut twice = vec![0; block.len()];
    for source in sources {
        for ((byte, twice), other) in block.iter_mut().zip(&mut twice).zip(source) {
            *twice |= *byte & other;
            *byte |= other;
        }
    }
    block.iter_mut().zip(twice).for_each(|(byte, twice)| *byte &= !twice);
}

//! BITOP.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::EMPTY;
use crate::command::{Args, Result};
use crate::exec::{Ctx, Event};
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
}

const OPERATIONS: [(&str, Operation); 4] =
    [("AND", Operation::And), ("OR", Operation::Or), ("XOR", Operation::Xor), ("NOT", Operation::Not)];

/// `BITOP <AND | OR | XOR | NOT> destkey key [key …]`
pub(super) fn bitop(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let operation = OPERATIONS.iter().find(|(word, _)| args.is(1, word)).ok_or(Error::Syntax)?.1;
    let [to, sources @ ..] = args.keys() else { return Err(Error::Syntax) };
    if operation == Operation::Not && sources.len() != 1 {
        return Err(Error::Static("ERR BITOP NOT must be called with a single source key."));
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
        });
    }
    Ok(combine(operation, &sources))
}

/// The combination, as long as the longest source; shorter ones go on with zeros.
fn combine(operation: Operation, sources: &[Cow<'_, [u8]>]) -> Vec<u8> {
    let len = sources.iter().map(|source| source.len()).max().unwrap_or(0);
    let mut result = vec![0; len];
    for (block, start) in result.chunks_mut(BLOCK).zip((0..).step_by(BLOCK)) {
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
        // It has one source.
        Operation::Not => {}
    }
}

//! BF.SCANDUMP and BF.LOADCHUNK: a filter from one server to another, in pieces of a bounded size.
//!
//! The first piece is the chain's head. Of the pieces of bits each comes with the place where the next one begins, counted from 1, and is
//! loaded with that.

use bytes::Bytes;

use super::{NOT_FOUND, changed, store};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::error::Error;
use crate::types::bloom::Bloom;

const BAD_DATA: Error = Error::Static("ERR received bad data");

fn iterator(args: Args<'_>) -> Result<i64> {
    args.int(2).map_err(|_| Error::Static("ERR Second argument must be numeric"))
}

/// BF.SCANDUMP key iterator
pub(super) fn scandump(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let iterator = iterator(args)?;
    let filter = cx.db.bloom(args.key(0))?.ok_or(NOT_FOUND)?;
    cx.reply.array(2);
    if iterator == 0 {
        cx.reply.int(1);
        cx.reply.bulk(&filter.header());
        return Ok(());
    }
    let at = u64::try_from(iterator).ok().map(|iterator| iterator - 1);
    match at.and_then(|at| filter.chunk(at)) {
        Some(chunk) => {
            cx.reply.int(iterator + chunk.len() as i64);
            cx.reply.blob(&Bytes::copy_from_slice(chunk));
        }
        None => {
            cx.reply.int(0);
            cx.reply.bulk(b"");
        }
    }
    Ok(())
}

/// BF.LOADCHUNK key iterator data: the first piece takes the place of whatever filter there is.
pub(super) fn loadchunk(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (key, iterator, data) = (args.key(0), iterator(args)?, args.at(3));
    if iterator == 1 {
        cx.db.bloom(key)?;
        let filter = Bloom::of_header(data).ok_or(BAD_DATA)?;
        store(cx, key, filter);
    } else {
        let filter = cx.db.bloom_mut(key)?.ok_or(NOT_FOUND)?;
        let at = u64::try_from(iterator).ok().and_then(|next| next.checked_sub(1 + data.len() as u64));
        if !at.is_some_and(|at| filter.put_chunk(at, data)) {
            return Err(BAD_DATA);
        }
        changed(cx, key);
    }
    cx.reply.ok();
    Ok(())
}

//! XLEN, XRANGE, XREVRANGE.

use super::entries::{limit, reply_entries};
use super::parse;
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::error::Error;
use crate::types::LogRange;

/// XLEN key
pub(super) fn xlen(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let len = cx.db.stream(args.key(0))?.map_or(0, |stream| stream.log.len());
    cx.reply.int(len as i64);
    Ok(())
}

/// `XRANGE key start end [COUNT count]`
pub(super) fn xrange(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    entries(cx, args, false)
}

/// `XREVRANGE key end start [COUNT count]`
pub(super) fn xrevrange(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    entries(cx, args, true)
}

fn entries(cx: &mut Ctx<'_>, args: Args<'_>, backwards: bool) -> Result {
    let (start, end) = if backwards { (3, 2) } else { (2, 3) };
    let (start, end) = (parse::start(args.at(start))?, parse::end(args.at(end))?);
    let mut count = None;
    let mut at = 4;
    while at < args.len() {
        if !args.is(at, "COUNT") || at + 1 == args.len() {
            return Err(Error::Syntax);
        }
        count = Some(u64::try_from(args.int(at + 1)?).unwrap_or(0));
        at += 2;
    }
    let Some(stream) = cx.db.stream(args.key(0))? else {
        cx.reply.array(0);
        return Ok(());
    };
    if count == Some(0) {
        cx.reply.null_array();
        return Ok(());
    }
    let entries: LogRange<'_> =
        if backwards { stream.log.range_backwards(start, end) } else { stream.log.range(start, end) };
    reply_entries(cx.reply, entries.take(limit(count.unwrap_or(0))));
    Ok(())
}

//! Commands that wait until there is something to pop.

use super::End;
use super::ends::{Several, move_one, pop_one, pop_several};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;

/// `BLPOP key [key …] timeout`
pub(super) fn blpop(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    pop(cx, args, End::Left)
}

/// `BRPOP key [key …] timeout`
pub(super) fn brpop(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    pop(cx, args, End::Right)
}

fn pop(cx: &mut Ctx<'_>, args: Args<'_>, end: End) -> Result {
    let timeout = cx.timeout(args, args.len() - 1)?;
    for key in args.keys() {
        if cx.db.list_mut(key)?.is_none() || cx.others_wait(key) {
            continue;
        }
        cx.reply.array(2);
        cx.reply.bulk(key.bytes);
        pop_one(cx, key, end)?;
        cx.instead(&[end.pop_command(), key.bytes]);
        return Ok(());
    }
    cx.block(timeout, 0..args.keys().len(), true);
    Ok(())
}

/// BLMOVE source destination LEFT|RIGHT LEFT|RIGHT timeout
pub(super) fn blmove(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (from, to) = (End::parse(args, 3)?, End::parse(args, 4)?);
    move_or_wait(cx, args, from, to, 5)
}

/// BRPOPLPUSH source destination timeout
pub(super) fn brpoplpush(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    move_or_wait(cx, args, End::Right, End::Left, 3)
}

fn move_or_wait(cx: &mut Ctx<'_>, args: Args<'_>, from: End, to: End, timeout: usize) -> Result {
    let timeout = cx.timeout(args, timeout)?;
    if cx.db.list_mut(args.key(0))?.is_none() || cx.others_wait(args.key(0)) || !move_one(cx, args, from, to)? {
        cx.block(timeout, 0..1, false);
        return Ok(());
    }
    // The same without its timeout.
    match args.len() {
        6 => cx.instead(&[b"LMOVE", args.at(1), args.at(2), args.at(3), args.at(4)]),
        _ => cx.instead(&[b"RPOPLPUSH", args.at(1), args.at(2)]),
    }
    Ok(())
}

/// `BLMPOP timeout numkeys key [key …] LEFT|RIGHT [COUNT count]`
pub(super) fn blmpop(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let several = Several::parse(args, 2)?;
    let timeout = cx.timeout(args, 1)?;
    for key in args.keys() {
        if cx.db.list_mut(key)?.is_some() && !cx.others_wait(key) && pop_several(cx, key, several)? {
            return Ok(());
        }
    }
    cx.block(timeout, 0..args.keys().len(), true);
    Ok(())
}

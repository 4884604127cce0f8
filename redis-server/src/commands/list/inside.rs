//! Changes anywhere in a list.

use super::find::LEAST_COUNT;
use super::{bounds, position, removed};
use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::protocol::error::Error;

/// LINSERT key BEFORE|AFTER pivot element
pub(super) fn linsert(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let after = args.is(2, "AFTER");
    if !after && !args.is(2, "BEFORE") {
        return Err(Error::Syntax);
    }
    let (key, limits) = (args.key(0), cx.list_limits());
    let Some(list) = cx.db.list_mut(key)? else {
        cx.reply.int(0);
        return Ok(());
    };
    let mut pivot = None;
    list.find(args.at(3), false, usize::MAX, &mut |index| {
        pivot = Some(index);
        false
    });
    let Some(pivot) = pivot else {
        cx.reply.int(-1);
        return Ok(());
    };
    list.insert(pivot + usize::from(after), args.at(4), limits);
    let len = list.len();
    cx.changed(key, Event::LINSERT);
    cx.reply.count(len);
    Ok(())
}

/// LSET key index element
pub(super) fn lset(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (key, limits) = (args.key(0), cx.list_limits());
    let list = cx.db.list_mut(key)?.ok_or(Error::NoSuchKey)?;
    let index = position(list, args.int(2)?).ok_or(Error::IndexOutOfRange)?;
    if !list.set(index, args.at(3), limits) {
        return Err(Error::IndexOutOfRange);
    }
    cx.changed(key, Event::LSET);
    cx.reply.ok();
    Ok(())
}

/// LREM key count element
pub(super) fn lrem(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let count = args.int(2)?;
    if count == i64::MIN && cx.config().level().is_72() {
        return Err(Error::Static(LEAST_COUNT));
    }
    let (key, limits) = (args.key(0), cx.list_limits());
    let Some(list) = cx.db.list_mut(key)? else {
        cx.reply.int(0);
        return Ok(());
    };
    let gone = list.remove(args.at(3), count, limits);
    let left = list.len();
    if gone > 0 {
        removed(cx, key, Event::LREM, left);
    }
    cx.reply.count(gone);
    Ok(())
}

/// LTRIM key start stop
pub(super) fn ltrim(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (start, end) = (args.int(2)?, args.int(3)?);
    let (key, limits) = (args.key(0), cx.list_limits());
    if let Some(list) = cx.db.list_mut(key)? {
        let (start, end) = bounds(list.len(), start, end);
        list.trim(start, end, limits);
        let left = list.len();
        removed(cx, key, Event::LTRIM, left);
    }
    cx.reply.ok();
    Ok(())
}

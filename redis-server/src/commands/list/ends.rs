//! Pushing, popping and moving at the ends of lists.

use super::{End, removed};
use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{Key, Object, Value};
use crate::protocol::error::Error;
use crate::protocol::number::IntText;
use crate::types::List;

/// `LPUSH key element [element …]`
pub(super) fn lpush(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    push(cx, args, End::Left, true)
}

/// `RPUSH key element [element …]`
pub(super) fn rpush(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    push(cx, args, End::Right, true)
}

/// `LPUSHX key element [element …]`
pub(super) fn lpushx(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    push(cx, args, End::Left, false)
}

/// `RPUSHX key element [element …]`
pub(super) fn rpushx(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    push(cx, args, End::Right, false)
}

/// Pushes the values behind the key; a list is made where `make` says so and there is none.
fn push(cx: &mut Ctx<'_>, args: Args<'_>, end: End, make: bool) -> Result {
    let (key, limits) = (args.key(0), cx.list_limits());
    let values = args.from(2).iter();
    let len = if let Some(list) = cx.db.list_mut(key)? {
        end.push_all(list, values, limits);
        list.len()
    } else if make {
        let mut list = List::default();
        end.push_all(&mut list, values, limits);
        let len = list.len();
        cx.db.set(key, Value::Object(Object::List(Box::new(list))), None);
        len
    } else {
        cx.reply.int(0);
        return Ok(());
    };
    cx.changed(key, end.pushed());
    cx.reply.count(len);
    Ok(())
}

/// `LPOP key [count]`
pub(super) fn lpop(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    pop(cx, args, End::Left)
}

/// `RPOP key [count]`
pub(super) fn rpop(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    pop(cx, args, End::Right)
}

fn pop(cx: &mut Ctx<'_>, args: Args<'_>, end: End) -> Result {
    let key = args.key(0);
    if args.len() > 3 {
        return Err(Error::WrongArity(if end == End::Left { "lpop" } else { "rpop" }.into()));
    }
    if args.len() == 2 {
        if !pop_one(cx, key, end)? {
            cx.reply.null();
        }
        return Ok(());
    }
    let count = args.int(2).ok().and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or(Error::Static("ERR value is out of range, must be positive"))?;
    if !pop_array(cx, key, end, count)? {
        cx.reply.null_array();
    }
    Ok(())
}

/// Pops a value and answers with it; false, and no answer, if there is none.
pub(super) fn pop_one(cx: &mut Ctx<'_>, key: &Key<'_>, end: End) -> Result<bool> {
    let limits = cx.list_limits();
    let Some(list) = cx.db.list_mut(key)? else { return Ok(false) };
    end.pop(list, limits, |value| cx.reply.bulk(value));
    let left = list.len();
    removed(cx, key, end.popped(), left);
    Ok(true)
}

/// Pops up to `count` values and answers with them as an array; false, and no answer, if there is none.
pub(super) fn pop_array(cx: &mut Ctx<'_>, key: &Key<'_>, end: End, count: usize) -> Result<bool> {
    let limits = cx.list_limits();
    let Some(list) = cx.db.list_mut(key)? else { return Ok(false) };
    let count = count.min(list.len());
    cx.reply.array(count);
    for _ in 0..count {
        end.pop(list, limits, |value| cx.reply.bulk(value));
    }
    let left = list.len();
    if count > 0 {
        removed(cx, key, end.popped(), left);
    }
    Ok(true)
}

/// LMOVE source destination LEFT|RIGHT LEFT|RIGHT
pub(super) fn lmove(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (from, to) = (End::parse(args, 3)?, End::parse(args, 4)?);
    move_or_null(cx, args, from, to)
}

/// RPOPLPUSH source destination
pub(super) fn rpoplpush(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    move_or_null(cx, args, End::Right, End::Left)
}

fn move_or_null(cx: &mut Ctx<'_>, args: Args<'_>, from: End, to: End) -> Result {
    if !move_one(cx, args, from, to)? {
        cx.reply.null();
    }
    Ok(())
}

/// Moves a value from the first key's list to the second's and answers with it; false, and no answer, if there is none.
pub(super) fn move_one(cx: &mut Ctx<'_>, args: Args<'_>, from: End, to: End) -> Result<bool> {
    let (source, destination, limits) = (args.key(0), args.key(1), cx.list_limits());
    if cx.db.list_mut(source)?.is_none() {
        return Ok(false);
    }
    // A wrong type at the destination must be found before anything is taken.
    cx.db.list_mut(destination)?;
    let Some(list) = cx.db.list_mut(source)? else { return Ok(false) };
    let Some(value) = from.pop(list, limits, <[u8]>::to_vec) else { return Ok(false) };
    // If both keys name the same list, it is empty for a moment. Remove the key only if the list is still empty afterwards.
    to.push_all(cx.db.list_or_new(destination)?, std::iter::once(&*value), limits);
    cx.reply.bulk(&value);
    cx.changed(destination, to.pushed());
    let left = cx.db.list_mut(source)?.map_or(0, |list| list.len());
    // One change, of which there are two events.
    cx.notify(source, from.popped());
    if left == 0 {
        cx.db.remove(source);
        cx.notify(source, Event::DEL);
    }
    Ok(true)
}

/// The arguments of LMPOP and BLMPOP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Several {
    pub(super) end: End,
    pub(super) count: usize,
}

impl Several {
    /// `numkeys key [key …] LEFT|RIGHT [COUNT count]` from argument `first` on.
    pub(super) fn parse(args: Args<'_>, first: usize) -> Result<Self> {
        let numkeys = positive(args, first, "ERR numkeys should be greater than 0")?;
        let at = numkeys.saturating_add(first + 1);
        if at >= args.len() {
            return Err(Error::Syntax);
        }
        let end = End::parse(args, at)?;
        let mut count = None;
        let mut at = at + 1;
        while at < args.len() {
            if count.is_some() || !args.is(at, "COUNT") || at + 1 == args.len() {
                return Err(Error::Syntax);
            }
            count = Some(positive(args, at + 1, "ERR count should be greater than 0")?);
            at += 2;
        }
        Ok(Self { end, count: count.unwrap_or(1) })
    }
}

fn positive(args: Args<'_>, index: usize, error: &'static str) -> Result<usize> {
    let value = args.int(index).ok().and_then(|value| usize::try_from(value).ok());
    value.filter(|&value| value > 0).ok_or(Error::Static(error))
}

/// `LMPOP numkeys key [key …] LEFT|RIGHT [COUNT count]`
pub(super) fn lmpop(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let several = Several::parse(args, 1)?;
    for key in args.keys() {
        if pop_several(cx, key, several)? {
            return Ok(());
        }
    }
    cx.reply.null_array();
    Ok(())
}

/// Pops values and answers with the key and them; false, and no answer, if there is none.
pub(super) fn pop_several(cx: &mut Ctx<'_>, key: &Key<'_>, several: Several) -> Result<bool> {
    let mark = cx.reply.mark();
    cx.reply.array(2);
    cx.reply.bulk(key.bytes);
    let len = cx.db.list_mut(key)?.map_or(0, |list| list.len());
    let popped = pop_array(cx, key, several.end, several.count);
    if matches!(popped, Ok(true)) {
        cx.instead(&[several.end.pop_command(), key.bytes, &IntText::new(several.count.min(len) as i64)]);
    } else {
        cx.reply.truncate(mark);
    }
    popped
}

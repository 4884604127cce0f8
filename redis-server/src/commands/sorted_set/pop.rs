//! Taking the lowest or the highest members, and waiting for them.

use std::ops::Range;

use super::reply_pair;
use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::Key;
use crate::protocol::error::Error;
use crate::protocol::number::{self, IntText};

/// The end of a sorted set from which members are taken.
#[derive(Clone, Copy)]
enum End {
    Min,
    Max,
}

impl End {
    /// The command that takes members from here.
    fn command(self) -> &'static [u8] {
        match self {
            Self::Min => b"ZPOPMIN",
            Self::Max => b"ZPOPMAX",
        }
    }
}

/// `ZPOPMIN key [count]`
pub(super) fn zpopmin(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    zpop(cx, args, End::Min)
}

/// `ZPOPMAX key [count]`
pub(super) fn zpopmax(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    zpop(cx, args, End::Max)
}

/// `BZPOPMIN key [key …] timeout`
pub(super) fn bzpopmin(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    bzpop(cx, args, End::Min)
}

/// `BZPOPMAX key [key …] timeout`
pub(super) fn bzpopmax(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    bzpop(cx, args, End::Max)
}

/// `ZMPOP numkeys key [key …] MIN | MAX [COUNT count]`
pub(super) fn zmpop(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (end, count) = parse_mpop(args, 1)?;
    match first_of(cx, args.keys(), false)? {
        Some(key) => pop_with_key(cx, key, end, count),
        None => cx.reply.null_array(),
    }
    Ok(())
}

/// `BZMPOP timeout numkeys key [key …] MIN | MAX [COUNT count]`
pub(super) fn bzmpop(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (end, count) = parse_mpop(args, 2)?;
    let timeout_ms = cx.timeout(args, 1)?;
    match first_of(cx, args.keys(), true)? {
        Some(key) => pop_with_key(cx, key, end, count),
        None => _ = cx.block(timeout_ms, all(args), true),
    }
    Ok(())
}

fn zpop(cx: &mut Ctx<'_>, args: Args<'_>, end: End) -> Result {
    if args.len() > 3 {
        return Err(Error::Syntax);
    }
    let out_of_range = Error::Static("ERR value is out of range, must be positive");
    let count = match args.get(2) {
        None => None,
        Some(arg) => Some(number::parse_i64(arg).and_then(|n| usize::try_from(n).ok()).ok_or(out_of_range)?),
    };
    let key = args.key(0);
    let len = cx.db.sorted_set_mut(key)?.map_or(0, |set| set.len());
    let count_or_one = count.unwrap_or(1).min(len);
    // RESP3 has pairs where a count was given, and a flat pair where not.
    let nested = count.is_some() && cx.reply.is_resp3();
    cx.reply.array(if nested { count_or_one } else { count_or_one * 2 });
    if count_or_one > 0 {
        pop(cx, key, end, count_or_one, nested);
    }
    Ok(())
}

fn bzpop(cx: &mut Ctx<'_>, args: Args<'_>, end: End) -> Result {
    let timeout_ms = cx.timeout(args, args.len() - 1)?;
    match first_of(cx, args.keys(), true)? {
        Some(key) => {
            cx.reply.array(3);
            cx.reply.bulk(key.bytes);
            pop(cx, key, end, 1, false);
            cx.instead(&[end.command(), key.bytes]);
        }
        None => _ = cx.block(timeout_ms, all(args), true),
    }
    Ok(())
}

/// Every key of the call.
fn all(args: Args<'_>) -> Range<usize> {
    0..args.keys().len()
}

/// The end and the count of ZMPOP and BZMPOP, whose `numkeys` is argument `at`.
fn parse_mpop(args: Args<'_>, at: usize) -> Result<(End, usize)> {
    let positive = |at: usize| number::parse_i64(args.at(at)).and_then(|n| usize::try_from(n).ok()).filter(|&n| n > 0);
    let numkeys = positive(at).ok_or(Error::Static("ERR numkeys should be greater than 0"))?;
    let at = at.saturating_add(numkeys).saturating_add(1);
    let end = match args.get(at).ok_or(Error::Syntax)? {
        word if word.eq_ignore_ascii_case(b"MIN") => End::Min,
        word if word.eq_ignore_ascii_case(b"MAX") => End::Max,
        _ => return Err(Error::Syntax),
    };
    if args.len() == at + 1 {
        return Ok((end, 1));
    }
    if args.len() < at + 3 || !args.is(at + 1, "COUNT") {
        return Err(Error::Syntax);
    }
    let count = positive(at + 2).ok_or(Error::Static("ERR count should be greater than 0"))?;
    if args.len() > at + 3 {
        return Err(Error::Syntax);
    }
    Ok((end, count))
}

/// The first of `keys` that holds members. A command that `waits` leaves those for which others have waited longer, and
/// does not mind other types once it is waiting.
fn first_of<'k>(cx: &mut Ctx<'_>, keys: &'k [Key<'k>], waits: bool) -> Result<Option<&'k Key<'k>>> {
    for key in keys {
        match cx.db.sorted_set_mut(key).map(|set| set.is_some()) {
            Ok(false) => {}
            Ok(true) if waits && cx.others_wait(key) => {}
            Ok(true) => return Ok(Some(key)),
            Err(_) if waits && cx.is_serving() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Takes up to `count` members from `key` and answers with the key and a list of pairs.
fn pop_with_key(cx: &mut Ctx<'_>, key: &Key<'_>, end: End, count: usize) {
    cx.reply.array(2);
    cx.reply.bulk(key.bytes);
    let mark = cx.reply.mark();
    let popped = pop(cx, key, end, count, true);
    cx.reply.array_at(mark, popped);
    cx.instead(&[end.command(), key.bytes, &IntText::new(popped as i64)]);
}

/// Takes up to `count` members from `key`, which has some, and appends them with their scores; how many.
fn pop(cx: &mut Ctx<'_>, key: &Key<'_>, end: End, count: usize, nested: bool) -> usize {
    let Ok(Some(set)) = cx.db.sorted_set_mut(key) else { return 0 };
    let reply = &mut *cx.reply;
    let mut emit = |member: &[u8], score: f64| reply_pair(reply, member, score, nested);
    let mut popped = 0;
    while popped < count {
        let taken = match end {
            End::Min => set.pop_min(&mut emit),
            End::Max => set.pop_max(&mut emit),
        };
        if taken.is_none() {
            break;
        }
        popped += 1;
    }
    let empty = set.is_empty();
    let event = match end {
        End::Min => Event::ZPOPMIN,
        End::Max => Event::ZPOPMAX,
    };
    cx.changed(key, event);
    if empty {
        cx.drop_if_empty(key);
    }
    popped
}

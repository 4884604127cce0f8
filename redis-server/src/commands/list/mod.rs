//! Lists (<https://redis.io/docs/latest/commands/?group=list>).

mod blocking;
mod ends;
mod find;
mod inside;

use crate::command::{Args, Categories, Flags, KeySpec, Result, Weight, keynum, read, update, weight, writes};
use crate::commands::definition::{Family, cmd};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{Access, Key};
use crate::protocol::error::Error;
use crate::types::{List, ListLimits};
use blocking::{blmove, blmpop, blpop, brpop, brpoplpush};
use ends::{lmove, lmpop, lpop, lpush, lpushx, rpop, rpoplpush, rpush, rpushx};
use find::{lindex, llen, lpos, lrange};
use inside::{linsert, lrem, lset, ltrim};

/// One of a list's two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Left,
    Right,
}

impl End {
    /// `LEFT` or `RIGHT` at argument `index`.
    fn parse(args: Args<'_>, index: usize) -> Result<Self> {
        if args.is(index, "LEFT") {
            Ok(Self::Left)
        } else if args.is(index, "RIGHT") {
            Ok(Self::Right)
        } else {
            Err(Error::Syntax)
        }
    }

    fn push_all<'v>(self, list: &mut List, values: impl Iterator<Item = &'v [u8]>, limits: ListLimits) {
        match self {
            Self::Left => values.for_each(|value| list.push_front(value, limits)),
            Self::Right => values.for_each(|value| list.push_back(value, limits)),
        }
    }

    fn pop<R>(self, list: &mut List, limits: ListLimits, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        match self {
            Self::Left => list.pop_front(limits, take),
            Self::Right => list.pop_back(limits, take),
        }
    }

    /// The command that pops here.
    fn pop_command(self) -> &'static [u8] {
        if self == Self::Left { b"LPOP" } else { b"RPOP" }
    }

    fn pushed(self) -> Event {
        if self == Self::Left { Event::LPUSH } else { Event::RPUSH }
    }

    fn popped(self) -> Event {
        if self == Self::Left { Event::LPOP } else { Event::RPOP }
    }
}

/// The list from `start` to `end`, both included and counted from the end if negative, as positions of the first and
/// behind the last value; empty if they cross.
fn bounds(len: usize, start: i64, end: i64) -> (usize, usize) {
    let clamp = |index: i64| if index < 0 { index.saturating_add(len as i64).max(-1) } else { index };
    let start = clamp(start).max(0) as usize;
    let end = (clamp(end) as usize).wrapping_add(1).min(len);
    if start < end { (start, end) } else { (0, 0) }
}

/// A position counted from the end if negative; `None` before the list.
fn position(list: &List, index: i64) -> Option<usize> {
    if index < 0 { list.len().checked_add_signed(isize::try_from(index).ok()?) } else { usize::try_from(index).ok() }
}

/// Notifies of `event` after a removal that leaves `left` values. Removes the key if there are none.
fn removed(cx: &mut Ctx<'_>, key: &Key<'_>, event: Event, left: usize) {
    cx.changed(key, event);
    if left == 0 {
        cx.db.remove(key);
        cx.notify(key, Event::DEL);
    }
}

const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE;
const FAST: Flags = Flags::FAST;
const GROW: Flags = WRITE.and(Flags::DENYOOM);
const WAIT: Flags = WRITE.and(Flags::BLOCKING);
const WAIT_ALONE: Flags = WAIT.and(Flags::NOSCRIPT);

const LEN: KeySpec = read(1).flags("RO");
const INSERT: KeySpec = update(1).flags("RW insert");
const DELETE: KeySpec = update(1).flags("RW delete");
const POP: KeySpec = update(1).flags(POP_FLAGS);
const POP_FLAGS: &str = "RW access delete";
const MOVE: &[KeySpec] = &[POP, update(2).flags("RW insert")];
const ALL_BUT_LAST: &[KeySpec] = &[writes(1, -2, 1).flags(POP_FLAGS)];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "list", category: Categories::LIST, commands: &[
    cmd("blmove",      6, blmove,     WAIT_ALONE.and(GROW), MOVE),
    cmd("blmpop",     -5, blmpop,     WAIT,                 &[keynum(2, Access::Write, POP_FLAGS)]),
    cmd("blpop",      -3, blpop,      WAIT_ALONE,           ALL_BUT_LAST),
    cmd("brpop",      -3, brpop,      WAIT_ALONE,           ALL_BUT_LAST),
    cmd("brpoplpush",  4, brpoplpush, WAIT_ALONE.and(GROW), MOVE),
    cmd("lindex",      3, lindex,     READ,                 &[read(1)]),
    cmd("linsert",     5, linsert,    GROW,                 &[INSERT]).weighs(Weight::Of(weight::values)),
    cmd("llen",        2, llen,       READ.and(FAST),       &[LEN]),
    cmd("lmove",       5, lmove,      GROW,                 MOVE),
    cmd("lmpop",      -4, lmpop,      WRITE,                &[keynum(1, Access::Write, POP_FLAGS)]).weighs(Weight::Of(weight::limits)),
    cmd("lpop",       -2, lpop,       WRITE.and(FAST),      &[POP]).weighs(Weight::Of(weight::count)).batched_up_to(2),
    cmd("lpos",       -3, lpos,       READ,                 &[read(1)]).weighs(Weight::Of(weight::values)),
    cmd("lpush",      -3, lpush,      GROW.and(FAST),       &[INSERT]),
    cmd("lpushx",     -3, lpushx,     GROW.and(FAST),       &[INSERT]),
    cmd("lrange",      4, lrange,     READ,                 &[read(1)]).weighs(Weight::Of(weight::positions)),
    cmd("lrem",        4, lrem,       WRITE,                &[DELETE]).weighs(Weight::Of(weight::values)),
    cmd("lset",        4, lset,       GROW,                 &[update(1).flags("RW update")]),
    cmd("ltrim",       4, ltrim,      WRITE,                &[DELETE]).weighs(Weight::Of(weight::values)),
    cmd("rpop",       -2, rpop,       WRITE.and(FAST),      &[POP]).weighs(Weight::Of(weight::count)).batched_up_to(2),
    cmd("rpoplpush",   3, rpoplpush,  GROW,                 MOVE),
    cmd("rpush",      -3, rpush,      GROW.and(FAST),       &[INSERT]),
    cmd("rpushx",     -3, rpushx,     GROW.and(FAST),       &[INSERT]),
] };

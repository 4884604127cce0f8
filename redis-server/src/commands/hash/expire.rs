//! When fields expire: HEXPIRE and its kin, HTTL and its kin, HPERSIST.

use super::Fields;
use crate::command::{Args, Result};
use crate::commands::generic::Condition;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::protocol::error::Error;
use crate::protocol::number::IntText;

/// Milliseconds of a second.
const SECOND: u64 = 1000;

/// The reply for a missing field, and for a field without a time to live.
const NO_FIELD: i64 = -2;
const NO_DEADLINE: i64 = -1;

/// `HEXPIRE key seconds [NX|XX|GT|LT] FIELDS numfields field [field …]`
pub(super) fn hexpire(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let now = cx.now();
    change(cx, args, "hexpire", SECOND, now)
}

/// `HPEXPIRE key milliseconds [NX|XX|GT|LT] FIELDS numfields field [field …]`
pub(super) fn hpexpire(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let now = cx.now();
    change(cx, args, "hpexpire", 1, now)
}

/// `HEXPIREAT key unix-time-seconds [NX|XX|GT|LT] FIELDS numfields field [field …]`
pub(super) fn hexpireat(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    change(cx, args, "hexpireat", SECOND, 0)
}

/// `HPEXPIREAT key unix-time-milliseconds [NX|XX|GT|LT] FIELDS numfields field [field …]`
pub(super) fn hpexpireat(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    change(cx, args, "hpexpireat", 1, 0)
}

/// Argument `index` in units of `unit` milliseconds counted from `base`, as a moment in milliseconds of Unix time.
///
/// # Errors
/// It is no integer, negative, or too large.
pub(super) fn moment(args: Args<'_>, index: usize, (unit, base): (u64, u64), name: &'static str) -> Result<u64> {
    let time = u64::try_from(args.int(index)?).ok();
    let at = time.and_then(|time| time.checked_mul(unit)).and_then(|at| at.checked_add(base));
    at.filter(|at| i64::try_from(*at).is_ok()).ok_or(Error::InvalidExpire(name))
}

/// Argument 2 becomes the fields' time.
fn change(cx: &mut Ctx<'_>, args: Args<'_>, name: &'static str, unit: u64, base: u64) -> Result {
    let Fields { options, fields } = Fields::find(args, 3, |options| Condition::parse(options).map(drop))?;
    let condition = Condition::parse(options)?;
    let at = moment(args, 2, (unit, base), name)?;
    let (key, now, is_over) = (args.key(0), cx.db.over_by(), cx.db.is_over(at));
    let mut hash = cx.db.hash_mut(key)?;
    let mut changed: Vec<&[u8]> = Vec::new();
    cx.reply.array(fields.len());
    for field in fields.iter() {
        let found = hash.as_mut().and_then(|hash| hash.at(now).deadline(field).map(|current| (hash, current)));
        cx.reply.int(match found {
            None => NO_FIELD,
            Some((_, current)) if !condition.allows(current, at as i64) => 0,
            Some((hash, _)) => {
                changed.push(field);
                if is_over {
                    hash.remove(field)
                } else {
                    hash.expire(field, Some(at))
                };
                if is_over { 2 } else { 1 }
            }
        });
    }
    if !changed.is_empty() {
        end_change(cx, args, (!is_over).then_some(at), &changed);
    }
    Ok(())
}

/// Ends a command that has given `changed` fields another time, or removed them because that is over.
pub(super) fn end_change(cx: &mut Ctx<'_>, args: Args<'_>, at: Option<u64>, changed: &[&[u8]]) {
    let key = args.key(0);
    match at {
        Some(at) => {
            cx.db.fields_expire(key);
            cx.changed(key, Event::HEXPIRE);
            if cx.is_journaled() {
                let (at, count) = (IntText::new(at as i64), IntText::new(changed.len() as i64));
                let head: [&[u8]; 5] = [b"HPEXPIREAT", key.bytes, &at, b"FIELDS", &count];
                cx.instead(&[&head[..], changed].concat());
            }
        }
        None => {
            cx.db.database().count_expired_fields(changed.len());
            cx.changed(key, Event::HEXPIRED);
            cx.instead_hdel(key, changed);
            cx.drop_if_empty(key);
        }
    }
}

/// `HPERSIST key FIELDS numfields field [field …]`
pub(super) fn hpersist(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let fields = Fields::at_once(args, Fields::MISMATCH)?;
    let (key, now) = (args.key(0), cx.db.over_by());
    let mut hash = cx.db.hash_mut(key)?;
    let mut changed: Vec<&[u8]> = Vec::new();
    cx.reply.array(fields.len());
    for field in fields.iter() {
        cx.reply.int(match hash.as_mut().and_then(|hash| hash.at(now).deadline(field).map(|at| (hash, at))) {
            None => NO_FIELD,
            Some((_, None)) => NO_DEADLINE,
            Some((hash, Some(_))) => {
                hash.expire(field, None);
                changed.push(field);
                1
            }
        });
    }
    if !changed.is_empty() {
        end_persist(cx, args, &changed);
    }
    Ok(())
}

/// Ends a command by which `changed` fields do not expire any more.
pub(super) fn end_persist(cx: &mut Ctx<'_>, args: Args<'_>, changed: &[&[u8]]) {
    let key = args.key(0);
    cx.changed(key, Event::HPERSIST);
    if cx.is_journaled() {
        let count = IntText::new(changed.len() as i64);
        let head: [&[u8]; 4] = [b"HPERSIST", key.bytes, b"FIELDS", &count];
        cx.instead(&[&head[..], changed].concat());
    }
}

/// `HTTL key FIELDS numfields field [field …]`
pub(super) fn httl(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let now = cx.now();
    reply_times(cx, args, |at| seconds(at.saturating_sub(now)))
}

/// `HPTTL key FIELDS numfields field [field …]`
pub(super) fn hpttl(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let now = cx.now();
    reply_times(cx, args, |at| at.saturating_sub(now))
}

/// `HEXPIRETIME key FIELDS numfields field [field …]`
pub(super) fn hexpiretime(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    reply_times(cx, args, seconds)
}

/// `HPEXPIRETIME key FIELDS numfields field [field …]`
pub(super) fn hpexpiretime(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    reply_times(cx, args, |at| at)
}

/// Milliseconds as seconds, to the nearest.
fn seconds(ms: u64) -> u64 {
    ms.saturating_add(SECOND / 2) / SECOND
}

/// Answers with what `show` makes of each field's time.
fn reply_times(cx: &mut Ctx<'_>, args: Args<'_>, show: impl Fn(u64) -> u64) -> Result {
    let fields = Fields::at_once(args, Error::Syntax)?;
    let hash = cx.db.live_hash(args.key(0))?;
    cx.reply.array(fields.len());
    for field in fields.iter() {
        cx.reply.int(match hash.and_then(|hash| hash.deadline(field)) {
            None => NO_FIELD,
            Some(None) => NO_DEADLINE,
            Some(Some(at)) => show(at) as i64,
        });
    }
    Ok(())
}

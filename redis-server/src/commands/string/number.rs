//! Strings as numbers.

use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{StrRef, Value};
use crate::protocol::error::Error;
use crate::protocol::number::Extended;

/// INCR key
pub(super) fn incr(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    add(cx, args, 1)
}

/// DECR key
pub(super) fn decr(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    add(cx, args, -1)
}

/// INCRBY key increment
pub(super) fn incrby(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let increment = args.int(2)?;
    add(cx, args, increment)
}

/// DECRBY key decrement
pub(super) fn decrby(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let increment = args.int(2)?.checked_neg().ok_or(Error::Static("ERR decrement would overflow"))?;
    add(cx, args, increment)
}

/// Adds to the first key's integer, in place where it is one already, and answers with the sum.
#[inline]
fn add(cx: &mut Ctx<'_>, args: Args<'_>, increment: i64) -> Result {
    let key = args.key(0);
    let sum = match cx.db.string_mut(key)? {
        Some(entry) => {
            let old = entry.string().and_then(StrRef::as_int).ok_or(Error::NotInteger)?;
            let sum = old.checked_add(increment).ok_or(Error::Overflow)?;
            entry.replace_value(Value::Int(sum));
            sum
        }
        None => {
            cx.db.set(key, Value::Int(increment), None);
            increment
        }
    };
    cx.changed(key, Event::INCRBY);
    cx.reply.int(sum);
    Ok(())
}

/// INCRBYFLOAT key increment
pub(super) fn incrbyfloat(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let parse = |text: &[u8]| Extended::parse(text).ok_or(Error::NotFloat);
    let old = match cx.db.string_mut(key)? {
        Some(entry) => entry.string().map(|old| old.with(parse)).transpose()?,
        None => None,
    };
    let increment = parse(args.at(2))?;
    let sum = match old {
        Some(old) => old + increment,
        None => increment,
    };
    if !sum.is_finite() {
        return Err(Error::NanOrInfinity);
    }
    let text = sum.to_string();
    cx.db.set_keep_ttl(key, Value::Text(text.as_bytes()));
    cx.changed(key, Event::INCRBYFLOAT);
    cx.instead(&[b"SET", key.bytes, text.as_bytes(), b"KEEPTTL"]);
    cx.reply.bulk(text.as_bytes());
    Ok(())
}

//! Strings (<https://redis.io/docs/latest/commands/?group=string>).

use crate::command::{Args, Categories, Ctx, Event, Family, Flags, KeySpec, Result, cmd, read, write, writes};
use crate::db::{StrRef, Value};
use crate::resp::Reply;

/// GET key
fn get(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let found = cx.db.string(args.key(0))?;
    match found {
        Some(value) => reply_string(cx.reply, value),
        None => cx.reply.null(),
    }
    Ok(())
}

/// Appends a stored string.
#[inline]
fn reply_string(reply: &mut Reply, value: StrRef<'_>) {
    match value {
        StrRef::Int(value) => reply.bulk_int(value),
        StrRef::Bytes { bytes, .. } => reply.bulk(bytes),
        StrRef::Shared(bytes) => reply.blob(bytes),
    }
}

/// SET key value
fn set(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    cx.db.set(key, new_string(args, 2), None);
    cx.changed(key, Event("set"));
    cx.reply.ok();
    Ok(())
}

/// Argument `index` as a value to be stored: large ones are taken over from the input.
#[inline]
fn new_string(args: Args<'_>, index: usize) -> Value<'_> {
    let arg = args.at(index);
    if arg.len() < 16 * 1024 { Value::Bytes(arg) } else { Value::Shared(args.bytes(index)) }
}

/// MSET key value [key value …]
fn mset(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    for (at, key) in args.keys().iter().enumerate() {
        cx.db.set(key, new_string(args, 2 + 2 * at), None);
        cx.changed(key, Event("set"));
    }
    cx.reply.ok();
    Ok(())
}

const READ: Flags = Flags::READONLY.and(Flags::FAST);
const WRITE: Flags = Flags::WRITE.and(Flags::DENYOOM);
const SET_KEY: KeySpec = write(1).flags("RW access update variable_flags");

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "string", category: Categories::STRING, commands: &[
    cmd("get",   2, get,  READ,  &[read(1)]),
    cmd("mset", -3, mset, WRITE, &[writes(1, -1, 2)]),
    cmd("set",  -3, set,  WRITE, &[SET_KEY]).batched(),
] };

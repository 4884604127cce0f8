//! Strings (<https://redis.io/docs/latest/commands/?group=string>).

mod compare;
mod expiry;
mod increx;
mod lcs;
mod number;
mod range;
mod set;

use crate::command::{
    Args, Categories, Find, Flags, KeySpec, Result, Weight, keynum, read, reads, update, weight, write, writes,
};
use crate::commands::definition::{Family, cmd};
use crate::config::settings;
use crate::exec::Event;
use crate::exec::core::{Ctx, Instance};
use crate::keyspace::{Access, Key, StrRef, Value, ValueRef};
use crate::protocol::Reply;
use crate::protocol::error::Error;

/// Strings from this length on are taken over from the input as they are.
const TAKE_OVER_MIN: usize = 16 * 1024;

/// GET key
fn get(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    reply_value(cx, args.key(0)).map(|_| ())
}

/// Answers with the string at `key`, or null; returns whether there is one.
#[inline(always)]
#[allow(clippy::inline_always, reason = "measured: every GET passes here")]
fn reply_value(cx: &mut Ctx<'_>, key: &Key<'_>) -> Result<bool> {
    match cx.db.value(key) {
        Some(ValueRef::Str(value)) => {
            reply_string(cx.reply, value);
            Ok(true)
        }
        Some(_) => Err(Error::WrongType),
        None => {
            cx.reply.null();
            Ok(false)
        }
    }
}

/// Appends a stored string.
#[inline(always)]
#[allow(clippy::inline_always, reason = "measured: every GET passes here")]
fn reply_string(reply: &mut Reply, value: StrRef<'_>) {
    match value {
        StrRef::Int(value) => reply.bulk_int(value),
        StrRef::Bytes { bytes, .. } => reply.bulk_inline(bytes),
        StrRef::Shared(_) | StrRef::Buffer(_) => reply_large(reply, value),
    }
}

#[cold]
#[inline(never)]
fn reply_large(reply: &mut Reply, value: StrRef<'_>) {
    reply.blob(&value.share());
}

/// Argument `index` as a value to be stored: large ones are taken over from the input.
#[inline]
fn new_string(args: Args<'_>, index: usize) -> Value<'_> {
    let arg = args.at(index);
    if arg.len() < TAKE_OVER_MIN { Value::Bytes(arg) } else { Value::Shared(args.bytes(index)) }
}

/// GETDEL key
fn getdel(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    if reply_value(cx, key)? {
        if let Some(entry) = cx.db.remove(key) {
            cx.discard(entry, false);
        }
        cx.changed(key, Event::DEL);
        cx.instead(&[b"DEL", key.bytes]);
    }
    Ok(())
}

/// `MGET key [key …]`
fn mget(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    cx.reply.array(args.keys().len());
    for key in args.keys() {
        match cx.db.value(key) {
            Some(ValueRef::Str(value)) => reply_string(cx.reply, value),
            _ => cx.reply.null(),
        }
    }
    Ok(())
}

/// STRLEN key
fn strlen(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let len = cx.db.string(args.key(0))?.map_or(0, StrRef::len);
    cx.reply.count(len);
    Ok(())
}

/// Refuses a string that is to become `len` bytes long, where that is more than `proto-max-bulk-len`.
fn check_len(instance: &Instance, len: u64) -> Result {
    if len > instance.config.uint(settings::PROTO_MAX_BULK_LEN) {
        return Err(Error::Static("ERR string exceeds maximum allowed size (proto-max-bulk-len)"));
    }
    Ok(())
}

const READ: Flags = Flags::READONLY;
const READ_FAST: Flags = READ.and(Flags::FAST);
const WRITE: Flags = Flags::WRITE.and(Flags::DENYOOM);
const WRITE_FAST: Flags = WRITE.and(Flags::FAST);
/// Needs no memory, so it is allowed when there is none.
const CHANGE_FAST: Flags = Flags::WRITE.and(Flags::FAST);

const SET_KEY: KeySpec = update(1).flags("RW access update variable_flags");
const INSERT: KeySpec = write(1).flags("OW insert");
/// As many keys as the first argument says, each with its value.
const PAIRS: KeySpec =
    KeySpec { find: Find::KeyNum { count: 0, first: 1, step: 2 }, ..keynum(1, Access::Write, "OW update") };
const INSERTS: KeySpec = writes(1, -1, 2).flags("OW insert");

const MULTI_SHARD: &[&str] = &["request_policy:multi_shard"];
const MSET_TIPS: &[&str] = &["request_policy:multi_shard", "response_policy:all_succeeded"];
const MSETNX_TIPS: &[&str] = &["request_policy:multi_shard", "response_policy:agg_min"];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "string", category: Categories::STRING, commands: &[
    cmd("append",       3, range::append,       WRITE_FAST,  &[update(1).flags("RW insert")]).batched_if_light(range::append_weight).takes_over(),
    cmd("decr",         2, number::decr,        WRITE_FAST,  &[update(1)]),
    cmd("decrby",       3, number::decrby,      WRITE_FAST,  &[update(1)]),
    cmd("delex",       -2, compare::delex,      CHANGE_FAST, &[update(1).flags("RW delete variable_flags")]),
    cmd("delifeq",      3, compare::delifeq,    CHANGE_FAST, &[write(1).flags("RM delete")]),
    cmd("digest",       2, compare::digest,     READ_FAST,   &[read(1)]),
    cmd("get",          2, get,                 READ_FAST,   &[read(1)]),
    cmd("getdel",       2, getdel,              CHANGE_FAST, &[update(1).flags("RW access delete")]),
    cmd("getex",       -2, expiry::getex,       CHANGE_FAST, &[update(1)]),
    cmd("getrange",     4, range::getrange,     READ,        &[read(1)]).batched(),
    cmd("getset",       3, set::getset,         WRITE_FAST,  &[update(1)]).takes_over(),
    cmd("incr",         2, number::incr,        WRITE_FAST,  &[update(1)]),
    cmd("incrby",       3, number::incrby,      WRITE_FAST,  &[update(1)]),
    cmd("incrbyfloat",  3, number::incrbyfloat, WRITE_FAST,  &[update(1)]),
    cmd("increx",      -2, increx::increx,      WRITE_FAST,  &[update(1)]),
    cmd("lcs",         -3, lcs::lcs,            READ,        &[reads(1, 1, 1)]).weighs(Weight::Of(weight::product)),
    cmd("mget",        -2, mget,                READ_FAST,   &[reads(1, -1, 1)]).tips(MULTI_SHARD),
    cmd("mset",        -3, set::mset,           WRITE,       &[writes(1, -1, 2)]).tips(MSET_TIPS).takes_over(),
    cmd("msetex",      -4, set::msetex,         WRITE,       &[PAIRS]).tips(MSET_TIPS).takes_over(),
    cmd("msetnx",      -3, set::msetnx,         WRITE,       &[INSERTS]).tips(MSETNX_TIPS).takes_over(),
    cmd("psetex",       4, set::psetex,         WRITE,       &[write(1)]).batched().takes_over(),
    cmd("set",         -3, set::set,            WRITE,       &[SET_KEY]).batched().takes_over(),
    cmd("setex",        4, set::setex,          WRITE,       &[write(1)]).batched().takes_over(),
    cmd("setnx",        3, set::setnx,          WRITE_FAST,  &[INSERT]).takes_over(),
    cmd("setrange",     4, range::setrange,     WRITE,       &[update(1).flags("RW update")]).batched_if_light(range::setrange_weight),
    cmd("strlen",       2, strlen,              READ_FAST,   &[read(1).flags("RO")]),
    cmd("substr",       4, range::getrange,     READ,        &[read(1)]).batched(),
] };

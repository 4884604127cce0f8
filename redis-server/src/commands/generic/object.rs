//! OBJECT: properties of a value besides its content.

use crate::command::{Args, Result};
use crate::commands::help::help;
use crate::config::settings;
use crate::exec::core::Ctx;
use crate::exec::eviction;
use crate::keyspace::{Entry, StrRef, Usage, ValueRef};
use crate::protocol::error::Error;

/// Small integers are shared by all that hold them; the genuine server says so by the largest count.
const SHARED_INTS: std::ops::Range<i64> = 0..10_000;
/// The reference count of shared integers.
const SHARED_COUNT: i64 = i32::MAX as i64;

/// Calls `reply` with the entry that argument 2 names, or answers null.
fn with_entry(cx: &mut Ctx<'_>, args: Args<'_>, reply: impl Fn(&mut crate::protocol::Reply, &Entry)) {
    match cx.db.look_quietly(args.key(0)) {
        Some(entry) => reply(cx.reply, entry),
        None => cx.reply.null(),
    }
}

/// OBJECT ENCODING key
pub(super) fn encoding(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let since_72 = cx.config().level().is_72();
    with_entry(cx, args, |reply, entry| {
        let encoding = match entry.value() {
            ValueRef::List(list) if since_72 => list.encoding_by_size(),
            value => value.encoding(),
        };
        reply.bulk(encoding.as_bytes());
    });
    Ok(())
}

/// OBJECT REFCOUNT key
pub(super) fn refcount(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let config = cx.config();
    let shares = config.uint(settings::MAXMEMORY) == 0 || !eviction::is_by_use(config);
    with_entry(cx, args, |reply, entry| match entry.value() {
        ValueRef::Str(StrRef::Int(value)) if shares && SHARED_INTS.contains(&value) => reply.int(SHARED_COUNT),
        _ => reply.int(1),
    });
    Ok(())
}

/// OBJECT IDLETIME key
pub(super) fn idletime(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let Some(entry) = cx.db.look_quietly(args.key(0)) else {
        cx.reply.null();
        return Ok(());
    };
    match cx.database().usage() {
        Usage::Time => cx.reply.int(entry.idle_seconds(cx.now()).into()),
        Usage::Frequency(_) => {
            return Err(Error::Static(
                "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.",
            ));
        }
    }
    Ok(())
}

/// OBJECT FREQ key
pub(super) fn freq(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let Some(entry) = cx.db.look_quietly(args.key(0)) else {
        cx.reply.null();
        return Ok(());
    };
    match cx.database().usage() {
        Usage::Frequency(frequency) => cx.reply.int(frequency.count(entry, cx.now()).into()),
        Usage::Time => {
            return Err(Error::Static(
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.",
            ));
        }
    }
    Ok(())
}

/// OBJECT HELP
pub(super) fn object_help(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    help(
        cx,
        "OBJECT",
        &[
            "ENCODING <key>",
            "    Return the kind of internal representation used in order to store the value",
            "    associated with a <key>.",
            "FREQ <key>",
            "    Return the access frequency index of the <key>. The returned integer is",
            "    proportional to the logarithm of the recent access frequency of the key.",
            "IDLETIME <key>",
            "    Return the idle time of the <key>, that is the approximated number of",
            "    seconds elapsed since the last access to the key.",
            "REFCOUNT <key>",
            "    Return the number of references of the value associated with the specified",
            "    <key>.",
        ],
    );
    Ok(())
}

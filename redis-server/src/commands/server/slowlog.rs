//! `SLOWLOG`: calls that took long.

use super::{ANY_TIME, help, sub};
use crate::command::{Args, Flags, Result};
use crate::commands::definition::{Definition, container};
use crate::exec::Ctx;
use crate::protocol::error::Error;

/// Entries that GET returns unless told otherwise.
const DEFAULT_COUNT: usize = 10;

/// `SLOWLOG GET [count]`
fn get(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let most = match args.len() {
        2 => DEFAULT_COUNT,
        3 => match args.int(2) {
            Ok(-1) => usize::MAX,
            Ok(count @ 0..) => count as usize,
            Ok(_) | Err(_) => return Err(Error::Static("ERR count should be greater than or equal to -1")),
        },
        _ => return Err(Error::subcommand_syntax(args)),
    };
    let calls = cx.instance().observers.slow_calls(most);
    cx.reply.array(calls.len());
    for call in calls {
        cx.reply.array(6);
        cx.reply.int(call.id as i64);
        cx.reply.int(call.time as i64);
        cx.reply.int(call.micros as i64);
        cx.reply.array(call.args.len());
        call.args.iter().for_each(|arg| cx.reply.bulk(arg));
        cx.reply.bulk(call.addr.as_bytes());
        cx.reply.bulk(call.name.as_bytes());
    }
    Ok(())
}

/// SLOWLOG LEN
fn len(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    cx.reply.count(cx.instance().observers.slow_len());
    Ok(())
}

/// SLOWLOG RESET
fn reset(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    cx.instance().observers.reset_slow();
    cx.reply.ok();
    Ok(())
}

/// SLOWLOG HELP
fn slowlog_help(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    help(cx, "SLOWLOG", HELP);
    Ok(())
}

const HELP: &[&str] = &[
    "GET [<count>]",
    "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
    "    Entries are made of:",
    "    id, timestamp, time in microseconds, arguments array, client IP and port,",
    "    client name",
    "LEN",
    "    Return the length of the slowlog.",
    "RESET",
    "    Reset the slowlog.",
];

const ADMIN: Flags = Flags::ADMIN.and(ANY_TIME);

/// The row.
#[rustfmt::skip]
pub(super) const COMMAND: Definition = container("slowlog", -2, &[
    sub("get",  -2, get,          ADMIN,    &[]).tips(&["request_policy:all_nodes", "nondeterministic_output"]),
    sub("help",  2, slowlog_help, ANY_TIME, &[]),
    sub("len",   2, len,          ADMIN,    &[]).tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"]),
    sub("reset", 2, reset,        ADMIN,    &[]).tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
]);

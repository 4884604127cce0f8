//! `SLOWLOG`: calls that took long; `COMMANDLOG`, also those that were large (<https://valkey.io/commands/commandlog/>).

use super::flags::ANY_TIME;
use crate::command::{Args, Flags, Result};
use crate::commands::definition::{Definition, container, sub};
use crate::commands::help::help;
use crate::exec::core::Ctx;
use crate::observe::Log;
use crate::protocol::error::Error;

/// Entries that GET returns unless told otherwise.
const DEFAULT_COUNT: usize = 10;

/// `SLOWLOG GET [count]`
fn get(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let most = match args.len() {
        2 => DEFAULT_COUNT,
        3 => count(args)?,
        _ => return Err(Error::subcommand_syntax(args)),
    };
    show(cx, Log::Slow, most);
    Ok(())
}

/// How many calls argument 2 asks for.
fn count(args: Args<'_>) -> Result<usize> {
    match args.int(2) {
        Ok(-1) => Ok(usize::MAX),
        Ok(count @ 0..) => Ok(count as usize),
        Ok(_) | Err(_) => Err(Error::Static("ERR count should be greater than or equal to -1")),
    }
}

/// Answers with the latest calls of a log.
fn show(cx: &mut Ctx<'_>, log: Log, most: usize) {
    let calls = cx.instance().observers.calls(log, most);
    cx.reply.array(calls.len());
    for call in calls {
        cx.reply.array(6);
        cx.reply.int(call.id as i64);
        cx.reply.int(call.time as i64);
        cx.reply.int(call.amount as i64);
        cx.reply.array(call.args.len());
        call.args.iter().for_each(|arg| cx.reply.bulk(arg));
        cx.reply.bulk(call.addr.as_bytes());
        cx.reply.bulk(call.name.as_bytes());
    }
}

/// SLOWLOG LEN
fn len(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    cx.reply.count(cx.instance().observers.len(Log::Slow));
    Ok(())
}

/// SLOWLOG RESET
fn reset(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    cx.instance().observers.reset(Log::Slow);
    cx.reply.ok();
    Ok(())
}

/// The log that argument `at` names.
fn log(args: Args<'_>, at: usize) -> Result<Log> {
    const NAMES: [&str; 3] = ["slow", "large-request", "large-reply"];
    let found = Log::ALL.into_iter().zip(NAMES).find(|(_, name)| args.is(at, name));
    let unknown = Error::Static("ERR type should be one of the following: slow, large-request, large-reply");
    found.map(|(log, _)| log).ok_or(unknown)
}

/// COMMANDLOG GET count type
fn get_of(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let most = count(args)?;
    show(cx, log(args, 3)?, most);
    Ok(())
}

/// COMMANDLOG LEN type
fn len_of(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let log = log(args, 2)?;
    cx.reply.count(cx.instance().observers.len(log));
    Ok(())
}

/// COMMANDLOG RESET type
fn reset_of(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let log = log(args, 2)?;
    cx.instance().observers.reset(log);
    cx.reply.ok();
    Ok(())
}

/// COMMANDLOG HELP
fn commandlog_help(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    help(cx, "COMMANDLOG", COMMANDLOG_HELP);
    Ok(())
}

const COMMANDLOG_HELP: &[&str] = &[
    "GET <count> <type>",
    "    Return the latest <count> entries of a log, which is one of slow, large-request and",
    "    large-reply; -1 means all. Entries are made of:",
    "    id, timestamp, microseconds or bytes, arguments array, client IP and port,",
    "    client name",
    "LEN <type>",
    "    Return the length of a log.",
    "RESET <type>",
    "    Empty a log.",
];

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

/// The row of all logs.
#[rustfmt::skip]
pub(super) const COMMANDLOG: Definition = container("commandlog", -2, &[
    sub("get",   4, get_of,          ADMIN,    &[]).tips(&["request_policy:all_nodes", "nondeterministic_output"]),
    sub("help",  2, commandlog_help, ANY_TIME, &[]),
    sub("len",   3, len_of,          ADMIN,    &[]).tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"]),
    sub("reset", 3, reset_of,        ADMIN,    &[]).tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
]);

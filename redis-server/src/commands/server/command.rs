//! `COMMAND`: the table of commands, for clients.

use super::docs::docs;
use super::flags::ANY_TIME;
use crate::command::{Args, Begin, Categories, Find, KeySpec, Registry, Result, Row};
use crate::commands::definition::{Definition, cmd, sub, with_subcommands};
use crate::commands::help::help;
use crate::config::Level;
use crate::exec::core::{Ctx, resolve};
use crate::protocol::error::Error;
use crate::protocol::{Reply, glob};

/// COMMAND
fn command(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    let level = cx.config().level();
    all(cx, level);
    Ok(())
}

fn all(cx: &mut Ctx<'_>, level: Level) {
    let registry = cx.instance().registry;
    cx.reply.array(commands(registry).count());
    commands(registry).for_each(|row| describe(cx.reply, registry, row, level));
}

/// The rows that are no subcommands.
fn commands(registry: &'static Registry) -> impl Iterator<Item = &'static Row> {
    registry.rows().iter().filter(|row| row.parent.is_none())
}

/// COMMAND COUNT
fn count(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    cx.reply.count(commands(cx.instance().registry).count());
    Ok(())
}

/// `COMMAND INFO [command-name …]`
fn info(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let level = cx.config().level();
    if args.len() == 2 {
        all(cx, level);
        return Ok(());
    }
    let registry = cx.instance().registry;
    cx.reply.array(args.len() - 2);
    for name in args.from(2).iter() {
        match registry.lookup_full(name) {
            Some(row) => describe(cx.reply, registry, row, level),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

/// Writes one row the way `COMMAND INFO` does.
fn describe(reply: &mut Reply, registry: &Registry, row: &'static Row, level: Level) {
    let command = row.command;
    let (first, last, step) = legacy_range(command.keys);
    reply.array(10);
    reply.bulk(row.name().as_bytes());
    reply.int(command.arity.into());
    names(reply, command.flags.names());
    reply.int(first);
    reply.int(last);
    reply.int(step);
    names(reply, row.categories().names());
    reply.set(command.tips.len());
    command.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(command.keys.len());
    command.keys.iter().for_each(|spec| describe_keys(reply, spec));
    // An oddity of Redis: no subcommands are an empty set, some are an array.
    if row.subcommands == 0 && !level.is_valkey() {
        reply.set(0);
    } else {
        reply.array(usize::from(row.subcommands));
    }
    registry.subcommands(row).iter().for_each(|row| describe(reply, registry, row, level));
}

fn names<'a>(reply: &mut Reply, names: impl Iterator<Item = &'a str>) {
    let mark = reply.mark();
    let count = names.map(|name| reply.simple(name)).count();
    reply.set_at(mark, count);
}

/// First key, last key and step, as clients older than key specifications want them; zeros without such keys.
fn legacy_range(specs: &[KeySpec]) -> (i64, i64, i64) {
    let mut whole: Option<(i64, i64, i64)> = None;
    for spec in specs {
        let (Begin::Index(begin), Find::Range { last, step, .. }) = (spec.begin, spec.find) else { continue };
        let (begin, step) = (i64::from(begin), i64::from(step));
        let last = if last >= 0 { begin + i64::from(last) } else { i64::from(last) };
        whole = match whole {
            None if step == 1 || specs.len() == 1 => Some((begin, last, step)),
            Some((first, before, 1)) if before + 1 == begin && step == 1 => Some((first, last, 1)),
            // This form cannot describe the keys behind a gap.
            Some(_) => break,
            None => None,
        };
    }
    whole.unwrap_or_default()
}

/// Writes one key specification.
fn describe_keys(reply: &mut Reply, spec: &KeySpec) {
    reply.map(3);
    reply.bulk(b"flags");
    names(reply, spec.usage.flags.split(' '));
    reply.bulk(b"begin_search");
    match spec.begin {
        Begin::Index(index) => {
            spec_type(reply, "index", 1);
            pair(reply, "index", index.into());
        }
        Begin::Keyword { word, from } => {
            spec_type(reply, "keyword", 2);
            reply.bulk(b"keyword");
            reply.bulk(word.as_bytes());
            pair(reply, "startfrom", from.into());
        }
        Begin::Unknown => spec_type(reply, "unknown", 0),
    }
    reply.bulk(b"find_keys");
    match spec.find {
        Find::Range { last, step, limit } => {
            spec_type(reply, "range", 3);
            pair(reply, "lastkey", last.into());
            pair(reply, "keystep", step.into());
            pair(reply, "limit", limit.into());
        }
        Find::KeyNum { count, first, step } => {
            spec_type(reply, "keynum", 3);
            pair(reply, "keynumidx", count.into());
            pair(reply, "firstkey", first.into());
            pair(reply, "keystep", step.into());
        }
        Find::Unknown => spec_type(reply, "unknown", 0),
    }
}

fn spec_type(reply: &mut Reply, name: &str, pairs: usize) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(name.as_bytes());
    reply.bulk(b"spec");
    reply.map(pairs);
}

fn pair(reply: &mut Reply, name: &str, value: i64) {
    reply.bulk(name.as_bytes());
    reply.int(value);
}

/// `COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]`
fn list(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (mark, registry) = (cx.reply.mark(), cx.instance().registry);
    let mut write = |row: &Row| cx.reply.bulk(row.name().as_bytes());
    let count = match args.len() {
        2 => registry.rows().iter().map(&mut write).count(),
        5 if args.is(2, "FILTERBY") && args.is(3, "MODULE") => 0,
        5 if args.is(2, "FILTERBY") && args.is(3, "ACLCAT") => {
            let wanted = |name: &str| name.as_bytes()[1..].eq_ignore_ascii_case(args.at(4));
            registry.rows().iter().filter(|row| row.categories().names().any(wanted)).map(&mut write).count()
        }
        5 if args.is(2, "FILTERBY") && args.is(3, "PATTERN") => {
            let wanted = |row: &&Row| glob::matches(args.at(4), row.name().as_bytes(), true);
            registry.rows().iter().filter(wanted).map(&mut write).count()
        }
        _ => return Err(Error::Syntax),
    };
    cx.reply.array_at(mark, count);
    Ok(())
}

/// A key of a call, and what would happen to it.
type Found<'a> = (&'a [u8], &'static str);

/// The keys of the call in `args`.
fn find_keys<'a>(cx: &Ctx<'_>, args: Args<'a>) -> Result<Vec<Found<'a>>> {
    let row = match resolve::resolve(cx.instance(), args) {
        Ok(row) => row,
        Err(Error::WrongArity(_)) => {
            return Err(Error::Static("ERR Invalid number of arguments specified for command"));
        }
        Err(_) => return Err(Error::Static("ERR Invalid command specified")),
    };
    let command = row.command;
    if command.keys.is_empty() {
        return Err(Error::Static("ERR The command has no key arguments"));
    }
    if cx.config().level().is_valkey() && row.name().starts_with("georadius") && command.keys.len() > 1 {
        // Redis tells of the first target, though the last one is written; Valkey of that.
        let positions = command.key_positions(args);
        let uses = positions.iter().zip([command.keys[0].usage.flags, command.keys[1].usage.flags]);
        return Ok(uses.map(|(&(at, _), flags)| (args.at(at), flags)).collect());
    }
    let uses = command.key_uses(args).ok_or(Error::Static("ERR Invalid arguments specified for command"))?;
    Ok(uses.into_iter().map(|(at, flags)| (args.at(at), flags)).collect())
}

/// `COMMAND GETKEYS command [arg …]`
fn get_keys(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let keys = find_keys(cx, args.from(2))?;
    cx.reply.array(keys.len());
    keys.iter().for_each(|(key, _)| cx.reply.bulk(key));
    Ok(())
}

/// `COMMAND GETKEYSANDFLAGS command [arg …]`
fn get_keys_and_flags(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let keys = find_keys(cx, args.from(2))?;
    cx.reply.array(keys.len());
    for (key, flags) in keys {
        cx.reply.array(2);
        cx.reply.bulk(key);
        names(cx.reply, flags.split(' '));
    }
    Ok(())
}

/// COMMAND HELP
fn command_help(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    help(cx, "COMMAND", HELP);
    Ok(())
}

const HELP: &[&str] = &[
    "(no subcommand)",
    "    Return details about all Redis commands.",
    "COUNT",
    "    Return the total number of commands in this Redis server.",
    "LIST",
    "    Return a list of all commands in this Redis server.",
    "INFO [<command-name> ...]",
    "    Return details about multiple Redis commands.",
    "    If no command names are given, documentation details for all",
    "    commands are returned.",
    "DOCS [<command-name> ...]",
    "    Return documentation details about multiple Redis commands.",
    "    If no command names are given, documentation details for all",
    "    commands are returned.",
    "GETKEYS <full-command>",
    "    Return the keys from a full Redis command.",
    "GETKEYSANDFLAGS <full-command>",
    "    Return the keys and the access flags from a full Redis command.",
];

/// The row.
#[rustfmt::skip]
pub(super) const COMMAND: Definition = with_subcommands(
    cmd("command", -1, command, ANY_TIME, &[]).also(Categories::CONNECTION).tips(&["nondeterministic_output_order"]),
    &[
        about("count",            2, count),
        about("docs",            -2, docs).tips(&["nondeterministic_output_order"]),
        about("getkeys",         -4, get_keys),
        about("getkeysandflags", -4, get_keys_and_flags),
        about("help",             2, command_help),
        about("info",            -2, info).tips(&["nondeterministic_output_order"]),
        about("list",            -2, list).tips(&["nondeterministic_output_order"]),
    ],
);

const fn about(name: &'static str, arity: i8, handler: crate::exec::core::Handler) -> Definition {
    sub(name, arity, handler, ANY_TIME, &[]).also(Categories::CONNECTION)
}

#[cfg(test)]
#[path = "command_oracle.rs"]
mod oracle;

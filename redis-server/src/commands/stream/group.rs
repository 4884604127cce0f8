//! XGROUP, and XACK.

use super::entries::no_group_of_key;
use super::parse;
use crate::command::{Args, Result};
use crate::commands::help::help;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::protocol::error::Error;
use crate::types::{Group, Stream, StreamId};

const NO_KEY: Error = Error::Static(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.",
);

/// Options behind the id.
#[derive(Debug, Default)]
struct Options {
    make_stream: bool,
    entries_read: Option<i64>,
}

impl Options {
    fn parse(args: Args<'_>, is_create: bool) -> Result<Self> {
        let mut options = Self::default();
        let mut at = 5;
        while at < args.len() {
            if is_create && args.is(at, "MKSTREAM") {
                options.make_stream = true;
                at += 1;
            } else if args.is(at, "ENTRIESREAD") && at + 1 < args.len() {
                options.entries_read = match args.int(at + 1)? {
                    -1 => None,
                    count @ 0.. => Some(count),
                    _ => return Err(Error::Static("ERR value for ENTRIESREAD must be positive or -1")),
                };
                at += 2;
            } else {
                return Err(Error::subcommand_syntax(args));
            }
        }
        Ok(options)
    }
}

/// The stream at argument 2, which must be there.
fn stream<'c>(cx: &'c mut Ctx<'_>, args: Args<'_>) -> Result<&'c mut Stream> {
    cx.db.stream_mut(args.key(0))?.ok_or(NO_KEY)
}

/// The group of argument 3, which must be there.
fn group<'c>(cx: &'c mut Ctx<'_>, args: Args<'_>) -> Result<&'c mut Group> {
    stream(cx, args)?.groups.get_mut(args.at(3)).ok_or_else(|| no_group_of_key(args.at(2), args.at(3)))
}

/// `XGROUP CREATE key group id|$ [MKSTREAM] [ENTRIESREAD entries-read]`
pub(super) fn create(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    const MOST: usize = 8;
    let options = Options::parse(args, true)?;
    let key = args.key(0);
    let found = cx.db.stream_mut(key)?;
    if found.is_none() && !options.make_stream {
        return Err(NO_KEY);
    }
    if args.len() > MOST {
        return Err(Error::subcommand_syntax(args));
    }
    let last_id = found.as_ref().map_or(StreamId::MIN, |stream| stream.log.last_id());
    let is_new = found.is_none();
    let id = if args.at(4) == b"$" { last_id } else { parse::id(args.at(4))? };
    let stream = cx.db.stream_or_new(key)?;
    if stream.groups.contains_key(args.at(3)) {
        return Err(Error::Static("BUSYGROUP Consumer Group name already exists"));
    }
    stream.groups.insert(args.at(3).into(), Group::new(id, options.entries_read));
    cx.reply.ok();
    if is_new {
        cx.touched(key);
    }
    cx.noticed(key, Event::XGROUP_CREATE);
    Ok(())
}

/// `XGROUP SETID key group id|$ [ENTRIESREAD entries-read]`
pub(super) fn set_id(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let options = Options::parse(args, false)?;
    group(cx, args)?;
    if !matches!(args.len(), 5 | 7) {
        return Err(Error::subcommand_syntax(args));
    }
    let last_id = stream(cx, args)?.log.last_id();
    let id = if args.at(4) == b"$" { last_id } else { parse::any_id(args.at(4), 0)? };
    let group = group(cx, args)?;
    group.last_id = id;
    group.entries_read = options.entries_read;
    cx.reply.ok();
    cx.noticed(args.key(0), Event::XGROUP_SETID);
    Ok(())
}

/// XGROUP DESTROY key group
pub(super) fn destroy(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let destroyed = stream(cx, args)?.groups.remove(args.at(3)).is_some();
    if destroyed {
        cx.noticed(args.key(0), Event::XGROUP_DESTROY);
        // Clients that wait for entries of this group get an error.
        cx.look_after(args.key(0));
    }
    cx.reply.int(destroyed.into());
    Ok(())
}

/// XGROUP CREATECONSUMER key group consumer
pub(super) fn create_consumer(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let now = cx.now();
    let created = group(cx, args)?.add_consumer(args.at(4), now);
    if created {
        cx.noticed(args.key(0), Event::XGROUP_CREATECONSUMER);
    }
    cx.reply.int(created.into());
    Ok(())
}

/// XGROUP DELCONSUMER key group consumer
pub(super) fn del_consumer(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let pending = group(cx, args)?.remove_consumer(args.at(4));
    if pending.is_some() {
        cx.noticed(args.key(0), Event::XGROUP_DELCONSUMER);
    }
    cx.reply.count(pending.unwrap_or(0));
    Ok(())
}

/// XGROUP HELP
pub(super) fn xgroup_help(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    help(
        cx,
        "XGROUP",
        &[
            "CREATE <key> <groupname> <id|$> [option]",
            "    Create a new consumer group. Options are:",
            "    * MKSTREAM",
            "      Create the empty stream if it does not exist.",
            "    * ENTRIESREAD entries_read",
            "      Set the group's entries_read counter (internal use).",
            "CREATECONSUMER <key> <groupname> <consumer>",
            "    Create a new consumer in the specified group.",
            "DELCONSUMER <key> <groupname> <consumer>",
            "    Remove the specified consumer.",
            "DESTROY <key> <groupname>",
            "    Remove the specified group.",
            "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
            "    Set the current group ID and entries_read counter.",
        ],
    );
    Ok(())
}

/// `XACK key group id [id …]`
pub(super) fn xack(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    cx.db.count_look(args.key(0));
    let Some(group) = cx.db.stream_mut(args.key(0))?.and_then(|stream| stream.groups.get_mut(args.at(2))) else {
        cx.reply.int(0);
        return Ok(());
    };
    let ids = parse::ids(args, 3)?;
    let acknowledged = ids.into_iter().filter(|&id| group.acknowledge(id)).count();
    cx.count_changes(acknowledged as u64);
    cx.reply.count(acknowledged);
    Ok(())
}

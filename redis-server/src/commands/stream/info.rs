//! XINFO: properties of a stream, its groups and their consumers.

use super::entries::{counting, limit, no_group_of_key, reply_entries, reply_entry, reply_id};
use crate::command::{Args, Result};
use crate::commands::help::help;
use crate::config::Level;
use crate::exec::core::Ctx;
use crate::protocol::Reply;
use crate::protocol::error::Error;
use crate::types::{Consumer, Group, Idempotence, Log, Stream, StreamId};

/// Entries of each kind that FULL shows, where it is not told.
const FULL_COUNT: u64 = 10;

/// `XINFO STREAM key [FULL [COUNT count]]`
pub(super) fn stream(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let stream = cx.db.stream(args.key(0))?.ok_or(Error::NoSuchKey)?;
    let full = match args.len() {
        3 => None,
        4 if args.is(3, "FULL") => Some(FULL_COUNT),
        6 if args.is(3, "FULL") && args.is(4, "COUNT") => Some(u64::try_from(args.int(5)?).unwrap_or(FULL_COUNT)),
        _ => return Err(Error::subcommand_syntax(args)),
    };
    let (level, now) = (cx.config().level(), cx.now());
    let reply = &mut *cx.reply;
    let known = stream.idempotence.as_deref();
    let more = if known.is_some() { 6 } else { 0 };
    reply.map(if full.is_some() { 9 } else { 10 } + more);
    figures(reply, stream, known, now);
    match full {
        Some(count) => everything(reply, level, stream, limit(count)),
        None => ends(reply, stream),
    }
    Ok(())
}

fn figures(reply: &mut Reply, stream: &Stream, known: Option<&Idempotence>, now: u64) {
    let log = &stream.log;
    let int = |reply: &mut Reply, name: &str, value: u64| {
        reply.bulk(name.as_bytes());
        reply.int(value as i64);
    };
    let id = |reply: &mut Reply, name: &str, id: StreamId| {
        reply.bulk(name.as_bytes());
        reply_id(reply, id);
    };
    int(reply, "length", log.len());
    int(reply, "radix-tree-keys", log.blocks() as u64);
    int(reply, "radix-tree-nodes", stream.radix_nodes() as u64);
    id(reply, "last-generated-id", log.last_id());
    id(reply, "max-deleted-entry-id", log.max_deleted_id());
    int(reply, "entries-added", log.entries_added());
    id(reply, "recorded-first-entry-id", log.first_id());
    if let Some(known) = known {
        let ((pids, iids), (added, duplicates)) = (known.tracked(now), known.totals());
        int(reply, "idmp-duration", known.limits().duration_s);
        int(reply, "idmp-maxsize", known.limits().maxsize);
        int(reply, "pids-tracked", pids as u64);
        int(reply, "iids-tracked", iids as u64);
        int(reply, "iids-added", added);
        int(reply, "iids-duplicates", duplicates);
    }
}

/// The first and the last entry.
fn ends(reply: &mut Reply, stream: &Stream) {
    reply.bulk(b"groups");
    reply.count(stream.groups.len());
    let (min, max) = (StreamId::MIN, StreamId::MAX);
    let first = stream.log.range(min, max).next();
    let last = stream.log.range_backwards(min, max).next();
    for (name, entry) in [("first-entry", first), ("last-entry", last)] {
        reply.bulk(name.as_bytes());
        match entry {
            Some(entry) => reply_entry(reply, entry),
            None => reply.null(),
        }
    }
}

/// Entries, groups, consumers and what is pending, up to `most` of each kind of entry.
fn everything(reply: &mut Reply, level: Level, stream: &Stream, most: usize) {
    reply.bulk(b"entries");
    reply_entries(reply, stream.log.range(StreamId::MIN, StreamId::MAX).take(most));
    reply.bulk(b"groups");
    reply.array(stream.groups.len());
    for (name, group) in &stream.groups {
        reply.map(7);
        reply.bulk(b"name");
        reply.bulk(name);
        progress(reply, &stream.log, group, level);
        reply.bulk(b"pel-count");
        reply.count(group.pending().len());
        reply.bulk(b"pending");
        reply.array(group.pending().len().min(most));
        for (id, record) in group.pending().iter().take(most) {
            reply.array(4);
            reply_id(reply, *id);
            reply.bulk(record.consumer());
            reply.int(record.delivered_at as i64);
            reply.int(record.deliveries as i64);
        }
        reply.bulk(b"consumers");
        reply.array(group.consumers().len());
        for (name, consumer) in group.consumers() {
            one_consumer(reply, level, group, name, consumer, most);
        }
    }
}

fn one_consumer(reply: &mut Reply, level: Level, group: &Group, name: &[u8], consumer: &Consumer, most: usize) {
    reply.map(if level.is_72() { 5 } else { 4 });
    reply.bulk(b"name");
    reply.bulk(name);
    reply.bulk(b"seen-time");
    reply.int(consumer.seen_at as i64);
    if level.is_72() {
        reply.bulk(b"active-time");
        reply.int(consumer.active_at.map_or(-1, |at| at as i64));
    }
    reply.bulk(b"pel-count");
    reply.count(consumer.pending().len());
    reply.bulk(b"pending");
    reply.array(consumer.pending().len().min(most));
    for id in consumer.pending().iter().take(most) {
        let record = group.pending().get(id);
        reply.array(3);
        reply_id(reply, *id);
        reply.int(record.map_or(0, |record| record.delivered_at as i64));
        reply.int(record.map_or(0, |record| record.deliveries as i64));
    }
}

/// How far a group has read.
fn progress(reply: &mut Reply, log: &Log, group: &Group, level: Level) {
    let optional = |reply: &mut Reply, value: Option<i64>| match value {
        Some(value) => reply.int(value),
        None => reply.null(),
    };
    reply.bulk(b"last-delivered-id");
    reply_id(reply, group.last_id);
    reply.bulk(b"entries-read");
    optional(reply, group.entries_read);
    reply.bulk(b"lag");
    optional(reply, group.lag(log, counting(level)));
}

/// XINFO GROUPS key
pub(super) fn groups(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let stream = cx.db.stream(args.key(0))?.ok_or(Error::NoSuchKey)?;
    let level = cx.config().level();
    let reply = &mut *cx.reply;
    reply.array(stream.groups.len());
    for (name, group) in &stream.groups {
        reply.map(6);
        reply.bulk(b"name");
        reply.bulk(name);
        reply.bulk(b"consumers");
        reply.count(group.consumers().len());
        reply.bulk(b"pending");
        reply.count(group.pending().len());
        progress(reply, &stream.log, group, level);
    }
    Ok(())
}

/// XINFO CONSUMERS key group
pub(super) fn consumers(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let now = cx.now();
    let stream = cx.db.stream(args.key(0))?.ok_or(Error::NoSuchKey)?;
    let group = stream.groups.get(args.at(3)).ok_or_else(|| no_group_of_key(args.at(2), args.at(3)))?;
    let level = cx.config().level();
    let reply = &mut *cx.reply;
    reply.array(group.consumers().len());
    for (name, consumer) in group.consumers() {
        reply.map(if level.is_72() { 4 } else { 3 });
        reply.bulk(b"name");
        reply.bulk(name);
        reply.bulk(b"pending");
        reply.count(consumer.pending().len());
        reply.bulk(b"idle");
        reply.int(now.saturating_sub(consumer.seen_at) as i64);
        if level.is_72() {
            reply.bulk(b"inactive");
            reply.int(consumer.active_at.map_or(-1, |at| now as i64 - at as i64));
        }
    }
    Ok(())
}

/// XINFO HELP
pub(super) fn xinfo_help(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    help(
        cx,
        "XINFO",
        &[
            "CONSUMERS <key> <groupname>",
            "    Show consumers of <groupname>.",
            "GROUPS <key>",
            "    Show the stream consumer groups.",
            "STREAM <key> [FULL [COUNT <count>]",
            "    Show information about the stream.",
        ],
    );
    Ok(())
}

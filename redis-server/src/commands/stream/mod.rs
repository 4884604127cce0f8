//! Streams (<https://redis.io/docs/latest/commands/?group=stream>).

mod add;
mod claim;
mod delete;
mod group;
mod idempotence;
mod info;
mod parse;
mod pending;
mod range;
mod read;

use crate::command::{Begin, Categories, Find, Flags, KeySpec, Result, Use, Weight, read as reads, update, weight};
use crate::commands::definition::{Definition, Family, cmd, container, sub};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{Access, Key};
use crate::protocol::Reply;
use crate::protocol::error::{Error, echo};
use crate::protocol::number::IntText;
use crate::types::{Group, Log, Stream, StreamEntry, StreamId};

/// Appends an id.
fn reply_id(reply: &mut Reply, id: StreamId) {
    reply.bulk(id.to_string().as_bytes());
}

/// Appends an entry: its id, and a list of its fields.
fn reply_entry(reply: &mut Reply, entry: StreamEntry<'_>) {
    reply.array(2);
    reply_content(reply, entry);
}

/// Appends an entry's id, and a list of its fields.
fn reply_content(reply: &mut Reply, entry: StreamEntry<'_>) {
    reply_id(reply, entry.id);
    reply.array(entry.fields.len() * 2);
    for (name, value) in entry.fields {
        reply.bulk(&name);
        reply.bulk(&value);
    }
}

/// Appends a list of entries.
fn reply_entries<'a>(reply: &mut Reply, entries: impl Iterator<Item = StreamEntry<'a>>) {
    let mark = reply.mark();
    let mut count = 0;
    for entry in entries {
        reply_entry(reply, entry);
        count += 1;
    }
    reply.array_at(mark, count);
}

/// The most entries that a `COUNT` stands for, 0 being no limit.
fn limit(count: u64) -> usize {
    if count == 0 { usize::MAX } else { usize::try_from(count).unwrap_or(usize::MAX) }
}

/// A group to be changed, and the entries that it reads.
fn group_mut<'s>(stream: &'s mut Stream, name: &[u8]) -> Option<(&'s Log, &'s mut Group)> {
    let Stream { log, groups, .. } = stream;
    Some((log, groups.get_mut(name)?))
}

/// Has the journal told who has which entry of a group, since when, and how often it was delivered.
fn say_pending(cx: &mut Ctx<'_>, key: &Key<'_>, group: &[u8], id: StreamId) -> Result {
    if !cx.is_journaled() {
        return Ok(());
    }
    let Some(found) = cx.db.stream_mut(key)?.and_then(|stream| stream.groups.get(group)) else { return Ok(()) };
    let Some(record) = found.pending().get(&id) else { return Ok(()) };
    let (time, count) = (IntText::new(record.delivered_at as i64), IntText::new(record.deliveries as i64));
    let (id, last, consumer) = (id.to_string(), found.last_id.to_string(), record.consumer().to_vec());
    cx.instead(&[
        b"XCLAIM",
        key.bytes,
        group,
        &consumer,
        b"0",
        id.as_bytes(),
        b"TIME",
        &time,
        b"RETRYCOUNT",
        &count,
        b"FORCE",
        b"JUSTID",
        b"LASTID",
        last.as_bytes(),
    ]);
    Ok(())
}

/// Has the journal told how far a group has read.
fn say_position(cx: &mut Ctx<'_>, key: &Key<'_>, group: &[u8]) -> Result {
    if !cx.is_journaled() {
        return Ok(());
    }
    let Some(found) = cx.db.stream_mut(key)?.and_then(|stream| stream.groups.get(group)) else { return Ok(()) };
    let (last, read) = (found.last_id.to_string(), IntText::new(found.entries_read.unwrap_or(-1)));
    cx.instead(&[b"XGROUP", b"SETID", key.bytes, group, last.as_bytes(), b"ENTRIESREAD", &read]);
    Ok(())
}

/// Notes that a consumer was heard of. One that is made for that is an event; returns whether it was.
fn see(cx: &mut Ctx<'_>, key: &Key<'_>, group: &[u8], consumer: &[u8]) -> Result<bool> {
    let now = cx.now();
    let made =
        cx.db.stream_mut(key)?.and_then(|stream| stream.groups.get_mut(group)).is_some_and(|g| g.see(consumer, now));
    if made {
        cx.noticed(key, Event::XGROUP_CREATECONSUMER);
    }
    Ok(made)
}

/// Notes that a consumer was heard of before anything is read or claimed, and makes one that is not there, as Redis does since 7.2.
fn arrive(cx: &mut Ctx<'_>, key: &Key<'_>, group: &[u8], consumer: &[u8]) -> Result {
    if see(cx, key, group, consumer)? {
        cx.instead(&[b"XGROUP", b"CREATECONSUMER", key.bytes, group, consumer]);
    }
    Ok(())
}

/// Longest part of a name that errors repeat, in bytes.
const MAX_NAME: usize = 512;

/// No such group, or no such key.
fn no_group(key: &[u8], group: &[u8], behind: &str) -> Error {
    let (key, group) = (echo(key, MAX_NAME), echo(group, MAX_NAME));
    Error::Message(format!("NOGROUP No such key '{key}' or consumer group '{group}'{behind}"))
}

/// The key holds a stream that has no such group.
fn no_group_of_key(key: &[u8], group: &[u8]) -> Error {
    let (key, group) = (echo(key, MAX_NAME), echo(group, MAX_NAME));
    Error::Message(format!("NOGROUP No such consumer group '{group}' for key name '{key}'"))
}

const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE;
const FAST: Flags = Flags::FAST;
const GROW: Flags = WRITE.and(Flags::DENYOOM);
const HELP: Flags = Flags::LOADING.and(Flags::STALE);

const LEN: KeySpec = reads(1).flags("RO");
const CHANGE: KeySpec = update(1).flags("RW update");
const DELETE: KeySpec = update(1).flags("RW delete");
const OUTPUT: &[&str] = &["nondeterministic_output"];

/// The keys between `STREAMS` and as many ids.
const fn streams(from: i8, access: Access) -> KeySpec {
    KeySpec {
        begin: Begin::Keyword { word: "STREAMS", from },
        find: Find::Range { last: -1, step: 1, limit: 2 },
        usage: Use { access, flags: "RO access" },
    }
}

#[rustfmt::skip]
const XGROUP: &[Definition] = &[
    sub("create",         -5, group::create,          GROW,  &[update(2).flags("RW insert")]),
    sub("createconsumer",  5, group::create_consumer, GROW,  &[update(2).flags("RW insert")]),
    sub("delconsumer",     5, group::del_consumer,    WRITE, &[update(2).flags("RW delete")]),
    sub("destroy",         4, group::destroy,         WRITE, &[update(2).flags("RW delete")]),
    sub("help",            2, group::xgroup_help,     HELP,  &[]),
    sub("setid",          -5, group::set_id,          WRITE, &[update(2).flags("RW update")]),
];

#[rustfmt::skip]
const XINFO: &[Definition] = &[
    sub("consumers", 4, info::consumers,  READ, &[reads(2)]).tips(OUTPUT),
    sub("groups",    3, info::groups,     READ, &[reads(2)]),
    sub("help",      2, info::xinfo_help, HELP, &[]),
    sub("stream",   -3, info::stream,     READ, &[reads(2)]).weighs(Weight::Of(weight::limits)),
];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "stream", category: Categories::STREAM, commands: &[
    cmd("xack",       -4, group::xack,       WRITE.and(FAST), &[CHANGE]),
    cmd("xackdel",    -6, delete::xackdel,   WRITE.and(FAST), &[update(1).flags("RW update delete")]),
    cmd("xadd",       -5, add::xadd,         GROW.and(FAST),  &[CHANGE]).tips(OUTPUT),
    cmd("xautoclaim", -6, claim::xautoclaim, WRITE.and(FAST), &[DELETE]).tips(OUTPUT),
    cmd("xcfgset",    -2, idempotence::xcfgset, WRITE.and(FAST), &[CHANGE]),
    cmd("xclaim",     -6, claim::xclaim,     WRITE.and(FAST), &[CHANGE]).tips(OUTPUT),
    cmd("xdel",       -3, delete::xdel,      WRITE.and(FAST), &[DELETE]),
    cmd("xdelex",     -5, delete::xdelex,    WRITE.and(FAST), &[DELETE]),
    container("xgroup", -2, XGROUP),
    cmd("xidmprecord", 5, idempotence::xidmprecord, GROW.and(FAST), &[CHANGE]),
    container("xinfo",  -2, XINFO),
    cmd("xlen",        2, range::xlen,       READ.and(FAST),  &[LEN]),
    cmd("xpending",   -3, pending::xpending, READ,            &[reads(1)]).tips(OUTPUT).weighs(Weight::Of(weight::limits)),
    cmd("xrange",     -4, range::xrange,     READ,            &[reads(1)]).weighs(Weight::Of(weight::limits)),
    cmd("xread",      -4, read::xread,       READ.and(Flags::BLOCKING),  &[streams(1, Access::Read)]).finder(read::xread_keys).weighs(Weight::Of(weight::unread)),
    cmd("xreadgroup", -7, read::xreadgroup,  WRITE.and(Flags::BLOCKING), &[streams(4, Access::Write)]).finder(read::xreadgroup_keys).weighs(Weight::Of(read::weight_of_group)),
    cmd("xrevrange",  -4, range::xrevrange,  READ,            &[reads(1)]).weighs(Weight::Of(weight::limits)),
    cmd("xsetid",     -3, add::xsetid,       GROW.and(FAST),  &[CHANGE]),
    cmd("xtrim",      -4, add::xtrim,        WRITE,           &[DELETE]).tips(OUTPUT).weighs(Weight::Of(weight::limits)),
] };

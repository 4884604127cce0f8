//! Entries and groups, as several commands answer them and tell the journal of them.

use crate::command::Result;
use crate::config::Level;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::Key;
use crate::protocol::Reply;
use crate::protocol::error::{Error, echo};
use crate::protocol::number::IntText;
use crate::types::{Counting, Group, Log, Stream, StreamEntry, StreamId};

/// How the server that clients take this one for counts what groups have read.
pub(super) fn counting(level: Level) -> Counting {
    match level {
        Level::Redis70 | Level::Redis72 => Counting::Lenient,
        Level::Redis80 => Counting::ByLength,
        Level::Valkey9 => Counting::Strict,
    }
}

/// Appends an id.
pub(super) fn reply_id(reply: &mut Reply, id: StreamId) {
    reply.bulk(id.to_string().as_bytes());
}

/// Appends an entry: its id, and a list of its fields.
pub(super) fn reply_entry(reply: &mut Reply, entry: StreamEntry<'_>) {
    reply.array(2);
    reply_content(reply, entry);
}

/// Appends an entry's id, and a list of its fields.
pub(super) fn reply_content(reply: &mut Reply, entry: StreamEntry<'_>) {
    reply_id(reply, entry.id);
    reply.array(entry.fields.len() * 2);
    for (name, value) in entry.fields {
        reply.bulk(&name);
        reply.bulk(&value);
    }
}

/// Appends a list of entries.
pub(super) fn reply_entries<'a>(reply: &mut Reply, entries: impl Iterator<Item = StreamEntry<'a>>) {
    let mark = reply.mark();
    let mut count = 0;
    for entry in entries {
        reply_entry(reply, entry);
        count += 1;
    }
    reply.array_at(mark, count);
}

/// The most entries that a `COUNT` stands for, 0 being no limit.
pub(super) fn limit(count: u64) -> usize {
    if count == 0 { usize::MAX } else { usize::try_from(count).unwrap_or(usize::MAX) }
}

/// A group to be changed, and the entries that it reads.
pub(super) fn group_mut<'s>(stream: &'s mut Stream, name: &[u8]) -> Option<(&'s Log, &'s mut Group)> {
    let Stream { log, groups, .. } = stream;
    Some((log, groups.get_mut(name)?))
}

/// Has the journal told who has which entry of a group, since when, and how often it was delivered.
pub(super) fn say_pending(cx: &mut Ctx<'_>, key: &Key<'_>, group: &[u8], id: StreamId) -> Result {
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
pub(super) fn say_position(cx: &mut Ctx<'_>, key: &Key<'_>, group: &[u8]) -> Result {
    if !cx.is_journaled() {
        return Ok(());
    }
    let Some(found) = cx.db.stream_mut(key)?.and_then(|stream| stream.groups.get(group)) else { return Ok(()) };
    let (last, read) = (found.last_id.to_string(), IntText::new(found.entries_read.unwrap_or(-1)));
    cx.instead(&[b"XGROUP", b"SETID", key.bytes, group, last.as_bytes(), b"ENTRIESREAD", &read]);
    Ok(())
}

/// Notes that a consumer was heard of. One that is made for that is an event; returns whether it was.
pub(super) fn see(cx: &mut Ctx<'_>, key: &Key<'_>, group: &[u8], consumer: &[u8]) -> Result<bool> {
    let now = cx.now();
    let made =
        cx.db.stream_mut(key)?.and_then(|stream| stream.groups.get_mut(group)).is_some_and(|g| g.see(consumer, now));
    if made {
        cx.noticed(key, Event::XGROUP_CREATECONSUMER);
    }
    Ok(made)
}

/// Notes that a consumer was heard of before anything is read or claimed, and makes one that is not there, as Redis does since 7.2.
pub(super) fn arrive(cx: &mut Ctx<'_>, key: &Key<'_>, group: &[u8], consumer: &[u8]) -> Result {
    if see(cx, key, group, consumer)? {
        cx.instead(&[b"XGROUP", b"CREATECONSUMER", key.bytes, group, consumer]);
    }
    Ok(())
}

/// Longest part of a name that errors repeat, in bytes.
pub(super) const MAX_NAME: usize = 512;

/// No such group, or no such key.
pub(super) fn no_group(key: &[u8], group: &[u8], behind: &str) -> Error {
    let (key, group) = (echo(key, MAX_NAME), echo(group, MAX_NAME));
    Error::Message(format!("NOGROUP No such key '{key}' or consumer group '{group}'{behind}"))
}

/// The key holds a stream that has no such group.
pub(super) fn no_group_of_key(key: &[u8], group: &[u8]) -> Error {
    let (key, group) = (echo(key, MAX_NAME), echo(group, MAX_NAME));
    Error::Message(format!("NOGROUP No such consumer group '{group}' for key name '{key}'"))
}

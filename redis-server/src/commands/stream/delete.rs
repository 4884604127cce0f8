//! Deleting entries by their ids, with or without what groups know of them: XDEL, XDELEX, XACKDEL.

use super::parse;
use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::Key;
use crate::types::{References, StreamId};

/// The reply for a missing entry.
const MISSING: i64 = -1;
/// For one that was deleted.
const DELETED: i64 = 1;
/// For one that stays, because a group still refers to it.
const REFERENCED: i64 = 2;

/// `XDEL key id [id …]`
pub(super) fn xdel(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let Some(stream) = cx.db.stream_mut(args.key(0))? else {
        cx.reply.int(0);
        return Ok(());
    };
    let ids = parse::ids(args, 2)?;
    let deleted = ids.into_iter().filter(|&id| stream.log.delete(id)).count();
    deleted_some(cx, args.key(0), deleted as u64, Event::XDEL);
    cx.reply.count(deleted);
    Ok(())
}

/// `XDELEX key [KEEPREF|DELREF|ACKED] IDS numids id [id …]`
pub(super) fn xdelex(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (references, ids) = parse::ids_with_references(args, 2)?;
    let key = args.key(0);
    cx.reply.array(ids.len());
    let Some(stream) = cx.db.stream_mut(key)? else {
        ids.iter().for_each(|_| cx.reply.int(MISSING));
        return Ok(());
    };
    let mut gone = Vec::new();
    for &id in &ids {
        let stays = references == References::Acknowledged && stream.log.get(id).is_some() && stream.is_referenced(id);
        cx.reply.int(match stays {
            true => REFERENCED,
            false if stream.log.delete(id) => {
                gone.push(id);
                DELETED
            }
            false => MISSING,
        });
    }
    // Also of those that the stream has lost before.
    let forgotten = if references == References::Delete { stream.forget(&ids) } else { Vec::new() };
    deleted_some(cx, key, gone.len() as u64, Event::XDEL);
    cx.count_changes(forgotten.iter().map(|(_, ids)| ids.len() as u64).sum());
    cx.instead_nothing();
    say_deleted(cx, key, &gone);
    say_forgotten(cx, key, &forgotten);
    Ok(())
}

/// `XACKDEL key group [KEEPREF|DELREF|ACKED] IDS numids id [id …]`
pub(super) fn xackdel(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (references, ids) = parse::ids_with_references(args, 3)?;
    let (key, name) = (args.key(0), args.at(2));
    cx.reply.array(ids.len());
    let Some(stream) = cx.db.stream_mut(key)?.filter(|stream| stream.groups.contains_key(name)) else {
        ids.iter().for_each(|_| cx.reply.int(MISSING));
        return Ok(());
    };
    let (mut acknowledged, mut gone) = (Vec::new(), Vec::new());
    for id in ids {
        if !stream.groups.get_mut(name).is_some_and(|group| group.acknowledge(id)) {
            cx.reply.int(MISSING);
            continue;
        }
        acknowledged.push(id);
        if references == References::Acknowledged && stream.is_referenced(id) {
            cx.reply.int(REFERENCED);
            continue;
        }
        if stream.log.delete(id) {
            gone.push(id);
        }
        cx.reply.int(DELETED);
    }
    let forgotten = if references == References::Delete { stream.forget(&acknowledged) } else { Vec::new() };
    deleted_some(cx, key, gone.len() as u64, Event::XDEL);
    cx.count_changes(acknowledged.len() as u64);
    cx.instead_nothing();
    say_forgotten(cx, key, &[(name.into(), acknowledged)]);
    say_deleted(cx, key, &gone);
    say_forgotten(cx, key, &forgotten);
    Ok(())
}

/// Counts entries that were deleted, and tells of it.
pub(super) fn deleted_some(cx: &mut Ctx<'_>, key: &Key<'_>, deleted: u64, event: Event) {
    if deleted > 0 {
        // No client waits for entries to be deleted.
        cx.noticed(key, event);
        cx.touched(key);
        cx.count_changes(deleted - 1);
    }
}

/// Has the journal told that entries were deleted.
pub(super) fn say_deleted(cx: &Ctx<'_>, key: &Key<'_>, ids: &[StreamId]) {
    say_of_ids(cx, &[b"XDEL", key.bytes], ids);
}

/// Has the journal told which entries are pending no longer, by group.
pub(super) fn say_forgotten(cx: &Ctx<'_>, key: &Key<'_>, forgotten: &[(Box<[u8]>, Vec<StreamId>)]) {
    for (group, ids) in forgotten {
        say_of_ids(cx, &[b"XACK", key.bytes, group], ids);
    }
}

fn say_of_ids(cx: &Ctx<'_>, words: &[&[u8]], ids: &[StreamId]) {
    if ids.is_empty() || !cx.is_journaled() {
        return;
    }
    let ids: Vec<String> = ids.iter().map(StreamId::to_string).collect();
    cx.instead(&words.iter().copied().chain(ids.iter().map(String::as_bytes)).collect::<Vec<_>>());
}

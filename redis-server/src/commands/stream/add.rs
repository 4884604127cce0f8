//! Adding entries and taking them away.

use super::delete;
use super::entries::reply_id;
use super::idempotence::Identity;
use super::parse::{self, AddOrTrim, Message, NewId};
use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::Key;
use crate::protocol::error::Error;
use crate::protocol::number::IntText;
use crate::types::{Stream, StreamId, TrimTo, Trimmed};

/// The most bytes that an entry's names and values may have together, as in the genuine server.
const MAX_ENTRY: usize = 1 << 30;

/// `XADD key [NOMKSTREAM] [KEEPREF|DELREF|ACKED] [IDMPAUTO producer-id|IDMP producer-id idempotent-id]
/// [MAXLEN|MINID [=|~] threshold [LIMIT count]] *|id field value [field value …]`
pub(super) fn xadd(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let options = AddOrTrim::parse(cx, args, true)?;
    let wrong_arity = || Error::WrongArity("xadd".into());
    let (new_id, at) = options.id.ok_or_else(wrong_arity)?;
    let fields = args.from(at + 1);
    if fields.is_empty() || fields.len() % 2 == 1 {
        return Err(wrong_arity());
    }
    if matches!(new_id, NewId::Given(StreamId::MIN)) {
        return Err(Error::Static("ERR The ID specified in XADD must be greater than 0-0"));
    }
    let (key, now, limits) = (args.key(0), cx.now(), cx.stream_limits());
    if options.no_mkstream && cx.db.stream_mut(key)?.is_none() {
        cx.reply.null();
        return Ok(());
    }
    if fields.iter().map(<[u8]>::len).sum::<usize>() > MAX_ENTRY {
        return Err(Error::Static("ERR Elements are too large to be stored"));
    }
    let message = options.message.as_ref().map(|message| Identity::of(message, args, fields));
    if let Some(id) = message.as_ref().map(|message| message.is_known(cx, key)).transpose()?.flatten() {
        reply_id(cx.reply, id);
        return Ok(());
    }
    // No error can leave an empty stream behind: every id is larger than that of no entry.
    let stream = cx.db.stream_or_new(key)?;
    let id = next_id(stream, new_id, now)?;
    let pairs = (0..fields.len() / 2).map(|pair| (fields.at(pair * 2), fields.at(pair * 2 + 1)));
    stream.log.append(id, pairs, limits);
    reply_id(cx.reply, id);
    if let Some(message) = &message {
        message.note(cx, key, id)?;
    }
    cx.changed(key, Event::XADD);
    let trimmed = trim(cx, key, &options)?;
    if trimmed.count > 0 {
        cx.tell(key, Event::XTRIM);
    }
    say(cx, args, &options, Some(id), &trimmed)?;
    if let Some(message) = &message {
        message.say(cx, key, id);
    }
    Ok(())
}

/// Trims as the options say, if they do.
fn trim(cx: &mut Ctx<'_>, key: &Key<'_>, options: &AddOrTrim) -> Result<Trimmed> {
    match (cx.db.stream_mut(key)?, &options.trim) {
        (Some(stream), Some(trim)) => Ok(stream.trim(trim, options.references.unwrap_or_default())),
        _ => Ok(Trimmed::default()),
    }
}

/// Has the journal told what an entry's id was, and what a trimming has left that may differ elsewhere.
fn say(cx: &mut Ctx<'_>, args: Args<'_>, options: &AddOrTrim, id: Option<StreamId>, trimmed: &Trimmed) -> Result {
    if options.references.is_some() {
        say_apart(cx, args, options, id, trimmed);
        return Ok(());
    }
    let approximate = options.trim.as_ref().filter(|trim| trim.approximate);
    let is_certain =
        approximate.is_none() && options.message.is_none() && matches!(options.id, None | Some((NewId::Given(_), _)));
    if !cx.is_journaled() || is_certain {
        return Ok(());
    }
    let (id, mut left) = (id.map(|id| id.to_string()), None);
    if let (Some(trim), Some(stream)) = (approximate, cx.db.stream_mut(args.key(0))?) {
        left = match trim.to {
            TrimTo::Len(_) => Some(stream.log.len().to_string()),
            TrimTo::MinId(_) => stream.log.range(StreamId::MIN, StreamId::MAX).next().map(|entry| entry.id.to_string()),
        };
    }
    let mut words: Vec<&[u8]> = args.iter().collect();
    if let (Some(id), Some((_, at))) = (&id, options.id) {
        words[at] = id.as_bytes();
    }
    if approximate.is_some() {
        words[options.threshold - 1] = b"=";
        if let Some(left) = &left {
            words[options.threshold] = left.as_bytes();
        }
    }
    let mut gone: Vec<usize> = options.message.iter().flat_map(Message::words).collect();
    if let Some(limit) = options.limit.filter(|_| approximate.is_some()) {
        gone.extend([limit, limit + 1]);
    }
    let words: Vec<_> =
        words.into_iter().enumerate().filter(|(at, _)| !gone.contains(at)).map(|(_, word)| word).collect();
    cx.instead(&words);
    Ok(())
}

/// [`say`] in commands that servers without these options know: the added entry, then the removed ones.
fn say_apart(cx: &Ctx<'_>, args: Args<'_>, options: &AddOrTrim, id: Option<StreamId>, trimmed: &Trimmed) {
    if !cx.is_journaled() {
        return;
    }
    if let (Some(id), Some((_, at))) = (id, options.id) {
        let id = id.to_string();
        let head: [&[u8]; 3] = [b"XADD", args.at(1), id.as_bytes()];
        cx.instead(&head.into_iter().chain(args.from(at + 1).iter()).collect::<Vec<_>>());
    }
    let Trimmed { count, left, between, forgotten } = trimmed;
    if *count > between.len() as u64 {
        cx.instead(&[b"XTRIM", args.at(1), b"MAXLEN", b"=", &IntText::new(*left as i64)]);
    }
    delete::say_deleted(cx, args.key(0), between);
    delete::say_forgotten(cx, args.key(0), forgotten);
}

/// The id of an entry that is added now.
fn next_id(stream: &Stream, wanted: NewId, now: u64) -> Result<StreamId> {
    let last = stream.log.last_id();
    if last == StreamId::MAX {
        return Err(Error::Static("ERR The stream has exhausted the last possible ID, unable to add more items"));
    }
    let id = match wanted {
        NewId::Now => Some(stream.next_id(now)),
        NewId::Open(ms) => stream.next_seq(ms),
        NewId::Given(id) => Some(id),
    };
    id.filter(|&id| id > last)
        .ok_or(Error::Static("ERR The ID specified in XADD is equal or smaller than the target stream top item"))
}

/// `XTRIM key MAXLEN|MINID [=|~] threshold [LIMIT count] [KEEPREF|DELREF|ACKED]`
pub(super) fn xtrim(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let options = AddOrTrim::parse(cx, args, false)?;
    let trimmed = trim(cx, args.key(0), &options)?;
    delete::deleted_some(cx, args.key(0), trimmed.count, Event::XTRIM);
    cx.reply.int(trimmed.count as i64);
    if trimmed.count > 0 { say(cx, args, &options, None, &trimmed) } else { Ok(()) }
}

/// `XSETID key last-id [ENTRIESADDED count] [MAXDELETEDID id]`
pub(super) fn xsetid(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let id = parse::id(args.at(2))?;
    let (mut added, mut max_deleted) = (None, None);
    let mut at = 3;
    while at < args.len() {
        let more = at + 1 < args.len();
        if more && args.is(at, "ENTRIESADDED") {
            let count = u64::try_from(args.int(at + 1)?);
            added = Some(count.map_err(|_| Error::Static("ERR entries_added must be positive"))?);
        } else if more && args.is(at, "MAXDELETEDID") {
            let deleted = parse::id(args.at(at + 1))?;
            if id < deleted {
                return Err(Error::Static(
                    "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
                ));
            }
            max_deleted = Some(deleted).filter(|&deleted| deleted != StreamId::MIN);
        } else {
            return Err(Error::Syntax);
        }
        at += 2;
    }
    // Files of Redis 7.0 have streams of which that is so.
    let since_72 = cx.config().level().is_72() && !cx.is_told_by_others();
    let key = args.key(0);
    let log = &mut cx.db.stream_mut(key)?.ok_or(Error::NoSuchKey)?.log;
    if since_72 && id < log.max_deleted_id() {
        return Err(Error::Static("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"));
    }
    if log.last_entry_id().is_some_and(|last| id < last) {
        return Err(Error::Static("ERR The ID specified in XSETID is smaller than the target stream top item"));
    }
    if added.is_some_and(|added| log.len() > added) {
        return Err(Error::Static(
            "ERR The entries_added specified in XSETID is smaller than the target stream length",
        ));
    }
    log.set(id, added, max_deleted);
    cx.reply.ok();
    cx.noticed(key, Event::XSETID);
    Ok(())
}

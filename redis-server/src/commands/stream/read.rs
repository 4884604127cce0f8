//! XREAD and XREADGROUP: new entries, now or when they come.

use super::entries::{
    arrive, counting, group_mut, limit, reply_content, reply_entries, reply_entry, reply_id, say_pending, say_position,
    see,
};
use super::parse;
use crate::command::{Args, KeyPositions, Result, weight};
use crate::config::Level;
use crate::exec::core::{Block, Ctx};
use crate::exec::run::parked::no_group;
use crate::keyspace::{Access, Entry, Key, ValueRef, View};
use crate::protocol::error::Error;
use crate::protocol::{Mark, Reply};
use crate::types::{StreamEntry, StreamId, once_more};

/// Entries that a client gets at most when it had to wait and gave no COUNT.
const WAITED_COUNT: u64 = 1000;
/// A client that waits for entries to be idle looks at them this often in any case, in milliseconds: others may have changed
/// what is pending.
const LOOK_AGAIN_MS: u64 = 10_000;

/// The consumer of a group that reads.
#[derive(Clone, Copy, Debug)]
struct Reader<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
    /// New entries are not pending.
    no_ack: bool,
    /// Besides new entries, those are read that have been pending for so many milliseconds.
    min_idle: Option<u64>,
}

/// The options of both commands.
#[derive(Debug, Default)]
struct Options<'a> {
    /// Milliseconds to wait, 0 for ever; `None` does not wait.
    block: Option<u64>,
    /// 0 is no limit.
    count: u64,
    no_ack: bool,
    min_idle: Option<u64>,
    reader: Option<Reader<'a>>,
    /// Position of the first stream.
    first: usize,
    streams: usize,
}

impl<'a> Options<'a> {
    /// Scripts cannot wait, and are told so until Redis 7.2; since then they go on at once.
    fn permitted(&self, cx: &Ctx<'_>, args: Args<'_>) -> Result {
        if self.block.is_none() || !cx.is_in_script() || cx.config().level().is_72() {
            return Ok(());
        }
        let name = String::from_utf8_lossy(args.at(0)).into_owned();
        Err(Error::Message(format!("ERR {name} command is not allowed with BLOCK option from scripts")))
    }

    fn parse(args: Args<'a>, is_group: bool, level: Level) -> Result<Self> {
        let mut options = Self::default();
        let mut at = 1;
        while at < args.len() {
            let more = args.len() - at - 1;
            if args.is(at, "BLOCK") && more > 0 {
                options.block = Some(timeout(args, at + 1)?);
                at += 2;
            } else if args.is(at, "COUNT") && more > 0 {
                options.count = u64::try_from(args.int(at + 1)?).unwrap_or(0);
                at += 2;
            } else if args.is(at, "STREAMS") && more > 0 {
                options.first = at + 1;
                options.streams = more / 2;
                if more % 2 == 1 {
                    return Err(unbalanced(is_group, level));
                }
                break;
            } else if args.is(at, "GROUP") && more > 1 {
                if !is_group {
                    return Err(Error::Static(
                        "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                options.reader =
                    Some(Reader { group: args.at(at + 1), consumer: args.at(at + 2), no_ack: false, min_idle: None });
                at += 3;
            } else if args.is(at, "NOACK") {
                if !is_group {
                    return Err(Error::Static(
                        "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                options.no_ack = true;
                at += 1;
            } else if args.is(at, "CLAIM") && more > 0 {
                if !is_group {
                    return Err(Error::Static(
                        "ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                options.min_idle = Some(min_idle(args, at + 1)?);
                at += 2;
            } else {
                return Err(Error::Syntax);
            }
        }
        if options.first == 0 {
            return Err(Error::Syntax);
        }
        if is_group && options.reader.is_none() {
            return Err(Error::Static("ERR Missing GROUP option for XREADGROUP"));
        }
        let Self { no_ack, min_idle, .. } = options;
        options.reader = options.reader.map(|reader| Reader { no_ack, min_idle, ..reader });
        Ok(options)
    }

    /// Position of the id that belongs to stream `index`.
    fn id_at(&self, index: usize) -> usize {
        self.first + self.streams + index
    }

    /// Number of the stream whose key is `key`.
    fn index_of(&self, args: Args<'_>, key: &Key<'_>) -> Option<usize> {
        (0..self.streams).find(|index| args.at(self.first + index) == key.bytes)
    }
}

/// How the number of ids is refused that is not that of keys.
fn unbalanced(is_group: bool, level: Level) -> Error {
    let (name, id) = match (level.is_72(), is_group) {
        (false, _) => ("XREAD", '$'),
        (true, false) => ("'xread'", '$'),
        (true, true) => ("'xreadgroup'", '>'),
    };
    Error::Message(format!(
        "ERR Unbalanced {name} list of streams: for each stream key an ID or '{id}' must be specified."
    ))
}

fn timeout(args: Args<'_>, at: usize) -> Result<u64> {
    let ms = args.int(at).map_err(|_| Error::Static("ERR timeout is not an integer or out of range"))?;
    u64::try_from(ms).map_err(|_| Error::Static("ERR timeout is negative"))
}

fn min_idle(args: Args<'_>, at: usize) -> Result<u64> {
    let ms = args.int(at).map_err(|_| Error::Static("ERR min-idle-time is not an integer"))?;
    u64::try_from(ms).map_err(|_| Error::Static("ERR min-idle-time must be a positive integer"))
}

/// The keys of XREAD.
pub(super) fn xread_keys(args: Args<'_>) -> KeyPositions {
    keys(args, false, Access::Read)
}

/// The keys of XREADGROUP: a group may be called `STREAMS` too, so only its grammar tells where they are.
pub(super) fn xreadgroup_keys(args: Args<'_>) -> KeyPositions {
    keys(args, true, Access::Write)
}

fn keys(args: Args<'_>, is_group: bool, access: Access) -> KeyPositions {
    // For invalid arguments there are no keys; the handler finds the error again and replies with it.
    let Ok(options) = Options::parse(args, is_group, Level::default()) else { return KeyPositions::new() };
    (options.first..options.first + options.streams).map(|at| (at, access)).collect()
}

/// The work of XREADGROUP: entries that are idle have to be found.
pub(super) fn weight_of_group(view: &View<'_>, args: Args<'_>) -> usize {
    let options = Options::parse(args, true, Level::default()).ok();
    let Some((Reader { group, min_idle: Some(_), .. }, count)) = options.and_then(|o| Some((o.reader?, o.count)))
    else {
        return weight::unread(view, args);
    };
    let group_at = |key| match view.stored(key).map(Entry::value) {
        Some(ValueRef::Stream(stream)) => stream.groups.get(group),
        _ => None,
    };
    let groups = args.keys().iter().filter_map(group_at);
    groups.map(|group| group.unsorted().max(group.pending().len().min(limit(count)))).sum()
}

/// `XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key …] id [id …]`
pub(super) fn xread(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let level = cx.config().level();
    let options = Options::parse(args, false, level)?;
    options.permitted(cx, args)?;
    if cx.is_serving() {
        return serve(cx, args, &options);
    }
    let (mut after, mut latest) = (Vec::new(), Vec::new());
    for (index, key) in args.keys().iter().enumerate() {
        let at = options.id_at(index);
        let stream = cx.db.stream(key)?;
        let last_id = stream.map_or(StreamId::MIN, |stream| stream.log.last_id());
        after.push(match args.at(at) {
            b"$" => {
                latest.push((at, last_id.to_string()));
                last_id
            }
            b">" => {
                return Err(Error::Static(
                    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
                ));
            }
            // The last entry, if there is one; for Valkey only if nothing newer is gone.
            b"+" if level >= Level::Redis80 => {
                let last = stream.and_then(|stream| stream.log.last_entry_id());
                let last = if level.is_valkey() { last.map(|_| last_id) } else { last };
                let before = last.map_or(StreamId::MIN, |last| last.previous().unwrap_or(StreamId::MIN));
                latest.push((at, before.to_string()));
                before
            }
            text => parse::id(text)?,
        });
    }
    let mark = cx.reply.mark();
    let mut count = 0;
    for (key, after) in args.keys().iter().zip(after) {
        count += usize::from(read_new(cx, key, after, options.count)?);
    }
    if count > 0 {
        begin_streams(cx, mark, count);
        return Ok(());
    }
    // `$` is the end of the stream at this moment, not when something has come.
    if let Some(block) = wait(cx, args, &options) {
        block.replaced = latest;
    }
    Ok(())
}

/// Parks the client, or answers that there is nothing.
fn wait<'c>(cx: &'c mut Ctx<'_>, args: Args<'_>, options: &Options<'_>) -> Option<&'c mut Block> {
    let Some(timeout) = options.block else {
        cx.reply.null_array();
        return None;
    };
    let block = cx.block(timeout, 0..args.keys().len(), true)?;
    block.group = options.reader.map(|reader| reader.group.into());
    Some(block)
}

/// Writes the head of one stream's part of the answer.
fn head(reply: &mut Reply, key: &Key<'_>) {
    if !reply.is_resp3() {
        reply.array(2);
    }
    reply.bulk(key.bytes);
}

/// Appends the entries behind `after`; false, and nothing appended, if there are none.
fn read_new(cx: &mut Ctx<'_>, key: &Key<'_>, after: StreamId, count: u64) -> Result<bool> {
    let Some(stream) = cx.db.stream(key)? else { return Ok(false) };
    let Some(start) = after.next().filter(|_| stream.log.last_entry_id().is_some_and(|last| last > after)) else {
        return Ok(false);
    };
    head(cx.reply, key);
    reply_entries(cx.reply, stream.log.range(start, StreamId::MAX).take(limit(count)));
    Ok(true)
}

/// Answers a client that has waited, if the stream at its one declared key has something for it.
fn serve(cx: &mut Ctx<'_>, args: Args<'_>, options: &Options<'_>) -> Result {
    let key = args.key(0);
    let Some(index) = options.index_of(args, key) else { return Ok(()) };
    let count = if options.count == 0 { WAITED_COUNT } else { options.count };
    let mark = cx.reply.mark();
    let served = match options.reader {
        None => read_new(cx, key, parse::id(args.at(options.id_at(index)))?, count)?,
        Some(reader) => {
            let stream = cx.db.stream_mut(key)?;
            if !stream.is_some_and(|stream| stream.groups.contains_key(reader.group)) {
                return Err(if cx.config().level().is_72() {
                    no_group(key.bytes, reader.group)
                } else {
                    Error::Static("NOGROUP the consumer group this client was blocked on no longer exists")
                });
            }
            read_group(cx, key, reader, None, count)?
        }
    };
    if served {
        begin_streams(cx, mark, 1);
        return Ok(());
    }
    await_idle(cx, key, options)
}

/// Has the call looked after again that waits for entries of a group to be idle, when the first of them may be.
fn await_idle(cx: &mut Ctx<'_>, key: &Key<'_>, options: &Options<'_>) -> Result {
    let Some(Reader { group, min_idle: Some(min_idle), .. }) = options.reader else { return Ok(()) };
    let now = cx.now();
    let found = cx.db.stream_mut(key)?.and_then(|stream| group_mut(stream, group));
    let first = found.and_then(|(_, group)| group.idle_longest()).map_or(now, |at| at.min(now));
    // Entries that are idle already were examined just now, so the next look is at least 1 ms later.
    let due = first.saturating_add(min_idle).max(now + 1).min(now + LOOK_AGAIN_MS);
    cx.look_after_at(key, due);
    Ok(())
}

/// `XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [CLAIM min-idle-time] [NOACK] STREAMS key [key …] id
/// [id …]`
pub(super) fn xreadgroup(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let options = Options::parse(args, true, cx.config().level())?;
    options.permitted(cx, args)?;
    let Some(reader) = options.reader else { return Err(Error::Syntax) };
    if cx.is_serving() {
        return serve(cx, args, &options);
    }
    let mut after = Vec::new();
    for (index, key) in args.keys().iter().enumerate() {
        cx.db.count_look(key);
        let stream = cx.db.stream_mut(key)?;
        if !stream.is_some_and(|stream| stream.groups.contains_key(reader.group)) {
            return Err(no_group(key.bytes, reader.group));
        }
        after.push(match args.at(options.id_at(index)) {
            b"$" => {
                return Err(Error::Static(
                    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.",
                ));
            }
            b"+" if cx.config().level() >= Level::Redis80 => {
                return Err(Error::Static(
                    "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just return an empty result set.",
                ));
            }
            b">" => None,
            // The largest id is how the genuine server writes `>`.
            text => Some(parse::id(text)?).filter(|&id| id != StreamId::MAX),
        });
    }
    if cx.config().level().is_72() {
        args.keys().iter().try_for_each(|key| arrive(cx, key, reader.group, reader.consumer))?;
    }
    let mark = cx.reply.mark();
    let mut count = 0;
    for (key, after) in args.keys().iter().zip(after) {
        count += usize::from(read_group(cx, key, reader, after, options.count)?);
    }
    if count > 0 {
        begin_streams(cx, mark, count);
        return Ok(());
    }
    if wait(cx, args, &options).is_some() {
        args.keys().iter().try_for_each(|key| await_idle(cx, key, &options))?;
    }
    Ok(())
}

/// Puts before the streams that were read since `mark` how many they are: a map for RESP3, pairs for RESP2.
fn begin_streams(cx: &mut Ctx<'_>, mark: Mark, count: usize) {
    if cx.reply.is_resp3() { cx.reply.map_at(mark, count) } else { cx.reply.array_at(mark, count) }
}

/// Appends what a consumer of a group is given: entries that have been idle, and new ones; or behind an id those that it has
/// not acknowledged. False, and nothing appended, if there is nothing idle or new.
fn read_group(
    cx: &mut Ctx<'_>,
    key: &Key<'_>,
    reader: Reader<'_>,
    after: Option<StreamId>,
    count: u64,
) -> Result<bool> {
    cx.db.count_look(key);
    let now = cx.now();
    let Some((log, group)) = cx.db.stream_mut(key)?.and_then(|stream| group_mut(stream, reader.group)) else {
        return Ok(false);
    };
    let min_idle = reader.min_idle.filter(|_| after.is_none());
    let idle = match min_idle.and_then(|min_idle| now.checked_sub(min_idle)) {
        Some(until) => group.idle_since(until, log, limit(count)),
        None => Vec::new(),
    };
    let last = group.last_id;
    if after.is_none() && idle.is_empty() && log.last_entry_id().is_none_or(|id| id <= last) {
        return Ok(false);
    }
    head(cx.reply, key);
    let is_new = see(cx, key, reader.group, reader.consumer)?;
    cx.count_changes(1);
    let given = match after {
        Some(after) => history(cx, key, reader, after, count)?,
        None => deliver(cx, key, reader, idle, limit(count))?,
    };
    cx.instead_nothing();
    if is_new && given.is_empty() {
        // Else XCLAIM makes it.
        cx.instead(&[b"XGROUP", b"CREATECONSUMER", key.bytes, reader.group, reader.consumer]);
    }
    for id in given {
        say_pending(cx, key, reader.group, id)?;
    }
    if after.is_none() {
        say_position(cx, key, reader.group)?;
    }
    Ok(true)
}

/// Appends the `idle` entries, and then those behind the group's last one, up to `most`; they are the consumer's from now
/// on. Returns those that the journal has to be told of.
fn deliver(
    cx: &mut Ctx<'_>,
    key: &Key<'_>,
    reader: Reader<'_>,
    idle: Vec<StreamId>,
    most: usize,
) -> Result<Vec<StreamId>> {
    let (now, journaled, mark) = (cx.now(), cx.is_journaled(), cx.reply.mark());
    let counting = counting(cx.config().level());
    let Some((log, group)) = cx.db.stream_mut(key)?.and_then(|stream| group_mut(stream, reader.group)) else {
        return Ok(Vec::new());
    };
    let shows_deliveries = reader.min_idle.is_some();
    let (mut count, mut given) = (0, Vec::new());
    for id in idle {
        let (Some(entry), Some(record)) = (log.get(id), group.pending().get(&id)) else { continue };
        let (since, deliveries) = (now.saturating_sub(record.delivered_at), record.deliveries);
        reply_claimed(cx.reply, entry, since, deliveries);
        group.assign(id, reader.consumer, now, once_more);
        count += 1;
        given.push(id);
        group.note_active(reader.consumer, now);
    }
    let entries = group.last_id.next().map(|start| log.range(start, StreamId::MAX));
    for entry in entries.into_iter().flatten().take(most - count) {
        group.advance(log, entry.id, counting);
        if !reader.no_ack && group.assign(entry.id, reader.consumer, now, |_| 1) {
            given.push(entry.id);
        }
        if !reader.no_ack {
            group.note_active(reader.consumer, now);
        }
        if shows_deliveries {
            reply_claimed(cx.reply, entry, 0, 0);
        } else {
            reply_entry(cx.reply, entry);
        }
        count += 1;
    }
    cx.reply.array_at(mark, count);
    Ok(if journaled { given } else { Vec::new() })
}

/// Appends an entry with the time since it was delivered last, in milliseconds, and how often it was.
fn reply_claimed(reply: &mut Reply, entry: StreamEntry<'_>, idle: u64, deliveries: u64) {
    reply.array(4);
    reply_content(reply, entry);
    reply.int(idle as i64);
    reply.int(deliveries as i64);
}

/// Appends the entries behind `after` that the consumer has and has not acknowledged. Returns those
/// that are still there.
fn history(cx: &mut Ctx<'_>, key: &Key<'_>, reader: Reader<'_>, after: StreamId, count: u64) -> Result<Vec<StreamId>> {
    let now = cx.now();
    let Some((log, group)) = cx.db.stream_mut(key)?.and_then(|stream| group_mut(stream, reader.group)) else {
        return Ok(Vec::new());
    };
    let pending = group.consumer(reader.consumer).map(|consumer| consumer.pending());
    let behind = after.next().zip(pending).map(|(start, pending)| pending.range(start..));
    let ids: Vec<StreamId> = behind.into_iter().flatten().take(limit(count)).copied().collect();
    cx.reply.array(ids.len());
    let mut given = Vec::new();
    for id in ids {
        let Some(entry) = log.get(id) else {
            cx.reply.array(2);
            reply_id(cx.reply, id);
            cx.reply.null_array();
            continue;
        };
        reply_entry(cx.reply, entry);
        if group.deliver_again(id, now) {
            given.push(id);
        }
    }
    Ok(given)
}

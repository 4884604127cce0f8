//! XREAD and XREADGROUP: what has come since, now or when it comes.

use super::{group_mut, limit, no_group, parse, reply_entries, reply_entry, reply_id, say_pending, say_position, see};
use crate::command::{Args, KeyPositions, Result};
use crate::exec::{Block, Ctx};
use crate::keyspace::{Access, Key};
use crate::protocol::error::Error;
use crate::protocol::{Mark, Reply};
use crate::types::StreamId;

/// Entries that a client gets at most when it had to wait and gave no COUNT.
const WAITED_COUNT: u64 = 1000;

/// Who reads: a group's consumer.
#[derive(Clone, Copy, Debug)]
struct Reader<'a> {
    group: &'a [u8],
    consumer: &'a [u8],
}

/// The options of both commands.
#[derive(Debug, Default)]
struct Options<'a> {
    /// Milliseconds to wait, 0 for ever; `None` does not wait.
    block: Option<u64>,
    /// 0 is no limit.
    count: u64,
    no_ack: bool,
    reader: Option<Reader<'a>>,
    /// Position of the first stream.
    first: usize,
    streams: usize,
}

impl<'a> Options<'a> {
    /// Scripts cannot wait, and are told so.
    fn permitted(&self, cx: &Ctx<'_>, args: Args<'_>) -> Result {
        if self.block.is_none() || !cx.is_in_script() {
            return Ok(());
        }
        let name = String::from_utf8_lossy(args.at(0)).into_owned();
        Err(Error::Message(format!("ERR {name} command is not allowed with BLOCK option from scripts")))
    }

    fn parse(args: Args<'a>, is_group: bool) -> Result<Self> {
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
                    return Err(Error::Static(
                        "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.",
                    ));
                }
                break;
            } else if args.is(at, "GROUP") && more > 1 {
                if !is_group {
                    return Err(Error::Static(
                        "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                options.reader = Some(Reader { group: args.at(at + 1), consumer: args.at(at + 2) });
                at += 3;
            } else if args.is(at, "NOACK") {
                if !is_group {
                    return Err(Error::Static(
                        "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                options.no_ack = true;
                at += 1;
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

fn timeout(args: Args<'_>, at: usize) -> Result<u64> {
    let ms = args.int(at).map_err(|_| Error::Static("ERR timeout is not an integer or out of range"))?;
    u64::try_from(ms).map_err(|_| Error::Static("ERR timeout is negative"))
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
    // Whatever is wrong, the handler finds it again and says so.
    let Ok(options) = Options::parse(args, is_group) else { return KeyPositions::new() };
    (options.first..options.first + options.streams).map(|at| (at, access)).collect()
}

/// `XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key …] id [id …]`
pub(super) fn xread(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let options = Options::parse(args, false)?;
    options.permitted(cx, args)?;
    if cx.is_serving() {
        return serve(cx, args, &options);
    }
    let (mut after, mut latest) = (Vec::new(), Vec::new());
    for (index, key) in args.keys().iter().enumerate() {
        let at = options.id_at(index);
        let last_id = cx.db.stream(key)?.map_or(StreamId::MIN, |stream| stream.log.last_id());
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
    block.needs_stream = options.reader.is_some();
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
    reply_entries(cx.reply, stream.log.range(start, StreamId::MAX).take(limit(count)), |_| ());
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
                return Err(Error::Static("NOGROUP the consumer group this client was blocked on no longer exists"));
            }
            read_group(cx, key, reader, None, count, options.no_ack)?
        }
    };
    if served {
        if cx.reply.is_resp3() { cx.reply.map_at(mark, 1) } else { cx.reply.array_at(mark, 1) }
    }
    Ok(())
}

/// `XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key …] id [id …]`
pub(super) fn xreadgroup(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let options = Options::parse(args, true)?;
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
            return Err(no_group(key.bytes, reader.group, " in XREADGROUP with GROUP option"));
        }
        after.push(match args.at(options.id_at(index)) {
            b"$" => {
                return Err(Error::Static(
                    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.",
                ));
            }
            b">" => None,
            // The largest id is how the genuine server writes `>`.
            text => Some(parse::id(text)?).filter(|&id| id != StreamId::MAX),
        });
    }
    let mark = cx.reply.mark();
    let mut count = 0;
    for (key, after) in args.keys().iter().zip(after) {
        count += usize::from(read_group(cx, key, reader, after, options.count, options.no_ack)?);
    }
    if count > 0 {
        begin_streams(cx, mark, count);
        return Ok(());
    }
    wait(cx, args, &options);
    Ok(())
}

/// Puts before the streams that were read since `mark` how many they are: a map for RESP3, pairs for RESP2.
fn begin_streams(cx: &mut Ctx<'_>, mark: Mark, count: usize) {
    if cx.reply.is_resp3() { cx.reply.map_at(mark, count) } else { cx.reply.array_at(mark, count) }
}

/// Appends what a consumer of a group is given: new entries, or behind an id those that it has not acknowledged. False,
/// and nothing appended, if there are no new ones.
fn read_group(
    cx: &mut Ctx<'_>,
    key: &Key<'_>,
    reader: Reader<'_>,
    after: Option<StreamId>,
    count: u64,
    no_ack: bool,
) -> Result<bool> {
    cx.db.count_look(key);
    let Some((log, group)) = cx.db.stream_mut(key)?.and_then(|stream| group_mut(stream, reader.group)) else {
        return Ok(false);
    };
    let last = group.last_id;
    if after.is_none() && log.last_entry_id().is_none_or(|id| id <= last) {
        return Ok(false);
    }
    head(cx.reply, key);
    let is_new = see(cx, key, reader.group, reader.consumer)?;
    cx.count_changes(1);
    let given = match after {
        Some(after) => history(cx, key, reader, after, count)?,
        None => deliver(cx, key, reader, count, no_ack)?,
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

/// Appends the entries behind the group's last one, which are the consumer's from now on. Returns those that the journal
/// has to be told of.
fn deliver(cx: &mut Ctx<'_>, key: &Key<'_>, reader: Reader<'_>, count: u64, no_ack: bool) -> Result<Vec<StreamId>> {
    let (now, journaled, mut given) = (cx.now(), cx.is_journaled(), Vec::new());
    let Some((log, group)) = cx.db.stream_mut(key)?.and_then(|stream| group_mut(stream, reader.group)) else {
        return Ok(given);
    };
    let entries = group.last_id.next().map(|start| log.range(start, StreamId::MAX));
    reply_entries(cx.reply, entries.into_iter().flatten().take(limit(count)), |id| {
        group.advance(log, id);
        if !no_ack && let Some(record) = group.assign(id, reader.consumer) {
            record.delivered_at = now;
            record.deliveries = 1;
            if journaled {
                given.push(id);
            }
        }
    });
    Ok(given)
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
        if let Some(record) = group.pending_mut(id) {
            record.delivered_at = now;
            record.deliveries = record.deliveries.wrapping_add(1);
            given.push(id);
        }
    }
    Ok(given)
}

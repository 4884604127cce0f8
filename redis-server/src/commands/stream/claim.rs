//! XCLAIM and XAUTOCLAIM: entries that change their consumer.

use super::entries::{arrive, group_mut, no_group, reply_entry, reply_id, say_pending, say_position, see};
use super::parse;
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::keyspace::Key;
use crate::protocol::error::{Error, echo};
use crate::protocol::number;
use crate::types::{StreamId, once_more};

/// Entries that XAUTOCLAIM claims at most, where it is not told.
const AUTO_COUNT: u64 = 100;
/// Entries that it looks at for each one that it may claim.
const AUTO_ATTEMPTS: u64 = 10;
/// The largest COUNT that it takes, that of the genuine server.
const AUTO_MAX: i64 = i64::MAX / 16;
/// Longest part of an unknown option that the error repeats, in bytes.
const MAX_OPTION: usize = 512;

/// Argument `at` as a number, or an error of the command's own.
fn int(args: Args<'_>, at: usize, error: &'static str) -> Result<i64> {
    number::parse_i64(args.at(at)).ok_or(Error::Static(error))
}

/// The options of a claim, with its group and consumer.
#[derive(Clone, Copy, Debug)]
struct Claim<'a> {
    key: &'a Key<'a>,
    group: &'a [u8],
    consumer: &'a [u8],
    /// Milliseconds; 0 takes all.
    min_idle: i64,
    delivered_at: u64,
    /// The number of deliveries to be noted, instead of one more.
    retry_count: Option<u64>,
    just_id: bool,
    /// Whether entries that are not pending are claimed too.
    force: bool,
}

/// The result for one entry.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Claimed {
    /// It is the consumer's now, and appended to the answer.
    Yes,
    /// It stays as it is.
    No,
    /// It was pending and is no longer, as the stream has lost it.
    Lost,
}

impl Claim<'_> {
    /// Makes the consumer, whether it gets something or not, as Redis does since 7.2.
    fn arrive(&self, cx: &mut Ctx<'_>) -> Result {
        if cx.config().level().is_72() { arrive(cx, self.key, self.group, self.consumer) } else { Ok(()) }
    }

    /// Claims one entry.
    fn one(&self, cx: &mut Ctx<'_>, id: StreamId) -> Result<Claimed> {
        let now = cx.now() as i64;
        let found = cx.db.stream_mut(self.key)?.and_then(|stream| group_mut(stream, self.group));
        let Some((log, group)) = found else { return Ok(Claimed::No) };
        if log.get(id).is_none() {
            let lost = group.acknowledge(id);
            cx.count_changes(u64::from(lost));
            if lost && cx.is_journaled() {
                cx.instead(&[b"XACK", self.key.bytes, self.group, id.to_string().as_bytes()]);
            }
            return Ok(if lost { Claimed::Lost } else { Claimed::No });
        }
        match group.pending().get(&id) {
            None if !self.force => return Ok(Claimed::No),
            Some(record) if self.min_idle != 0 && now - (record.delivered_at as i64) < self.min_idle => {
                return Ok(Claimed::No);
            }
            _ => {}
        }
        see(cx, self.key, self.group, self.consumer)?;
        let found = cx.db.stream_mut(self.key)?.and_then(|stream| group_mut(stream, self.group));
        let Some((log, group)) = found else { return Ok(Claimed::No) };
        group.assign(id, self.consumer, self.delivered_at, |count| match self.retry_count {
            Some(count) => count,
            None if self.just_id => count,
            None => once_more(count),
        });
        group.note_active(self.consumer, now as u64);
        let is_earlier = (self.delivered_at as i64) < now;
        match log.get(id) {
            Some(entry) if !self.just_id => reply_entry(cx.reply, entry),
            _ => reply_id(cx.reply, id),
        }
        cx.count_changes(1);
        if is_earlier {
            // A client that waits for idle entries may have waited long enough.
            cx.look_after(self.key);
        }
        say_pending(cx, self.key, self.group, id)?;
        Ok(Claimed::Yes)
    }
}

/// The options of XCLAIM.
#[derive(Debug, Default)]
struct Options {
    delivered_at: Option<i64>,
    retry_count: Option<u64>,
    force: bool,
    just_id: bool,
    last_id: StreamId,
}

impl Options {
    fn parse(args: Args<'_>, mut at: usize, now: i64) -> Result<Self> {
        let mut options = Self::default();
        while at < args.len() {
            let more = at + 1 < args.len();
            if args.is(at, "FORCE") {
                options.force = true;
            } else if args.is(at, "JUSTID") {
                options.just_id = true;
            } else if more && args.is(at, "IDLE") {
                at += 1;
                let idle = int(args, at, "ERR Invalid IDLE option argument for XCLAIM")?;
                options.delivered_at = Some(now.wrapping_sub(idle));
            } else if more && args.is(at, "TIME") {
                at += 1;
                options.delivered_at = Some(int(args, at, "ERR Invalid TIME option argument for XCLAIM")?);
            } else if more && args.is(at, "RETRYCOUNT") {
                at += 1;
                let count = int(args, at, "ERR Invalid RETRYCOUNT option argument for XCLAIM")?;
                // A negative count is as good as none.
                options.retry_count = u64::try_from(count).ok();
            } else if more && args.is(at, "LASTID") {
                at += 1;
                options.last_id = parse::id(args.at(at))?;
            } else {
                let option = echo(args.at(at), MAX_OPTION);
                return Err(Error::Message(format!("ERR Unrecognized XCLAIM option '{option}'")));
            }
            at += 1;
        }
        Ok(options)
    }
}

/// `XCLAIM key group consumer min-idle-time id [id …] [IDLE ms] [TIME unix-time-ms] [RETRYCOUNT count] [FORCE] [JUSTID]
/// [LASTID id]`
pub(super) fn xclaim(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let missing = || no_group(args.at(1), args.at(2), "");
    cx.db.count_look(key);
    cx.db.stream_mut(key)?.and_then(|stream| group_mut(stream, args.at(2))).ok_or_else(missing)?;
    let min_idle = int(args, 4, "ERR Invalid min-idle-time argument for XCLAIM")?.max(0);
    // Ids come first. The first other argument begins the options.
    let ids: Vec<StreamId> = args.from(5).iter().map_while(|arg| StreamId::parse(arg, 0)).collect();
    let now = cx.now() as i64;
    let options = Options::parse(args, 5 + ids.len(), now)?;
    let (_, group) = cx.db.stream_mut(key)?.and_then(|stream| group_mut(stream, args.at(2))).ok_or_else(missing)?;
    let is_moved = options.last_id > group.last_id;
    if is_moved {
        group.last_id = options.last_id;
        cx.count_changes(1);
    }
    // A time that makes no sense is taken for now: clients may compute it from a clock of their own.
    let delivered_at = options.delivered_at.filter(|at| (0..=now).contains(at)).unwrap_or(now) as u64;
    let claim = Claim {
        key,
        group: args.at(2),
        consumer: args.at(3),
        min_idle,
        delivered_at,
        retry_count: options.retry_count,
        just_id: options.just_id,
        force: options.force,
    };
    claim.arrive(cx)?;
    let mark = cx.reply.mark();
    let mut count = 0;
    for id in ids {
        count += usize::from(claim.one(cx, id)? == Claimed::Yes);
    }
    if is_moved && count == 0 {
        // Else LASTID has told it.
        say_position(cx, key, args.at(2))?;
    }
    cx.reply.array_at(mark, count);
    Ok(())
}

/// `XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]`
pub(super) fn xautoclaim(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let min_idle = int(args, 4, "ERR Invalid min-idle-time argument for XAUTOCLAIM")?.max(0);
    let start = parse::start(args.at(5))?;
    let (mut count, mut just_id) = (AUTO_COUNT, false);
    let mut at = 6;
    while at < args.len() {
        if args.is(at, "COUNT") && at + 1 < args.len() {
            let given = number::parse_i64(args.at(at + 1)).filter(|count| (1..=AUTO_MAX).contains(count));
            count = given.ok_or(Error::Static("ERR COUNT must be > 0"))? as u64;
            at += 1;
        } else if args.is(at, "JUSTID") {
            just_id = true;
        } else {
            return Err(Error::Syntax);
        }
        at += 1;
    }
    let (key, now) = (args.key(0), cx.now());
    let claim = Claim {
        key,
        group: args.at(2),
        consumer: args.at(3),
        min_idle,
        delivered_at: now,
        retry_count: None,
        just_id,
        force: false,
    };
    let missing = || no_group(args.at(1), args.at(2), "");
    cx.db.count_look(key);
    cx.db.stream_mut(key)?.and_then(|stream| group_mut(stream, args.at(2))).ok_or_else(missing)?;
    claim.arrive(cx)?;
    claim_pending(cx, &claim, start, count)
}

/// Claims pending entries from `start` on, up to `count` of them, lost ones included.
fn claim_pending(cx: &mut Ctx<'_>, claim: &Claim<'_>, start: StreamId, mut count: u64) -> Result {
    let mark = cx.reply.mark();
    let mut attempts = count.saturating_mul(AUTO_ATTEMPTS);
    let mut cursor = Some(start);
    let mut claimed = 0;
    let mut lost = Vec::new();
    let next = loop {
        let Some(id) = next_pending(cx, claim, cursor)? else { break StreamId::MIN };
        if attempts == 0 || count == 0 {
            break id;
        }
        attempts -= 1;
        cursor = id.next();
        match claim.one(cx, id)? {
            Claimed::Yes => claimed += 1,
            Claimed::Lost => lost.push(id),
            Claimed::No => continue,
        }
        count -= 1;
    };
    cx.reply.array_at(mark, claimed);
    cx.reply.bulk_at(mark, next.to_string().as_bytes());
    cx.reply.array_at(mark, 3);
    cx.reply.array(lost.len());
    lost.into_iter().for_each(|id| reply_id(cx.reply, id));
    Ok(())
}

/// The first pending entry from `from` on.
fn next_pending(cx: &mut Ctx<'_>, claim: &Claim<'_>, from: Option<StreamId>) -> Result<Option<StreamId>> {
    let stream = cx.db.stream_mut(claim.key)?;
    let group = stream.and_then(|stream| stream.groups.get(claim.group));
    let pending = group.zip(from).and_then(|(group, from)| group.pending().range(from..).next());
    Ok(pending.map(|(id, _)| *id))
}

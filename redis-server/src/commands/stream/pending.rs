//! XPENDING: entries that were delivered but not acknowledged.

use super::entries::{limit, no_group, reply_id};
use super::parse;
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::Reply;
use crate::protocol::error::Error;
use crate::types::{Group, Pending, StreamId};

/// The options of XPENDING.
#[derive(Debug)]
struct Filter<'a> {
    start: StreamId,
    end: StreamId,
    count: u64,
    min_idle: i64,
    consumer: Option<&'a [u8]>,
}

impl<'a> Filter<'a> {
    /// `[IDLE min-idle-time] start end count [consumer]`
    fn parse(args: Args<'a>) -> Result<Self> {
        let mut at = 3;
        let mut min_idle = 0;
        if args.is(at, "IDLE") {
            min_idle = args.int(at + 1)?;
            if args.len() < 8 {
                return Err(Error::Syntax);
            }
            at += 2;
        }
        let count = u64::try_from(args.int(at + 2)?).unwrap_or(0);
        let (start, end) = (parse::start(args.at(at))?, parse::end(args.at(at + 1))?);
        Ok(Self { start, end, count, min_idle, consumer: args.get(at + 3) })
    }
}

/// `XPENDING key group [[IDLE min-idle-time] start end count [consumer]]`
pub(super) fn xpending(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if !matches!(args.len(), 3 | 6..=9) {
        return Err(Error::Syntax);
    }
    let filter = if args.len() > 3 { Some(Filter::parse(args)?) } else { None };
    let now = cx.now();
    let stream = cx.db.stream(args.key(0))?;
    let group = stream.and_then(|stream| stream.groups.get(args.at(2)));
    let group = group.ok_or_else(|| no_group(args.at(1), args.at(2), ""))?;
    match filter {
        Some(filter) => list(cx.reply, group, &filter, now),
        None => summary(cx.reply, group),
    }
    Ok(())
}

/// How many are pending, from where to where, and for whom.
fn summary(reply: &mut Reply, group: &Group) {
    reply.array(4);
    reply.count(group.pending().len());
    let (Some((first, _)), Some((last, _))) = (group.pending().first_key_value(), group.pending().last_key_value())
    else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    reply_id(reply, *first);
    reply_id(reply, *last);
    let mark = reply.mark();
    let mut count = 0;
    for (name, consumer) in group.consumers().filter(|(_, consumer)| !consumer.pending().is_empty()) {
        reply.array(2);
        reply.bulk(name);
        reply.bulk_int(consumer.pending().len() as i64);
        count += 1;
    }
    reply.array_at(mark, count);
}

fn list(reply: &mut Reply, group: &Group, filter: &Filter<'_>, now: u64) {
    let mark = reply.mark();
    let mut count = 0;
    let idle = |record: &Pending| now as i64 - record.delivered_at as i64;
    let mut show = |id: StreamId, record: &Pending| {
        if filter.min_idle != 0 && idle(record) < filter.min_idle {
            return false;
        }
        reply.array(4);
        reply_id(reply, id);
        reply.bulk(record.consumer());
        reply.int(idle(record).max(0));
        reply.int(record.deliveries as i64);
        count += 1;
        true
    };
    // A count of 0 lists nothing here.
    if filter.count > 0 && filter.start <= filter.end {
        let range = filter.start..=filter.end;
        let most = limit(filter.count);
        match filter.consumer {
            None => {
                let all = group.pending().range(range);
                all.filter(|(id, record)| show(**id, record)).take(most).for_each(drop);
            }
            Some(name) => {
                let own = group.consumer(name).map(|consumer| consumer.pending().range(range)).into_iter().flatten();
                let records = own.filter_map(|id| Some((*id, group.pending().get(id)?)));
                records.filter(|(id, record)| show(*id, record)).take(most).for_each(drop);
            }
        }
    }
    reply.array_at(mark, count);
}

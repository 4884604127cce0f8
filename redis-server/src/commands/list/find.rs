//! Looking into lists.

use super::{bounds, position};
use crate::command::{Args, Result};
use crate::config::Level;
use crate::exec::core::Ctx;
use crate::protocol::error::Error;

/// LLEN key
pub(super) fn llen(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let len = cx.db.list(args.key(0))?.map_or(0, |list| list.len());
    cx.reply.count(len);
    Ok(())
}

/// LINDEX key index
pub(super) fn lindex(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let Some(list) = cx.db.list(args.key(0))? else {
        cx.reply.null();
        return Ok(());
    };
    match position(list, args.int(2)?).and_then(|index| list.get(index)) {
        Some(value) => cx.reply.bulk(&value),
        None => cx.reply.null(),
    }
    Ok(())
}

/// LRANGE key start stop
pub(super) fn lrange(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (start, end) = (args.int(2)?, args.int(3)?);
    let Some(list) = cx.db.list(args.key(0))? else {
        cx.reply.array(0);
        return Ok(());
    };
    let (start, end) = bounds(list.len(), start, end);
    cx.reply.array(end - start);
    list.range(start, end).for_each(|value| cx.reply.bulk(&value));
    Ok(())
}

/// The options of LPOS.
struct Search {
    /// Matches that are passed over.
    skip: u64,
    backwards: bool,
    /// Most matches to report, all of them for 0; `None`: one, and not as an array.
    count: Option<u64>,
    /// Most values to compare.
    most: usize,
}

impl Search {
    fn parse(args: Args<'_>, level: Level) -> Result<Self> {
        let mut search = Self { skip: 0, backwards: false, count: None, most: usize::MAX };
        let mut at = 3;
        while at < args.len() {
            if at + 1 == args.len() {
                return Err(Error::Syntax);
            } else if args.is(at, "RANK") {
                match args.int(at + 1)? {
                    0 => return Err(Error::Static(RANK_ZERO)),
                    i64::MIN if level.is_72() => return Err(Error::Static(LEAST_COUNT)),
                    // Redis 7.0 negates it, and it stays what it is: less than any count of matches.
                    i64::MIN => search.backwards = true,
                    rank => (search.skip, search.backwards) = (rank.unsigned_abs() - 1, rank < 0),
                }
            } else if args.is(at, "COUNT") {
                search.count = Some(not_negative(args, at + 1, "ERR COUNT can't be negative")?);
            } else if args.is(at, "MAXLEN") {
                let most = not_negative(args, at + 1, "ERR MAXLEN can't be negative")?;
                search.most = if most == 0 { usize::MAX } else { usize::try_from(most).unwrap_or(usize::MAX) };
            } else {
                return Err(Error::Syntax);
            }
            at += 2;
        }
        Ok(search)
    }
}

/// Of a number whose opposite is none.
pub(super) const LEAST_COUNT: &str =
    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";

const RANK_ZERO: &str = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
     or use negative to start from the end of the list";

fn not_negative(args: Args<'_>, index: usize, error: &'static str) -> Result<u64> {
    args.int(index).ok().and_then(|value| u64::try_from(value).ok()).ok_or(Error::Static(error))
}

/// `LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]`
pub(super) fn lpos(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let Search { mut skip, backwards, count, most } = Search::parse(args, cx.config().level())?;
    let list = cx.db.list(args.key(0))?;
    let mut found = 0;
    let mark = cx.reply.mark();
    if let Some(list) = list {
        let reply = &mut *cx.reply;
        list.find(args.at(2), backwards, most, &mut |index| {
            if skip > 0 {
                skip -= 1;
                return true;
            }
            reply.count(index);
            found += 1;
            count.is_some_and(|count| found as u64 != count)
        });
    }
    if count.is_some() {
        cx.reply.array_at(mark, found);
    } else if found == 0 {
        cx.reply.null();
    }
    Ok(())
}

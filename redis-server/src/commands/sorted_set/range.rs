//! Ranges: read, stored, and removed.

use super::parse::{By, Wanted};
use super::{reply_head, reply_pair, store};
use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::protocol::error::Error;
use crate::types::{SortedSet, SortedSetBuilder, Text};

/// `ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`
pub(super) fn zrange(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    range(cx, args, Choice { by: None, rev: None })
}

/// `ZREVRANGE key start stop [WITHSCORES]`
pub(super) fn zrevrange(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    range(cx, args, Choice { by: Some(By::Rank), rev: Some(true) })
}

/// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`
pub(super) fn zrangebyscore(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    range(cx, args, Choice { by: Some(By::Score), rev: Some(false) })
}

/// `ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]`
pub(super) fn zrevrangebyscore(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    range(cx, args, Choice { by: Some(By::Score), rev: Some(true) })
}

/// `ZRANGEBYLEX key min max [LIMIT offset count]`
pub(super) fn zrangebylex(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    range(cx, args, Choice { by: Some(By::Lex), rev: Some(false) })
}

/// `ZREVRANGEBYLEX key max min [LIMIT offset count]`
pub(super) fn zrevrangebylex(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    range(cx, args, Choice { by: Some(By::Lex), rev: Some(true) })
}

/// `ZRANGESTORE dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]`
pub(super) fn zrangestore(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let query = Query::parse(args.from(2), Choice { by: None, rev: None }, true)?;
    let limits = cx.sorted_set_limits();
    let mut result = SortedSetBuilder::default();
    if let Some(set) = cx.db.sorted_set(args.key(1))? {
        let ranks = query.ranks(set);
        let count = ranks.len();
        result = SortedSetBuilder::with_capacity(count);
        // Redis adds one after the other, to a compact set for as long as that may be one. There a zero has no sign.
        let is_large = matches!(query.wanted, Wanted::Ranks(..)) && count > limits.max_listpack_entries;
        let mut room = if is_large { 0 } else { limits.max_listpack_entries.saturating_add(1) };
        let add = |(member, score): (Text<'_>, f64)| {
            room = if member.len() <= limits.max_listpack_value { room.saturating_sub(1) } else { 0 };
            result.push(&member, if room > 0 { score + 0.0 } else { score });
        };
        let members = set.range(ranks);
        if query.rev { members.rev().for_each(add) } else { members.for_each(add) }
    }
    let result = result.finish(limits);
    store(cx, args.key(0), result, Event::ZRANGESTORE);
    Ok(())
}

/// ZREMRANGEBYRANK key start stop
pub(super) fn zremrangebyrank(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    remove(cx, args, By::Rank, Event::ZREMRANGEBYRANK)
}

/// ZREMRANGEBYSCORE key min max
pub(super) fn zremrangebyscore(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    remove(cx, args, By::Score, Event::ZREMRANGEBYSCORE)
}

/// ZREMRANGEBYLEX key min max
pub(super) fn zremrangebylex(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    remove(cx, args, By::Lex, Event::ZREMRANGEBYLEX)
}

/// Options that the command's name already fixes.
#[derive(Clone, Copy)]
struct Choice {
    by: Option<By>,
    rev: Option<bool>,
}

/// A parsed query.
struct Query<'a> {
    wanted: Wanted<'a>,
    rev: bool,
    with_scores: bool,
    offset: i64,
    /// Negative: no limit.
    limit: i64,
}

impl<'a> Query<'a> {
    /// Parses `args`: key, both ends, options.
    fn parse(args: Args<'a>, choice: Choice, stores: bool) -> Result<Self> {
        let Choice { mut by, mut rev } = choice;
        let (mut with_scores, mut offset, mut limit) = (false, 0, -1);
        let mut at = 3;
        while at < args.len() {
            if !stores && args.is(at, "WITHSCORES") {
                with_scores = true;
            } else if args.is(at, "LIMIT") && at + 2 < args.len() {
                offset = args.int(at + 1)?;
                limit = args.int(at + 2)?;
                at += 2;
            } else if rev.is_none() && args.is(at, "REV") {
                rev = Some(true);
            } else if by.is_none() && args.is(at, "BYLEX") {
                by = Some(By::Lex);
            } else if by.is_none() && args.is(at, "BYSCORE") {
                by = Some(By::Score);
            } else {
                return Err(Error::Syntax);
            }
            at += 1;
        }
        let (by, rev) = (by.unwrap_or(By::Rank), rev.unwrap_or(false));
        if limit != -1 && by == By::Rank {
            let text = "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
            return Err(Error::Static(text));
        }
        if with_scores && by == By::Lex {
            return Err(Error::Static("ERR syntax error, WITHSCORES not supported in combination with BYLEX"));
        }
        // Backwards, the greater end of scores and members comes first.
        let (min, max) = if rev && by != By::Rank { (2, 1) } else { (1, 2) };
        if by == By::Rank {
            offset = 0;
        }
        Ok(Self { wanted: Wanted::parse(by, args.at(min), args.at(max))?, rev, with_scores, offset, limit })
    }

    /// The ranks of the members in question.
    fn ranks(&self, set: &SortedSet) -> std::ops::Range<usize> {
        let ranks = self.wanted.ranks(set, self.rev);
        let skip = usize::try_from(self.offset).unwrap_or(usize::MAX).min(ranks.len());
        let take = usize::try_from(self.limit).unwrap_or(usize::MAX).min(ranks.len() - skip);
        if self.rev {
            let end = ranks.end - skip;
            end - take..end
        } else {
            let start = ranks.start + skip;
            start..start + take
        }
    }
}

fn range(cx: &mut Ctx<'_>, args: Args<'_>, choice: Choice) -> Result {
    let query = Query::parse(args.from(1), choice, false)?;
    let Some(set) = cx.db.sorted_set(args.key(0))? else {
        cx.reply.array(0);
        return Ok(());
    };
    let ranks = query.ranks(set);
    reply_head(cx.reply, ranks.len(), query.with_scores);
    let nested = cx.reply.is_resp3();
    let mut emit = |(member, score): (Text<'_>, f64)| {
        if query.with_scores {
            reply_pair(cx.reply, &member, score, nested);
        } else {
            cx.reply.bulk(&member);
        }
    };
    let members = set.range(ranks);
    if query.rev {
        members.rev().for_each(&mut emit)
    } else {
        members.for_each(&mut emit)
    }
    Ok(())
}

fn remove(cx: &mut Ctx<'_>, args: Args<'_>, by: By, event: Event) -> Result {
    let wanted = Wanted::parse(by, args.at(2), args.at(3))?;
    let key = args.key(0);
    let (mut removed, mut empty) = (0, false);
    if let Some(set) = cx.db.sorted_set_mut(key)? {
        let ranks = wanted.ranks(set, false);
        removed = set.remove_range(ranks);
        empty = set.is_empty();
    }
    cx.taken(key, removed, empty, event);
    Ok(())
}

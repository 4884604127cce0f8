//! Commands that read members, scores and ranks.

use super::super::scan::{self, Extra, ScanOptions};
use super::parse::{By, Wanted};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::error::Error;

/// ZCARD key
pub(super) fn zcard(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let len = cx.db.sorted_set(args.key(0))?.map_or(0, |set| set.len());
    cx.reply.count(len);
    Ok(())
}

/// ZSCORE key member
pub(super) fn zscore(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    match cx.db.sorted_set(args.key(0))?.and_then(|set| set.score(args.at(2))) {
        Some(score) => cx.reply.double(score),
        None => cx.reply.null(),
    }
    Ok(())
}

/// `ZMSCORE key member [member …]`
pub(super) fn zmscore(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let set = cx.db.sorted_set(args.key(0))?;
    let members = args.from(2);
    cx.reply.array(members.len());
    for member in members.iter() {
        match set.and_then(|set| set.score(member)) {
            Some(score) => cx.reply.double(score),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

/// `ZRANK key member [WITHSCORE]`
pub(super) fn zrank(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    rank(cx, args, false)
}

/// `ZREVRANK key member [WITHSCORE]`
pub(super) fn zrevrank(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    rank(cx, args, true)
}

fn rank(cx: &mut Ctx<'_>, args: Args<'_>, rev: bool) -> Result {
    let with_score = match args.len() {
        3 => false,
        4 if args.is(3, "WITHSCORE") => true,
        4 => return Err(Error::Syntax),
        _ => return Err(Error::WrongArity(if rev { "zrevrank" } else { "zrank" }.into())),
    };
    let found = cx.db.sorted_set(args.key(0))?.and_then(|set| {
        let (rank, score) = set.rank(args.at(2))?;
        Some((if rev { set.len() - 1 - rank } else { rank }, score))
    });
    match found {
        Some((rank, score)) if with_score => {
            cx.reply.array(2);
            cx.reply.count(rank);
            cx.reply.double(score);
        }
        Some((rank, _)) => cx.reply.count(rank),
        None if with_score => cx.reply.null_array(),
        None => cx.reply.null(),
    }
    Ok(())
}

/// ZCOUNT key min max
pub(super) fn zcount(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    count(cx, args, By::Score)
}

/// ZLEXCOUNT key min max
pub(super) fn zlexcount(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    count(cx, args, By::Lex)
}

fn count(cx: &mut Ctx<'_>, args: Args<'_>, by: By) -> Result {
    let wanted = Wanted::parse(by, args.at(2), args.at(3))?;
    let count = cx.db.sorted_set(args.key(0))?.map_or(0, |set| wanted.ranks(set, false).len());
    cx.reply.count(count);
    Ok(())
}

/// `ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]`
pub(super) fn zscan(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let level = cx.config().level();
    let cursor = scan::cursor(args.at(2), level)?;
    let Some(set) = cx.db.sorted_set(args.key(0))? else {
        scan::reply_nothing(cx.reply);
        return Ok(());
    };
    let options = ScanOptions::parse(args, 3, Extra::Bare("NOSCORES"), level)?;
    let packed = set.encoding() == "listpack";
    scan::reply(cx.reply, |reply| {
        let mut elements = 0;
        let next = set.scan(cursor, options.count, &mut |member, score| {
            if options.selects(member) {
                reply.bulk(member);
                elements += 1;
                if options.bare {
                    return;
                }
                // Text in RESP3 too, as in the genuine server; and a listpack's integers as they stand in it.
                match packed.then(|| listpack_int(score)).flatten() {
                    Some(int) => reply.bulk_int(int),
                    None => reply.bulk_double(score),
                }
                elements += 1;
            }
        });
        (next, elements)
    });
    Ok(())
}

/// The integer as which the genuine server's listpacks keep a score.
fn listpack_int(score: f64) -> Option<i64> {
    const MAX: f64 = (i64::MAX / 2) as f64;
    let int = score as i64;
    (score.abs() <= MAX && int as f64 == score).then_some(int)
}

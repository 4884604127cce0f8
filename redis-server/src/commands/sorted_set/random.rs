//! ZRANDMEMBER.

use super::reply_pair;
use crate::command::{Args, Result};
use crate::commands::random::{self, PairOptions};
use crate::exec::core::Ctx;

/// `ZRANDMEMBER key [count [WITHSCORES]]`
pub(super) fn zrandmember(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let random = cx.random();
    if args.len() == 2 {
        match cx.db.sorted_set(args.key(0))?.and_then(|set| set.any(random.below(set.len()))) {
            Some((member, _)) => cx.reply.bulk(&member),
            None => cx.reply.null(),
        }
        return Ok(());
    }
    let options = PairOptions::parse(args, "WITHSCORES")?;
    let Some(set) = cx.db.sorted_set(args.key(0))? else {
        cx.reply.array(0);
        return Ok(());
    };
    options.head(cx.reply, set.len());
    let nested = cx.reply.is_resp3();
    let below = |bound| random.below(bound);
    let any = |place| set.any(place);
    random::sample(cx.reply, options.count, set.iter(), any, below, |reply, (member, score)| {
        if options.with {
            reply_pair(reply, member, *score, nested);
        } else {
            reply.bulk(member);
        }
    })
}

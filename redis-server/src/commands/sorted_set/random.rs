//! ZRANDMEMBER.

use std::collections::HashSet;

use super::{reply_head, reply_pair};
use crate::command::{Args, Ctx, Result};
use crate::error::Error;
use crate::worker::Worker;

/// ZRANDMEMBER key \[count \[WITHSCORES\]\]
pub(super) fn zrandmember(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() == 2 {
        match cx.db.sorted_set(args.key(0))?.and_then(|set| set.any(cx.worker.random_below(set.len()))) {
            Some((member, _)) => cx.reply.bulk(&member),
            None => cx.reply.null(),
        }
        return Ok(());
    }
    let (count, with_scores) = parse(args)?;
    let Some(set) = cx.db.sorted_set(args.key(0))? else {
        cx.reply.array(0);
        return Ok(());
    };
    let repeats = count < 0;
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let count = if repeats { wanted } else { wanted.min(set.len()) };
    reply_head(cx.reply, count, with_scores);
    let nested = cx.reply.is_resp3();
    let mut emit = |place: usize| match set.any(place) {
        Some((member, score)) if with_scores => reply_pair(cx.reply, &member, score, nested),
        Some((member, _)) => cx.reply.bulk(&member),
        None => {}
    };
    if repeats {
        (0..count).for_each(|_| emit(cx.worker.random_below(set.len())));
    } else {
        distinct_places(cx.worker, set.len(), count, emit);
    }
    Ok(())
}

/// The count and whether scores are wanted.
fn parse(args: Args<'_>) -> Result<(i64, bool)> {
    let count = args.int(2)?;
    if count == i64::MIN {
        let text = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";
        return Err(Error::Static(text));
    }
    let with_scores = args.len() == 4 && args.is(3, "WITHSCORES");
    if args.len() > 3 && !with_scores {
        return Err(Error::Syntax);
    }
    if with_scores && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(Error::OutOfRange);
    }
    Ok((count, with_scores))
}

/// Calls `emit` with `count` different places below `len`, at random.
fn distinct_places(worker: &Worker, len: usize, count: usize, mut emit: impl FnMut(usize)) {
    if count == len {
        return (0..len).for_each(emit);
    }
    // Drawing again what was drawn before is rare as long as most places are free.
    if count < len / 4 {
        let mut drawn = HashSet::with_capacity(count);
        while drawn.len() < count {
            let place = worker.random_below(len);
            if drawn.insert(place) {
                emit(place);
            }
        }
        return;
    }
    let mut places: Vec<usize> = (0..len).collect();
    for at in 0..count {
        places.swap(at, at + worker.random_below(len - at));
        emit(places[at]);
    }
}

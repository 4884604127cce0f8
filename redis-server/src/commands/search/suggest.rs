//! Suggestions: FT.SUGADD, FT.SUGGET, FT.SUGDEL and FT.SUGLEN. They live beside the keys, not in one.

use std::sync::Arc;

use super::words::{MAX_ECHO, Words, bad};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::error::{Error, echo};

/// Suggestions that FT.SUGGET gives if it does not say.
const DEFAULT_MAX: usize = 5;

/// The longest beginning that FT.SUGGET looks for (characters), as in RediSearch.
const MAX_PREFIX: usize = 100;

fn text<'a>(args: Args<'a>, at: usize, what: &str) -> Result<&'a str> {
    let word = args.at(at);
    std::str::from_utf8(word).map_err(|_| bad(what, &format!("`{}` is no UTF-8", echo(word, MAX_ECHO))))
}

/// `FT.SUGADD key text score [INCR] [PAYLOAD payload]`
pub(super) fn add(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let text = text(args, 2, "FT.SUGADD")?;
    let score = args.float(3).map_err(|_| Error::Static("ERR invalid score"))?;
    let (mut words, mut increment, mut payload) = (Words::new(args, 4), false, None);
    while !words.is_empty() {
        match () {
            () if words.take("INCR") => increment = true,
            () if words.take("PAYLOAD") => {
                let missing = "Invalid payload: Expected an argument, but none provided";
                payload = Some(words.next().ok_or(Error::Static(missing))?);
            }
            () => return Err(Error::Message(format!("Unknown argument `{}`", words.shown()))),
        }
    }
    let len = cx.instance().search.with_suggestions(|all| {
        let suggestions = Arc::make_mut(all.entry(args.at(1).into()).or_default());
        suggestions.add(text, score, increment, payload);
        suggestions.len()
    });
    cx.count_changes(1);
    cx.reply.count(len);
    Ok(())
}

/// `FT.SUGDEL key text`
pub(super) fn del(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let text = text(args, 2, "FT.SUGDEL")?;
    let removed = cx.instance().search.with_suggestions(|all| {
        let Some(suggestions) = all.get_mut(args.at(1)) else { return false };
        let removed = Arc::make_mut(suggestions).remove(text);
        if suggestions.is_empty() {
            all.remove(args.at(1));
        }
        removed
    });
    cx.count_changes(removed.into());
    cx.reply.int(removed.into());
    Ok(())
}

/// `FT.SUGLEN key`
pub(super) fn len(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let len = cx.instance().search.with_suggestions(|all| all.get(args.at(1)).map_or(0, |found| found.len()));
    cx.reply.count(len);
    Ok(())
}

/// `FT.SUGGET key prefix [FUZZY] [WITHSCORES] [WITHPAYLOADS] [MAX number]`
pub(super) fn get(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let prefix = text(args, 2, "FT.SUGGET")?;
    if prefix.chars().count() > MAX_PREFIX {
        return Err(Error::Static("Invalid query length"));
    }
    let (mut fuzzy, mut with_scores, mut with_payloads, mut most) = (false, false, false, DEFAULT_MAX);
    let mut words = Words::new(args, 3);
    while !words.is_empty() {
        match () {
            () if words.take("FUZZY") => fuzzy = true,
            () if words.take("WITHSCORES") => with_scores = true,
            () if words.take("WITHPAYLOADS") => with_payloads = true,
            () if words.take("MAX") => most = words.number("MAX")?,
            () => return Err(Error::Message(format!("Unrecognized argument: {}", words.shown()))),
        }
    }
    let instance = cx.instance();
    let reply = &mut *cx.reply;
    instance.search.with_suggestions(|all| {
        let Some(suggestions) = all.get(args.at(1)) else { return reply.null() };
        let found = suggestions.get(prefix, fuzzy, most);
        reply.array(found.len() * (1 + usize::from(with_scores) + usize::from(with_payloads)));
        for suggestion in found {
            reply.bulk(suggestion.text.as_bytes());
            if with_scores {
                // Single precision, as in RediSearch.
                reply.double(f64::from(suggestion.score as f32));
            }
            if with_payloads {
                match suggestion.payload.filter(|payload| !payload.is_empty()) {
                    Some(payload) => reply.bulk(payload),
                    None => reply.null(),
                }
            }
        }
    });
    Ok(())
}

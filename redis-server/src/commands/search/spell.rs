//! FT.SPELLCHECK.

use std::sync::Arc;

use query_engine::{MAX_SPELL_DISTANCE, Misspelling, SpellOptions, WordList};

use super::lookup::{UNKNOWN_INDEX, default_deadline, index_for, refresh};
use super::query::Common;
use super::words::Words;
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::Reply;
use crate::protocol::error::Error;

/// `FT.SPELLCHECK index query [DISTANCE distance] [TERMS INCLUDE|EXCLUDE dictionary] … [DIALECT dialect]`
pub(super) fn spell_check(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let index = index_for(cx, args, UNKNOWN_INDEX)?;
    let (mut words, mut common) = (Words::new(args, 3), Common::new(cx));
    (common.verbatim, common.keep_stop_words) = (true, true);
    let (mut distance, mut include, mut exclude, mut counts) = (1, Vec::new(), Vec::new(), false);
    while !words.is_empty() {
        if words.take("DISTANCE") {
            distance = words.number("DISTANCE").unwrap_or(0);
            if distance == 0 || distance > MAX_SPELL_DISTANCE {
                return Err(Error::Static("invalid distance given, distance must be a natural number between 1 to 4"));
            }
        } else if words.take("TERMS") {
            let list = match () {
                () if words.take("INCLUDE") => &mut include,
                () if words.take("EXCLUDE") => &mut exclude,
                () => return Err(Error::Static("bad format, exclude/include operation was not given")),
            };
            list.push(dictionary(cx, words.need("TERMS")?)?);
            // RediSearch takes what follows for words, and looks none of them up.
            while words.peek().is_some_and(|word| !is_option(word)) {
                words.next();
            }
        } else if words.take("FULLSCOREINFO") {
            counts = true;
        } else if !common.take(&mut words)? {
            return Err(Error::Message(format!("Unknown argument `{}`", words.shown())));
        }
    }
    refresh(cx, default_deadline(cx));
    index.note_dialect(common.dialect);
    let engine = index.engine();
    let query = common.parse(&engine, args.at(2))?;
    let (include, exclude): (Vec<&WordList>, Vec<&WordList>) =
        (include.iter().map(AsRef::as_ref).collect(), exclude.iter().map(AsRef::as_ref).collect());
    let options = SpellOptions { distance, include: &include, exclude: &exclude };
    let found = engine.spell_check(&query, &options);
    show(cx.reply, &found, counts.then_some(engine.len()));
    Ok(())
}

fn is_option(word: &[u8]) -> bool {
    ["DISTANCE", "TERMS", "DIALECT", "FULLSCOREINFO"].iter().any(|name| name.as_bytes().eq_ignore_ascii_case(word))
}

fn dictionary(cx: &Ctx<'_>, name: &[u8]) -> Result<Arc<WordList>> {
    cx.instance().search.dictionary(name).ok_or(Error::Static("the given dictionary could not be opened"))
}

/// Scores are shares of all documents; with the number of `documents` they count them, and the number stands first.
fn show(reply: &mut Reply, found: &[Misspelling], documents: Option<usize>) {
    let scale = documents.unwrap_or(1) as f64;
    if reply.is_resp3() {
        reply.map(1);
        reply.simple("results");
        reply.map(found.len());
        for Misspelling { word, suggestions } in found {
            reply.bulk(word);
            reply.array(suggestions.len());
            for (score, suggestion) in suggestions {
                reply.map(1);
                reply.bulk(suggestion);
                reply.double(if documents.is_some() { (*score * scale).round() } else { *score });
            }
        }
        return;
    }
    reply.array(found.len() + usize::from(documents.is_some()));
    if let Some(documents) = documents {
        reply.count(documents);
    }
    for Misspelling { word, suggestions } in found {
        reply.array(3);
        reply.simple("TERM");
        reply.bulk(word);
        reply.array(suggestions.len());
        for (score, suggestion) in suggestions {
            reply.array(2);
            reply.double(if documents.is_some() { (*score * scale).round() } else { *score });
            reply.bulk(suggestion);
        }
    }
}

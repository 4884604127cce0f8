//! FT.SPELLCHECK.

use std::collections::BTreeMap;
use std::sync::Arc;

use query_engine::{MAX_SPELL_DISTANCE, Misspelling, SpellOptions, WordList};

use super::gathered;
use super::lookup::{UNKNOWN_INDEX, default_deadline, index_for, refresh};
use super::query::Common;
use super::wire::{Reader, Writer};
use super::words::Words;
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::Reply;
use crate::protocol::error::Error;

/// `FT.SPELLCHECK index query [DISTANCE distance] [TERMS INCLUDE|EXCLUDE dictionary] … [DIALECT dialect]`
pub(super) fn spell_check(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let parts = gathered::all_parts(cx, args)?;
    let mut found = match parts {
        None => look_up(cx, args)?,
        Some(parts) => {
            let found = parts.iter().map(|part| Found::read(&mut Reader::new(part)));
            merge(found.collect::<Result<_>>()?)
        }
    };
    let documents = found.documents.max(1) as f64;
    // A score is a share of all documents.
    for (score, _) in found.words.iter_mut().flat_map(|found| &mut found.suggestions) {
        *score = if found.counts { score.round() } else { *score / documents };
    }
    show(cx.reply, &found.words, found.counts.then_some(found.documents));
    Ok(())
}

/// This node's part of FT.SPELLCHECK.
pub(super) fn part(cx: &Ctx<'_>, args: Args<'_>, writer: &mut Writer) -> Result {
    let found = look_up(cx, args)?;
    writer.count(found.documents);
    writer.flag(found.counts);
    writer.list(&found.words, |writer, Misspelling { word, suggestions }| {
        writer.text(word);
        writer.list(suggestions, |writer, (count, suggestion)| {
            writer.double(*count);
            writer.text(suggestion);
        });
    });
    Ok(())
}

/// Misspelled words. The scores of suggestions are numbers of documents.
struct Found {
    documents: usize,
    /// FULLSCOREINFO.
    counts: bool,
    words: Vec<Misspelling>,
}

impl Found {
    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (documents, counts) = (reader.number()? as usize, reader.flag()?);
        let words = reader.list(|reader| {
            let word = reader.text()?.into();
            let suggestions = reader.list(|reader| Ok((reader.double()?, reader.text()?.into())))?;
            Ok(Misspelling { word, suggestions })
        })?;
        Ok(Self { documents, counts, words })
    }
}

/// A word is wrong if no node has it.
fn merge(parts: Vec<Found>) -> Found {
    let mut all = Found { documents: 0, counts: parts.iter().any(|part| part.counts), words: Vec::new() };
    all.documents = parts.iter().map(|part| part.documents).sum();
    for wrong in parts.first().into_iter().flat_map(|part| &part.words) {
        let same = |part: &Found| part.words.iter().find(|other| other.word == wrong.word).cloned();
        let Some(found) = parts.iter().map(same).collect::<Option<Vec<_>>>() else { continue };
        let mut counts = BTreeMap::<Box<[u8]>, f64>::new();
        for (count, suggestion) in found.into_iter().flat_map(|found| found.suggestions) {
            *counts.entry(suggestion).or_default() += count;
        }
        let mut suggestions: Vec<_> = counts.into_iter().map(|(suggestion, count)| (count, suggestion)).collect();
        suggestions.sort_by(|one, other| other.0.total_cmp(&one.0));
        all.words.push(Misspelling { word: wrong.word.clone(), suggestions });
    }
    all
}

fn look_up(cx: &Ctx<'_>, args: Args<'_>) -> Result<Found> {
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
    let (mut words, documents) = (engine.spell_check(&query, &options), engine.len());
    let suggestions = words.iter_mut().flat_map(|found| &mut found.suggestions);
    suggestions.for_each(|(score, _)| *score = (*score * documents as f64).round());
    Ok(Found { documents, counts, words })
}

fn is_option(word: &[u8]) -> bool {
    ["DISTANCE", "TERMS", "DIALECT", "FULLSCOREINFO"].iter().any(|name| name.as_bytes().eq_ignore_ascii_case(word))
}

fn dictionary(cx: &Ctx<'_>, name: &[u8]) -> Result<Arc<WordList>> {
    cx.instance().search.dictionary(name).ok_or(Error::Static("the given dictionary could not be opened"))
}

/// Scores are shares of all documents; with the number of `documents` they count them, and the number stands first.
fn show(reply: &mut Reply, found: &[Misspelling], documents: Option<usize>) {
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
                reply.double(*score);
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
            reply.double(*score);
            reply.bulk(suggestion);
        }
    }
}

//! Answers in RESP2 and RESP3.

use query_engine::{Explanation, Hit, SortKey};

use super::expand;
use super::find::Request;
use super::load::{Loaded, Shown};
use crate::command::Result;
use crate::exec::core::Ctx;
use crate::protocol::Reply;
use crate::protocol::number::format_f64;
use crate::search::{Definition, SearchIndex};

/// The head of an answer's map in RESP3, up to its results, whose values are those of FORMAT EXPAND if it `expands`; `entries` more follow the warnings.
pub(super) fn begin_map(reply: &mut Reply, total: u64, (results, expands): (usize, bool), entries: usize) {
    reply.map(5 + entries);
    reply.simple("attributes");
    reply.array(0);
    reply.simple("total_results");
    reply.int(total as i64);
    reply.simple("format");
    reply.simple(if expands { "EXPAND" } else { "STRING" });
    reply.simple("results");
    reply.array(results);
}

/// The end of such a map.
pub(super) fn end_map(reply: &mut Reply, is_partial: bool, failure: Option<&str>) {
    reply.simple("warning");
    reply.array(usize::from(is_partial) + usize::from(failure.is_some()));
    if is_partial {
        reply.simple("Timeout limit was reached");
    }
    failure.into_iter().for_each(|why| reply.simple(why));
}

/// Writes the answer of FT.SEARCH.
pub(super) fn hits(cx: &mut Ctx<'_>, index: &SearchIndex, request: &Request<'_>, loaded: &Loaded) -> Result {
    hits_and(cx, index, request, loaded, 0)
}

/// [`hits`], of a map that has so many entries more.
pub(super) fn hits_and(
    cx: &mut Ctx<'_>,
    index: &SearchIndex,
    request: &Request<'_>,
    loaded: &Loaded,
    entries: usize,
) -> Result {
    let Loaded { hits, documents, payloads } = loaded;
    let payload = |at: usize| payloads.get(at).and_then(Option::as_deref);
    // A document may have gone since it was found.
    let has_documents = !documents.is_empty();
    let is_gone = |at: usize| has_documents && documents[at].is_none();
    let gone = (0..hits.hits.len()).filter(|at| is_gone(*at)).count();
    let (count, total) = (hits.hits.len() - gone, hits.total.saturating_sub(gone as u64));
    let is_numeric = |hit: &Hit| matches!(hit.sort_key, Some(SortKey::Number(_)));
    let definition = index.definition();
    let reply = &mut *cx.reply;
    let shown = hits.hits.iter().enumerate().filter(|(at, _)| !is_gone(*at));
    if reply.is_resp3() {
        begin_map(reply, total, (count, request.common.expands), entries);
        for (at, hit) in shown {
            let document = documents.get(at).and_then(Option::as_ref);
            let parts = [request.shows_scores(), request.with_payloads, request.shows_keys(), document.is_some()];
            reply.map(2 + parts.iter().filter(|part| **part).count());
            reply.simple("id");
            reply.bulk(&hit.id);
            each(reply, request, (hit, payload(at)), is_numeric(hit), Some(["score", "payload", "sortkey"]));
            if let Some(document) = document {
                reply.simple("extra_attributes");
                if request.common.expands {
                    expanded(reply, &definition, request, hit, document);
                } else {
                    fields(reply, document);
                }
            }
            reply.simple("values");
            reply.array(0);
        }
        end_map(reply, hits.is_partial, None);
        return Ok(());
    }
    let parts = [request.shows_scores(), request.with_payloads, request.shows_keys(), has_documents];
    reply.array(1 + count * (1 + parts.iter().filter(|part| **part).count()));
    reply.int(total as i64);
    for (at, hit) in shown {
        reply.bulk(&hit.id);
        each(reply, request, (hit, payload(at)), is_numeric(hit), None);
        if let Some(document) = documents.get(at).and_then(Option::as_ref) {
            fields(reply, document);
        }
    }
    Ok(())
}

impl Request<'_> {
    fn shows_scores(&self) -> bool {
        self.with_scores
    }

    fn shows_keys(&self) -> bool {
        self.with_sort_keys
    }

    /// The distance that a hit is sorted by.
    fn distance(&self, hit: &Hit) -> Option<f64> {
        let (name, _) = self.sort_by?;
        hit.distances.iter().find(|(known, _)| known == name).map(|(_, distance)| *distance)
    }
}

/// The parts of a hit besides its id and its document, each behind its name if there are any.
fn each(
    reply: &mut Reply,
    request: &Request<'_>,
    (hit, payload): (&Hit, Option<&[u8]>),
    is_numeric: bool,
    names: Option<[&str; 3]>,
) {
    let name = |reply: &mut Reply, at: usize| names.into_iter().for_each(|names| reply.simple(names[at]));
    if request.shows_scores() {
        name(reply, 0);
        match hit.explanation.as_ref().filter(|_| request.explains) {
            Some(explanation) => {
                reply.array(2);
                reply.double(hit.score);
                explained(reply, explanation);
            }
            None => reply.double(hit.score),
        }
    }
    if request.with_payloads {
        name(reply, 1);
        match payload {
            Some(payload) => reply.bulk(payload),
            None => reply.null(),
        }
    }
    if request.shows_keys() {
        name(reply, 2);
        match &hit.sort_key {
            Some(SortKey::Number(number)) if is_numeric => {
                reply.bulk(&[b"#", &*format_f64(*number)].concat());
            }
            Some(SortKey::Text(text)) => reply.bulk(&[b"$", &**text].concat()),
            _ => match request.distance(hit) {
                Some(distance) => reply.bulk(&[b"#", &*format_f64(distance)].concat()),
                None => reply.null(),
            },
        }
    }
}

/// An explanation: a line, or a list of a line and its parts.
fn explained(reply: &mut Reply, explanation: &Explanation) {
    if explanation.parts.is_empty() {
        return reply.simple(&explanation.text);
    }
    reply.array(2);
    reply.simple(&explanation.text);
    reply.array(explanation.parts.len());
    explanation.parts.iter().for_each(|part| explained(reply, part));
}

/// Names and values: a map in RESP3, a list in RESP2.
pub(super) fn fields(reply: &mut Reply, fields: &Shown) {
    reply.map(fields.len());
    for (name, value) in fields {
        reply.bulk(name);
        reply.bulk(value);
    }
}

/// [`fields`] for FORMAT EXPAND.
fn expanded(reply: &mut Reply, definition: &Definition, request: &Request<'_>, hit: &Hit, fields: &Shown) {
    reply.map(fields.len());
    for (name, value) in fields {
        reply.bulk(name);
        expand::field(reply, definition, request, hit, (name, value));
    }
}

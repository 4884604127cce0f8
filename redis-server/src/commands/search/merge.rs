//! The parts of an answer that the nodes of a cluster give become one.
//!
//! Parts stand in the order of the nodes' names. Documents that are equal stay in this order, so that pages fit together.

use std::cmp::Ordering;
use std::collections::HashSet;

use query_engine::{Hit, Hits, Part, Query, Rows, SortKey};

use super::find::{self, Request};
use super::load::Loaded;
use super::lookup::queried;
use super::query::{TIME_IS_OVER, check_time};
use super::show;
use super::wire::Reader;
use super::words::Words;
use super::{gathered, load, pipeline};
use crate::command::{Args, Result};
use crate::exec::core::Ctx;
use crate::protocol::error::Error;
use crate::search::SearchIndex;

/// The order of an answer of FT.SEARCH.
enum Order {
    Scores,
    /// Rising or falling.
    Keys(bool),
    Distances(String, bool),
}

impl Order {
    fn of(request: &Request<'_>, query: &Query) -> Self {
        match request.sort_by {
            None => Self::Scores,
            Some((name, rises)) if query.distance_names().contains(&name) => Self::Distances(name.to_owned(), rises),
            Some((_, rises)) => Self::Keys(rises),
        }
    }

    fn compare(&self, one: &Hit, other: &Hit) -> Ordering {
        match self {
            Self::Scores => {
                // A score that is no number counts as none.
                let rank = |hit: &Hit| if hit.score.is_nan() { 0.0 } else { hit.score };
                rank(other).total_cmp(&rank(one))
            }
            Self::Keys(rises) => {
                let (one, other) = (key(one), key(other));
                // Documents without a value are last in either direction.
                let by_key = if *rises { one.order(other) } else { other.order(one) };
                (*one == SortKey::Missing).cmp(&(*other == SortKey::Missing)).then(by_key)
            }
            Self::Distances(name, rises) => {
                let (one, other) = (distance(one, name), distance(other, name));
                if *rises { one.total_cmp(&other) } else { other.total_cmp(&one) }
            }
        }
    }
}

fn key(hit: &Hit) -> &SortKey {
    hit.sort_key.as_ref().unwrap_or(&SortKey::Missing)
}

fn distance(hit: &Hit, name: &str) -> f64 {
    hit.distances.iter().find(|(known, _)| known == name).map_or(f64::INFINITY, |(_, distance)| *distance)
}

/// A hit with its document and its payload.
type Found = (Hit, Option<load::Shown>, Option<Vec<u8>>);

/// `FT.SEARCH index query [option …]`: the answer of this node, or of the parts of all nodes.
pub(super) fn search(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let parts = gathered::parts(cx, args)?;
    let index = queried(cx, args)?;
    let request = Request::parse(cx, args.at(2), Words::new(args, 3))?;
    match parts {
        Some(parts) => answer(cx, &index, &request, &parts, 0),
        None => find::answer(cx, &index, &request),
    }
}

/// Writes the answer; `entries` more follow in the map of RESP3.
pub(super) fn answer(
    cx: &mut Ctx<'_>,
    index: &SearchIndex,
    request: &Request<'_>,
    parts: &[Vec<u8>],
    entries: usize,
) -> Result {
    let query = request.parsed(&index.engine())?;
    let loaded = merged(request, &query, parts)?;
    if entries == 0 {
        if loaded.hits.is_partial && request.counts_alone {
            return Err(TIME_IS_OVER);
        }
        check_time(cx, loaded.hits.is_partial)?;
    }
    show::hits_and(cx, index, request, &loaded, entries)
}

fn merged(request: &Request<'_>, query: &Query, parts: &[Vec<u8>]) -> Result<Loaded> {
    let (mut total, mut is_partial, mut found, mut known) = (0, false, Vec::<Found>::new(), HashSet::new());
    for part in parts {
        if part.is_empty() {
            is_partial = true;
            continue;
        }
        let Loaded { hits, documents, payloads } = Reader::new(part).loaded()?;
        total += hits.total;
        is_partial |= hits.is_partial;
        let (mut documents, mut payloads) = (documents.into_iter(), payloads.into_iter());
        for hit in hits.hits {
            let (document, payload) = (documents.next().flatten(), payloads.next().flatten());
            if known.insert(hit.id.clone()) {
                found.push((hit, document, payload));
            } else {
                total = total.saturating_sub(1);
            }
        }
    }
    if let (Some(name), Some(count)) = (query.nearest_name(), query.nearest_count()) {
        found.sort_by(|one, other| distance(&one.0, name).total_cmp(&distance(&other.0, name)));
        found.truncate(count);
        total = total.min(count as u64);
    }
    let order = Order::of(request, query);
    found.sort_by(|one, other| order.compare(&one.0, &other.0));
    let (offset, limit) = request.limit;
    let has_documents = !request.wants_no_documents();
    let mut loaded =
        Loaded { hits: Hits { total, hits: Vec::new(), is_partial }, documents: Vec::new(), payloads: Vec::new() };
    for (hit, document, payload) in found.into_iter().skip(offset).take(limit) {
        loaded.hits.hits.push(hit);
        loaded.documents.extend(has_documents.then_some(document));
        loaded.payloads.push(payload);
    }
    Ok(loaded)
}

/// The rows of FT.AGGREGATE from the parts of all nodes.
pub(super) fn rows(
    cx: &Ctx<'_>,
    index: &SearchIndex,
    request: &pipeline::Request<'_>,
    parts: &[Vec<u8>],
) -> Result<Rows> {
    let rows = all_rows(index, request, parts)?;
    check_time(cx, rows.is_partial())?;
    Ok(rows)
}

/// [`rows`] that do not fail at the end of the time.
pub(super) fn all_rows(index: &SearchIndex, request: &pipeline::Request<'_>, parts: &[Vec<u8>]) -> Result<Rows> {
    let late = || Part { is_partial: true, ..Part::default() };
    let read = |part: &Vec<u8>| if part.is_empty() { Ok(late()) } else { Reader::new(part).part() };
    let parts: Vec<Part> = parts.iter().map(read).collect::<Result<_>>()?;
    let query = request.common.parse(&index.engine(), request.query)?;
    let nearest = query.nearest_name().zip(query.nearest_count());
    Part::aggregate(parts, &request.steps, nearest).map_err(|error| Error::Message(error.to_string()))
}

//! FT.SEARCH: the best documents of a query, or the first by a field.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::build::Context;
use super::matches::{Boxed, virtual_record};
use super::profile::Profiler;
use super::score::{Explanation, Level, Scorer, Scoring};
use super::vectors::Distances;
use crate::index::Index;
use crate::index::docs::{Doc, SortKey};
use crate::index::postings::DocNumber;
use crate::query::Query;
use crate::schema::FieldId;
use crate::text::FoundWord;

/// How far a query may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The shortest text of `word*` (bytes), RediSearch's MINPREFIX.
    pub min_prefix: usize,
    /// The most words that one pattern stands for, RediSearch's MAXEXPANSIONS.
    pub max_expansions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { min_prefix: 2, max_expansions: 200 }
    }
}

/// SORTBY.
#[derive(Clone, Copy)]
pub struct SortBy<'o> {
    /// The field.
    pub field: FieldId,
    /// The lowest first.
    pub ascending: bool,
    /// Gives the value of a field that is not sortable, by the document's id. Without it such documents have none.
    pub load: Option<&'o Load<'o>>,
}

/// SORTBY a distance that the query yields.
#[derive(Clone, Copy, Debug)]
pub struct DistanceOrder<'o> {
    /// The distance's name, one of [`Query::distance_names`].
    pub name: &'o str,
    /// The nearest first.
    pub ascending: bool,
}

/// Says of which documents a query is, by their ids.
pub type Keep<'o> = dyn Fn(&[u8]) -> bool + 'o;

/// Gives a field's value by a document's id.
pub type Load<'o> = dyn Fn(&[u8]) -> SortKey + 'o;

/// How matches are scored, sorted and cut.
#[derive(Clone, Copy)]
pub struct SearchOptions<'o> {
    /// The first of the sorted documents that is given.
    pub offset: usize,
    /// The most documents that are given; 0 counts alone.
    pub limit: usize,
    /// How well a document matches.
    pub scorer: Scorer,
    /// The version whose constants scorers use.
    pub level: Level,
    /// Explain scores (EXPLAINSCORE).
    pub explain: bool,
    /// Bytes for [`Scorer::Hamming`].
    pub payload: &'o [u8],
    /// Sort by a field instead of by scores, which are then 0 unless [`Self::with_scores`].
    pub sort_by: Option<SortBy<'o>>,
    /// Sort by a distance instead of by a field or scores. As in RediSearch, `=>[KNN …]` alone does not ask for that:
    /// [`Query::nearest_name`] is its distance.
    pub sort_by_distance: Option<DistanceOrder<'o>>,
    /// Score although the order is a field's.
    pub with_scores: bool,
    /// Name the words that each document was found by, for [`crate::highlight`] and
    /// [`crate::summarize`].
    pub with_words: bool,
    /// The most words between those of an intersection (SLOP).
    pub slop: Option<u32>,
    /// Words must stand in the query's order (INORDER).
    pub in_order: bool,
    /// How far patterns reach.
    pub limits: Limits,
    /// Ends the query when it returns `true`; asked once per hundred documents and per pattern. The clock is the caller's.
    pub is_over: Option<&'o dyn Fn() -> bool>,
    /// Watches the query.
    pub profiler: Option<&'o Profiler>,
    /// Leaves only documents of which it returns `true`, by their ids; the nearest ones are looked for among these.
    pub keeps: Option<&'o Keep<'o>>,
}

impl Default for SearchOptions<'_> {
    fn default() -> Self {
        Self {
            offset: 0,
            limit: 10,
            scorer: Scorer::default(),
            level: Level::default(),
            explain: false,
            payload: &[],
            sort_by: None,
            sort_by_distance: None,
            with_scores: false,
            with_words: false,
            slop: None,
            in_order: false,
            limits: Limits::default(),
            is_over: None,
            profiler: None,
            keeps: None,
        }
    }
}

/// One document of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Its id.
    pub id: Arc<[u8]>,
    /// How well it matches.
    pub score: f64,
    /// The value that it is sorted by.
    pub sort_key: Option<SortKey>,
    /// How the score came about, if asked.
    pub explanation: Option<Explanation>,
    /// The words of texts that it was found by, if asked.
    pub words: Vec<FoundWord>,
    /// The distances of vector queries by their names.
    pub distances: Vec<(String, f64)>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Hits {
    /// All documents that match.
    pub total: u64,
    /// Those of the window that was asked for, in their order.
    pub hits: Vec<Hit>,
    /// The query was ended by [`SearchOptions::is_over`]; the hits are those found until then.
    pub is_partial: bool,
}

/// Why a query is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchError {
    /// The window reaches behind [`MAX_WINDOW`].
    Window,
}

/// The most documents in front of a window's end, RediSearch's MAXSEARCHRESULTS.
pub const MAX_WINDOW: usize = 1_000_000;

impl fmt::Display for SearchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LIMIT exceeds maximum of {MAX_WINDOW}")
    }
}

impl std::error::Error for SearchError {}

/// A match as a row needs it.
pub(crate) struct Match<'m> {
    pub(crate) doc: &'m Doc,
    pub(crate) score: f64,
    /// Gives the distance of a name.
    pub(crate) distance: &'m dyn Fn(&str) -> Option<f64>,
    /// Gives the words that it was found by.
    pub(crate) words: &'m dyn Fn() -> Vec<FoundWord>,
}

/// Documents between two questions of [`SearchOptions::is_over`].
const ASK_EVERY: u64 = 100;

/// A match with what it is ordered by.
struct Candidate {
    number: DocNumber,
    score: f64,
    sort_key: Option<SortKey>,
    distance: Option<f64>,
    explanation: Option<Explanation>,
    words: Vec<FoundWord>,
}

impl Candidate {
    fn normalize(&mut self, greatest: f64) {
        let (old, new) = (self.score, self.score / greatest);
        self.score = new;
        if let Some(explanation) = &mut self.explanation {
            explanation.text =
                format!("Final BM25STD.NORM: {new:.2} = Original Score: {old:.2} / Max Score: {greatest:.2}");
        }
    }
}

impl Index {
    /// Answers a query that was parsed for this index' schema.
    ///
    /// # Errors
    /// When the window is too far behind.
    pub fn search(&self, query: &Query, options: &SearchOptions<'_>) -> Result<Hits, SearchError> {
        let window = options.offset.saturating_add(options.limit);
        if window > MAX_WINDOW {
            return Err(SearchError::Window);
        }
        let distances = RefCell::default();
        let mut collector = Collector { options, kept: Vec::new(), window, greatest: 0.0 };
        let (total, is_partial) = self.each_match(query, options, &distances, &mut |matches, number, doc, scoring| {
            if window > 0 {
                collector.offer(candidate(options, scoring, matches, &distances.borrow(), number, doc));
            }
        });
        let (kept, distances) = (collector.finish(), distances.borrow());
        let hits = kept.into_iter().skip(options.offset).filter_map(|candidate| {
            let id = Arc::clone(&self.docs().get(candidate.number)?.id);
            let Candidate { score, sort_key, explanation, words, .. } = candidate;
            Some(Hit { id, score, sort_key, explanation, words, distances: distances.of(candidate.number) })
        });
        Ok(Hits { total, hits: if options.limit == 0 { Vec::new() } else { hits.collect() }, is_partial })
    }

    /// Calls `each` for every live match, with its score if that is asked; returns whether the query was ended before.
    pub(crate) fn each_scored(
        &self,
        query: &Query,
        options: &SearchOptions<'_>,
        with_scores: bool,
        each: &mut dyn FnMut(&Match<'_>),
    ) -> bool {
        let options = SearchOptions { explain: false, ..*options };
        let distances = RefCell::default();
        let (_, is_partial) = self.each_match(query, &options, &distances, &mut |matches, number, doc, scoring| {
            let score = if with_scores { score(scoring, matches, doc).0 } else { 0.0 };
            let distance = |name: &str| distances.borrow().get(name, number);
            each(&Match { doc, score, distance: &distance, words: &|| matches.record().words() });
        });
        is_partial
    }

    /// Calls `each` for every live match; returns how many there were and whether the query was ended before.
    fn each_match<'i>(
        &'i self,
        query: &Query,
        options: &SearchOptions<'_>,
        distances: &RefCell<Distances>,
        each: &mut dyn FnMut(&Boxed<'i>, DocNumber, &'i Doc, &Scoring<'_>),
    ) -> (u64, bool) {
        let SearchOptions { limits, slop, in_order, keeps, .. } = *options;
        let was_over = Cell::new(false);
        let (is_over, was_over) = (options.is_over, &was_over);
        let clock = options.profiler.map(|profiler| profiler.clock);
        let context = Context { index: self, limits, slop, in_order, is_over, was_over, distances, clock, keeps };
        let scoring = Scoring {
            scorer: options.scorer,
            level: options.level,
            average_length: self.docs().average_length(),
            payload: options.payload,
            explain: options.explain,
        };
        let mut matches = context.build(query.root());
        let finish = |matches: &Boxed<'_>, total: u64, is_partial: bool| {
            options.profiler.into_iter().for_each(|profiler| profiler.finish(matches, total));
            (total, is_partial)
        };
        if was_over.get() {
            return finish(&matches, 0, true);
        }
        let (mut total, mut seen, mut target) = (0, 0, 1);
        while let Some(number) = matches.seek(target) {
            target = number + 1;
            seen += 1;
            if seen % ASK_EVERY == 0 && options.is_over.is_some_and(|is_over| is_over()) {
                return finish(&matches, total, true);
            }
            if let Some(doc) = self.docs().get(number).filter(|doc| keeps.is_none_or(|keeps| keeps(&doc.id))) {
                total += 1;
                each(&matches, number, doc, &scoring);
            }
        }
        finish(&matches, total, false)
    }
}

fn candidate(
    options: &SearchOptions<'_>,
    scoring: &Scoring<'_>,
    matches: &Boxed<'_>,
    distances: &Distances,
    number: DocNumber,
    doc: &Doc,
) -> Candidate {
    let sort_key = options.sort_by.map(|sort| match doc.sort_keys.get(sort.field) {
        Some(key) if *key != SortKey::Missing => key.clone(),
        _ => sort.load.map_or(SortKey::Missing, |load| load(&doc.id)),
    });
    let distance = options.sort_by_distance.map(|order| distances.get(order.name, number).unwrap_or(f64::INFINITY));
    let words = if options.with_words { matches.record().words() } else { Vec::new() };
    if (sort_key.is_some() || distance.is_some()) && !options.with_scores && !options.explain {
        return Candidate { number, score: 0.0, sort_key, distance, explanation: None, words };
    }
    let (score, explanation) = score(scoring, matches, doc);
    Candidate { number, score, sort_key, distance, explanation: options.explain.then_some(explanation), words }
}

fn score(scoring: &Scoring<'_>, matches: &Boxed<'_>, doc: &Doc) -> (f64, Explanation) {
    let record = if scoring.needs_record() { matches.record() } else { virtual_record() };
    scoring.score(&record, doc)
}

/// Keeps the first documents of the order, with at most as many again before it sorts them out.
struct Collector<'o> {
    options: &'o SearchOptions<'o>,
    kept: Vec<Candidate>,
    window: usize,
    /// The greatest score of all that were offered.
    greatest: f64,
}

impl Collector<'_> {
    fn offer(&mut self, candidate: Candidate) {
        self.greatest = self.greatest.max(candidate.score);
        self.kept.push(candidate);
        // Sorting out at twice the window costs a constant per document, as a heap does, and moves less.
        if self.kept.len() >= self.window.saturating_mul(2).max(64) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.kept.len() > self.window {
            let options = self.options;
            self.kept.select_nth_unstable_by(self.window - 1, |one, other| order(options, one, other));
            self.kept.truncate(self.window);
        }
    }

    fn finish(mut self) -> Vec<Candidate> {
        let options = self.options;
        if self.window > 0 {
            self.cut();
        }
        self.kept.sort_unstable_by(|one, other| order(options, one, other));
        if options.scorer == Scorer::Bm25StdNorm && self.greatest > 0.0 {
            let greatest = self.greatest;
            self.kept.iter_mut().for_each(|candidate| candidate.normalize(greatest));
        }
        self.kept
    }
}

/// The order of an answer. Documents that are equal stand as they were put in; falling order turns this round, as in
/// RediSearch.
fn order(options: &SearchOptions<'_>, one: &Candidate, other: &Candidate) -> Ordering {
    let by_number = one.number.cmp(&other.number);
    if let (Some(order), Some(one), Some(other)) = (&options.sort_by_distance, one.distance, other.distance) {
        let rising = one.total_cmp(&other).then(by_number);
        return if order.ascending { rising } else { rising.reverse() };
    }
    let (Some(sort), Some(one_key), Some(other_key)) = (&options.sort_by, &one.sort_key, &other.sort_key) else {
        // A score that is no number counts as none.
        let rank = |score: f64| if score.is_nan() { 0.0 } else { score };
        return rank(other.score).total_cmp(&rank(one.score)).then(by_number);
    };
    // Documents without a value are last in either direction.
    let (is_missing, other_is_missing) = (*one_key == SortKey::Missing, *other_key == SortKey::Missing);
    let rising = one_key.order(other_key).then(by_number);
    is_missing.cmp(&other_is_missing).then(if sort.ascending { rising } else { rising.reverse() })
}

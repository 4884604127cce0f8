//! FT.SEARCH: the best documents of a query, or the first by a field.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::build::Context;
use super::matches::{Boxed, virtual_record};
use super::profile::Profiler;
use super::record::Record;
use super::score::{Explanation, Level, Scorer, Scoring};
use super::vectors::Distances;
use crate::index::Index;
use crate::index::docs::{Found, SortKey};
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
pub(crate) struct Match<'i, 'm> {
    pub(crate) document: Found<'i>,
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
        if let Some(hits) = self.by_number(query, options) {
            return Ok(hits);
        }
        let distances = RefCell::default();
        let slot = options.sort_by.and_then(|sort| self.schema().sort_slot(sort.field));
        let mut collector = Collector { options, slot, kept: Vec::new(), window, last: None, greatest: 0.0 };
        let (total, is_partial) = self.each_match(query, options, &distances, &mut |matches, found, scoring| {
            if window > 0 {
                collector.offer(matches, found, scoring, &distances.borrow());
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
    pub(crate) fn each_scored<'i>(
        &'i self,
        query: &Query,
        options: &SearchOptions<'_>,
        with_scores: bool,
        each: &mut dyn FnMut(&Match<'i, '_>),
    ) -> bool {
        let options = SearchOptions { explain: false, ..*options };
        let distances = RefCell::default();
        let (_, is_partial) = self.each_match(query, &options, &distances, &mut |matches, found, scoring| {
            let score = if with_scores { score(scoring, matches, found) } else { 0.0 };
            let distance = |name: &str| distances.borrow().get(name, found.number);
            each(&Match { document: *found, score, distance: &distance, words: &|| matches.record().words() });
        });
        is_partial
    }

    /// Calls `each` for every live match; returns how many there were and whether the query was ended before.
    fn each_match<'i>(
        &'i self,
        query: &Query,
        options: &SearchOptions<'_>,
        distances: &RefCell<Distances>,
        each: &mut dyn FnMut(&Boxed<'i>, &Found<'i>, &Scoring<'_>),
    ) -> (u64, bool) {
        let SearchOptions { limits, slop, in_order, keeps, .. } = *options;
        let was_over = Cell::new(false);
        let (is_over, was_over) = (options.is_over, &was_over);
        let clock = options.profiler.map(|profiler| profiler.clock);
        let context = Context { index: self, limits, slop, in_order, is_over, was_over, distances, clock, keeps };
        let scoring = Scoring::new(options, self.docs().average_length());
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
            let found = self.docs().find(number);
            if let Some(found) = found.filter(|found| keeps.is_none_or(|keeps| keeps(&found.doc().id))) {
                total += 1;
                each(&matches, &found, &scoring);
            }
        }
        finish(&matches, total, false)
    }
}

fn score(scoring: &Scoring<'_>, matches: &Boxed<'_>, found: &Found<'_>) -> f64 {
    if scoring.is_plain_sum() {
        f64::from(found.brief.score) * matches.bm25std(scoring, found.brief)
    } else {
        scoring.score(&record(scoring, matches), found).0
    }
}

/// The part of a match that the scorer reads.
fn record<'m>(scoring: &Scoring<'_>, matches: &'m Boxed<'_>) -> Record<'m> {
    if scoring.needs_record() { matches.record() } else { virtual_record() }
}

/// Keeps the first documents of the order, with at most as many again before it sorts them out.
struct Collector<'o> {
    options: &'o SearchOptions<'o>,
    /// The place of the field that is sorted by among the sortable ones.
    slot: Option<usize>,
    kept: Vec<Candidate>,
    window: usize,
    /// The last document of a full window: others have to be in front of it.
    last: Option<Bound>,
    /// The greatest score of all that were offered.
    greatest: f64,
}

/// The last document of a full window. Those that follow have higher numbers, so one that is equal to it is behind it, or, in falling order, in front.
enum Bound {
    Score(f64),
    Key(SortKey),
    Distance(f64),
}

impl Collector<'_> {
    fn offer(&mut self, matches: &Boxed<'_>, found: &Found<'_>, scoring: &Scoring<'_>, distances: &Distances) {
        let options = self.options;
        let is_sorted = options.sort_by.is_some() || options.sort_by_distance.is_some();
        let needs_score = !is_sorted || options.with_scores || options.explain;
        let score = if needs_score { score(scoring, matches, found) } else { 0.0 };
        self.greatest = self.greatest.max(score);
        let number = found.number;
        let distance = options.sort_by_distance.map(|order| distances.get(order.name, number).unwrap_or(f64::INFINITY));
        let loaded;
        let sort_key = match options.sort_by {
            None => None,
            Some(sort) => Some(match found.sort_key(self.slot) {
                SortKey::Missing => {
                    loaded = sort.load.map_or(SortKey::Missing, |load| load(&found.doc().id));
                    &loaded
                }
                key => key,
            }),
        };
        if self.is_behind(score, sort_key, distance) {
            return;
        }
        let words = if options.with_words { matches.record().words() } else { Vec::new() };
        let explanation = options.explain.then(|| scoring.score(&record(scoring, matches), found).1);
        self.kept.push(Candidate { number, score, sort_key: sort_key.cloned(), distance, explanation, words });
        // Sorting out at twice the window costs a constant per document, as a heap does, and moves less.
        if self.kept.len() >= self.window.saturating_mul(2).max(64) {
            self.cut();
        }
    }

    /// True if a document is no part of the window, whatever follows.
    fn is_behind(&self, score: f64, sort_key: Option<&SortKey>, distance: Option<f64>) -> bool {
        match (&self.last, &self.options.sort_by, &self.options.sort_by_distance) {
            (None, _, _) => false,
            (Some(Bound::Score(last)), _, _) => rank(score).total_cmp(last).is_le(),
            (Some(Bound::Distance(last)), _, Some(by)) => {
                let order = |distance: f64| {
                    if by.ascending { distance.total_cmp(last).is_ge() } else { distance.total_cmp(last).is_lt() }
                };
                distance.is_some_and(order)
            }
            (Some(Bound::Key(last)), Some(by), _) => {
                sort_key.is_some_and(|key| by_key(by, key, last, Ordering::Greater).is_gt())
            }
            (Some(_), _, _) => false,
        }
    }

    fn cut(&mut self) {
        if self.kept.len() > self.window {
            let options = self.options;
            self.kept.select_nth_unstable_by(self.window - 1, |one, other| order(options, one, other));
            self.kept.truncate(self.window);
            self.last = self.kept.last().map(|last| match (&last.sort_key, last.distance) {
                (_, Some(distance)) => Bound::Distance(distance),
                (Some(key), _) => Bound::Key(key.clone()),
                (None, None) => Bound::Score(rank(last.score)),
            });
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
        return rank(other.score).total_cmp(&rank(one.score)).then(by_number);
    };
    by_key(sort, one_key, other_key, by_number)
}

/// A score that is no number counts as none.
fn rank(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// The order by a field. Documents without a value are last in either direction.
fn by_key(sort: &SortBy<'_>, one: &SortKey, other: &SortKey, by_number: Ordering) -> Ordering {
    let (is_missing, other_is_missing) = (*one == SortKey::Missing, *other == SortKey::Missing);
    let rising = one.order(other).then(by_number);
    is_missing.cmp(&other_is_missing).then(if sort.ascending { rising } else { rising.reverse() })
}

//! FT.HYBRID: the answers of a text query and of a vector query become one, whose rows go through steps.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::rows::Table;
use super::{AggregateError, Aggregation, KEY, Rows, SCORE, kept, rows, source_columns};
use crate::eval::{DistanceOrder, MAX_WINDOW, SearchError, SearchOptions};
use crate::expr::Datum;
use crate::index::Index;
use crate::query::Query;
use crate::vector::Metric;

/// How two answers give a document one score (COMBINE).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fusion {
    /// Reciprocal rank fusion: the sum of 1 ÷ (constant + rank).
    Ranks {
        /// The greater, the less the first ranks count.
        constant: f64,
    },
    /// The weighted sum of the text's score and of the vector's similarity.
    Scores {
        /// The weight of the text.
        text: f64,
        /// The weight of the vector.
        vector: f64,
    },
}

/// A text query and a vector query.
#[derive(Clone, Copy, Debug)]
pub struct Hybrid<'a> {
    /// The text query.
    pub text: &'a Query,
    /// `=>[KNN …]`, or a range, with a name for the distance.
    pub near: &'a Query,
    /// How scores are made.
    pub fusion: Fusion,
    /// The most documents of each answer that count.
    pub window: usize,
}

/// The properties that scores become (YIELD_SCORE_AS).
#[derive(Clone, Copy, Debug)]
pub struct ScoreNames<'a> {
    /// The text's score.
    pub text: Option<&'a str>,
    /// The vector's similarity.
    pub vector: Option<&'a str>,
    /// The score of both: [`SCORE`], which rows have if a step reads it, or another name, which they always have.
    pub both: &'a str,
}

/// A document of both answers, or of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Fused {
    /// Its id.
    pub id: Arc<[u8]>,
    /// The score of both.
    pub score: f64,
    /// The text's score.
    pub text: Option<f64>,
    /// The vector's similarity.
    pub vector: Option<f64>,
}

impl Index {
    /// Runs documents of [`Index::fuse`] through a pipeline.
    ///
    /// # Errors
    /// As [`Index::aggregate`].
    pub fn aggregate_fused(
        &self,
        documents: &[Fused],
        names: &ScoreNames<'_>,
        aggregation: &Aggregation<'_>,
    ) -> Result<Rows, AggregateError> {
        let mut columns = source_columns(aggregation);
        // Behind what is loaded, in front of what steps read.
        let mut at = columns.iter().take_while(|name| aggregation.load.contains(name)).count();
        for name in [names.text, names.vector, Some(names.both).filter(|name| *name != SCORE)].into_iter().flatten() {
            columns.retain(|known| known != name);
            at = at.min(columns.len());
            columns.insert(at, name.to_owned());
            at += 1;
        }
        let mut table = Table::new(columns);
        for document in documents {
            let value = |name: &String| match name.as_str() {
                KEY => Some(Datum::Text(Arc::clone(&document.id))),
                name if name == names.both => Some(Datum::Number(document.score)),
                name if Some(name) == names.text => document.text.map(Datum::Number),
                name if Some(name) == names.vector => document.vector.map(Datum::Number),
                name => self.property(&document.id, name, aggregation),
            };
            table.rows.push(table.columns.iter().map(value).collect());
        }
        // Scores of both answers are complete before the first row.
        table.total = documents.len() as u64;
        rows(table, false, aggregation.steps, None)
    }

    /// A property of a document: the index' value, or the document's own.
    #[must_use]
    pub fn property(&self, id: &[u8], name: &str, aggregation: &Aggregation<'_>) -> Option<Datum> {
        let slot = || self.schema().sort_slot(self.schema().find(name.as_bytes())?);
        let kept = || kept(self.docs().sort_key(self.docs().number(id)?, slot()));
        let fetched = || aggregation.fetch.and_then(|fetch| fetch(id, name));
        let is_fetched = aggregation.fetches_all || aggregation.load.iter().any(|loaded| loaded == name);
        if is_fetched { fetched().or_else(kept) } else { kept().or_else(fetched) }
    }

    /// The documents of both answers, the best ones first, and whether the query was ended by [`SearchOptions::is_over`].
    ///
    /// # Errors
    /// As [`Index::search`].
    pub fn fuse(&self, hybrid: &Hybrid<'_>, options: &SearchOptions<'_>) -> Result<(Vec<Fused>, bool), SearchError> {
        let answers = self.answers(hybrid, options)?;
        let is_partial = answers.is_partial;
        Ok((Answers::fuse(vec![answers], hybrid), is_partial))
    }

    /// Both answers of this index.
    ///
    /// # Errors
    /// As [`Index::search`].
    pub fn answers(&self, hybrid: &Hybrid<'_>, options: &SearchOptions<'_>) -> Result<Answers, SearchError> {
        let options = SearchOptions { offset: 0, limit: hybrid.window.min(MAX_WINDOW), ..*options };
        let text = self.search(hybrid.text, &options)?;
        let names = hybrid.near.distance_names();
        let Some(name) = names.first().copied() else {
            return Ok(Answers { is_partial: text.is_partial, ..Answers::default() });
        };
        let by_distance = SearchOptions { sort_by_distance: Some(DistanceOrder { name, ascending: true }), ..options };
        let near = self.search(hybrid.near, &by_distance)?;
        let metric = hybrid.near.metric(self.schema());
        let nearness = |distances: &[(String, f64)]| {
            let (_, distance) = distances.iter().find(|(known, _)| known == name)?;
            Some((*distance, similarity(metric?, *distance)))
        };
        let is_partial = text.is_partial || near.is_partial;
        let near = near.hits.into_iter().filter_map(|hit| {
            let (distance, similarity) = nearness(&hit.distances)?;
            Some((hit.id, distance, similarity))
        });
        Ok(Answers {
            text: text.hits.into_iter().map(|hit| (hit.id, hit.score)).collect(),
            near: near.collect(),
            is_partial,
        })
    }
}

/// The answers of one index to both queries of a [`Hybrid`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// The text's documents with their scores, the best ones first.
    pub text: Vec<(Arc<[u8]>, f64)>,
    /// The vector's documents with their distances and similarities, the nearest ones first.
    pub near: Vec<(Arc<[u8]>, f64, f64)>,
    /// A query was ended by [`SearchOptions::is_over`].
    pub is_partial: bool,
}

impl Answers {
    /// The documents of all answers, the best ones first.
    #[must_use]
    pub fn fuse(all: Vec<Self>, hybrid: &Hybrid<'_>) -> Vec<Fused> {
        let (mut text, mut near) = (Vec::new(), Vec::new());
        for answers in all {
            text.extend(answers.text);
            near.extend(answers.near);
        }
        let rank = |score: f64| if score.is_nan() { 0.0 } else { score };
        text.sort_by(|one, other| rank(other.1).total_cmp(&rank(one.1)));
        near.sort_by(|one, other| one.1.total_cmp(&other.1));
        let (mut known, mut near_known) = (HashSet::new(), HashSet::new());
        text.retain(|(id, _)| known.insert(Arc::clone(id)));
        near.retain(|(id, ..)| near_known.insert(Arc::clone(id)));
        text.truncate(hybrid.window);
        near.truncate(hybrid.near.nearest_count().unwrap_or(usize::MAX).min(hybrid.window));
        fuse(text.into_iter(), near.into_iter().map(|(id, _, similarity)| (id, similarity)), hybrid.fusion)
    }
}

/// A distance as RediSearch's hybrid queries show it. Of inner products it takes the distance for the product, so that far vectors have the
/// greater number.
fn similarity(metric: Metric, distance: f64) -> f64 {
    match metric {
        Metric::L2 => 1.0 / (1.0 + distance),
        Metric::InnerProduct => (1.0 + distance) / 2.0,
        Metric::Cosine => (2.0 - distance) / 2.0,
    }
}

/// Merges two answers, each with its best document first. Documents of equal scores stand as in the text's answer, those of the vector's
/// alone behind them.
fn fuse(
    text: impl Iterator<Item = (Arc<[u8]>, f64)>,
    near: impl Iterator<Item = (Arc<[u8]>, f64)>,
    fusion: Fusion,
) -> Vec<Fused> {
    let part = |rank: usize, score: f64, is_text: bool| match fusion {
        Fusion::Ranks { constant } => 1.0 / (constant + (rank + 1) as f64),
        Fusion::Scores { text, vector } => score * if is_text { text } else { vector },
    };
    let mut places: HashMap<Arc<[u8]>, usize> = HashMap::new();
    let mut documents = Vec::new();
    for (rank, (id, score)) in text.enumerate() {
        places.insert(Arc::clone(&id), documents.len());
        documents.push(Fused { id, score: part(rank, score, true), text: Some(score), vector: None });
    }
    for (rank, (id, score)) in near.enumerate() {
        let own = part(rank, score, false);
        match places.entry(id) {
            Entry::Occupied(place) => {
                let document: &mut Fused = &mut documents[*place.get()];
                document.score += own;
                document.vector = Some(score);
            }
            Entry::Vacant(place) => {
                let id = Arc::clone(place.key());
                place.insert(documents.len());
                documents.push(Fused { id, score: own, text: None, vector: Some(score) });
            }
        }
    }
    documents.sort_by(|one, other| other.score.total_cmp(&one.score));
    documents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(ids: &str) -> impl Iterator<Item = (Arc<[u8]>, f64)> {
        ids.split(' ').enumerate().map(|(at, id)| (id.as_bytes().into(), 1.0 / (at + 1) as f64))
    }

    #[test]
    fn scores_of_both_answers_add_up() {
        let shown = |fusion| {
            let fused = fuse(answer("a b c"), answer("c a d"), fusion);
            let shown = |fused: &Fused| format!("{} {:.3}", String::from_utf8_lossy(&fused.id), fused.score);
            fused.iter().map(shown).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(shown(Fusion::Ranks { constant: 1.0 }), "a 0.833, c 0.750, b 0.333, d 0.250");
        assert_eq!(shown(Fusion::Scores { text: 0.2, vector: 0.8 }), "c 0.867, a 0.600, d 0.267, b 0.100");
    }
}

//! A range of numbers that is sorted by these: its documents stand in the index in the order that is asked for.

use std::sync::Arc;

use super::search::{Hit, Hits, SearchOptions};
use crate::index::ranges::{Range, Ranges};
use crate::index::{FieldIndex, Index, SortKey};
use crate::query::{Kind, Query};
use crate::schema::FieldId;

impl Index {
    /// The answer to a query that is a range alone, sorted by the same field; `None` for any other.
    pub(super) fn by_number(&self, query: &Query, options: &SearchOptions<'_>) -> Option<Hits> {
        let (numbers, range) = self.sorted_range(query, options)?;
        let is_live = |number| self.docs().find(number).is_some();
        let total = if self.is_compact() {
            numbers.count_within(range)
        } else {
            numbers.within(range).filter(|(_, number)| is_live(*number)).count() as u64
        };
        let rises = options.sort_by.is_some_and(|sort| sort.ascending);
        let found: Box<dyn Iterator<Item = (f64, u64)>> =
            if rises { Box::new(numbers.within(range)) } else { Box::new(numbers.within(range).rev()) };
        let live = found.filter_map(|(value, number)| Some((value, self.docs().get(number)?)));
        let hits = live.skip(options.offset).take(options.limit).map(|(value, doc)| Hit {
            id: Arc::clone(&doc.id),
            score: 0.0,
            sort_key: Some(SortKey::Number(value)),
            explanation: None,
            words: Vec::new(),
            distances: Vec::new(),
        });
        Some(Hits { total, hits: hits.collect(), is_partial: false })
    }

    /// The numbers and the range of such a query, if nothing but their order counts.
    fn sorted_range(&self, query: &Query, options: &SearchOptions<'_>) -> Option<(&Ranges, Range)> {
        let Kind::Numeric { field, range } = &query.root().kind else { return None };
        let field: FieldId = field.id.filter(|id| options.sort_by.is_some_and(|sort| sort.field == *id))?;
        let asks_more = options.with_scores || options.explain || options.with_words;
        let is_watched = options.profiler.is_some() || options.keeps.is_some() || options.sort_by_distance.is_some();
        self.schema().sort_slot(field)?;
        match self.field_index(field) {
            FieldIndex::Numbers(numbers) if numbers.is_even() && !asks_more && !is_watched => Some((numbers, *range)),
            _ => None,
        }
    }
}

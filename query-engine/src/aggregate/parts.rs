//! FT.AGGREGATE over several indexes: each gives the rows of its documents, and the steps run once over all of them.

use std::collections::HashSet;
use std::sync::Arc;

use super::rows::Table;
use super::{AggregateError, Aggregation, Rows, Step, rows, steps};
use crate::eval::SearchOptions;
use crate::expr::Datum;
use crate::index::Index;
use crate::query::Query;

/// The column with the ids of documents. No property has this name.
pub(super) const ID: &str = "\0id";

/// A document's id and its properties; `None` is one that the document lacks.
pub type PartRow = (Arc<[u8]>, Vec<Option<Datum>>);

/// The rows of one index' documents before any step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// The names of properties.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<PartRow>,
    /// Documents that were found and are no row, because the first step would not leave them.
    pub left_out: u64,
    /// The query was ended by [`SearchOptions::is_over`].
    pub is_partial: bool,
}

impl Index {
    /// The part of an aggregation over several indexes that this one gives.
    #[must_use]
    pub fn part(&self, query: &Query, options: &SearchOptions<'_>, aggregation: &Aggregation<'_>) -> Part {
        let mut columns = Self::columns(query, aggregation);
        columns.push(ID.to_owned());
        let (table, is_partial) = self.table(query, options, aggregation, columns);
        let all = table.rows.len();
        // The nearest of all indexes are chosen before any step.
        let first = aggregation.steps.iter().find(|step| !matches!(step, Step::Load(_)));
        let mut table = match first.filter(|_| query.nearest_name().is_none()) {
            Some(Step::Sort { by, max }) => steps::sort(by, *max, table),
            Some(Step::Limit { offset, count }) => {
                let mut table = table;
                table.rows.truncate(offset.saturating_add(*count));
                table
            }
            _ => table,
        };
        table.columns.pop();
        let left_out = (all - table.rows.len()) as u64;
        let split = |mut row: Vec<Option<Datum>>| match row.pop().flatten() {
            Some(Datum::Text(id)) => Some((id, row)),
            _ => None,
        };
        let rows = table.rows.into_iter().filter_map(split).collect();
        Part { columns: table.columns, rows, left_out, is_partial }
    }
}

impl Part {
    /// Runs the rows of several indexes through steps, as [`Index::aggregate`] does with those of one. A document that several have counts once.
    /// `nearest` is the distance and the number of `=>[KNN …]`.
    ///
    /// # Errors
    /// As [`Index::aggregate`].
    pub fn aggregate(parts: Vec<Self>, steps: &[Step], nearest: Option<(&str, usize)>) -> Result<Rows, AggregateError> {
        let mut columns: Vec<String> = Vec::new();
        for name in parts.iter().flat_map(|part| &part.columns) {
            if !columns.contains(name) {
                columns.push(name.clone());
            }
        }
        let (mut table, mut known) = (Table::new(columns), HashSet::new());
        let (mut left_out, mut is_partial) = (0, false);
        for part in parts {
            let places: Vec<Option<usize>> =
                table.columns.iter().map(|name| part.columns.iter().position(|known| known == name)).collect();
            for (id, mut values) in part.rows {
                if known.insert(id) {
                    let value = |place: &Option<usize>| place.and_then(|place| values.get_mut(place)?.take());
                    table.rows.push(places.iter().map(value).collect());
                }
            }
            left_out += part.left_out;
            is_partial |= part.is_partial;
        }
        table.count();
        if let Some((name, count)) = nearest {
            table = steps::sort(&[(name.to_owned(), true)], Some(count), table);
            table.total = table.rows.len() as u64;
        }
        table.total += left_out;
        rows(table, is_partial, steps, None)
    }
}

//! Rows of a pipeline.

use super::AggregateError;
use crate::expr::{Datum, Row, TERMS};

/// Rows with named columns; `None` is a property that the row lacks.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Option<Datum>>>,
    /// Rows that the last step which needs all of them has seen: documents, or groups.
    pub(super) total: u64,
    /// How many of these it took to make each row. Empty if all rows are needed for the first one.
    pub(super) taken: Vec<u64>,
    /// Why no row follows the last one.
    pub(super) failure: Option<AggregateError>,
}

impl Table {
    pub(super) fn new(columns: Vec<String>) -> Self {
        Self { columns, rows: Vec::new(), total: 0, taken: Vec::new(), failure: None }
    }

    /// The rows come one after the other from here on.
    pub(super) fn count(&mut self) {
        self.total = self.rows.len() as u64;
        self.taken = (1..=self.total).collect();
    }

    /// Divides a column of numbers by the greatest of them.
    pub(super) fn normalize(&mut self, name: &str) {
        let Some(column) = self.column(name) else { return };
        let numbers = || {
            self.rows.iter().filter_map(|row| match row[column] {
                Some(Datum::Number(number)) => Some(number),
                _ => None,
            })
        };
        let greatest = numbers().fold(0.0, f64::max);
        if greatest > 0.0 {
            for row in &mut self.rows {
                if let Some(Datum::Number(number)) = &mut row[column] {
                    *number /= greatest;
                }
            }
        }
    }

    /// Ends behind so many rows.
    pub(super) fn fail(&mut self, rows: usize, why: AggregateError) {
        self.rows.truncate(rows);
        self.taken.truncate(rows);
        self.failure = Some(why);
    }

    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|known| known == name)
    }
}

/// A row with the names of its columns.
pub(super) struct Named<'t> {
    pub(super) columns: &'t [String],
    pub(super) values: &'t [Option<Datum>],
}

impl Row for Named<'_> {
    fn property(&self, name: &str) -> Option<Datum> {
        let column = self.columns.iter().position(|known| known == name)?;
        self.values[column].clone()
    }
}

/// The answer of an aggregation, read in pieces as a cursor does.
#[derive(Clone, Debug)]
pub struct Rows {
    columns: Vec<String>,
    rows: std::vec::IntoIter<Vec<Option<Datum>>>,
    total: u64,
    taken: std::vec::IntoIter<u64>,
    /// Rows that earlier pieces took.
    told: u64,
    is_partial: bool,
    failure: Option<AggregateError>,
}

impl Rows {
    pub(super) fn new(table: Table, is_partial: bool) -> Self {
        let terms = table.column(TERMS);
        let Table { mut columns, mut rows, total, taken, failure } = table;
        if let Some(at) = terms {
            columns.remove(at);
            rows.iter_mut().for_each(|row| drop(row.remove(at)));
        }
        Self { columns, rows: rows.into_iter(), total, taken: taken.into_iter(), told: 0, is_partial, failure }
    }

    /// The names of properties.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The next rows, at most `count`. `None` stands for a property that a row lacks.
    pub fn read(&mut self, count: usize) -> Vec<Vec<Option<Datum>>> {
        let last = self.taken.by_ref().take(count).last();
        self.told = if self.taken.len() == 0 { self.total } else { last.unwrap_or(self.told) };
        self.rows.by_ref().take(count).collect()
    }

    /// Rows that are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.rows.len()
    }

    /// The total that RediSearch's answer tells with the next rows. Its pipeline is lazy: behind SORTBY or GROUPBY that is all
    /// documents or groups, else those that it took to make the first row. Earlier pieces do not count.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.taken.as_slice().first().copied().unwrap_or(self.total).saturating_sub(self.told)
    }

    /// Makes the total the number of rows that are left.
    pub fn count_rows(&mut self) {
        (self.total, self.told, self.taken) = (self.rows.len() as u64, 0, Vec::new().into_iter());
    }

    /// All documents or groups that the last step which needs all of them has seen.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.total
    }

    /// Why rows are missing behind the last one: an expression has no value for the next.
    #[must_use]
    pub fn failure(&self) -> Option<&AggregateError> {
        self.failure.as_ref()
    }

    /// The query was ended by [`crate::SearchOptions::is_over`].
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }
}

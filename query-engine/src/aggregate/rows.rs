//! Rows of a pipeline.

use crate::expr::{Datum, Row};

/// Rows with named columns; `None` is a property that the row lacks.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Option<Datum>>>,
}

impl Table {
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
    is_partial: bool,
}

impl Rows {
    pub(super) fn new(table: Table, total: u64, is_partial: bool) -> Self {
        Self { columns: table.columns, rows: table.rows.into_iter(), total, is_partial }
    }

    /// The names of properties.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The next rows, at most `count`. `None` stands for a property that a row lacks.
    pub fn read(&mut self, count: usize) -> Vec<Vec<Option<Datum>>> {
        self.rows.by_ref().take(count).collect()
    }

    /// Rows that are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.rows.len()
    }

    /// Documents that the query matched.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The query was ended by [`crate::SearchOptions::is_over`].
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }
}

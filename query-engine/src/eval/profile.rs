//! FT.PROFILE: the work of a query's iterators and of an aggregation's steps.

use std::cell::{Cell, RefCell};

use super::matches::{Boxed, Matches};
use super::record::Record;
use crate::index::postings::DocNumber;

/// Watches one query. The clock is the caller's, in microseconds.
#[derive(Debug)]
pub struct Profiler {
    pub(super) clock: fn() -> u64,
    root: RefCell<Option<IteratorProfile>>,
    rows: Cell<u64>,
    steps: RefCell<Vec<StepProfile>>,
}

/// The work of one iterator of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IteratorProfile {
    /// Its kind.
    pub kind: IteratorKind,
    /// Documents at which it stood.
    pub count: u64,
    /// The time that it took, with its children (microseconds).
    pub micros: u64,
    /// The iterators that it reads.
    pub children: Vec<Self>,
}

/// The kind of an iterator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IteratorKind {
    /// Nothing.
    Empty,
    /// All documents.
    All,
    /// Documents of ids, or those that lack a field.
    Ids,
    /// Documents that the child does not find.
    Not,
    /// All documents, with the child's records.
    Optional,
    /// Documents that all children find.
    Intersection,
    /// Documents that any child finds; what the children stand for, such as `PREFIX - hel`.
    Union(String),
    /// The documents of something in the index.
    Reader {
        /// `TEXT`, `TAG`, `NUMERIC` or `GEO`.
        kind: &'static str,
        /// The word, tag, range or circle.
        term: String,
        /// Its documents.
        size: u64,
    },
    /// The nearest vectors.
    Nearest,
    /// Vectors within a radius.
    Within,
}

/// The work of one step of an aggregation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepProfile {
    /// Rows that it left.
    pub rows: u64,
    /// The time that it took (microseconds).
    pub micros: u64,
}

impl Profiler {
    /// Reads a clock in microseconds.
    #[must_use]
    pub fn new(clock: fn() -> u64) -> Self {
        Self { clock, root: RefCell::default(), rows: Cell::default(), steps: RefCell::default() }
    }

    /// The iterators of the query, when it is over.
    #[must_use]
    pub fn iterators(&self) -> Option<IteratorProfile> {
        self.root.borrow().clone()
    }

    /// Documents that the query found.
    #[must_use]
    pub fn found(&self) -> u64 {
        self.rows.get()
    }

    /// The steps of the aggregation in their order.
    #[must_use]
    pub fn steps(&self) -> Vec<StepProfile> {
        self.steps.borrow().clone()
    }

    pub(super) fn finish(&self, root: &Boxed<'_>, found: u64) {
        self.root.replace(Some(root.profile()));
        self.rows.set(found);
    }

    /// Notes a step; `work` returns the rows that it leaves beside its result.
    pub(crate) fn step<R>(&self, work: impl FnOnce() -> (R, usize)) -> R {
        let began = (self.clock)();
        let (result, rows) = work();
        let micros = (self.clock)().saturating_sub(began);
        self.steps.borrow_mut().push(StepProfile { rows: rows as u64, micros });
        result
    }
}

/// An iterator that is watched.
pub(super) struct Measured<'i> {
    pub(super) matches: Boxed<'i>,
    pub(super) clock: fn() -> u64,
    pub(super) count: u64,
    pub(super) micros: u64,
}

impl Matches for Measured<'_> {
    fn seek(&mut self, target: DocNumber) -> Option<DocNumber> {
        let began = (self.clock)();
        let found = self.matches.seek(target);
        self.micros += (self.clock)().saturating_sub(began);
        self.count += u64::from(found.is_some());
        found
    }

    fn estimate(&self) -> u64 {
        self.matches.estimate()
    }

    fn is_intersection(&self) -> bool {
        self.matches.is_intersection()
    }

    fn record(&self) -> Record<'_> {
        self.matches.record()
    }

    fn kind(&self) -> IteratorKind {
        self.matches.kind()
    }

    fn profile(&self) -> IteratorProfile {
        IteratorProfile { count: self.count, micros: self.micros, ..self.matches.profile() }
    }
}

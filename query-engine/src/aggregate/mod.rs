//! FT.AGGREGATE: matches become rows, which go through steps one after the other.

mod hybrid;
mod order;
mod parts;
mod reducers;
mod rows;
mod steps;

use std::fmt;

pub use hybrid::{Answers, Fused, Fusion, Hybrid, ScoreNames};
pub use parts::{Part, PartRow};
pub use reducers::{Reducer, ReducerKind};
pub use rows::Rows;
use rows::Table;
use steps::Groups;

use crate::eval::{Match, Profiler, Scorer, SearchOptions};
use crate::expr::{Datum, Expression, ExpressionError, TERMS};
use crate::index::docs::Found;
use crate::index::{Index, SortKey};
use crate::query::Query;
use crate::schema::FieldId;

/// The property with a document's id.
pub const KEY: &str = "__key";

/// The property with a document's score (ADDSCORES).
pub const SCORE: &str = "__score";

/// One step of a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Adds a property, or replaces it.
    Apply {
        /// Gives its value.
        expression: Expression,
        /// Its name.
        name: String,
    },
    /// Leaves rows for which the expression is true.
    Filter(Expression),
    /// Adds properties of documents (LOAD). [`Aggregation::load`] has all of their names.
    Load(Vec<String>),
    /// Leaves one row per distinct values of some properties, with the results of reducers.
    Group {
        /// Names of properties; none makes one group of all rows.
        by: Vec<String>,
        /// The reducers of each group.
        reducers: Vec<Reducer>,
    },
    /// Sorts rows.
    Sort {
        /// Names of properties, the first decides first; `true` is rising.
        by: Vec<(String, bool)>,
        /// Leaves so many rows (MAX). RediSearch leaves ten if there is neither MAX nor LIMIT.
        max: Option<usize>,
    },
    /// Leaves a window.
    Limit {
        /// Rows before it.
        offset: usize,
        /// Rows in it.
        count: usize,
    },
}

/// The source and the steps of an aggregation.
#[derive(Clone, Copy, Default)]
pub struct Aggregation<'a> {
    /// The steps in their order.
    pub steps: &'a [Step],
    /// Properties whose value is the document's own (LOAD). Those that no [`Step::Load`] names stand before all others.
    pub load: &'a [String],
    /// Adds [`SCORE`].
    pub with_scores: bool,
    /// Gives a document's property that the index does not keep, by the document's id and the property's name.
    pub fetch: Option<&'a Fetch<'a>>,
    /// Learns the ids of documents before [`Self::fetch`] is asked for them, so that their memory can be asked for at the same time.
    pub ahead: Option<&'a Ahead<'a>>,
    /// Asks [`Self::fetch`] also for values that the index keeps.
    pub fetches_all: bool,
}

impl Aggregation<'_> {
    /// The properties that steps read before a step makes them, and those that are loaded.
    #[must_use]
    pub fn properties(&self) -> Vec<String> {
        source_columns(self)
    }
}

/// Gives a property by a document's id and the property's name.
pub type Fetch<'a> = dyn Fn(&[u8], &str) -> Option<Datum> + 'a;

/// Learns the ids of the next documents.
pub type Ahead<'a> = dyn Fn(&[&[u8]]) + 'a;

/// Documents that [`Aggregation::ahead`] learns of at once.
const WINDOW: usize = 32;

/// Why an aggregation fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AggregateError {
    /// An expression has no value for a row.
    Expression(ExpressionError),
}

impl fmt::Display for AggregateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expression(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AggregateError {}

impl From<ExpressionError> for AggregateError {
    fn from(error: ExpressionError) -> Self {
        Self::Expression(error)
    }
}

/// A property of rows, and where its values are.
struct Column<'c> {
    name: &'c str,
    field: Option<FieldId>,
    /// The place of its field among the sortable ones.
    slot: Option<usize>,
    /// The document's own value comes before the one that the index keeps.
    is_fetched: bool,
}

impl<'c> Column<'c> {
    fn new(index: &Index, aggregation: &Aggregation<'_>, name: &'c String) -> Self {
        let field = index.schema().find(name.as_bytes());
        let slot = field.and_then(|field| index.schema().sort_slot(field));
        // LOAD asks for the document's own value.
        Self { name, field, slot, is_fetched: aggregation.fetches_all || aggregation.load.contains(name) }
    }

    /// Whether [`Aggregation::fetch`] is asked for most values.
    fn reads_documents(&self) -> bool {
        !matches!(self.name, KEY | parts::ID) && (self.is_fetched || self.slot.is_none())
    }

    fn value(&self, aggregation: &Aggregation<'_>, found: &Match<'_, '_>) -> Option<Datum> {
        let Match { document, score, distance, words } = found;
        match self.name {
            KEY | parts::ID => Some(Datum::Text(document.doc().id.clone())),
            SCORE if aggregation.with_scores => Some(Datum::Number(*score)),
            TERMS => Some(Datum::List(words().into_iter().map(|word| Datum::text(word.text)).collect())),
            name if self.field.is_none() && distance(name).is_some() => distance(name).map(Datum::Number),
            name => {
                let kept = || kept(document.sort_key(self.slot));
                let fetched = || aggregation.fetch.and_then(|fetch| fetch(&document.doc().id, name));
                if self.is_fetched { fetched().or_else(kept) } else { kept().or_else(fetched) }
            }
        }
    }
}

impl Index {
    /// Runs a query's matches through a pipeline. The rows own what they hold: a cursor keeps them and reads on later,
    /// whatever becomes of the index.
    ///
    /// # Errors
    /// When an expression has no value for the first row, or for a row before a step that needs all of them. If it has none for a later row,
    /// the rows end there, with [`Rows::failure`].
    pub fn aggregate(
        &self,
        query: &Query,
        options: &SearchOptions<'_>,
        aggregation: &Aggregation<'_>,
    ) -> Result<Rows, AggregateError> {
        let columns = Self::columns(query, aggregation);
        if let Some((table, is_partial)) = self.grouped(query, options, aggregation, &columns) {
            return rows(table, is_partial, &aggregation.steps[1..], None);
        }
        let (table, is_partial) = self.table(query, options, aggregation, columns);
        rows(table, is_partial, aggregation.steps, options.profiler)
    }

    /// The properties that steps name, and the query's distances.
    fn columns(query: &Query, aggregation: &Aggregation<'_>) -> Vec<String> {
        let mut columns = source_columns(aggregation);
        for name in query.distance_names().into_iter().rev() {
            if !columns.iter().any(|known| known == name) {
                columns.insert(0, name.to_owned());
            }
        }
        columns
    }

    /// A row per match, with these properties.
    fn table(
        &self,
        query: &Query,
        options: &SearchOptions<'_>,
        aggregation: &Aggregation<'_>,
        columns: Vec<String>,
    ) -> (Table, bool) {
        let mut table = Table::new(columns.clone());
        let is_partial = self.each_row(query, options, aggregation, &columns, &mut |row| table.rows.push(row.to_vec()));
        if aggregation.with_scores && options.scorer == Scorer::Bm25StdNorm {
            table.normalize(SCORE);
        }
        table.count();
        if let Some(name) = query.nearest_name() {
            table = steps::sort(&[(name.to_owned(), true)], None, table);
        }
        (table, is_partial)
    }

    /// Calls `each` with the properties of every match; returns whether the query was ended before.
    fn each_row(
        &self,
        query: &Query,
        options: &SearchOptions<'_>,
        aggregation: &Aggregation<'_>,
        columns: &[String],
        each: &mut dyn FnMut(&[Option<Datum>]),
    ) -> bool {
        let reads_matches =
            aggregation.with_scores || !query.distance_names().is_empty() || columns.iter().any(|name| name == TERMS);
        let columns: Vec<_> = columns.iter().map(|name| Column::new(self, aggregation, name)).collect();
        let mut row = Vec::with_capacity(columns.len());
        let mut row_of = |found: &Match<'_, '_>| {
            row.clear();
            row.extend(columns.iter().map(|column| column.value(aggregation, found)));
            each(&row);
        };
        let is_ahead = !reads_matches && columns.iter().any(Column::reads_documents);
        let Some(ahead) = aggregation.ahead.filter(|_| is_ahead) else {
            return self.each_scored(query, options, aggregation.with_scores, &mut row_of);
        };
        let mut window = Vec::with_capacity(WINDOW);
        let mut read = |window: &mut Vec<Found<'_>>| {
            ahead(&window.iter().map(|document| &*document.doc().id).collect::<Vec<_>>());
            for document in window.drain(..) {
                row_of(&Match { document, score: 0.0, distance: &|_| None, words: &Vec::new });
            }
        };
        let is_partial = self.each_scored(query, options, false, &mut |found| {
            window.push(found.document);
            if window.len() == WINDOW {
                read(&mut window);
            }
        });
        if !window.is_empty() {
            read(&mut window);
        }
        is_partial
    }

    /// The groups of a query whose first step is GROUPBY, without a table of all rows; `None` for any other.
    fn grouped(
        &self,
        query: &Query,
        options: &SearchOptions<'_>,
        aggregation: &Aggregation<'_>,
        columns: &[String],
    ) -> Option<(Table, bool)> {
        let [Step::Group { by, reducers }, ..] = aggregation.steps else { return None };
        // These rows change, or stand in another order, before they are grouped.
        let are_complete =
            query.nearest_name().is_none() && !(aggregation.with_scores && options.scorer == Scorer::Bm25StdNorm);
        if !are_complete || options.profiler.is_some() {
            return None;
        }
        let mut groups = Groups::new(by, reducers, columns);
        let is_partial = self.each_row(query, options, aggregation, columns, &mut |row| groups.add(row));
        Some((groups.finish(), is_partial))
    }
}

/// Runs a table through the steps.
fn rows(
    mut table: Table,
    is_partial: bool,
    steps: &[Step],
    profiler: Option<&Profiler>,
) -> Result<Rows, AggregateError> {
    for step in steps {
        table = match profiler {
            Some(profiler) => profiler.step(|| {
                let table = steps::run(step, table);
                let rows = table.as_ref().map_or(0, |table| table.rows.len());
                (table, rows)
            })?,
            None => steps::run(step, table)?,
        };
    }
    match table.failure {
        Some(why) if table.rows.is_empty() => Err(why),
        _ => Ok(Rows::new(table, is_partial)),
    }
}

/// The value of a sortable field.
fn kept(key: &SortKey) -> Option<Datum> {
    match key {
        SortKey::Missing => None,
        SortKey::Number(number) => Some(Datum::Number(*number)),
        SortKey::Text(text) => Some(Datum::text(text)),
    }
}

/// The properties that steps read before a step makes them, and those that are loaded.
fn source_columns(aggregation: &Aggregation<'_>) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    let mut made: Vec<&str> = Vec::new();
    let add = |name: &str, columns: &mut Vec<String>, made: &[&str]| {
        if !made.contains(&name) && !columns.iter().any(|known| known == name) {
            columns.push(name.to_owned());
        }
    };
    if aggregation.with_scores {
        add(SCORE, &mut columns, &made);
    }
    let by_steps =
        |name: &String| aggregation.steps.iter().any(|step| matches!(step, Step::Load(names) if names.contains(name)));
    aggregation.load.iter().filter(|name| !by_steps(name)).for_each(|name| add(name, &mut columns, &made));
    for step in aggregation.steps {
        for name in step.reads() {
            add(name, &mut columns, &made);
        }
        match step {
            Step::Apply { name, .. } => made.push(name),
            // Behind a group there are its properties alone.
            Step::Group { .. } => break,
            Step::Filter(_) | Step::Load(_) | Step::Sort { .. } | Step::Limit { .. } => {}
        }
    }
    columns
}

impl Step {
    /// The names of properties that it reads.
    fn reads(&self) -> Vec<&str> {
        match self {
            Self::Apply { expression, .. } | Self::Filter(expression) => {
                let terms = expression.reads_terms().then_some(TERMS);
                expression.properties().into_iter().chain(terms).collect()
            }
            Self::Group { by, reducers } => {
                by.iter().map(String::as_str).chain(reducers.iter().flat_map(Reducer::reads)).collect()
            }
            Self::Sort { by, .. } => by.iter().map(|(name, _)| name.as_str()).collect(),
            Self::Load(names) => names.iter().map(String::as_str).collect(),
            Self::Limit { .. } => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;

//! A query engine: documents with text, tags, numbers, places and vectors go in; RediSearch's query language finds them.
//!
//! ```
//! use query_engine::{Document, Field, FieldKind, Index, ParseOptions, Query, Schema, SearchOptions, Value};
//!
//! let schema = Schema::new([Field::new("title", FieldKind::TEXT), Field::new("year", FieldKind::Numeric)])?;
//! let mut index = Index::new(schema);
//! index.put(&Document::new(b"book:1", vec![(0, Value::Text(b"Running water")), (1, Value::Number(1950.0))]))?;
//! index.put(&Document::new(b"book:2", vec![(0, Value::Text(b"Still water")), (1, Value::Number(1999.0))]))?;
//!
//! let query = Query::parse(b"@title:run @year:[1900 1960]", index.schema(), &ParseOptions::default())?;
//! let answer = index.search(&query, &SearchOptions::default())?;
//! assert_eq!((answer.total, &*answer.hits[0].id), (1, &b"book:1"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! It knows no keys of a server, no protocol, no socket and no clock. [`Index::put`] and [`Index::remove`] need `&mut`,
//! everything else `&`: hold an index in a read-write lock and query it from as many threads as there are. Fill it in slices
//! while others query, and call [`Index::compact`] in slices after removals.

#![forbid(unsafe_code)]

mod aggregate;
mod document;
mod eval;
mod expr;
mod index;
mod query;
mod schema;
mod shape;
mod spell;
mod suggest;
mod text;
pub mod vector;
pub mod vector_set;

pub use aggregate::{
    AggregateError, Aggregation, Ahead, Answers, Fetch, Fused, Fusion, Hybrid, KEY, Part, PartRow, Reducer,
    ReducerKind, Rows, SCORE, ScoreNames, Step,
};
pub use document::{Document, DocumentError, Expected, Value};
pub use eval::{
    DistanceOrder, Explanation, Hit, Hits, IteratorKind, IteratorProfile, Keep, Level, Limits, Load, MAX_WINDOW,
    Profiler, Scorer, SearchError, SearchOptions, SortBy, StepProfile,
};
pub use expr::{Datum, Expression, ExpressionError, MAX_EXPRESSION_DEPTH, Row};
pub use index::geo::{Circle, Place};
pub use index::ranges::Range;
pub use index::vectors::MAX_VECTORS;
pub use index::{Index, Memory, SortKey};
pub use query::{Dialect, Expander, MAX_DEPTH, ParseOptions, Query, QueryError};
pub use schema::{
    ALL_FIELDS, Field, FieldId, FieldKind, FieldMask, Keeps, MAX_FIELDS, MAX_TEXT_FIELDS, MIN_PHONETIC_LENGTH,
    MIN_STEM_LENGTH, NO_STEMS, Schema, SchemaError, TEXT_GAP,
};
pub use shape::{MAX_SHAPE_POINTS, ShapeError, Surface};
pub use spell::{MAX_SPELL_DISTANCE, Misspelling, SpellOptions, WordList};
pub use suggest::{Suggestion, Suggestions};
pub use text::{
    FoundWord, Language, MAX_SYNONYM_GROUPS, Marks, Punctuation, PunctuationError, StopWords, Summary, Synonyms,
    UnknownLanguage, highlight, summarize,
};

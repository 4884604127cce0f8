//! The definition of an index: its keys and its fields.

use query_engine::{Datum, Expression, ExpressionError, FieldKind, Language, Row};

use crate::keyspace::{Entry, ValueRef};
use crate::search::extract;
use crate::types::json::{Path, PathError};

/// The words of a command.
pub type Words = Vec<Box<[u8]>>;

/// The type of an index' documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Hashes.
    Hash,
    /// JSON documents.
    Json,
}

/// Where a field's value comes from.
#[derive(Clone, Debug)]
pub struct SourceField {
    /// The field's name in queries.
    pub name: String,
    /// The name of a hash's field, or the text of a path.
    pub identifier: Box<[u8]>,
    /// How values are indexed.
    pub kind: FieldKind,
    /// Whether the index keeps its values.
    pub is_sortable: bool,
    /// Options that have no effect and that FT.INFO names.
    pub options: Vec<&'static str>,
}

impl SourceField {
    /// The path of a field of JSON documents. It is parsed each time, as threads cannot share paths; that costs less than following it.
    pub fn path(&self) -> Option<Path> {
        path(&self.identifier).ok()
    }
}

/// The path that a schema or a query names. As in RediSearch, the dot behind `$` may lack.
///
/// # Errors
/// The text is none.
pub fn path(text: &[u8]) -> Result<Path, PathError> {
    match text {
        [b'$', first, ..] if !matches!(first, b'.' | b'[') => Path::parse(&[b"$.", &text[1..]].concat()),
        text => Path::parse(text),
    }
}

/// The definition of an index, besides the schema that the engine has.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The type of documents.
    pub source: Source,
    /// A key is a document if it begins with one of these.
    pub prefixes: Vec<Box<[u8]>>,
    /// A document counts if this is true, with its text.
    pub filter: Option<(Box<[u8]>, Expression)>,
    /// The language of documents.
    pub language: Option<Language>,
    /// Its name as it was given.
    pub language_name: String,
    /// The field or path with a document's language.
    pub language_field: Option<Box<[u8]>>,
    /// The score of documents, from 0 to 1.
    pub score: f64,
    /// The field or path with a document's score.
    pub score_field: Option<Box<[u8]>>,
    /// The field or path with a document's payload.
    pub payload_field: Option<Box<[u8]>>,
    /// Milliseconds without a use after which it is removed with its documents (TEMPORARY).
    pub idle_ms: Option<u64>,
    /// The fields, in the order of the schema.
    pub fields: Vec<SourceField>,
    /// Options that FT.INFO names.
    pub options: Vec<&'static str>,
    /// Whether the index has stop words of its own.
    pub has_stop_words: bool,
    /// Its own punctuation as it was given.
    pub punctuation: Option<Box<[u8]>>,
    /// The commands that make it.
    pub commands: Vec<Words>,
}

impl Definition {
    /// Whether a key of this name may be a document.
    pub fn covers(&self, name: &[u8]) -> bool {
        self.prefixes.is_empty() || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }

    /// Whether a field says something of the document as a whole: its language, score or payload.
    pub fn is_about(&self, name: &[u8]) -> bool {
        let fields = [&self.language_field, &self.score_field, &self.payload_field];
        fields.into_iter().any(|field| field.as_deref() == Some(name))
    }

    /// Whether an entry may be a document.
    pub fn takes(&self, entry: &Entry) -> bool {
        matches!((self.source, entry.value()), (Source::Hash, ValueRef::Hash(_)) | (Source::Json, ValueRef::Json(_)))
            && self.covers(entry.key())
    }

    /// The field of a name.
    pub fn field(&self, name: &str) -> Option<&SourceField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Whether the filter lets a document pass at a moment.
    pub(super) fn passes(&self, entry: &Entry, now: u64) -> bool {
        self.filter.as_ref().is_none_or(|(_, filter)| self.holds(filter, entry, now).unwrap_or(false))
    }

    /// Whether an expression is true for an entry at a moment.
    ///
    /// # Errors
    /// The expression has no value for this entry.
    pub fn holds(&self, expression: &Expression, entry: &Entry, now: u64) -> Result<bool, ExpressionError> {
        Ok(expression.value(&Properties { definition: self, entry, now })?.is_true())
    }
}

/// The properties of an entry for a filter.
struct Properties<'e> {
    definition: &'e Definition,
    entry: &'e Entry,
    now: u64,
}

impl Row for Properties<'_> {
    fn property(&self, name: &str) -> Option<Datum> {
        if name == query_engine::KEY {
            return Some(Datum::text(self.entry.key()));
        }
        extract::property(self.definition, self.entry, name, self.now)
    }
}

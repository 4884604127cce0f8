//! The query language of RediSearch, dialects 1 to 4: text → tree → [EXPLAIN](Query::explain).

mod check;
mod expand;
mod explain;
mod lexer;
mod node;
mod number;
mod parser;

use std::fmt;

pub(crate) use explain::pattern_without_escapes;
pub(crate) use node::{HybridPolicy, Kind, Near, Node, VectorQuery};
pub(crate) use number::{general, significant};

use crate::eval::Level;
use crate::schema::{FieldKind, Schema};
use crate::shape::ShapeError;
use crate::text::Language;
use crate::vector::Metric;

/// A version of the query language. Dialects 3 and 4 parse queries as 2 does; they differ in the form of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "their numbers say all")]
pub enum Dialect {
    #[default]
    One,
    Two,
    Three,
    Four,
}

/// The expansion of a query's words (EXPANDER).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expander {
    /// Synonyms, the sound in PHONETIC fields, and the stem.
    #[default]
    All,
    /// The stem alone (`SBSTEM`).
    Stem,
    /// Synonyms alone (`SYNONYM`).
    Synonyms,
    /// The sound alone (`PHONETIC`).
    Sound,
    /// Words stand for themselves (VERBATIM).
    Nothing,
}

/// How a query is read.
#[derive(Clone, Debug)]
pub struct ParseOptions<'p> {
    /// The version of the language.
    pub dialect: Dialect,
    /// `$name` in the query stands for this value (PARAMS).
    pub params: &'p [(&'p str, &'p [u8])],
    /// The query's language, for stems; the schema's if there is none.
    pub language: Option<Language>,
    /// The expansion of its words.
    pub expander: Expander,
    /// Keep stop words in the query (NOSTOPWORDS).
    pub keep_stop_words: bool,
    /// The most words, tags, ranges and other leaves.
    pub max_leaves: usize,
    /// The query as a whole has a distance or an order (SLOP, INORDER), which fields without an order refuse.
    pub is_near: bool,
    /// The query is explained, so a vector may have another size than those of its field.
    pub explains: bool,
    /// The version whose rules say which words are expanded.
    pub level: Level,
    /// Refuse orders and distances where positions are not kept, and suffixes in fields without WITHSUFFIXTRIE, as valkey-search does.
    pub checks_kept: bool,
}

impl Default for ParseOptions<'_> {
    fn default() -> Self {
        Self {
            dialect: Dialect::One,
            params: &[],
            language: None,
            expander: Expander::All,
            keep_stop_words: false,
            // A filter by ten thousand ids is usual; a hundred times that is an attack.
            max_leaves: 65_536,
            is_near: false,
            explains: false,
            level: Level::default(),
            checks_kept: false,
        }
    }
}

/// A query that was read for one schema.
#[derive(Clone, Debug)]
pub struct Query {
    root: Node,
}

impl Query {
    /// Reads a query.
    ///
    /// # Errors
    /// When the text is no query, names a parameter that is not given, or is too deep or too long.
    pub fn parse(text: &[u8], schema: &Schema, options: &ParseOptions<'_>) -> Result<Self, QueryError> {
        let mut root = parser::parse(text, schema, options)?;
        if options.checks_kept {
            check::check_kept(&mut root, schema, options.is_near)?;
        }
        if options.expander != Expander::Nothing {
            expand::expand(&mut root, schema, options)?;
        }
        Ok(Self { root })
    }

    /// The tree as FT.EXPLAIN prints it.
    #[must_use]
    pub fn explain(&self, schema: &Schema) -> String {
        explain::explain(&self.root, schema)
    }

    /// Leaves only documents that `other` finds too, as FILTER and GEOFILTER of FT.SEARCH do.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut root = self.root;
        if !matches!(&root.kind, Kind::Vector(query) if matches!(query.near, Near::Nearest { .. })) {
            return Self { root: Node::with(Kind::Phrase { exact: false }, vec![other.root, root]) };
        }
        // The nearest are looked for among what the filters leave.
        root.children = match root.children.pop() {
            Some(filter) => vec![Node::with(Kind::Phrase { exact: false }, vec![other.root, filter])],
            None => vec![other.root],
        };
        Self { root }
    }

    /// The properties that distances of vectors become, in the query's order.
    #[must_use]
    pub fn distance_names(&self) -> Vec<&str> {
        self.root.distance_names()
    }

    /// Leaves only documents of these ids (INKEYS). They match before anything else, as in FT.EXPLAIN.
    #[must_use]
    pub fn with_ids(self, ids: impl IntoIterator<Item = Vec<u8>>) -> Self {
        self.and(Self { root: Node::new(Kind::Ids(ids.into_iter().collect())) })
    }

    /// Looks for words in these TEXT fields alone (INFIELDS); names of other fields add nothing.
    pub fn restrict_to_fields<'n>(&mut self, names: impl IntoIterator<Item = &'n str>, schema: &Schema) {
        let found = names.into_iter().filter_map(|name| schema.find(name.as_bytes()));
        let mask = found.map(|field| schema.mask(field)).fold(0, |mask, bit| mask | bit);
        self.root.restrict(mask);
    }

    /// The distance of `=>[KNN …]`. FT.AGGREGATE gives rows by it; FT.SEARCH sorts by scores unless SORTBY names it.
    #[must_use]
    pub fn nearest_name(&self) -> Option<&str> {
        match &self.root.kind {
            Kind::Vector(query) if matches!(query.near, Near::Nearest { .. }) => query.yields.as_deref(),
            _ => None,
        }
    }

    /// The k of `=>[KNN k …]`.
    #[must_use]
    pub fn nearest_count(&self) -> Option<usize> {
        match &self.root.kind {
            Kind::Vector(query) => match query.near {
                Near::Nearest { k, .. } => Some(k),
                Near::Within { .. } => None,
            },
            _ => None,
        }
    }

    /// Returns true if it compares vectors.
    #[must_use]
    pub fn has_vectors(&self) -> bool {
        let mut open = vec![&self.root];
        while let Some(node) = open.pop() {
            if matches!(node.kind, Kind::Vector(_)) {
                return true;
            }
            open.extend(&node.children);
        }
        false
    }

    /// The metric of the vectors that the query as a whole compares.
    pub(crate) fn metric(&self, schema: &Schema) -> Option<Metric> {
        let mut node = &self.root;
        loop {
            if let Kind::Vector(query) = &node.kind {
                return match schema.field(query.field.id?).kind {
                    FieldKind::Vector(options) => Some(options.metric),
                    _ => None,
                };
            }
            // FILTER stands before a range.
            node = node.children.last()?;
        }
    }

    pub(crate) fn root(&self) -> &Node {
        &self.root
    }
}

/// Why a text is no query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// An unexpected token.
    Syntax {
        /// Where it begins (bytes).
        offset: usize,
        /// The word at or before it.
        near: String,
    },
    /// Parentheses and operators nest deeper than [`MAX_DEPTH`].
    TooDeep,
    /// More leaves than [`ParseOptions::max_leaves`].
    TooManyLeaves(usize),
    /// `$name` without a value.
    NoParameter(String),
    /// A parameter that must be a number is none.
    NotANumber {
        /// The parameter's name.
        name: String,
        /// Its value.
        value: String,
    },
    /// `=> {$name: …}` with a name that is none.
    Attribute(String),
    /// An attribute's value is out of its range.
    AttributeValue {
        /// The attribute's name.
        name: String,
        /// Its value.
        value: String,
    },
    /// `$phonetic` for a word of fields that are not indexed by sound.
    NotPhonetic,
    /// A geo filter's unit is none of m, km, ft, mi.
    GeoUnit,
    /// A geo filter's radius is not positive.
    GeoRadius,
    /// A geo filter's centre is not on the map.
    GeoPlace,
    /// A word in brackets that is no relation of shapes.
    ShapeRelation {
        /// Where it ends (bytes).
        offset: usize,
    },
    /// The shape of a query is none.
    Shape(ShapeError),
    /// `ismissing` of a field without INDEXMISSING.
    NotIndexedMissing(String),
    /// An empty word in fields without INDEXEMPTY.
    EmptyNotIndexed,
    /// A distance or an order of words in an index without positions.
    NoOffsets,
    /// A suffix of words in a field without WITHSUFFIXTRIE.
    NoSuffixes,
    /// A distance or an order of words in a field whose values have no order.
    NoOrder(String),
    /// A parameter is the wrong infinity for an end of a range.
    RangeEnd {
        /// It is the upper end.
        is_upper: bool,
        /// Its value.
        value: String,
    },
    /// A command in brackets that is neither KNN nor VECTOR_RANGE.
    VectorCommand {
        /// Where it begins (bytes).
        offset: usize,
        /// Its name.
        near: String,
    },
    /// A vector has another size than those of its field.
    VectorSize {
        /// Its bytes.
        given: usize,
        /// The bytes of a vector.
        expected: usize,
    },
    /// A parameter of a vector query is none, is out of its range, or does not fit the others.
    VectorParameter(&'static str),
    /// A range has a negative radius.
    VectorRadius(String),
    /// The name of a distance is a field's.
    PropertyExists(String),
    /// Two distances have this name.
    PropertyTwice(String),
    /// One distance has two names.
    DistanceTwice(String, String),
}

/// The most operators and parentheses that may be open at once; RediSearch's parser has as many places.
pub const MAX_DEPTH: usize = 256;

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { offset, near } => write!(f, "Syntax error at offset {offset} near {near}"),
            Self::TooDeep => f.write_str("Parser stack overflow. Try moving nested parentheses more to the left"),
            Self::TooManyLeaves(most) => write!(f, "Query has more than {most} terms"),
            Self::NoParameter(name) => write!(f, "No such parameter `{name}`"),
            Self::NotANumber { name, value } => write!(f, "Invalid numeric value ({value}) for parameter `{name}`"),
            Self::Attribute(name) => write!(f, "Invalid attribute {name}"),
            Self::AttributeValue { name, value } => write!(f, "Invalid value ({value}) for `{name}`"),
            Self::NotPhonetic => f.write_str("field does not support phonetics"),
            Self::GeoUnit => f.write_str("Invalid GeoFilter unit"),
            Self::GeoRadius => f.write_str("Invalid GeoFilter radius"),
            Self::GeoPlace => f.write_str("Invalid GeoFilter lat/lon"),
            Self::ShapeRelation { offset } => {
                write!(f, "Syntax error: Expecting a geoshape predicate at offset {offset}")
            }
            Self::Shape(error) => write!(f, "Error querying geoshape index: {error}"),
            Self::NotIndexedMissing(name) => {
                write!(f, "'ismissing' requires field '{name}' to be defined with 'INDEXMISSING'")
            }
            Self::EmptyNotIndexed => {
                f.write_str("Use `INDEXEMPTY` in field creation in order to index and query for empty strings")
            }
            Self::NoOffsets => f.write_str("Index does not support offsets"),
            Self::NoSuffixes => f.write_str("Field does not support suffix search"),
            Self::NoOrder(name) => {
                write!(f, "slop/inorder are not supported for field `{name}` since it has undefined ordering")
            }
            Self::RangeEnd { is_upper, value } => {
                write!(f, "Bad {} range: {value}", if *is_upper { "upper" } else { "lower" })
            }
            Self::VectorCommand { offset, near } => {
                write!(f, "Syntax error: Expecting Vector Similarity command at offset {offset} near {near}")
            }
            Self::VectorSize { given, expected } => write!(
                f,
                "Error parsing vector similarity query: query vector blob size ({given}) does not match index's expected size ({expected})."
            ),
            Self::VectorParameter(why) => write!(f, "Error parsing vector similarity parameters: {why}"),
            Self::VectorRadius(radius) => {
                write!(f, "Error parsing vector similarity query: negative radius ({radius}) given in a range query")
            }
            Self::PropertyExists(name) => write!(f, "Property `{name}` already exists in schema"),
            Self::PropertyTwice(name) => write!(f, "Property `{name}` specified more than once"),
            Self::DistanceTwice(one, other) => {
                write!(f, "Distance field was specified twice for vector query: {one} and {other}")
            }
        }
    }
}

impl std::error::Error for QueryError {}

//! The tree of a query.

use crate::index::geo::Circle;
use crate::index::ranges::Range;
use crate::schema::{ALL_FIELDS, FieldId, FieldMask};
use crate::shape::{Relation, Shape};
use crate::vector::Vector;

/// A field as the query names it; a name that the schema lacks finds nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldName {
    pub(crate) name: String,
    pub(crate) id: Option<FieldId>,
}

/// Units of geo filters, with their metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) metres: f64,
}

pub(crate) const UNITS: &[Unit] = &[
    Unit { name: "m", metres: 1.0 },
    Unit { name: "km", metres: 1000.0 },
    Unit { name: "ft", metres: 0.3048 },
    Unit { name: "mi", metres: 1609.34 },
];

/// The documents that a node matches.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Nothing.
    Empty,
    /// All documents.
    All,
    /// A word in lower case, or a tag.
    Token {
        text: Vec<u8>,
        expanded: bool,
    },
    /// All children; exactly one behind the other if `exact`.
    Phrase {
        exact: bool,
    },
    /// Any child.
    Union,
    /// Documents that the child does not match.
    Not,
    /// All documents; those that match the child score more.
    Optional,
    /// Words that begin with the text (`after`), end with it (`before`), or have it inside (both).
    Affix {
        text: Vec<u8>,
        before: bool,
        after: bool,
    },
    /// Words by `*` and `?`.
    Wildcard {
        pattern: Vec<u8>,
    },
    /// Words at most so many changes away.
    Fuzzy {
        text: Vec<u8>,
        distance: u8,
        /// Also the empty word.
        finds_empty: bool,
    },
    Numeric {
        field: FieldName,
        range: Range,
    },
    Geo {
        field: FieldName,
        circle: Circle,
        radius: f64,
        unit: Unit,
    },
    /// `text` is the shape as it was given.
    Shape {
        field: FieldName,
        relation: Relation,
        text: Vec<u8>,
        /// `None` finds nothing: the schema has no such field, or it holds no shapes.
        shape: Option<Box<Shape>>,
    },
    /// Any child, which are tokens, phrases, affixes and wildcards of tags.
    Tag {
        field: FieldName,
    },
    Missing {
        field: FieldName,
    },
    Ids(Vec<Vec<u8>>),
    /// The nearest of the documents that the child matches, or of all; only at the root. Or those within a radius.
    Vector(Box<VectorQuery>),
}

/// A search of a vector field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VectorQuery {
    pub(crate) field: FieldName,
    /// The name of the parameter that is the vector.
    pub(crate) param: String,
    /// `None` finds nothing: the schema has no such field, or it holds no vectors.
    pub(crate) vector: Option<Vector>,
    pub(crate) near: Near,
    /// The parameters of the search with their values, as the query gives them.
    pub(crate) given: Vec<(String, String)>,
    /// The property that the distance becomes.
    pub(crate) yields: Option<String>,
    /// An attribute was given that HNSW alone has.
    pub(crate) of_hnsw: bool,
    /// An attribute was given that SVS-VAMANA alone has.
    pub(crate) of_vamana: bool,
}

/// The vectors that are near enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Near {
    Nearest { k: usize, ef_runtime: Option<usize>, policy: Option<HybridPolicy>, batch_size: Option<usize> },
    Within { radius: f64, epsilon: Option<f64> },
}

/// How a filter and the nearest vectors are found together (HYBRID_POLICY).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HybridPolicy {
    /// Walks the index and skips what the filter lacks.
    Batches,
    /// Compares all documents of the filter.
    AdHoc,
}

/// A node of a query's tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) children: Vec<Self>,
    /// The TEXT fields that it looks into.
    pub(crate) fields: FieldMask,
    pub(crate) weight: f64,
    /// The most words between those of a phrase, if limited.
    pub(crate) slop: Option<u32>,
    /// True if the words of a phrase stand in their order; `None` if the query does not say it.
    pub(crate) in_order: Option<bool>,
    /// Is not expanded to stems.
    pub(crate) verbatim: bool,
    /// True if words that sound alike match; `None` if the query does not say it.
    pub(crate) phonetic: Option<bool>,
}

impl Node {
    pub(crate) fn new(kind: Kind) -> Self {
        Self::with(kind, Vec::new())
    }

    pub(crate) fn with(kind: Kind, children: Vec<Self>) -> Self {
        let (weight, slop, in_order, phonetic) = (1.0, None, None, None);
        Self { kind, children, fields: ALL_FIELDS, weight, slop, in_order, verbatim: false, phonetic }
    }

    pub(crate) fn token(text: impl Into<Vec<u8>>) -> Self {
        Self::new(Kind::Token { text: text.into(), expanded: false })
    }

    /// Leaves only these TEXT fields, here and below.
    pub(crate) fn restrict(&mut self, mask: FieldMask) {
        self.fields &= mask;
        self.children.iter_mut().for_each(|child| child.restrict(mask));
    }

    /// The properties that distances become, here and below.
    pub(crate) fn distance_names(&self) -> Vec<&str> {
        let own = if let Kind::Vector(query) = &self.kind { query.yields.as_deref() } else { None };
        own.into_iter().chain(self.children.iter().flat_map(Self::distance_names)).collect()
    }

    /// `one` and `other`; a plain intersection on the left takes the right in.
    pub(crate) fn intersect(one: Self, other: Self) -> Self {
        Self::join(Kind::Phrase { exact: false }, one, other)
    }

    /// `one` or `other`; a union on the left takes the right in.
    pub(crate) fn unite(one: Self, other: Self) -> Self {
        Self::join(Kind::Union, one, other)
    }

    fn join(kind: Kind, mut one: Self, other: Self) -> Self {
        if one.kind == kind && one.fields == ALL_FIELDS {
            one.children.push(other);
            return one;
        }
        Self::with(kind, vec![one, other])
    }
}

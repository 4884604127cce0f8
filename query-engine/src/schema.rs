//! The schema of an index: its fields, stop words and language (`FT.CREATE … SCHEMA`).

use std::fmt;

use crate::shape::Surface;
use crate::text::{Language, Punctuation, StopWords, Synonyms};
use crate::vector::{VectorError, VectorOptions};

/// The most TEXT fields of a schema, because a posting names its fields by the bits of a `u128`.
pub const MAX_TEXT_FIELDS: usize = 128;

/// The most fields of a schema, as many as RediSearch allows.
pub const MAX_FIELDS: usize = 1024;

/// The bits of TEXT fields, one per field in the order of the schema.
pub type FieldMask = u128;

/// All TEXT fields.
pub const ALL_FIELDS: FieldMask = FieldMask::MAX;

/// A field's position in its schema.
pub type FieldId = usize;

/// How a field's values are indexed.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// Words with positions.
    Text {
        /// Multiplies the frequency of the field's words.
        weight: f64,
        /// Also index the stems of words.
        stem: bool,
        /// Also index how words sound (PHONETIC).
        phonetic: bool,
    },
    /// Whole values, split at a separator.
    Tag {
        /// Splits a value into tags; `None` takes a value whole.
        separator: Option<u8>,
        /// Keep upper and lower case apart.
        case_sensitive: bool,
    },
    /// Numbers, found by ranges.
    Numeric,
    /// Longitude and latitude in degrees, found by distance.
    Geo,
    /// Points and polygons, found by how they lie to another shape (GEOSHAPE).
    Shape(Surface),
    /// Vectors, found by distance.
    Vector(VectorOptions),
}

impl FieldKind {
    /// TEXT with weight 1 and stemming.
    pub const TEXT: Self = Self::Text { weight: 1.0, stem: true, phonetic: false };
    /// TAG with the separator `,`, without regard to case.
    pub const TAG: Self = Self::Tag { separator: Some(b','), case_sensitive: false };
}

/// One field of a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The name that queries use.
    pub name: String,
    /// How its values are indexed.
    pub kind: FieldKind,
    /// Keep the value in memory for sorting and for aggregations.
    pub sortable: bool,
    /// Keep the sortable value as given instead of case-folded (UNF).
    pub unnormalized: bool,
    /// `false` (NOINDEX) keeps the field out of queries; it may still be sortable.
    pub indexed: bool,
    /// Index documents that lack the field, for `ismissing(@field)`.
    pub index_missing: bool,
    /// Index empty strings (TEXT and TAG).
    pub index_empty: bool,
    /// Patterns without a fixed beginning find its words alone, no stems (WITHSUFFIXTRIE).
    pub suffix_trie: bool,
    /// Its values have no order among them, so queries must not ask for distances or an order of its words.
    pub unordered: bool,
}

impl Field {
    /// An indexed field without options.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: FieldKind) -> Self {
        Self {
            name: name.into(),
            kind,
            sortable: false,
            unnormalized: false,
            indexed: true,
            index_missing: false,
            index_empty: false,
            suffix_trie: false,
            unordered: false,
        }
    }

    /// The same field, sortable.
    #[must_use]
    pub fn sortable(mut self) -> Self {
        self.sortable = true;
        self
    }

    pub(crate) fn is_text(&self) -> bool {
        matches!(self.kind, FieldKind::Text { .. })
    }
}

/// The data that postings keep besides document numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeps {
    /// Positions of words: phrases, slop and highlighting need them (NOOFFSETS is `false`).
    pub positions: bool,
    /// Frequencies of words: scores need them (NOFREQS is `false`).
    pub frequencies: bool,
    /// Fields of words: field modifiers need them (NOFIELDS is `false`).
    pub fields: bool,
}

impl Default for Keeps {
    fn default() -> Self {
        Self { positions: true, frequencies: true, fields: true }
    }
}

/// The fields of an index and how their text is read.
#[derive(Clone, Debug)]
pub struct Schema {
    fields: Vec<Field>,
    /// The bit of each TEXT field.
    bits: Vec<Option<u8>>,
    /// The place of each sortable field among all of these.
    sort_slots: Vec<Option<usize>>,
    /// The characters that end words, in texts and in queries.
    pub punctuation: Punctuation,
    /// Words that are not indexed.
    pub stop_words: StopWords,
    /// The language of documents that name none.
    pub language: Language,
    /// The data that postings keep.
    pub keeps: Keeps,
    /// Words that stand for each other, in queries and in documents that are put from now on.
    pub synonyms: Synonyms,
    /// Places between the texts of one field, so that no phrase reaches from one to the next.
    pub text_gap: u32,
    /// Shorter words of phonetic fields are found by their letters alone (bytes).
    pub min_phonetic_length: usize,
    /// Shorter words have no stems (bytes). With [`NO_STEMS`], no word has one, in queries neither.
    pub min_stem_length: usize,
}

/// The shortest word whose stem is indexed in RediSearch (bytes).
pub const MIN_STEM_LENGTH: usize = 4;

/// The length of words in an index without stems.
pub const NO_STEMS: usize = usize::MAX;

/// The shortest word whose sound is indexed in RediSearch (bytes).
pub const MIN_PHONETIC_LENGTH: usize = 3;

/// The places between the texts of one field that RediSearch leaves.
pub const TEXT_GAP: u32 = 100;

impl Default for Schema {
    fn default() -> Self {
        Self {
            fields: Vec::new(),
            bits: Vec::new(),
            sort_slots: Vec::new(),
            punctuation: Punctuation::default(),
            stop_words: StopWords::default(),
            language: Language::default(),
            keeps: Keeps::default(),
            synonyms: Synonyms::default(),
            text_gap: TEXT_GAP,
            min_phonetic_length: MIN_PHONETIC_LENGTH,
            min_stem_length: MIN_STEM_LENGTH,
        }
    }
}

impl Schema {
    /// A schema with English stop words and stemming.
    ///
    /// # Errors
    /// When a name occurs twice, a parameter of a vector field is out of its range, or there are too many fields.
    pub fn new(fields: impl IntoIterator<Item = Field>) -> Result<Self, SchemaError> {
        let mut schema = Self::default();
        for field in fields {
            schema.add(field)?;
        }
        Ok(schema)
    }

    /// Appends a field (`FT.ALTER … SCHEMA ADD`).
    ///
    /// # Errors
    /// When its name is taken, a parameter of a vector field is out of its range, or there are too many fields.
    pub fn add(&mut self, field: Field) -> Result<FieldId, SchemaError> {
        if self.find(field.name.as_bytes()).is_some() {
            return Err(SchemaError::Duplicate(field.name));
        }
        if let FieldKind::Vector(options) = &field.kind {
            options.check().map_err(SchemaError::Vector)?;
        }
        let texts = self.fields.iter().filter(|field| field.is_text()).count();
        if self.fields.len() >= MAX_FIELDS {
            return Err(SchemaError::TooManyFields);
        }
        if field.is_text() && texts >= MAX_TEXT_FIELDS {
            return Err(SchemaError::TooManyTextFields);
        }
        self.sort_slots.push(field.sortable.then_some(self.sortable_fields()));
        self.bits.push(field.is_text().then_some(texts as u8));
        self.fields.push(field);
        Ok(self.fields.len() - 1)
    }

    /// All fields, in their order.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field of a name; names are case-sensitive.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<FieldId> {
        self.fields.iter().position(|field| field.name.as_bytes() == name)
    }

    /// The bit of a TEXT field, or 0.
    #[must_use]
    pub fn mask(&self, field: FieldId) -> FieldMask {
        self.bits.get(field).copied().flatten().map_or(0, |bit| 1 << bit)
    }

    /// Sortable fields.
    pub(crate) fn sortable_fields(&self) -> usize {
        self.sort_slots.iter().flatten().count()
    }

    /// The place of a sortable field among all of these.
    pub(crate) fn sort_slot(&self, field: FieldId) -> Option<usize> {
        self.sort_slots.get(field).copied().flatten()
    }

    /// True if one of these fields is indexed by sound; for [`ALL_FIELDS`] and for none, whether any field is.
    pub(crate) fn is_phonetic(&self, mask: FieldMask) -> bool {
        let mask = if mask == 0 { ALL_FIELDS } else { mask };
        self.masked(mask).any(|field| matches!(field.kind, FieldKind::Text { phonetic: true, .. }))
    }

    /// The TEXT fields of a mask.
    pub(crate) fn masked(&self, mask: FieldMask) -> impl Iterator<Item = &Field> {
        let fields = self.fields.iter().zip(&self.bits);
        fields.filter(move |(_, bit)| bit.is_some_and(|bit| mask >> bit & 1 == 1)).map(|(field, _)| field)
    }

    pub(crate) fn field(&self, id: FieldId) -> &Field {
        &self.fields[id]
    }
}

/// Why a schema is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaError {
    /// Two fields have this name.
    Duplicate(String),
    /// More than [`MAX_FIELDS`] fields.
    TooManyFields,
    /// More than [`MAX_TEXT_FIELDS`] TEXT fields.
    TooManyTextFields,
    /// A parameter of a vector field is out of its range.
    Vector(VectorError),
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate(name) => write!(f, "Duplicate field in schema - {name}"),
            Self::TooManyFields => write!(f, "Schema is limited to {MAX_FIELDS} fields"),
            Self::TooManyTextFields => write!(f, "Schema is limited to {MAX_TEXT_FIELDS} TEXT fields"),
            Self::Vector(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SchemaError {}

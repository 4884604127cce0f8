//! An index: documents go in and out, queries read.
//!
//! A replaced document gets a new number. Queries skip the old one's postings, because its number is gone, and [`Index::compact`] removes
//! them.

pub(crate) mod docs;
pub(crate) mod geo;
pub(crate) mod postings;
pub(crate) mod ranges;
pub(crate) mod vectors;
mod words;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

pub use docs::SortKey;
use docs::{Brief, Doc, Docs};
use geo::Places;
use postings::{DocNumber, Entry, Postings};
use ranges::Ranges;
use vectors::{FieldVectors, MAX_VECTORS};
use words::{Words, tags};

use crate::document::{Document, DocumentError, Expected, Value, parse_number};
use crate::schema::{Field, FieldId, FieldKind, Keeps, Schema, SchemaError};
use crate::shape::{Shape, Shapes};
use crate::text::fold;
use crate::vector::Vector;

/// Postings by word or tag.
pub(crate) type Dictionary = BTreeMap<Box<[u8]>, Postings>;

/// Tags and missing fields keep documents alone.
pub(crate) const NUMBERS_ALONE: Keeps = Keeps { positions: false, frequencies: false, fields: false };

/// The index of one field, besides the words that TEXT fields share.
#[derive(Clone, Debug)]
pub(crate) enum FieldIndex {
    /// TEXT, and fields that are not indexed.
    Nothing,
    Tags(Dictionary),
    Numbers(Ranges),
    Places(Places),
    Shapes(Shapes),
    Vectors(Box<FieldVectors>),
}

impl FieldIndex {
    fn new(field: &Field) -> Self {
        match field.kind {
            _ if !field.indexed => Self::Nothing,
            FieldKind::Text { .. } => Self::Nothing,
            FieldKind::Tag { .. } => Self::Tags(Dictionary::new()),
            FieldKind::Numeric => Self::Numbers(Ranges::default()),
            FieldKind::Geo => Self::Places(Places::default()),
            FieldKind::Shape(_) => Self::Shapes(Shapes::default()),
            FieldKind::Vector(options) => Self::Vectors(Box::new(FieldVectors::new(options))),
        }
    }
}

/// An index over documents of one schema. Reading needs `&self` alone, so many threads may query it at once; the caller
/// guards changes with a lock of its own.
#[derive(Clone, Debug)]
pub struct Index {
    schema: Schema,
    docs: Docs,
    words: Dictionary,
    fields: Vec<FieldIndex>,
    /// By field: documents that lack it, if the field keeps them.
    missing: Vec<Option<Postings>>,
    compaction: Compaction,
}

/// Where the next step of compaction goes on.
#[derive(Clone, Debug, Default)]
struct Compaction {
    /// Documents that went since the last round began.
    gone: u64,
    /// The part in work: 0 is the words, then fields.
    part: Option<usize>,
    /// The dictionary's entry that was last done.
    after: Option<Box<[u8]>>,
    /// The vector that was last done.
    at: Option<usize>,
}

/// Bytes in memory by what they hold. Allocators' overhead is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Ids, scores, payloads, sort keys.
    pub documents: usize,
    /// Words with their postings.
    pub words: usize,
    /// Tags with their postings, and missing fields.
    pub tags: usize,
    /// Numeric ranges.
    pub numbers: usize,
    /// Places.
    pub places: usize,
    /// Shapes.
    pub shapes: usize,
    /// Vectors and their graphs.
    pub vectors: usize,
}

impl Memory {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> usize {
        self.documents + self.words + self.tags + self.numbers + self.places + self.shapes + self.vectors
    }
}

impl Index {
    /// An empty index.
    #[must_use]
    pub fn new(schema: Schema) -> Self {
        let fields = schema.fields().iter().map(FieldIndex::new).collect();
        let missing = schema.fields().iter().map(missing_of).collect();
        let (docs, words, compaction) = (Docs::default(), Dictionary::new(), Compaction::default());
        Self { schema, docs, words, fields, missing, compaction }
    }

    /// Its fields.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Appends a field (`FT.ALTER`). Documents that are there do not have it until they are put again.
    ///
    /// # Errors
    /// When the schema refuses it.
    pub fn add_field(&mut self, field: Field) -> Result<FieldId, SchemaError> {
        let (values, missing) = (FieldIndex::new(&field), missing_of(&field));
        let id = self.schema.add(field)?;
        self.fields.push(values);
        self.missing.push(missing);
        Ok(id)
    }

    /// Adds words to a group of synonyms. Documents that are there do not have it until they are put again.
    pub fn add_synonyms<W: AsRef<[u8]>>(&mut self, group: &[u8], words: impl IntoIterator<Item = W>) {
        self.schema.synonyms.add(group, words);
    }

    /// Adds a document, or replaces the one of the same id.
    ///
    /// # Errors
    /// When a field cannot hold its value. The document is then absent, also if an older version was there. A GEOSHAPE field that cannot hold its value
    /// leaves the rest of the document in the index, as in RediSearch.
    pub fn put(&mut self, document: &Document<'_>) -> Result<(), DocumentError> {
        self.remove(document.id);
        let parsed = self.parse(document)?;
        let words = parsed.words;
        let doc = Doc { id: Arc::from(document.id), payload: document.payload.map(Into::into) };
        let brief = Brief::new(document.score, words.length, words.max_frequency);
        let number = self.docs.insert(doc, brief, parsed.sort_keys);
        for (word, entry) in words.entries {
            self.words.entry(word.into()).or_default().push(number, &entry, self.schema.keeps);
        }
        for (field, values) in parsed.values {
            self.insert_values(field, values, number);
        }
        let given = |field| document.values.iter().any(|(other, _)| *other == field);
        for (_, lacking) in self.missing.iter_mut().enumerate().filter(|(field, _)| !given(*field)) {
            if let Some(lacking) = lacking {
                lacking.push(number, &Entry::default(), NUMBERS_ALONE);
            }
        }
        parsed.failure.map_or(Ok(()), Err)
    }

    /// Removes a document; `false` if there is none of that id.
    pub fn remove(&mut self, id: &[u8]) -> bool {
        let Some(number) = self.docs.remove(id) else { return false };
        self.compaction.gone += 1;
        for field in &mut self.fields {
            if let FieldIndex::Shapes(shapes) = field {
                shapes.remove(number);
            }
        }
        true
    }

    /// Whether a document of that id is there.
    #[must_use]
    pub fn contains(&self, id: &[u8]) -> bool {
        self.docs.number(id).is_some()
    }

    /// The payload of a document.
    #[must_use]
    pub fn payload(&self, id: &[u8]) -> Option<&[u8]> {
        self.docs.get(self.docs.number(id)?)?.payload.as_deref()
    }

    /// The ids of all documents, in no order.
    pub fn ids(&self) -> impl Iterator<Item = &[u8]> {
        self.docs.ids()
    }

    /// Documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.docs.len()
    }

    /// Whether there are no documents.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.docs.len() == 0
    }

    /// Distinct words, stems among them.
    #[must_use]
    pub fn word_count(&self) -> usize {
        self.words.len()
    }

    /// Documents with a shape in a GEOSHAPE field; `None` for other fields.
    #[must_use]
    pub fn shape_count(&self, field: FieldId) -> Option<usize> {
        if let Some(FieldIndex::Shapes(shapes)) = self.fields.get(field) { Some(shapes.count()) } else { None }
    }

    /// The tags of a TAG field in byte order (`FT.TAGVALS`); `None` for other fields. Tags of documents that are gone stay
    /// until they are compacted away.
    pub fn tag_values(&self, field: FieldId) -> Option<impl Iterator<Item = &[u8]>> {
        let tags = self.tags(field)?;
        Some(tags.keys().map(AsRef::as_ref))
    }

    /// The number of the last document that was put. Numbers are never used twice.
    #[must_use]
    pub fn last_number(&self) -> u64 {
        self.docs.last()
    }

    /// Entries of words, tags, numbers, places and vectors, one per document or vector, with those of documents that are gone and not yet compacted
    /// away. Walks the dictionaries.
    #[must_use]
    pub fn record_count(&self) -> u64 {
        let of = |dictionary: &Dictionary| dictionary.values().map(Postings::count).sum::<u64>();
        let fields = self.fields.iter().map(|field| match field {
            FieldIndex::Tags(tags) => of(tags),
            FieldIndex::Numbers(numbers) => numbers.count() as u64,
            FieldIndex::Places(places) => places.count() as u64,
            FieldIndex::Vectors(vectors) => vectors.count() as u64,
            FieldIndex::Nothing | FieldIndex::Shapes(_) => 0,
        });
        of(&self.words) + fields.sum::<u64>()
    }

    /// Blocks of postings, of words and tags. Walks the dictionaries.
    #[must_use]
    pub fn block_count(&self) -> usize {
        let of = |dictionary: &Dictionary| dictionary.values().map(Postings::blocks).sum::<usize>();
        let tags = (0..self.fields.len()).filter_map(|field| self.tags(field));
        of(&self.words) + tags.map(of).sum::<usize>()
    }

    /// Bytes of the table that leads from ids to documents, a part of [`Memory::documents`].
    #[must_use]
    pub fn id_table_bytes(&self) -> usize {
        self.docs.id_table()
    }

    /// Bytes of the values of sortable fields. Walks all documents.
    #[must_use]
    pub fn sort_key_bytes(&self) -> usize {
        self.docs.sort_keys()
    }

    /// Bytes in memory. Walks the whole index.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let mut memory =
            Memory { documents: self.docs.memory(), words: dictionary_memory(&self.words), ..Memory::default() };
        for field in &self.fields {
            match field {
                FieldIndex::Nothing => {}
                FieldIndex::Tags(tags) => memory.tags += dictionary_memory(tags),
                FieldIndex::Numbers(numbers) => memory.numbers += numbers.memory(),
                FieldIndex::Places(places) => memory.places += places.memory(),
                FieldIndex::Shapes(shapes) => memory.shapes += shapes.memory(),
                FieldIndex::Vectors(vectors) => memory.vectors += vectors.memory(),
            }
        }
        memory.tags += self.missing.iter().flatten().map(Postings::memory).sum::<usize>();
        memory
    }

    /// Whether every entry of every index is a live document's.
    pub(crate) fn is_compact(&self) -> bool {
        self.compaction.gone == 0 && self.compaction.part.is_none()
    }

    pub(crate) fn docs(&self) -> &Docs {
        &self.docs
    }

    pub(crate) fn words(&self) -> &Dictionary {
        &self.words
    }

    pub(crate) fn field_index(&self, field: FieldId) -> &FieldIndex {
        &self.fields[field]
    }

    pub(crate) fn tags(&self, field: FieldId) -> Option<&Dictionary> {
        if let Some(FieldIndex::Tags(tags)) = self.fields.get(field) { Some(tags) } else { None }
    }

    pub(crate) fn missing(&self, field: FieldId) -> Option<&Postings> {
        self.missing[field].as_ref()
    }
}

fn missing_of(field: &Field) -> Option<Postings> {
    field.index_missing.then(Postings::default)
}

fn dictionary_memory(dictionary: &Dictionary) -> usize {
    let nodes = dictionary.len() * size_of::<(Box<[u8]>, Postings)>() * 4 / 3;
    nodes + dictionary.iter().map(|(word, postings)| word.len() + postings.memory()).sum::<usize>()
}

/// Values that were checked.
enum Parsed {
    Tags(Vec<Vec<u8>>),
    Numbers(Vec<f64>),
    Places(Vec<geo::Place>),
    Shape(Shape),
    Vectors(Vec<Vector>),
}

/// A document that every field can hold.
struct ParsedDocument {
    words: Words,
    values: Vec<(FieldId, Parsed)>,
    /// Of all sortable fields.
    sort_keys: Vec<SortKey>,
    /// A field that it goes without.
    failure: Option<DocumentError>,
}

impl Index {
    fn parse(&self, document: &Document<'_>) -> Result<ParsedDocument, DocumentError> {
        let mut words = Words::new(&self.schema, document.language);
        let (mut values, mut failure) = (Vec::new(), None);
        let mut sort_keys = vec![SortKey::Missing; self.schema.sortable_fields()];
        for (id, value) in &document.values {
            let Some(field) = self.schema.fields().get(*id) else { continue };
            if let Some(slot) = self.schema.sort_slot(*id) {
                sort_keys[slot] = sort_key(field, value)?;
            }
            if !field.indexed {
                continue;
            }
            let refuse = |expected| DocumentError::new(&field.name, value, expected);
            match &field.kind {
                FieldKind::Text { .. } => {
                    let texts = value.texts().ok_or_else(|| refuse(Expected::Text))?;
                    for (at, text) in texts.iter().enumerate() {
                        // The next word takes one of these places.
                        words.skip(if at > 0 { self.schema.text_gap.saturating_sub(1) } else { 0 });
                        words.add(&self.schema, *id, text);
                    }
                }
                FieldKind::Tag { separator, case_sensitive } => {
                    let texts = value.texts().ok_or_else(|| refuse(Expected::Text))?;
                    let found = tags(texts, *separator, *case_sensitive, field.index_empty);
                    values.push((*id, Parsed::Tags(found)));
                }
                FieldKind::Numeric => {
                    let numbers = value.numbers().ok_or_else(|| refuse(Expected::Number))?;
                    values.push((*id, Parsed::Numbers(numbers)));
                }
                FieldKind::Geo => {
                    let places = value.places().ok_or_else(|| refuse(Expected::Place))?;
                    values.push((*id, Parsed::Places(places)));
                }
                FieldKind::Shape(surface) => match value.shape(*surface).map_err(refuse) {
                    Ok(shape) => values.push((*id, Parsed::Shape(shape))),
                    Err(error) if matches!(error.expected, Expected::Shape(_)) => failure = Some(error),
                    Err(error) => return Err(error),
                },
                FieldKind::Vector(options) => {
                    let blobs = value.vectors(options, MAX_VECTORS).map_err(refuse)?;
                    // Their sizes were checked.
                    let vectors = blobs.iter().filter_map(|blob| options.vector(blob).ok()).collect();
                    values.push((*id, Parsed::Vectors(vectors)));
                    words.count_vector();
                }
            }
        }
        Ok(ParsedDocument { words, values, sort_keys, failure })
    }

    fn insert_values(&mut self, field: FieldId, values: Parsed, number: DocNumber) {
        match (&mut self.fields[field], values) {
            (FieldIndex::Tags(dictionary), Parsed::Tags(tags)) => {
                for tag in tags {
                    dictionary.entry(tag.into()).or_default().push(number, &Entry::default(), NUMBERS_ALONE);
                }
            }
            (FieldIndex::Numbers(ranges), Parsed::Numbers(numbers)) => {
                ranges.insert_all(&numbers, number);
            }
            (FieldIndex::Places(places), Parsed::Places(new)) => {
                new.into_iter().for_each(|place| places.insert(place, number));
            }
            (FieldIndex::Shapes(shapes), Parsed::Shape(shape)) => shapes.insert(shape, number),
            (FieldIndex::Vectors(index), Parsed::Vectors(vectors)) => index.insert(number, &vectors),
            // `parse` makes values of the field's kind alone.
            (_, _) => {}
        }
    }
}

fn sort_key(field: &Field, value: &Value<'_>) -> Result<SortKey, DocumentError> {
    let first = value.texts().map(|texts| texts.first().copied().unwrap_or_default());
    match (&field.kind, first) {
        // The index keeps no text of a shape.
        (FieldKind::Shape(_), _) => Ok(SortKey::Missing),
        (FieldKind::Numeric, _) => {
            let numbers = value.numbers().ok_or_else(|| DocumentError::new(&field.name, value, Expected::Number))?;
            Ok(numbers.first().map_or(SortKey::Missing, |number| SortKey::Number(*number)))
        }
        (_, Some(text)) if field.unnormalized => Ok(SortKey::Text(text.into())),
        (_, Some(text)) => Ok(SortKey::Text(fold(text).into())),
        (_, None) => {
            Ok(value.numbers().and_then(|numbers| numbers.first().copied()).map_or(SortKey::Missing, SortKey::Number))
        }
    }
}

impl SortKey {
    /// Reads a value that the caller loaded for sorting: a number if it looks like one.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        parse_number(text).map_or_else(|| Self::Text(text.into()), Self::Number)
    }
}

impl Index {
    /// Documents that went and whose entries may still be there.
    #[must_use]
    pub fn uncompacted(&self) -> u64 {
        self.compaction.gone
    }

    /// True while a round of [`compact`](Self::compact) goes on.
    #[must_use]
    pub fn is_compacting(&self) -> bool {
        self.compaction.part.is_some()
    }

    /// Does one step of removing what documents that are gone have left: at most about `work` entries of a dictionary or vectors
    /// (removing one from a graph counts 64), or the numbers or places of one field. Returns whether a round still goes on; call it until then, with the lock released
    /// between steps so that queries go on.
    pub fn compact(&mut self, work: u64) -> bool {
        if self.compaction.part.is_none() {
            if self.compaction.gone == 0 {
                return false;
            }
            self.compaction = Compaction { part: Some(0), ..Compaction::default() };
        }
        let part = self.compaction.part.unwrap_or_default();
        let (docs, after, at) = (&self.docs, &mut self.compaction.after, &mut self.compaction.at);
        let is_live = |number| docs.find(number).is_some();
        let is_done = match part.checked_sub(1) {
            None => compact_dictionary(&mut self.words, after, work, self.schema.keeps, is_live),
            Some(field) => {
                let missing = self.missing.get_mut(field).and_then(Option::as_mut);
                if let Some(missing) = missing.filter(|_| after.is_none() && at.is_none()) {
                    missing.retain(NUMBERS_ALONE, is_live);
                }
                match self.fields.get_mut(field) {
                    Some(FieldIndex::Tags(tags)) => compact_dictionary(tags, after, work, NUMBERS_ALONE, is_live),
                    Some(FieldIndex::Numbers(numbers)) => {
                        numbers.retain(is_live);
                        true
                    }
                    Some(FieldIndex::Places(places)) => {
                        places.retain(is_live);
                        true
                    }
                    Some(FieldIndex::Vectors(vectors)) => vectors.retain(at, work, is_live),
                    Some(FieldIndex::Nothing | FieldIndex::Shapes(_)) | None => true,
                }
            }
        };
        if is_done {
            self.compaction.part = (part < self.fields.len()).then_some(part + 1);
        }
        self.compaction.part.is_some()
    }
}

/// Compacts entries behind `after`, until about `work` documents were read; `true` at the end of the dictionary.
fn compact_dictionary(
    dictionary: &mut Dictionary,
    after: &mut Option<Box<[u8]>>,
    work: u64,
    keeps: Keeps,
    is_live: impl Fn(DocNumber) -> bool,
) -> bool {
    let from = after.take().map_or(Bound::Unbounded, Bound::Excluded);
    let (mut empty, mut read, mut reached) = (Vec::new(), 0, None);
    for (word, postings) in dictionary.range_mut::<[u8], _>((from.as_ref().map(AsRef::as_ref), Bound::Unbounded)) {
        if read >= work.max(1) {
            break;
        }
        read += postings.count();
        postings.retain(keeps, &is_live);
        if postings.count() == 0 {
            empty.push(word.clone());
        }
        reached = Some(word.clone());
    }
    for word in &empty {
        dictionary.remove(word);
    }
    let is_done = reached
        .as_deref()
        .is_none_or(|last| dictionary.range::<[u8], _>((Bound::Excluded(last), Bound::Unbounded)).next().is_none());
    *after = reached.filter(|_| !is_done);
    is_done
}

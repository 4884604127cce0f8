//! The words and tags of one document before they are indexed.

use std::collections::HashMap;

use super::postings::{Entry, Positions};
use crate::schema::{FieldId, FieldKind, Schema};
use crate::text::{Language, STEM_PREFIX, StemBuffer, lower, phonetic, tokens};

/// A stem counts a fifth of its word, as in RediSearch.
const STEM_WEIGHT: f64 = 0.2;

/// The words of a document's TEXT fields.
pub(super) struct Words {
    pub(super) entries: HashMap<Vec<u8>, Entry>,
    /// Words, counted by weight; stems do not count.
    pub(super) length: u32,
    pub(super) max_frequency: u32,
    language: Language,
    stemmer: StemBuffer,
    /// Rises over all fields, so that a phrase may reach from one to the next, as in RediSearch.
    position: u32,
    last_positions: HashMap<Vec<u8>, u32>,
}

impl Words {
    pub(super) fn new(schema: &Schema, language: Option<Language>) -> Self {
        let language = language.unwrap_or(schema.language);
        let stemmer = StemBuffer::new(language);
        let (entries, last_positions) = (HashMap::new(), HashMap::new());
        Self { entries, length: 0, max_frequency: 0, language, stemmer, position: 0, last_positions }
    }

    /// Leaves places free before the next text.
    pub(super) fn skip(&mut self, places: u32) {
        self.position = self.position.saturating_add(places);
    }

    /// Adds one field's text.
    pub(super) fn add(&mut self, schema: &Schema, field: FieldId, text: &[u8]) {
        let FieldKind::Text { weight, stem, phonetic: has_codes } = schema.field(field).kind else { return };
        let mask = schema.mask(field);
        if text.is_empty() && schema.field(field).index_empty {
            self.position += 1;
            let frequency = self.count(b"", weight, mask);
            self.length = self.length.saturating_add(frequency);
        }
        for token in tokens(text, schema.punctuation, self.language) {
            if !token.is_gram && schema.stop_words.contains(&token.word) {
                continue;
            }
            self.position += u32::from(!token.same_place);
            let frequency = self.count(&token.word, weight, mask);
            if !token.same_place {
                self.length = self.length.saturating_add(frequency);
            }
            for group in schema.synonyms.of(&token.word) {
                self.count(group, weight, mask);
            }
            if has_codes
                && token.word.len() >= schema.min_phonetic_length
                && let Some(code) = phonetic(&token.word)
            {
                self.count(&code, weight, mask);
            }
            if !stem || token.word.len() < schema.min_stem_length {
                continue;
            }
            let Some(stem) = self.stemmer.stem(&token.word).filter(|stem| stem.as_bytes() != &*token.word) else {
                continue;
            };
            let marked = [&[STEM_PREFIX], stem.as_bytes()].concat();
            self.count(&marked, weight * STEM_WEIGHT, mask);
        }
    }

    /// RediSearch counts a field of vectors as one more occurrence of the word that is there most often so far.
    pub(super) fn count_vector(&mut self) {
        self.max_frequency += 1;
    }

    /// Counts one occurrence at the current position; returns what it counts for.
    fn count(&mut self, word: &[u8], weight: f64, mask: u128) -> u32 {
        // RediSearch counts a word at least once, whatever the field's weight.
        let times = (weight as u32).max(1);
        if !self.entries.contains_key(word) {
            self.entries.insert(word.to_vec(), Entry::default());
            self.last_positions.insert(word.to_vec(), 0);
        }
        let entry = self.entries.get_mut(word).expect("it was inserted if it was absent");
        let last = self.last_positions.get_mut(word).expect("it has the words of `entries`");
        entry.frequency = entry.frequency.saturating_add(times);
        entry.fields |= mask;
        // A stem may be met by two words at one place; it stands there once.
        if self.position > *last {
            Positions::write(&mut entry.positions, *last, self.position);
            *last = self.position;
        }
        self.max_frequency = self.max_frequency.max(entry.frequency);
        times
    }
}

/// The distinct tags of a field's values.
pub(super) fn tags(texts: &[&[u8]], separator: Option<u8>, case_sensitive: bool, keep_empty: bool) -> Vec<Vec<u8>> {
    let mut tags = Vec::new();
    for text in texts {
        let parts = text.split(|byte| Some(*byte) == separator);
        let trimmed = parts.map(|part| if separator.is_some() { part.trim_ascii() } else { part });
        for part in trimmed.filter(|part| keep_empty || !part.is_empty()) {
            tags.push(if case_sensitive { part.to_vec() } else { lower(part).into_owned() });
        }
    }
    tags.sort_unstable();
    tags.dedup();
    tags
}

//! Words of a query that no document has, and those that may be meant (FT.SPELLCHECK).

use std::collections::BTreeSet;

use crate::eval::{Pattern, expand};
use crate::index::Index;
use crate::index::postings::{Cursor, Postings};
use crate::query::{Kind, Node, Query};
use crate::schema::FieldMask;
use crate::text::lower;

/// Words of a dictionary (FT.DICTADD); upper and lower case count.
pub type WordList = BTreeSet<Box<[u8]>>;

/// How words are looked for.
#[derive(Clone, Copy, Debug)]
pub struct SpellOptions<'s> {
    /// The most changes between a word and what may be meant, 1 to [`MAX_SPELL_DISTANCE`].
    pub distance: u8,
    /// Words that may be meant although no document has them.
    pub include: &'s [&'s WordList],
    /// Words that are right although no document has them.
    pub exclude: &'s [&'s WordList],
}

/// The most changes that are looked for; a greater distance in [`SpellOptions`] counts as this.
pub const MAX_SPELL_DISTANCE: u8 = 4;

impl Default for SpellOptions<'_> {
    fn default() -> Self {
        Self { distance: 1, include: &[], exclude: &[] }
    }
}

/// A word that no document has.
#[derive(Clone, Debug, PartialEq)]
pub struct Misspelling {
    /// The word, in lower case.
    pub word: Box<[u8]>,
    /// The suggested words, the most frequent first. The number is the share of all documents that have the word in the searched word's
    /// fields.
    pub suggestions: Vec<(f64, Box<[u8]>)>,
}

impl Index {
    /// Looks up all words of a query, those of tags among them. Parse it with [`crate::Expander::Nothing`] and
    /// [`crate::ParseOptions::keep_stop_words`].
    #[must_use]
    pub fn spell_check(&self, query: &Query, options: &SpellOptions<'_>) -> Vec<Misspelling> {
        let (mut wrong, mut open) = (Vec::new(), vec![query.root()]);
        while let Some(node) = open.pop() {
            open.extend(node.children.iter().rev());
            if let Some(word) = self.unknown(node, options) {
                let suggestions = self.meant(word, node.fields, options);
                wrong.push(Misspelling { word: word.into(), suggestions });
            }
        }
        wrong
    }

    /// The word of a node, if nobody knows it.
    fn unknown<'n>(&self, node: &'n Node, options: &SpellOptions<'_>) -> Option<&'n [u8]> {
        let Kind::Token { text, .. } = &node.kind else { return None };
        let is_excluded = options.exclude.iter().any(|list| list.contains(text.as_slice()));
        let is_known =
            || self.words().get(text.as_slice()).is_some_and(|postings| self.count(postings, node.fields) > 0);
        (!is_excluded && !is_known()).then_some(text.as_slice())
    }

    fn meant(&self, word: &[u8], fields: FieldMask, options: &SpellOptions<'_>) -> Vec<(f64, Box<[u8]>)> {
        let distance = options.distance.min(MAX_SPELL_DISTANCE);
        let pattern = Pattern::Fuzzy { text: word, distance, finds_empty: false };
        // Stems and groups of synonyms are no words; RediSearch names stems.
        let near = expand(self.words(), &pattern, usize::MAX).into_iter();
        let known = near.filter(|(word, _)| !matches!(word.first(), Some(b'+' | b'~' | b'<'))).filter_map(
            |(word, postings)| {
                let count = self.count(postings, fields);
                // As in RediSearch, other fields add to a word's score.
                (count > 0).then(|| (self.count(postings, FieldMask::MAX) as f64 / self.len() as f64, Box::from(word)))
            },
        );
        let mut meant: Vec<(f64, Box<[u8]>)> = known.collect();
        for other in options.include.iter().flat_map(|list| list.iter()) {
            if is_near(word, other, distance) && meant.iter().all(|(_, known)| lower(known) != lower(other)) {
                meant.push((0.0, other.clone()));
            }
        }
        meant.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.cmp(&other.1)));
        meant
    }

    /// Live documents that have a word in one of the fields.
    fn count(&self, postings: &Postings, fields: FieldMask) -> u64 {
        if fields == FieldMask::MAX && self.uncompacted() == 0 {
            return postings.count();
        }
        let mut cursor = Cursor::new(postings, self.schema().keeps);
        let (mut count, mut next) = (0, cursor.next());
        while let Some(number) = next {
            count += u64::from(cursor.fields() & fields != 0 && self.docs().find(number).is_some());
            next = cursor.next();
        }
        count
    }
}

fn is_near(word: &[u8], other: &[u8], distance: u8) -> bool {
    let mut table = crate::eval::Table::new(word, distance);
    // Dictionaries keep upper case; it makes no distance.
    std::str::from_utf8(&lower(other)).is_ok_and(|other| table.check(other) == Ok(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, Document, Expander, Field, FieldKind, ParseOptions, Schema, Value};

    fn index() -> Index {
        let fields =
            [Field::new("t", FieldKind::TEXT), Field::new("u", FieldKind::TEXT), Field::new("g", FieldKind::TAG)];
        let mut index = Index::new(Schema::new(fields).expect("the names differ"));
        for (id, text) in [("d1", "hello help running"), ("d2", "hello hello"), ("d3", "jello runs")] {
            let other = if id == "d1" { "world" } else { "" };
            let values = vec![(0, Value::Text(text.as_bytes())), (1, Value::Text(other.as_bytes()))];
            index.put(&Document::new(id.as_bytes(), values)).expect("text");
        }
        index
    }

    fn check(index: &Index, query: &str, options: &SpellOptions<'_>, expected: &[(&str, &[(f64, &str)])]) {
        let parse = ParseOptions {
            dialect: Dialect::Two,
            expander: Expander::Nothing,
            keep_stop_words: true,
            ..ParseOptions::default()
        };
        let parsed = Query::parse(query.as_bytes(), index.schema(), &parse).expect("valid");
        let found = index.spell_check(&parsed, options);
        let expected: Vec<Misspelling> = expected
            .iter()
            .map(|(word, suggestions)| Misspelling {
                word: word.as_bytes().into(),
                suggestions: suggestions.iter().map(|(score, word)| (*score, word.as_bytes().into())).collect(),
            })
            .collect();
        assert_eq!(found, expected, "{query}");
    }

    /// Replies of RediSearch 2.10.
    #[test]
    fn unknown_words_are_named_with_what_may_be_meant() {
        let index = index();
        let third = 1.0 / 3.0;
        let hell: (&str, &[(f64, &str)]) = ("hell", &[(2.0 / 3.0, "hello"), (third, "help")]);
        let plain = SpellOptions::default();
        check(&index, "hell", &plain, &[hell]);
        check(&index, "HELL hello", &plain, &[hell]);
        check(&index, "hell wrld hell", &plain, &[hell, ("wrld", &[(third, "world")]), hell]);
        check(&index, "@t:wrld", &plain, &[("wrld", &[])]);
        check(&index, "@u:wrld", &plain, &[("wrld", &[(third, "world")])]);
        check(&index, "-hell", &plain, &[hell]);
        check(&index, "\"hell wrld\"", &plain, &[hell, ("wrld", &[(third, "world")])]);
        check(&index, "hel* %hell%", &plain, &[]);
        check(&index, "the", &plain, &[("the", &[])]);
        check(&index, "@g:{hell}", &plain, &[hell]);
        check(&index, "rung", &plain, &[("rung", &[(third, "runs")])]);
        let two = SpellOptions { distance: 2, ..plain };
        check(&index, "hell", &two, &[("hell", &[(2.0 / 3.0, "hello"), (third, "help"), (third, "jello")])]);
    }

    #[test]
    fn dictionaries_add_and_excuse_words() {
        let index = index();
        let list: WordList = ["helm", "hello", "HELP", "hulk"].iter().map(|word| word.as_bytes().into()).collect();
        let include = SpellOptions { include: &[&list], ..SpellOptions::default() };
        check(&index, "hell", &include, &[("hell", &[(2.0 / 3.0, "hello"), (1.0 / 3.0, "help"), (0.0, "helm")])]);
        let exclude = SpellOptions { exclude: &[&list], ..SpellOptions::default() };
        check(&index, "helm", &exclude, &[]);
    }

    #[test]
    fn documents_that_are_gone_do_not_count() {
        let mut index = index();
        index.remove(b"d2");
        check(&index, "hell", &SpellOptions::default(), &[("hell", &[(0.5, "hello"), (0.5, "help")])]);
    }
}

//! A query's tree becomes iterators over an index.

use std::cell::{Cell, RefCell};

use super::expansion::Expansion;
use super::matches::{All, Boxed, Collected, Empty, Intersection, Lacking, Near, Not, Optional, Union, Words};
use super::patterns::{self, Pattern};
use super::profile::{IteratorKind, Measured};
use super::record::Word;
use super::score::{bm25_idf, idf};
use super::search::{Keep, Limits};
use super::vectors::Distances;
use crate::index::postings::{Cursor, Postings};
use crate::index::{Dictionary, FieldIndex, Index, NUMBERS_ALONE};
use crate::query::{Kind, Node, general, pattern_without_escapes};
use crate::schema::{FieldId, FieldKind, Keeps};
use crate::text::{STEM_PREFIX, lower, unescape};

/// The options that the whole query sets for its phrases, and the limits of patterns.
#[derive(Clone, Copy)]
pub(super) struct Context<'i, 'o> {
    pub(super) index: &'i Index,
    pub(super) limits: Limits,
    pub(super) slop: Option<u32>,
    pub(super) in_order: bool,
    /// Ends the query, also while patterns are looked up.
    pub(super) is_over: Option<&'o dyn Fn() -> bool>,
    /// Whether it has.
    pub(super) was_over: &'o Cell<bool>,
    /// The distances that vector queries found.
    pub(super) distances: &'o RefCell<Distances>,
    /// The clock of a query that is watched.
    pub(super) clock: Option<fn() -> u64>,
    /// Says of which documents the query is.
    pub(super) keeps: Option<&'o Keep<'o>>,
}

impl<'i> Context<'i, '_> {
    /// The iterator of a node. Trees are at most as deep as the parser's stack, so this may call itself.
    pub(super) fn build(&self, node: &Node) -> Boxed<'i> {
        self.watched(self.build_unwatched(node))
    }

    /// The same iterator, which is watched if the query is.
    fn watched(&self, matches: Boxed<'i>) -> Boxed<'i> {
        match self.clock {
            Some(clock) => Box::new(Measured { matches, clock, count: 0, micros: 0 }),
            None => matches,
        }
    }

    fn build_unwatched(&self, node: &Node) -> Boxed<'i> {
        let docs = self.index.docs();
        match &node.kind {
            Kind::Empty => Box::new(Empty),
            Kind::All => Box::new(All { docs, weight: node.weight }),
            Kind::Token { text, .. } => self.word(node, text),
            Kind::Phrase { exact } => self.phrase(node, *exact),
            Kind::Union => {
                let children = node.children.iter().filter(|child| !self.is_unknown(child));
                self.union(children.map(|child| self.build(child)).collect(), node.weight, "UNION")
            }
            Kind::Not => Box::new(Not::new(docs, self.first_child(node), node.weight)),
            Kind::Optional => Box::new(Optional::new(docs, self.first_child(node), node.weight)),
            Kind::Affix { text, before, after } => {
                let text = lower(text);
                self.pattern(node, &affix(&text, *before, *after), text.len(), ("PREFIX", &text))
            }
            Kind::Wildcard { pattern } => {
                let shown = pattern_without_escapes(pattern);
                self.pattern(node, &Pattern::Wildcard(&lower(pattern)), usize::MAX, ("WILDCARD", &shown))
            }
            Kind::Fuzzy { text, distance, finds_empty } => {
                let pattern = Pattern::Fuzzy { text, distance: *distance, finds_empty: *finds_empty };
                self.pattern(node, &pattern, usize::MAX, ("FUZZY", text))
            }
            Kind::Numeric { field, range } => match self.field_index(field.id) {
                Some(FieldIndex::Numbers(numbers)) => {
                    let found = numbers.within(*range).map(|(_, number)| number).collect();
                    let term = format!("{} - {}", general(range.min), general(range.max));
                    Box::new(Collected::new(
                        found,
                        node.weight,
                        IteratorKind::Reader { kind: "NUMERIC", term, size: 0 },
                    ))
                }
                _ => Box::new(Empty),
            },
            Kind::Geo { field, circle, radius, unit } => match self.field_index(field.id) {
                Some(FieldIndex::Places(places)) => {
                    let centre = circle.centre;
                    let (longitude, latitude) = (general(centre.longitude), general(centre.latitude));
                    let term = format!("{longitude},{latitude} {} {}", general(*radius), unit.name);
                    let kind = IteratorKind::Reader { kind: "GEO", term, size: 0 };
                    Box::new(Collected::new(places.within(*circle), node.weight, kind))
                }
                _ => Box::new(Empty),
            },
            Kind::Shape { field, relation, shape, .. } => match (self.field_index(field.id), shape) {
                (Some(FieldIndex::Shapes(shapes)), Some(shape)) => {
                    let found = shapes.related(*relation, shape, &|| self.is_over());
                    Box::new(Collected::without_score(found, IteratorKind::Ids))
                }
                _ => Box::new(Empty),
            },
            Kind::Tag { field } => self.tags(node, field.id),
            Kind::Missing { field } => match field.id.and_then(|id| self.index.missing(id)) {
                Some(postings) => {
                    Box::new(Lacking { cursor: Cursor::new(postings, NUMBERS_ALONE), count: postings.count() })
                }
                None => Box::new(Empty),
            },
            Kind::Ids(ids) => {
                let found = ids.iter().filter_map(|id| docs.number(id)).collect();
                Box::new(Collected::new(found, node.weight, IteratorKind::Ids))
            }
            Kind::Vector(query) => self.vector(node, query),
        }
    }

    fn first_child(&self, node: &Node) -> Boxed<'i> {
        node.children.first().map_or_else(|| Box::new(Empty) as Boxed<'i>, |child| self.build(child))
    }

    fn field_index(&self, field: Option<FieldId>) -> Option<&'i FieldIndex> {
        Some(self.index.field_index(field?))
    }

    fn phrase(&self, node: &Node, exact: bool) -> Boxed<'i> {
        let mut children: Vec<Boxed<'i>> = node.children.iter().map(|child| self.build(child)).collect();
        match children.len() {
            0 => return Box::new(Empty),
            1 => return children.remove(0),
            _ => {}
        }
        let in_order = exact || node.in_order.unwrap_or_default() || self.in_order;
        let slop = if exact { Some(0) } else { node.slop.or(self.slop) };
        let near = (slop.is_some() || in_order).then_some(Near { slop, in_order });
        Box::new(Intersection::new(children, near, node.weight))
    }

    fn union(&self, mut children: Vec<Boxed<'i>>, weight: f64, name: &str) -> Boxed<'i> {
        match children.len() {
            0 => Box::new(Empty),
            1 => children.remove(0),
            _ => Box::new(Union::new(children, false, weight, name.to_owned())),
        }
    }

    /// A word that the index does not have is no part of a union, so it makes no group of one.
    fn is_unknown(&self, node: &Node) -> bool {
        match &node.kind {
            Kind::Token { text, .. } => self.known_word(node, text).is_none(),
            Kind::Union => node.children.iter().all(|child| self.is_unknown(child)),
            _ => false,
        }
    }

    /// The postings of a word, if the node's fields have it anywhere.
    fn known_word(&self, node: &Node, text: &[u8]) -> Option<&'i Postings> {
        let postings = self.index.words().get(text)?;
        (postings.fields() & node.fields != 0).then_some(postings)
    }

    fn word(&self, node: &Node, text: &[u8]) -> Boxed<'i> {
        let found = self.known_word(node, text);
        found.map_or_else(
            || Box::new(Empty) as Boxed<'i>,
            |postings| Box::new(self.text(node, text, postings, node.weight)),
        )
    }

    fn text(&self, node: &Node, text: &[u8], postings: &'i Postings, weight: f64) -> Words<'i> {
        let mut words = self.reader(postings, text, weight, self.index.schema().keeps);
        words.fields = node.fields;
        words
    }

    fn tagged(&self, postings: &'i Postings, tag: &[u8], weight: f64) -> Words<'i> {
        let mut words = self.reader(postings, tag, weight, NUMBERS_ALONE);
        words.word.is_tag = true;
        words
    }

    /// The documents with any of the words that a pattern stands for. Each word is watched if the query is.
    fn expansion(&self, words: impl Iterator<Item = Words<'i>>, weight: f64, name: &str) -> Boxed<'i> {
        let words: Vec<Words<'i>> = words.collect();
        match (words.is_empty(), self.clock) {
            (true, _) => Box::new(Empty),
            (false, None) => Box::new(Expansion::new(words, weight, name.to_owned())),
            (false, Some(_)) => {
                let watched = words.into_iter().map(|words| self.watched(Box::new(words)));
                Box::new(Union::new(watched.collect(), true, weight, name.to_owned()))
            }
        }
    }

    fn reader(&self, postings: &'i Postings, text: &[u8], weight: f64, keeps: Keeps) -> Words<'i> {
        let (all, count) = (self.index.len() as u64, postings.count());
        let word = Word { text: text.to_vec(), is_tag: false, idf: idf(all, count), bm25_idf: bm25_idf(all, count) };
        let fields = crate::schema::ALL_FIELDS;
        Words { cursor: Cursor::new(postings, keeps), count, fields, word, weight }
    }

    /// Whether the query was ended. A pattern may read a whole dictionary, so it asks before each.
    pub(super) fn is_over(&self) -> bool {
        let is_over = self.was_over.get() || self.is_over.is_some_and(|is_over| is_over());
        self.was_over.set(is_over);
        is_over
    }

    /// The union of words that a pattern finds; one that is too short finds none.
    fn pattern(&self, node: &Node, pattern: &Pattern<'_>, length: usize, (kind, text): (&str, &[u8])) -> Boxed<'i> {
        if length < self.limits.min_prefix || self.is_over() {
            return Box::new(Empty);
        }
        let mut found = patterns::expand(self.index.words(), pattern, self.limits.max_expansions);
        let has_beginning = matches!(pattern, Pattern::Prefix(_) | Pattern::Fuzzy { .. });
        if !has_beginning && self.index.schema().masked(node.fields).all(|field| field.suffix_trie) {
            found.retain(|(word, _)| word.first() != Some(&STEM_PREFIX));
        }
        let words = found.into_iter().map(|(word, postings)| self.text(node, word, postings, 1.0));
        self.expansion(words, node.weight, &format!("{kind} - {}", String::from_utf8_lossy(text)))
    }

    fn tags(&self, node: &Node, field: Option<FieldId>) -> Boxed<'i> {
        let Some((field, tags)) = field.and_then(|field| Some((field, self.index.tags(field)?))) else {
            return Box::new(Empty);
        };
        let kind = &self.index.schema().field(field).kind;
        let case_sensitive = matches!(kind, FieldKind::Tag { case_sensitive: true, .. });
        let fold = |text: &[u8]| {
            let text = unescape(text);
            if case_sensitive { text.into_owned() } else { lower(&text).into_owned() }
        };
        let each = node.children.iter().map(|child| self.watched(self.tag(tags, child, node.weight, &fold)));
        self.union(each.collect(), node.weight, "TAG")
    }

    fn tag(&self, tags: &'i Dictionary, node: &Node, weight: f64, fold: &dyn Fn(&[u8]) -> Vec<u8>) -> Boxed<'i> {
        let one = |tag: &[u8]| -> Boxed<'i> {
            match tags.get(tag) {
                Some(postings) => Box::new(self.tagged(postings, tag, weight)),
                None => Box::new(Empty),
            }
        };
        match &node.kind {
            Kind::Token { text, .. } => one(&fold(text)),
            Kind::Phrase { .. } => {
                let words = node.children.iter().filter_map(|child| match &child.kind {
                    Kind::Token { text, .. } => Some(fold(text)),
                    _ => None,
                });
                one(&words.collect::<Vec<_>>().join(&b' '))
            }
            Kind::Affix { text, before, after } if text.len() >= self.limits.min_prefix => {
                self.tag_pattern(tags, &affix(&fold(text), *before, *after), weight)
            }
            Kind::Wildcard { pattern } => self.tag_pattern(tags, &Pattern::Wildcard(&fold(pattern)), weight),
            _ => Box::new(Empty),
        }
    }

    fn tag_pattern(&self, tags: &'i Dictionary, pattern: &Pattern<'_>, weight: f64) -> Boxed<'i> {
        if self.is_over() {
            return Box::new(Empty);
        }
        let found = patterns::expand(tags, pattern, self.limits.max_expansions);
        let tags = found.into_iter().map(|(tag, postings)| self.tagged(postings, tag, 1.0));
        self.expansion(tags, weight, "TAG")
    }
}

fn affix(text: &[u8], before: bool, after: bool) -> Pattern<'_> {
    match (before, after) {
        (true, true) => Pattern::Infix(text),
        (true, false) => Pattern::Suffix(text),
        (false, _) => Pattern::Prefix(text),
    }
}

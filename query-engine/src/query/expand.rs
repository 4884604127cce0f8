//! Words become unions of themselves, the groups of their synonyms, their sound and their stems.

use super::node::{Kind, Node};
use super::{Expander, ParseOptions, QueryError};
use crate::eval::Level;
use crate::schema::{ALL_FIELDS, FieldKind, FieldMask, NO_STEMS, Schema};
use crate::text::{STEM_PREFIX, StemBuffer, phonetic};

/// Expands all words but those of exact phrases and tags. RediSearch 2.10 also leaves those of negations, optional parts and filters of
/// nearest vectors, Redis 8 those of NOSTEM fields.
pub(super) fn expand(root: &mut Node, schema: &Schema, options: &ParseOptions<'_>) -> Result<(), QueryError> {
    let stemmer = StemBuffer::new(options.language.unwrap_or(schema.language));
    expand_node(root, (schema, options), &stemmer)
}

fn expand_node(node: &mut Node, place: (&Schema, &ParseOptions<'_>), stemmer: &StemBuffer) -> Result<(), QueryError> {
    let (schema, level) = (place.0, place.1.level);
    if node.verbatim || level == Level::Redis8 && !has_stems(schema, node.fields) {
        return Ok(());
    }
    match &node.kind {
        Kind::Token { text, .. } if !text.is_empty() => expand_token(node, place, stemmer),
        Kind::Not | Kind::Optional | Kind::Vector(_) if level == Level::Search210 => Ok(()),
        Kind::Phrase { exact: true } | Kind::Tag { .. } => Ok(()),
        _ => node.children.iter_mut().try_for_each(|child| expand_node(child, place, stemmer)),
    }
}

/// True if one of these fields is indexed by stems.
fn has_stems(schema: &Schema, fields: FieldMask) -> bool {
    fields == ALL_FIELDS || schema.masked(fields).any(|field| matches!(field.kind, FieldKind::Text { stem: true, .. }))
}

fn expand_token(
    node: &mut Node,
    (schema, options): (&Schema, &ParseOptions<'_>),
    stemmer: &StemBuffer,
) -> Result<(), QueryError> {
    let Kind::Token { text, .. } = &node.kind else { return Ok(()) };
    let (is_phonetic, expander) = (schema.is_phonetic(node.fields), options.expander);
    let is_all = expander == Expander::All;
    if is_all && node.phonetic.is_some() && !is_phonetic {
        return Err(QueryError::NotPhonetic);
    }
    let mut texts = Vec::new();
    if is_all || expander == Expander::Synonyms {
        texts.extend(schema.synonyms.of(text).iter().map(|group| group.to_vec()));
    }
    if is_all && node.phonetic.unwrap_or(is_phonetic) || expander == Expander::Sound {
        texts.extend(phonetic(text));
    }
    let stems = (is_all || expander == Expander::Stem) && schema.min_stem_length != NO_STEMS;
    let stem = if stems { stemmer.stem(text) } else { None };
    if let Some(stem) = stem {
        texts.push([&[STEM_PREFIX], stem.as_bytes()].concat());
        texts.extend((stem.as_bytes() != text).then(|| stem.as_bytes().to_vec()));
    }
    if texts.is_empty() {
        return Ok(());
    }
    let fields = node.fields;
    let expanded = |text| Node { fields, ..Node::new(Kind::Token { text, expanded: true }) };
    let mut words: Vec<Node> = texts.into_iter().map(expanded).collect();
    words.insert(0, std::mem::replace(node, Node::new(Kind::Empty)));
    *node = Node { fields, ..Node::with(Kind::Union, words) };
    Ok(())
}

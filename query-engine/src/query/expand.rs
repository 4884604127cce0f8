//! Words become unions of themselves, the groups of their synonyms, their sound and their stems.

use super::QueryError;
use super::node::{Kind, Node};
use crate::schema::Schema;
use crate::text::{Language, STEM_PREFIX, StemBuffer, phonetic};

/// Expands all words below unions and intersections, also those of NOSTEM fields; those of exact phrases, tags, negations and
/// optional parts stay.
pub(super) fn expand(root: &mut Node, schema: &Schema, language: Language) -> Result<(), QueryError> {
    expand_node(root, schema, &StemBuffer::new(language))
}

fn expand_node(node: &mut Node, schema: &Schema, stemmer: &StemBuffer) -> Result<(), QueryError> {
    if node.verbatim {
        return Ok(());
    }
    match &node.kind {
        Kind::Token { text, .. } if !text.is_empty() => expand_token(node, schema, stemmer),
        Kind::Phrase { exact: false } | Kind::Union | Kind::Vector(_) => {
            node.children.iter_mut().try_for_each(|child| expand_node(child, schema, stemmer))
        }
        _ => Ok(()),
    }
}

fn expand_token(node: &mut Node, schema: &Schema, stemmer: &StemBuffer) -> Result<(), QueryError> {
    let Kind::Token { text, .. } = &node.kind else { return Ok(()) };
    let is_phonetic = schema.is_phonetic(node.fields);
    if node.phonetic.is_some() && !is_phonetic {
        return Err(QueryError::NotPhonetic);
    }
    let mut texts: Vec<Vec<u8>> = schema.synonyms.of(text).iter().map(|group| group.to_vec()).collect();
    if node.phonetic.unwrap_or(is_phonetic) {
        texts.extend(phonetic(text));
    }
    if let Some(stem) = stemmer.stem(text) {
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

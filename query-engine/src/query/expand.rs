//! Words become unions of themselves and their stems.

use super::node::{Kind, Node};
use crate::text::{Language, STEM_PREFIX, StemBuffer};

/// Expands all words below unions and intersections, also those of NOSTEM fields; those of exact phrases, tags, negations and
/// optional parts stay.
pub(super) fn expand(root: &mut Node, language: Language) {
    expand_node(root, &StemBuffer::new(language));
}

fn expand_node(node: &mut Node, stemmer: &StemBuffer) {
    if node.verbatim {
        return;
    }
    match &node.kind {
        Kind::Token { text, .. } if !text.is_empty() => expand_token(node, stemmer),
        Kind::Phrase { exact: false } | Kind::Union => {
            node.children.iter_mut().for_each(|child| expand_node(child, stemmer));
        }
        _ => {}
    }
}

fn expand_token(node: &mut Node, stemmer: &StemBuffer) {
    let Kind::Token { text, .. } = &node.kind else { return };
    let Some(stem) = stemmer.stem(text) else { return };
    let (stem, fields) = (stem.into_owned().into_bytes(), node.fields);
    let expanded = |text: Vec<u8>| Node { fields, ..Node::new(Kind::Token { text, expanded: true }) };
    let mut words = vec![expanded([&[STEM_PREFIX], stem.as_slice()].concat())];
    if stem != *text {
        words.push(expanded(stem));
    }
    words.insert(0, std::mem::replace(node, Node::new(Kind::Empty)));
    *node = Node { fields, ..Node::with(Kind::Union, words) };
}

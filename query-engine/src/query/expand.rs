//! Words become unions of themselves, the groups of their synonyms and their stems.

use super::node::{Kind, Node};
use crate::text::{Language, STEM_PREFIX, StemBuffer, Synonyms};

/// Expands all words below unions and intersections, also those of NOSTEM fields; those of exact phrases, tags, negations and
/// optional parts stay.
pub(super) fn expand(root: &mut Node, synonyms: &Synonyms, language: Language) {
    expand_node(root, synonyms, &StemBuffer::new(language));
}

fn expand_node(node: &mut Node, synonyms: &Synonyms, stemmer: &StemBuffer) {
    if node.verbatim {
        return;
    }
    match &node.kind {
        Kind::Token { text, .. } if !text.is_empty() => expand_token(node, synonyms, stemmer),
        Kind::Phrase { exact: false } | Kind::Union | Kind::Vector(_) => {
            node.children.iter_mut().for_each(|child| expand_node(child, synonyms, stemmer));
        }
        _ => {}
    }
}

fn expand_token(node: &mut Node, synonyms: &Synonyms, stemmer: &StemBuffer) {
    let Kind::Token { text, .. } = &node.kind else { return };
    let mut texts: Vec<Vec<u8>> = synonyms.of(text).iter().map(|group| group.to_vec()).collect();
    if let Some(stem) = stemmer.stem(text) {
        texts.push([&[STEM_PREFIX], stem.as_bytes()].concat());
        texts.extend((stem.as_bytes() != text).then(|| stem.as_bytes().to_vec()));
    }
    if texts.is_empty() {
        return;
    }
    let fields = node.fields;
    let expanded = |text| Node { fields, ..Node::new(Kind::Token { text, expanded: true }) };
    let mut words: Vec<Node> = texts.into_iter().map(expanded).collect();
    words.insert(0, std::mem::replace(node, Node::new(Kind::Empty)));
    *node = Node { fields, ..Node::with(Kind::Union, words) };
}

//! Checks of a whole tree: empty words that no field has, and distances of words whose order is not defined.

use super::QueryError;
use super::node::{Kind, Node};
use crate::schema::{ALL_FIELDS, Field, Schema};

/// Refuses empty words where no field indexes them, and phrases with a distance or an order in fields without one. `is_near`: the query as a
/// whole has a distance or an order.
pub(super) fn check(root: &Node, schema: &Schema, is_near: bool) -> Result<(), QueryError> {
    let has_words = |field: &Field| !matches!(field.kind, crate::FieldKind::Numeric | crate::FieldKind::Geo);
    let checks_empty = schema.fields().iter().any(|field| has_words(field) && !field.index_empty);
    let checks_order = schema.keeps.positions && schema.fields().iter().any(|field| field.unordered);
    if !checks_empty && !checks_order {
        return Ok(());
    }
    // As in RediSearch, one TAG field with INDEXEMPTY lets all of the query's have empty tags.
    let (mut has_tags, mut has_empty_tags) = (false, false);
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        match &node.kind {
            Kind::Phrase { .. } if checks_order && (is_near || node.slop.is_some() || node.in_order.is_some()) => {
                if let Some(field) = schema.masked(node.fields).find(|field| field.unordered) {
                    return Err(QueryError::NoOrder(field.name.clone()));
                }
            }
            Kind::Tag { field } => {
                has_tags = true;
                has_empty_tags |= field.id.is_none_or(|field| schema.field(field).index_empty);
            }
            Kind::Token { text, .. } if checks_empty && text.is_empty() => {
                let takes = if has_tags { has_empty_tags } else { takes_empty(node, schema) };
                if !takes {
                    return Err(QueryError::EmptyNotIndexed);
                }
            }
            _ => {}
        }
        open.extend(node.children.iter().rev());
    }
    Ok(())
}

/// Refuses distances and orders where positions are not kept, and suffixes in fields without WITHSUFFIXTRIE. A suffix without a field is looked
/// for in those that have it.
pub(super) fn check_kept(root: &mut Node, schema: &Schema, is_near: bool) -> Result<(), QueryError> {
    if is_near && !schema.keeps.positions {
        return Err(QueryError::NoOffsets);
    }
    let fields = schema.fields().iter().enumerate().filter(|(_, field)| field.suffix_trie);
    let with_suffixes = fields.fold(0, |mask, (at, _)| mask | schema.mask(at));
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        match &node.kind {
            Kind::Phrase { exact: true } if node.children.len() > 1 && !schema.keeps.positions => {
                return Err(QueryError::NoOffsets);
            }
            Kind::Affix { before: true, .. } => {
                let named = node.fields != ALL_FIELDS;
                node.fields &= with_suffixes;
                match (node.fields, named) {
                    (0, true) => return Err(QueryError::NoSuffixes),
                    (0, false) => node.kind = Kind::Empty,
                    _ => {}
                }
            }
            _ => {}
        }
        // Patterns of tags have no fields of their own.
        if !matches!(node.kind, Kind::Tag { .. }) {
            open.extend(node.children.iter_mut());
        }
    }
    Ok(())
}

/// Returns true if one of a word's TEXT fields indexes empty texts. A word that names no TEXT field finds nothing, and passes.
fn takes_empty(node: &Node, schema: &Schema) -> bool {
    let mut fields = schema.masked(node.fields).peekable();
    node.fields == ALL_FIELDS || fields.peek().is_none() || fields.any(|field| field.index_empty)
}

//! The tree as FT.EXPLAIN prints it.

use std::fmt::Write as _;

use super::node::{Kind, Near, Node, VectorQuery};
use super::number::{fixed, general};
use crate::schema::{ALL_FIELDS, Schema};

pub(super) fn explain(root: &Node, schema: &Schema) -> String {
    let mut text = String::new();
    write_node(&mut text, root, schema, 0);
    text
}

fn lossy(text: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(text)
}

fn write_node(out: &mut String, node: &Node, schema: &Schema, depth: usize) {
    indent(out, depth);
    write_fields(out, node, schema);
    match &node.kind {
        Kind::Token { text, expanded } => {
            let text = if text.is_empty() { "\"\"".into() } else { lossy(text) };
            let _ = write!(out, "{text}{}", if *expanded { "(expanded)" } else { "" });
            if node.weight != 1.0 {
                let _ = write!(out, " => {{$weight: {};}}", general(node.weight));
            }
            out.push('\n');
            return;
        }
        Kind::Phrase { exact } => {
            write_children(out, if *exact { "EXACT {" } else { "INTERSECT {" }, node, schema, depth)
        }
        Kind::Union => write_children(out, "UNION {", node, schema, depth),
        Kind::Not => write_children(out, "NOT{", node, schema, depth),
        Kind::Optional => write_children(out, "OPTIONAL{", node, schema, depth),
        Kind::Tag { field } => write_children(out, &format!("TAG:@{} {{", field.name), node, schema, depth),
        Kind::Vector(query) => write_vector(out, query, node, schema, depth),
        leaf => write_leaf(out, leaf),
    }
    write_attributes(out, node);
    out.push('\n');
}

fn write_leaf(out: &mut String, leaf: &Kind) {
    let _ = match leaf {
        Kind::Empty => write!(out, "<empty>"),
        Kind::All => write!(out, "<WILDCARD>"),
        Kind::Affix { text, before, after } => {
            let name = match (before, after) {
                (true, true) => "INFIX",
                (true, false) => "SUFFIX",
                (false, _) => "PREFIX",
            };
            let star = |is: &bool| if *is { "*" } else { "" };
            write!(out, "{name}{{{}{}{}}}", star(before), lossy(text), star(after))
        }
        // RediSearch takes escapes away before it prints.
        Kind::Wildcard { pattern } => write!(out, "WILDCARD{{{}}}", lossy(&pattern_without_escapes(pattern))),
        Kind::Fuzzy { text, .. } => write!(out, "FUZZY{{{}}}", lossy(text)),
        Kind::Numeric { field, range } => {
            let sign = |includes| if includes { "<=" } else { "<" };
            let (min, max) = (fixed(range.min), fixed(range.max));
            let (above, below) = (sign(range.includes_min), sign(range.includes_max));
            write!(out, "NUMERIC {{{min} {above} @{} {below} {max}}}", field.name)
        }
        Kind::Geo { field, circle, radius, unit } => {
            let (longitude, latitude) = (fixed(circle.centre.longitude), fixed(circle.centre.latitude));
            write!(out, "GEO {}:{{{longitude},{latitude} --> {} {}}}", field.name, fixed(*radius), unit.name)
        }
        Kind::Shape { relation, text, .. } => write!(out, "GEOSHAPE{{{} {}}}", *relation as u8, lossy(text)),
        Kind::Missing { field } => write!(out, "ISMISSING{{{}}}", field.name),
        Kind::Ids(ids) => {
            let ids: Vec<_> = ids.iter().map(|id| format!("{},", lossy(id))).collect();
            write!(out, "IDS {{{}}}", ids.concat())
        }
        Kind::Token { .. } | Kind::Phrase { .. } | Kind::Union | Kind::Not | Kind::Optional => Ok(()),
        Kind::Tag { .. } | Kind::Vector(_) => Ok(()),
    };
}

/// A pattern without the backslashes that escape.
pub(crate) fn pattern_without_escapes(pattern: &[u8]) -> Vec<u8> {
    let mut escapes = false;
    let mut keeps = |byte: &u8| {
        escapes = *byte == b'\\' && !escapes;
        !escapes
    };
    pattern.iter().copied().filter(|byte| keeps(byte)).collect()
}

fn write_vector(out: &mut String, query: &VectorQuery, node: &Node, schema: &Schema, depth: usize) {
    out.push_str("VECTOR {");
    if !node.children.is_empty() {
        out.push('\n');
        node.children.iter().for_each(|child| write_node(out, child, schema, depth + 1));
        indent(out, depth);
        out.push_str("} => {");
    }
    let (name, param) = (&query.field.name, &query.param);
    let _ = match query.near {
        Near::Nearest { k, .. } => {
            write!(out, "K={k} nearest vectors to `${param}` in vector index associated with field @{name}")
        }
        Near::Within { radius, .. } => {
            let radius = general(radius);
            write!(
                out,
                "Vectors that are within {radius} distance radius from `${param}` in vector index associated with field @{name}"
            )
        }
    };
    for (name, value) in &query.given {
        let _ = write!(out, ", {name} = {value}");
    }
    if let Some(yields) = &query.yields {
        let _ = write!(out, ", yields distance as `{yields}`");
    }
    out.push('}');
}

fn write_children(out: &mut String, opening: &str, node: &Node, schema: &Schema, depth: usize) {
    let _ = writeln!(out, "{opening}");
    for child in &node.children {
        write_node(out, child, schema, depth + 1);
    }
    indent(out, depth);
    out.push('}');
}

fn write_fields(out: &mut String, node: &Node, schema: &Schema) {
    if node.fields == 0 {
        out.push_str("@NULL:");
    } else if node.fields != ALL_FIELDS
        && !matches!(
            node.kind,
            Kind::Numeric { .. } | Kind::Geo { .. } | Kind::Shape { .. } | Kind::Ids(_) | Kind::Vector(_)
        )
    {
        let names: Vec<&str> = schema.masked(node.fields).map(|field| field.name.as_str()).collect();
        let _ = write!(out, "@{}:", names.join("|"));
    }
}

fn write_attributes(out: &mut String, node: &Node) {
    if node.weight == 1.0 && node.slop.is_none() && !node.in_order.unwrap_or_default() {
        return;
    }
    out.push_str(" => {");
    if node.weight != 1.0 {
        let _ = write!(out, " $weight: {};", general(node.weight));
    }
    if let Some(slop) = node.slop {
        let _ = write!(out, " $slop: {slop};");
    }
    let in_order = node.in_order.unwrap_or_default();
    if in_order || node.slop.is_some() {
        let _ = write!(out, " $inorder: {in_order};");
    }
    out.push_str(" }");
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth));
}

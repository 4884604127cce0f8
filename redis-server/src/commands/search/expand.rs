//! Values of answers as RESP3 has them (FORMAT EXPAND): numbers, lists and maps instead of texts.

use query_engine::{Datum, FieldKind, Hit};

use super::find::Request;
use crate::protocol::Reply;
use crate::search::Definition;
use crate::types::json::{Json, Kind, Node};

/// 2^63, below which a whole number fits 64 bits.
const MAX_WHOLE: f64 = 9_223_372_036_854_775_808.0;

/// Writes a field of a hit: its distance, a value that the index keeps, or the values of a path as JSON.
pub(super) fn field(
    reply: &mut Reply,
    definition: &Definition,
    request: &Request<'_>,
    hit: &Hit,
    (name, text): (&[u8], &[u8]),
) {
    let returned = request.returned.iter().flatten().find(|field| field.name == name);
    let identifier = returned.map_or(name, |field| field.identifier);
    match hit.distances.iter().find(|(known, _)| known.as_bytes() == identifier) {
        Some((_, distance)) => number(reply, *distance),
        None if is_json(definition, identifier) => json(reply, text),
        None => kept(reply, definition, identifier, text),
    }
}

/// True if a property of a document is shown as JSON: the values of a path, but for those that the index keeps.
pub(super) fn is_json(definition: &Definition, identifier: &[u8]) -> bool {
    let field = definition.fields.iter().find(|field| field.name.as_bytes() == identifier);
    identifier != query_engine::KEY.as_bytes() && field.is_none_or(|field| !field.is_sortable)
}

fn kept(reply: &mut Reply, definition: &Definition, identifier: &[u8], text: &[u8]) {
    let mut fields = definition.fields.iter();
    let is_number = fields.any(|field| field.name.as_bytes() == identifier && field.kind == FieldKind::Numeric);
    match Datum::text(text).number().filter(|_| is_number) {
        Some(value) => number(reply, value),
        None => reply.bulk(text),
    }
}

/// Writes a value of a row; a text is JSON if its column `is_json`.
pub(super) fn datum(reply: &mut Reply, value: &Datum, is_json: bool) {
    match value {
        Datum::Null => reply.null(),
        Datum::Number(value) => number(reply, *value),
        Datum::Text(text) | Datum::Shown(_, text) if is_json => json(reply, text),
        Datum::Text(text) | Datum::Shown(_, text) => reply.bulk(text),
        Datum::List(items) => {
            reply.array(items.len());
            items.iter().for_each(|item| datum(reply, item, false));
        }
    }
}

/// A whole number is an integer.
fn number(reply: &mut Reply, value: f64) {
    if value.trunc() == value && value.abs() < MAX_WHOLE { reply.int(value as i64) } else { reply.double(value) }
}

/// A value that a step computes with is no list, and may look like a number that it is not.
fn json(reply: &mut Reply, text: &[u8]) {
    let is_json = matches!(text.first(), Some(b'[' | b'{' | b'"'));
    match Json::parse(text).ok().filter(|_| is_json) {
        Some(json) => node(reply, json.root()),
        None => reply.bulk(text),
    }
}

/// Documents nest as deep as the parser of JSON allows.
fn node(reply: &mut Reply, value: Node<'_>) {
    match value.kind() {
        Kind::Null => reply.null(),
        Kind::Bool(value) => reply.int(value.into()),
        Kind::Number(value) => number(reply, value.to_f64()),
        Kind::String(text) => reply.bulk(text),
        Kind::Array(elements) => {
            reply.array(elements.count());
            elements.for_each(|element| node(reply, element));
        }
        Kind::Object(members) => {
            reply.map(members.count());
            members.for_each(|(name, member)| {
                reply.bulk(name);
                node(reply, member);
            });
        }
    }
}

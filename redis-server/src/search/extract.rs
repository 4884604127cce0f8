//! From a key's value to the values of fields.

use query_engine::{Datum, Document, Expected, FieldId, FieldKind, Language, Value};

use super::definition::{Definition, SourceField};
use crate::keyspace::{Entry, ValueRef};
use crate::types::json::Json;
use crate::types::json::{Kind, Node, Number, Path};

/// The values of a document, without the lock of its shard.
#[derive(Debug)]
pub(super) struct Extracted {
    values: Vec<(FieldId, Owned)>,
    score: f32,
    language: Option<Language>,
    payload: Option<Vec<u8>>,
}

/// A field's value.
#[derive(Debug)]
enum Owned {
    Texts(Vec<Vec<u8>>),
    Numbers(Vec<f64>),
}

impl Owned {
    fn borrow(&self) -> Value<'_> {
        match self {
            Self::Texts(texts) if texts.len() == 1 => Value::Text(&texts[0]),
            Self::Texts(texts) => Value::Texts(texts.iter().map(Vec::as_slice).collect()),
            Self::Numbers(numbers) => Value::Numbers(numbers.clone()),
        }
    }
}

/// Why a document is not indexed.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// The field's place.
    pub(super) field: Option<FieldId>,
    /// The reason.
    pub(super) why: String,
}

impl Failure {
    /// A panic at the document.
    pub(super) fn panic() -> Self {
        Self { field: None, why: "the server has panicked at it, see the log".to_owned() }
    }
}

impl Extracted {
    /// Calls `work` with the document.
    pub(super) fn with_document<R>(&self, key: &[u8], work: impl FnOnce(&Document<'_>) -> R) -> R {
        let values = self.values.iter().map(|(field, value)| (*field, value.borrow())).collect();
        let payload = self.payload.as_deref();
        work(&Document { id: key, values, score: self.score, language: self.language, payload })
    }
}

/// The document that an entry is for an index at a moment; `None` if it is none.
pub(super) fn extract(definition: &Definition, entry: &Entry, now: u64) -> Result<Option<Extracted>, Failure> {
    if !definition.takes(entry) || !definition.passes(entry, now) {
        return Ok(None);
    }
    let mut values = Vec::new();
    match entry.value() {
        ValueRef::Hash(hash) => {
            let hash = hash.at(now);
            if hash.is_empty() {
                return Ok(None);
            }
            for (id, field) in definition.fields.iter().enumerate() {
                if let Some(text) = hash.get(&field.identifier) {
                    values.push((id, Owned::Texts(vec![text.to_vec()])));
                }
            }
        }
        ValueRef::Json(json) => {
            let mut budget = json.budget();
            for (id, field) in definition.fields.iter().enumerate() {
                let Some(path) = field.path() else { continue };
                let found = json.find_within(&path, &mut budget);
                let nodes: Vec<Node<'_>> =
                    found.map_err(|why| Failure { field: Some(id), why: why.to_string() })?.collect();
                if let Some(value) = of_json(field, &nodes).map_err(|why| Failure { field: Some(id), why })? {
                    values.push((id, value));
                }
            }
        }
        _ => return Ok(None),
    }
    let given = |field: &Option<Box<[u8]>>| field.as_ref().and_then(|name| text_of(entry, name, now));
    let score = given(&definition.score_field).and_then(|text| std::str::from_utf8(&text).ok()?.parse::<f64>().ok());
    let language = given(&definition.language_field).and_then(|text| std::str::from_utf8(&text).ok()?.parse().ok());
    Ok(Some(Extracted {
        values,
        score: score.unwrap_or(definition.score) as f32,
        language: language.or(definition.language),
        payload: given(&definition.payload_field),
    }))
}

/// The value of a field in JSON: one value, an array, or several values of one path. Nulls count as missing.
fn of_json(field: &SourceField, nodes: &[Node<'_>]) -> Result<Option<Owned>, String> {
    let mut flat = Vec::new();
    for node in nodes {
        match node.kind() {
            Kind::Null => {}
            // Longitude and latitude stand in a string, so an array holds several values of any kind.
            Kind::Array(elements) if nodes.len() == 1 => {
                flat.extend(elements.filter(|element| !matches!(element.kind(), Kind::Null)));
            }
            _ => flat.push(*node),
        }
    }
    let is_array = nodes.len() == 1 && matches!(nodes[0].kind(), Kind::Array(_));
    if flat.is_empty() && !is_array {
        return Ok(None);
    }
    let refuse = |node: &Node<'_>, expected: Expected| {
        let expected = match expected {
            Expected::Number => "a number",
            Expected::Place => "a string `longitude,latitude`",
            Expected::Text => "a string",
            Expected::Vector { .. } => "numbers",
        };
        format!("Invalid JSON value: expected {expected} for field `{}`, found {}", field.name, node.type_name())
    };
    if matches!(field.kind, FieldKind::Numeric | FieldKind::Vector(_)) {
        let number = |node: &Node<'_>| match node.kind() {
            Kind::Number(number) => Ok(number.to_f64()),
            _ => Err(refuse(node, Expected::Number)),
        };
        return flat.iter().map(number).collect::<Result<_, _>>().map(|numbers| Some(Owned::Numbers(numbers)));
    }
    let is_tag = matches!(field.kind, FieldKind::Tag { .. });
    let expected = if matches!(field.kind, FieldKind::Geo) { Expected::Place } else { Expected::Text };
    let text = |node: &Node<'_>| match node.kind() {
        Kind::String(text) => Ok(text.to_vec()),
        Kind::Bool(value) if is_tag => Ok(if value { b"true".to_vec() } else { b"false".to_vec() }),
        _ => Err(refuse(node, expected)),
    };
    flat.iter().map(text).collect::<Result<_, _>>().map(|texts| Some(Owned::Texts(texts)))
}

/// A field of a hash, or what a path leads to, as text.
fn text_of(entry: &Entry, name: &[u8], now: u64) -> Option<Vec<u8>> {
    match entry.value() {
        ValueRef::Hash(hash) => hash.at(now).get(name).map(|text| text.to_vec()),
        ValueRef::Json(json) => {
            let path = Path::parse(name).ok()?;
            Some(shown(json.find(&path).ok()?.next()?))
        }
        _ => None,
    }
}

/// A value of a document as answers show it: a string without quotes, anything else as JSON.
pub fn shown(node: Node<'_>) -> Vec<u8> {
    match node.kind() {
        Kind::String(text) => text.to_vec(),
        _ => node.to_text().into_bytes(),
    }
}

/// A property of a document for expressions: a field of the schema, of the hash, or a path.
pub fn property(definition: &Definition, entry: &Entry, name: &str, now: u64) -> Option<Datum> {
    let field = definition.field(name);
    match entry.value() {
        ValueRef::Hash(hash) => {
            let identifier = field.map_or(name.as_bytes(), |field| &field.identifier);
            hash.at(now).get(identifier).map(|text| of_text(&text, field))
        }
        ValueRef::Json(json) => {
            let path = Path::parse(field.map_or(name.as_bytes(), |field| &field.identifier)).ok()?;
            of_path(json, &path)
        }
        _ => None,
    }
}

fn of_text(text: &[u8], field: Option<&SourceField>) -> Datum {
    let number = || std::str::from_utf8(text).ok()?.parse::<f64>().ok().filter(|number| !number.is_nan());
    match field.filter(|field| field.kind == FieldKind::Numeric).and_then(|_| number()) {
        Some(number) => Datum::Number(number),
        None => Datum::text(text),
    }
}

fn of_path(json: &Json, path: &Path) -> Option<Datum> {
    json.find(path).ok()?.next().and_then(of_node)
}

fn of_node(node: Node<'_>) -> Option<Datum> {
    match node.kind() {
        Kind::Null => None,
        Kind::Number(Number::Int(int)) if int.unsigned_abs() > 1 << 53 => Some(Datum::text(int.to_string())),
        Kind::Number(number) => Some(Datum::Number(number.to_f64())),
        Kind::Bool(value) => Some(Datum::Number(f64::from(u8::from(value)))),
        _ => Some(Datum::text(shown(node))),
    }
}

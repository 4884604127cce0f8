//! From a key's value to the values of fields.

use query_engine::{Datum, Document, FieldId, FieldKind, Language, Value};

use super::definition::{self, Definition, SourceField};
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
    Vectors(Vec<Vec<f64>>),
}

impl Owned {
    fn borrow(&self) -> Value<'_> {
        match self {
            Self::Texts(texts) if texts.len() == 1 => Value::Text(&texts[0]),
            Self::Texts(texts) => Value::Texts(texts.iter().map(Vec::as_slice).collect()),
            Self::Numbers(numbers) => Value::Numbers(numbers.clone()),
            Self::Vectors(vectors) => Value::Vectors(vectors.clone()),
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
                let is_several = matches!(field.kind, FieldKind::Vector(_)) && !path.is_static();
                let value = if is_several { several_vectors(&nodes) } else { of_json(field, &nodes) };
                if let Some(value) = value.map_err(|why| Failure { field: Some(id), why })? {
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

/// The failure of a document with several shapes in a field.
const NO_LIST_OF_SHAPES: &str = "Invalid JSON type: Array type cannot represent GEOMETRY field";

/// The value of a field in JSON: one value, an array, or several values of one path. Nulls are skipped. A field that is null is not missing, as in
/// RediSearch; a vector or a shape is.
fn of_json(field: &SourceField, nodes: &[Node<'_>]) -> Result<Option<Owned>, String> {
    let [node] = nodes else {
        return match field.kind {
            _ if nodes.is_empty() => Ok(None),
            FieldKind::Shape(_) => Err(NO_LIST_OF_SHAPES.to_owned()),
            _ => several(field, nodes.iter().copied()),
        };
    };
    let (kind, takes) = match node.kind() {
        Kind::Null => {
            return Ok(match field.kind {
                FieldKind::Text { .. } | FieldKind::Tag { .. } | FieldKind::Geo => Some(Owned::Texts(Vec::new())),
                FieldKind::Numeric => Some(Owned::Numbers(Vec::new())),
                FieldKind::Vector(_) | FieldKind::Shape(_) => None,
            });
        }
        Kind::Array(elements) => {
            return match field.kind {
                FieldKind::Vector(options) => vector(options.dimensions, elements),
                FieldKind::Shape(_) => Err(NO_LIST_OF_SHAPES.to_owned()),
                _ => several(field, elements),
            };
        }
        Kind::Bool(value) if matches!(field.kind, FieldKind::Tag { .. }) => {
            let text: &[u8] = if value { b"true" } else { b"false" };
            return Ok(Some(Owned::Texts(vec![text.to_vec()])));
        }
        Kind::String(_) | Kind::Number(_) if fits(field, node) => return several(field, [*node]),
        Kind::Bool(_) => ("Boolean", "be represent only TAG field"),
        Kind::String(_) => ("String", "represent only TEXT, TAG, GEO or GEOMETRY field"),
        Kind::Number(_) => ("Numeric", "represent only NUMERIC field"),
        Kind::Object(_) => ("Object", "represent only GEOMETRY fields"),
    };
    Err(format!("Invalid JSON type: {kind} type can {takes}"))
}

/// True if a string or a number is one that the field takes.
fn fits(field: &SourceField, node: &Node<'_>) -> bool {
    match node.kind() {
        Kind::String(_) => {
            matches!(field.kind, FieldKind::Text { .. } | FieldKind::Tag { .. } | FieldKind::Geo | FieldKind::Shape(_))
        }
        Kind::Number(_) => field.kind == FieldKind::Numeric,
        _ => false,
    }
}

/// Strings or numbers, and nulls among them.
fn several<'n>(field: &SourceField, nodes: impl IntoIterator<Item = Node<'n>>) -> Result<Option<Owned>, String> {
    let nodes = nodes.into_iter().filter(|node| !matches!(node.kind(), Kind::Null));
    if matches!(field.kind, FieldKind::Numeric | FieldKind::Vector(_)) {
        let number = |node: Node<'_>| match node.kind() {
            Kind::Number(number) => Ok(number.to_f64()),
            _ => Err("NUMERIC fields can only contain numeric or nulls".to_owned()),
        };
        return nodes.map(number).collect::<Result<_, _>>().map(|numbers| Some(Owned::Numbers(numbers)));
    }
    let text = |node: Node<'_>| match node.kind() {
        Kind::String(text) => Ok(text.to_vec()),
        _ => Err("TEXT/TAG fields can only contain strings or nulls".to_owned()),
    };
    nodes.map(text).collect::<Result<_, _>>().map(|texts| Some(Owned::Texts(texts)))
}

/// The elements of one vector.
fn vector<'n>(dimensions: usize, elements: impl Iterator<Item = Node<'n>>) -> Result<Option<Owned>, String> {
    let elements: Vec<Node<'_>> = elements.collect();
    if elements.len() != dimensions {
        return Err(match elements.len() {
            0 => "Empty array for vector field on JSON document".to_owned(),
            given => format!("Invalid vector length. Expected {dimensions}, got {given}"),
        });
    }
    let element = |(at, node): (usize, &Node<'_>)| match node.kind() {
        Kind::Number(number) => Ok(number.to_f64()),
        _ => Err(format!("Invalid vector element at index {at}")),
    };
    elements.iter().enumerate().map(element).collect::<Result<_, _>>().map(|numbers| Some(Owned::Numbers(numbers)))
}

/// The vectors of a path that may lead to several: an array each. Nulls count as missing.
fn several_vectors(nodes: &[Node<'_>]) -> Result<Option<Owned>, String> {
    let mut vectors = Vec::new();
    for node in nodes {
        let elements = match node.kind() {
            Kind::Null => continue,
            Kind::Array(elements) => elements,
            _ => return Err(format!("Invalid JSON value: expected an array for a vector, found {}", node.type_name())),
        };
        let number = |(at, element): (usize, Node<'_>)| match element.kind() {
            Kind::Number(number) => Ok(number.to_f64()),
            _ => Err(format!("Invalid vector element at index {at}")),
        };
        vectors.push(elements.enumerate().map(number).collect::<Result<Vec<f64>, String>>()?);
    }
    Ok((!vectors.is_empty()).then_some(Owned::Vectors(vectors)))
}

/// A field of a hash, or what a path leads to, as text.
fn text_of(entry: &Entry, name: &[u8], now: u64) -> Option<Vec<u8>> {
    match entry.value() {
        ValueRef::Hash(hash) => hash.at(now).get(name).map(|text| text.to_vec()),
        ValueRef::Json(json) => {
            let path = definition::path(name).ok()?;
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
            let path = definition::path(field.map_or(name.as_bytes(), |field| &field.identifier)).ok()?;
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

/// The values of a path as dialect 3 shows them: all of them as a list, which is computed with by its first value. The only value of a field
/// that the index keeps stays as it is.
pub fn listed(json: &Json, path: &Path, is_kept: bool) -> Option<Datum> {
    let nodes: Vec<Node<'_>> = json.find(path).ok()?.collect();
    let mut first = *nodes.first()?;
    if is_kept && nodes.len() == 1 && !matches!(first.kind(), Kind::Array(_)) {
        return of_node(first);
    }
    let text = if path.is_legacy() {
        first.to_text()
    } else {
        format!("[{}]", nodes.iter().map(|node| node.to_text()).collect::<Vec<_>>().join(","))
    };
    while let Kind::Array(mut elements) = first.kind() {
        let Some(element) = elements.next() else { break };
        first = element;
    }
    Some(Datum::Shown(Box::new(of_node(first).unwrap_or(Datum::Null)), text.into_bytes().into()))
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

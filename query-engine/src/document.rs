//! Documents as the caller gives them, and why one is refused.

use std::borrow::Cow;
use std::fmt;

use crate::index::geo::Place;
use crate::schema::FieldId;
use crate::shape::{Shape, ShapeError, Surface};
use crate::text::Language;
use crate::vector::VectorOptions;

/// One field's value. A string is read as the field's kind demands.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'d> {
    /// A hash's value, or a string of JSON.
    Text(&'d [u8]),
    /// Several strings, of an array in JSON. Each is a tag of its own, or text of its own.
    Texts(Vec<&'d [u8]>),
    /// A number of JSON.
    Number(f64),
    /// Several numbers, of an array in JSON: numbers each, or the elements of one vector.
    Numbers(Vec<f64>),
    /// A vector: little-endian elements of the field's type without anything between.
    Vector(&'d [u8]),
    /// Several vectors, each by its elements; the nearest one counts.
    Vectors(Vec<Vec<f64>>),
}

/// A document to index.
#[derive(Clone, Debug, PartialEq)]
pub struct Document<'d> {
    /// Its key; a document with the same id is replaced.
    pub id: &'d [u8],
    /// Values by field. A field without one counts as missing.
    pub values: Vec<(FieldId, Value<'d>)>,
    /// Multiplies scores; 1 by default, from 0 to 1 in RediSearch.
    pub score: f32,
    /// The language of its text instead of the schema's.
    pub language: Option<Language>,
    /// Bytes for the HAMMING scorer.
    pub payload: Option<&'d [u8]>,
}

impl<'d> Document<'d> {
    /// A document with score 1.
    #[must_use]
    pub fn new(id: &'d [u8], values: Vec<(FieldId, Value<'d>)>) -> Self {
        Self { id, values, score: 1.0, language: None, payload: None }
    }
}

/// A value that its field cannot hold; the document is not indexed, unless the field is a GEOSHAPE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError {
    /// The field's name.
    pub field: String,
    /// The value, shortened to 64 bytes.
    pub value: String,
    /// The type that the field expects.
    pub expected: Expected,
}

/// The type of a field's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// NUMERIC.
    Number,
    /// GEO.
    Place,
    /// TEXT and TAG.
    Text,
    /// GEOSHAPE, and why the value is none. The document is indexed without it.
    Shape(ShapeError),
    /// VECTOR.
    Vector {
        /// Bytes that the value has; 0 if it is neither a blob nor numbers.
        given: usize,
        /// Bytes of the field's vectors.
        expected: usize,
    },
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expected = match &self.expected {
            Expected::Number => return write!(f, "Invalid numeric value: '{}'", self.value),
            Expected::Place => {
                return match numbers(&self.value) {
                    Some((one, other)) => write!(f, "Invalid geo coordinates: {one:.6}, {other:.6}"),
                    None => f.write_str("Invalid geo string"),
                };
            }
            Expected::Text => "a string",
            Expected::Shape(error) => return write!(f, "Error indexing geoshape: {error}"),
            Expected::Vector { given, expected } => {
                return write!(f, "Could not add vector with blob size {given} (expected size {expected})");
            }
        };
        write!(f, "Invalid value `{}` for field `{}`: expected {expected}", self.value, self.field)
    }
}

impl std::error::Error for DocumentError {}

/// The two numbers of a place that is not on the map.
fn numbers(place: &str) -> Option<(f64, f64)> {
    let (one, other) = place.split_once([',', ' '])?;
    Some((one.trim().parse().ok()?, other.trim().parse().ok()?))
}

/// The longest part of a value that an error shows.
const SHOWN: usize = 64;

impl DocumentError {
    pub(crate) fn new(field: &str, value: &Value<'_>, expected: Expected) -> Self {
        let shown = match value {
            Value::Text(text) => String::from_utf8_lossy(&text[..text.len().min(SHOWN)]).into_owned(),
            Value::Texts(texts) => format!("{} strings", texts.len()),
            Value::Number(number) => number.to_string(),
            Value::Numbers(numbers) => format!("{} numbers", numbers.len()),
            Value::Vector(blob) => format!("{} bytes", blob.len()),
            Value::Vectors(vectors) => format!("{} vectors", vectors.len()),
        };
        Self { field: field.to_owned(), value: shown, expected }
    }
}

impl Value<'_> {
    /// The strings; `None` for numbers.
    pub(crate) fn texts(&self) -> Option<&[&[u8]]> {
        match self {
            Self::Text(text) => Some(std::slice::from_ref(text)),
            Self::Texts(texts) => Some(texts),
            Self::Number(_) | Self::Numbers(_) | Self::Vector(_) | Self::Vectors(_) => None,
        }
    }

    /// The numbers; `None` if one string is none.
    pub(crate) fn numbers(&self) -> Option<Vec<f64>> {
        match self {
            Self::Number(number) => Some(vec![*number]),
            Self::Numbers(numbers) => Some(numbers.clone()),
            Self::Vector(_) | Self::Vectors(_) => None,
            Self::Text(_) | Self::Texts(_) => self.texts()?.iter().map(|text| parse_number(text)).collect(),
        }
    }

    /// The blobs of one or several vectors, at most so many; the error has the size of a wrong one.
    pub(crate) fn vectors(&self, options: &VectorOptions, most: usize) -> Result<Vec<Cow<'_, [u8]>>, Expected> {
        let expected = options.blob_size();
        // More numbers than a vector has are not converted.
        let of_numbers = |numbers: &[f64]| match numbers.len() {
            given if given == options.dimensions => Ok(Cow::Owned(options.blob(numbers))),
            given if given < options.dimensions => {
                Err(Expected::Vector { given: given * options.element.size(), expected })
            }
            _ => Err(Expected::Vector { given: 0, expected }),
        };
        let blobs = match self {
            Self::Text(blob) | Self::Vector(blob) if blob.len() != expected => {
                return Err(Expected::Vector { given: blob.len(), expected });
            }
            Self::Text(blob) | Self::Vector(blob) => vec![Cow::Borrowed(*blob)],
            Self::Numbers(numbers) => vec![of_numbers(numbers)?],
            Self::Number(number) => vec![of_numbers(&[*number])?],
            Self::Vectors(vectors) if vectors.len() > most => return Err(Expected::Vector { given: 0, expected }),
            Self::Vectors(vectors) => vectors.iter().map(|numbers| of_numbers(numbers)).collect::<Result<_, _>>()?,
            Self::Texts(_) => return Err(Expected::Vector { given: 0, expected }),
        };
        Ok(blobs)
    }

    /// The shape; more than one text is none.
    pub(crate) fn shape(&self, surface: Surface) -> Result<Shape, Expected> {
        match self {
            Self::Text(text) => Shape::parse(text, surface).map_err(Expected::Shape),
            _ => Err(Expected::Text),
        }
    }

    /// The places; `None` if one string is none.
    pub(crate) fn places(&self) -> Option<Vec<Place>> {
        let place = |text: &&[u8]| Place::parse(std::str::from_utf8(text).ok()?);
        self.texts()?.iter().map(place).collect()
    }
}

/// A decimal number, `inf` and `-inf` among them, without spaces; not NaN.
pub(crate) fn parse_number(text: &[u8]) -> Option<f64> {
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!number.is_nan()).then_some(number)
}

//! The fields of a schema.

use query_engine::{Field, FieldKind, Surface};

use super::vector;
use super::words::{MAX_ECHO, Words, bad};
use crate::command::Result;
use crate::protocol::error::{Error, echo};
use crate::search::{Source, SourceField, path};

/// Reads all fields that are left.
pub(super) fn parse(words: &mut Words<'_>, source: Source) -> Result<Vec<(Field, SourceField)>> {
    let mut fields = Vec::new();
    while let Some(identifier) = words.next() {
        fields.push(field(words, identifier, source)?);
    }
    Ok(fields)
}

/// `identifier [AS name] type [option …]`
fn field(words: &mut Words<'_>, identifier: &[u8], source: Source) -> Result<(Field, SourceField)> {
    let name = if words.take("AS") { words.need("AS")? } else { identifier };
    let name = std::str::from_utf8(name)
        .map_err(|_| Error::Message(format!("The field name `{}` is no UTF-8", echo(name, MAX_ECHO))))?;
    let mut is_single = true;
    if source == Source::Json {
        let path = path(identifier).map_err(|error| {
            Error::Message(format!("Invalid JSONPath '{}' in attribute '{name}': {error}", echo(identifier, MAX_ECHO)))
        })?;
        is_single = path.is_static();
    }
    let mut field = Field::new(name, kind(words, name, source)?);
    field.unordered = !is_single && matches!(field.kind, FieldKind::Text { .. });
    let inert = options(words, &mut field)?;
    for (option, is_set) in [("INDEXMISSING", field.index_missing), ("INDEXEMPTY", field.index_empty)] {
        if is_set && !field.indexed {
            let why = format!("Field `{name}` cannot be defined with both `NOINDEX` and `{option}`");
            return Err(Error::Message(why));
        }
    }
    // JSON keeps its values as they stand.
    field.unnormalized |= field.sortable && source == Source::Json;
    let source = SourceField {
        name: name.to_owned(),
        identifier: identifier.into(),
        kind: field.kind.clone(),
        is_sortable: field.sortable,
        options: inert,
    };
    Ok((field, source))
}

/// The type of a field. The one place that names all types.
fn kind(words: &mut Words<'_>, name: &str, source: Source) -> Result<FieldKind> {
    match () {
        () if words.take("TEXT") => Ok(FieldKind::TEXT),
        () if words.take("TAG") => {
            // Arrays have no need of a separator.
            let separator = (source == Source::Hash).then_some(b',');
            Ok(FieldKind::Tag { separator, case_sensitive: false })
        }
        () if words.take("NUMERIC") => Ok(FieldKind::Numeric),
        () if words.take("GEO") => Ok(FieldKind::Geo),
        () if words.take("VECTOR") => Ok(FieldKind::Vector(vector::parse(words)?)),
        () if words.take("GEOSHAPE") => {
            let is_flat = words.take("FLAT");
            let _ = !is_flat && words.take("SPHERICAL");
            Ok(FieldKind::Shape(if is_flat { Surface::Flat } else { Surface::Spherical }))
        }
        () => Err(Error::Message(format!("Invalid field type for field `{name}`"))),
    }
}

/// True if a word names the one way to read a word's sound, which serves all of these languages. Always true.
///
/// # Errors
/// It names none.
fn is_matcher(word: &[u8]) -> Result<bool> {
    if matches!(word, b"dm:en" | b"dm:pt" | b"dm:fr" | b"dm:es") {
        return Ok(true);
    }
    Err(Error::Static(
        "Matcher Format: <2 chars algorithm>:<2 chars language>. Support algorithms: double metaphone (dm). Supported languages: English (en), \
         French (fr), Portuguese (pt) and Spanish (es)",
    ))
}

/// The options behind a field's type; returns those that have no effect.
fn options(words: &mut Words<'_>, field: &mut Field) -> Result<Vec<&'static str>> {
    let mut inert = Vec::new();
    // Options of a type stand before those of all types: behind these a word is the next field's name.
    let mut is_behind = false;
    loop {
        match &mut field.kind {
            _ if is_behind => {}
            FieldKind::Text { weight, stem, phonetic } => {
                if words.take("WEIGHT") {
                    *weight = words.number("WEIGHT")?;
                    if !weight.is_finite() || *weight < 0.0 {
                        return Err(bad("WEIGHT", &format!("{weight} is not a positive number")));
                    }
                    continue;
                }
                if words.take("NOSTEM") {
                    *stem = false;
                    continue;
                }
                if words.take("PHONETIC") {
                    *phonetic = is_matcher(words.next().ok_or(Error::Static("PHONETIC requires an argument"))?)?;
                    continue;
                }
            }
            FieldKind::Tag { separator, case_sensitive } => {
                if words.take("SEPARATOR") {
                    let given = words.need("SEPARATOR")?;
                    let [byte] = given else {
                        let given = echo(given, MAX_ECHO);
                        let why = format!("Tag separator must be a single character. Got `{given}`");
                        return Err(Error::Message(why));
                    };
                    *separator = Some(*byte);
                    continue;
                }
                if words.take("CASESENSITIVE") {
                    *case_sensitive = true;
                    continue;
                }
            }
            FieldKind::Numeric | FieldKind::Geo | FieldKind::Shape(_) => {}
            // Distances sort, not vectors.
            FieldKind::Vector(_) => {
                field.index_missing |= words.take("INDEXMISSING");
                return Ok(inert);
            }
        }
        let has_words = !is_behind && matches!(field.kind, FieldKind::Text { .. } | FieldKind::Tag { .. });
        match () {
            // Patterns read the dictionary, which needs no further index.
            () if has_words && words.take("WITHSUFFIXTRIE") => {
                inert.push("WITHSUFFIXTRIE");
                field.suffix_trie = true;
                continue;
            }
            () if has_words && words.take("INDEXEMPTY") => {
                field.index_empty = true;
                continue;
            }
            () if words.take("INDEXMISSING") => {
                field.index_missing = true;
                continue;
            }
            () if words.take("SORTABLE") => {
                field.sortable = true;
                // Fields that keep upper and lower case apart in queries do so in their order, too.
                let keeps_case = matches!(field.kind, FieldKind::Numeric | FieldKind::Tag { case_sensitive: true, .. });
                field.unnormalized = words.take("UNF") || keeps_case;
            }
            () if words.take("NOINDEX") => field.indexed = false,
            () => return Ok(inert),
        }
        is_behind = true;
    }
}

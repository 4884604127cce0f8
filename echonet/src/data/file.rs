//! The file of `--data` as TOML has it, and its mistakes.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

/// A text of the file, and where it stands.
pub(super) type Text = Spanned<String>;

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub(super) maker: Vec<Maker>,
    #[serde(default)]
    pub(super) class: Vec<Class>,
    #[serde(default)]
    pub(super) property: Vec<Spanned<Property>>,
}

/// The name of a maker.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Maker {
    pub(super) code: Text,
    pub(super) name: Text,
}

/// A class that the tables do not have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Class {
    pub(super) code: Text,
    pub(super) name: Text,
    pub(super) title: Option<Text>,
    #[serde(default)]
    pub(super) property: Vec<Spanned<Property>>,
}

/// A property: of a maker's devices of a class, or of a class of the file. The type says which of the last fields it has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Property {
    pub(super) maker: Option<Text>,
    pub(super) class: Option<Text>,
    pub(super) product: Option<Text>,
    pub(super) epc: Text,
    pub(super) name: Text,
    pub(super) title: Option<Text>,
    pub(super) access: Option<Vec<Text>>,
    #[serde(rename = "type")]
    pub(super) kind: Text,
    pub(super) format: Option<Text>,
    pub(super) unit: Option<Text>,
    pub(super) range: Option<Spanned<[f64; 2]>>,
    pub(super) multiple: Option<Spanned<f64>>,
    pub(super) coefficient: Option<Vec<Text>>,
    pub(super) values: Option<Spanned<BTreeMap<String, Text>>>,
    pub(super) read_only: Option<Vec<Text>>,
    pub(super) size: Option<Spanned<i64>>,
    pub(super) minimum_size: Option<Spanned<i64>>,
    pub(super) flags: Option<Spanned<Vec<Flag>>>,
}

/// A bit with a name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Flag {
    pub(super) name: Text,
    pub(super) byte: Option<Spanned<i64>>,
    pub(super) bit: Spanned<i64>,
}

/// A field that has a wrong value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    line: usize,
    what: String,
}

impl Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// The text of the file, which tells on which line a field stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a>(&'a str);

impl<'a> Source<'a> {
    /// Reads the text of a file.
    pub(super) fn read(text: &'a str) -> Result<(Self, File), Mistake> {
        let source = Self(text);
        let file = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(text.len(), |span| span.start);
            let (line, shown) = (source.line(at), source.shown(at));
            Mistake { line, what: format!("{} in `{shown}`", error.message().replace('\n', ", ")) }
        })?;
        Ok((source, file))
    }

    /// A field with a wrong value.
    pub(super) fn wrong(self, field: &str, text: &Text, expected: impl Display) -> Mistake {
        self.at(text.span(), format!("{field} = \"{}\": expected {expected}", text.get_ref()))
    }

    /// A field with a wrong value that is no text.
    pub(super) fn odd<T: fmt::Debug>(self, field: &str, value: &Spanned<T>, expected: impl Display) -> Mistake {
        self.at(value.span(), format!("{field} = {:?}: expected {expected}", value.get_ref()))
    }

    /// Anything else that is wrong at a place.
    pub(super) fn at(self, span: Range<usize>, what: String) -> Mistake {
        Mistake { line: self.line(span.start), what }
    }

    /// The line of a place, from 1.
    pub(super) fn line(self, at: usize) -> usize {
        self.0.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }

    fn shown(self, at: usize) -> &'a str {
        self.0.lines().nth(self.line(at) - 1).unwrap_or_default().trim()
    }
}

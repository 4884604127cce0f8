//! Paths into documents: RFC 9535's JSONPath as RedisJSON has it, and its legacy paths, which begin without `$` and mean one
//! value.
//!
//! A path takes a bounded amount of work, however it is written: [`find`] fails after more values than a document of this size is worth.

mod filter;
mod find;
mod parse;
mod regex;

use std::fmt;

use super::document::Refused;
use filter::Filter;

pub use find::Budget;

/// Longest path, in bytes.
const MAX_PATH: usize = 16 * 1024;

/// A path.
#[derive(Debug)]
pub struct Path {
    /// As it is meant: a legacy path has its `$` here.
    text: String,
    is_legacy: bool,
    segments: Vec<Segment>,
}

/// A step of a path.
#[derive(Debug)]
struct Segment {
    /// Whether it is made from every value that the one before has led to, and from all that is inside of it: `..`.
    is_deep: bool,
    selector: Selector,
}

/// The selector of one step.
#[derive(Debug)]
enum Selector {
    /// All values in a container.
    All,
    /// The members with these names.
    Names(Vec<Box<[u8]>>),
    /// The elements at these places, counted from the end if negative.
    Indexes(Vec<i64>),
    /// Every `step`th element from `start` on up to the one before `end`.
    Slice { start: i64, end: Option<i64>, step: usize },
    /// The values in a container for which the filter holds.
    Filter(Filter),
}

/// A syntax error in a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    text: String,
    /// Bytes in front of the place.
    at: usize,
    expected: &'static str,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Characters of the path that the error repeats on each side.
        const SHOWN: usize = 60;
        let Self { text, at, expected } = self;
        let (before, behind) = text.split_at(*at);
        let first = before.char_indices().rev().nth(SHOWN).map_or(0, |(at, _)| at);
        let last = behind.char_indices().nth(SHOWN).map_or(behind.len(), |(at, _)| at);
        write!(f, "path '{} ---->>>> {}': expected {expected} at byte {at}", &before[first..], &behind[..last])
    }
}

impl std::error::Error for PathError {}

impl Path {
    /// The path that a text is.
    ///
    /// # Errors
    /// It is none; the error says where and why.
    pub fn parse(text: &[u8]) -> Result<Self, PathError> {
        parse::path(text)
    }

    /// The root, as a legacy path or another one.
    pub fn root(is_legacy: bool) -> Self {
        Self { text: "$".to_owned(), is_legacy, segments: Vec::new() }
    }

    /// The path as it is meant.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it means one value.
    pub fn is_legacy(&self) -> bool {
        self.is_legacy
    }

    /// The same path, whose results are a list.
    #[must_use]
    pub fn as_list(self) -> Self {
        Self { is_legacy: false, ..self }
    }

    /// Whether it is the root.
    pub fn is_root(&self) -> bool {
        self.segments.is_empty()
    }

    /// Whether it cannot lead to more than one value, whatever the document is.
    pub fn is_static(&self) -> bool {
        self.segments.iter().all(|segment| {
            !segment.is_deep
                && match &segment.selector {
                    Selector::Names(names) => names.len() == 1,
                    Selector::Indexes(indexes) => indexes.len() == 1,
                    Selector::All | Selector::Slice { .. } | Selector::Filter(_) => false,
                }
        })
    }

    /// The path without its last step, and that step, if it is one name or one place; for static paths.
    pub fn split_last(mut self) -> Option<(Self, Step)> {
        let step = match self.segments.pop()?.selector {
            Selector::Names(mut names) => Step::Name(names.pop()?),
            Selector::Indexes(mut indexes) => Step::Index(indexes.pop()?),
            Selector::All | Selector::Slice { .. } | Selector::Filter(_) => return None,
        };
        Some((self, step))
    }

    /// Where the values begin that it leads to in a packed document.
    pub(super) fn values(&self, document: &[u8], budget: &mut Budget) -> Result<Vec<u32>, Refused> {
        find::values(document, &self.segments, budget)
    }

    /// Whether it may lead to one value in several ways.
    pub(super) fn repeats(&self) -> bool {
        let deep = self.segments.iter().filter(|segment| segment.is_deep).count();
        let unions = self.segments.iter().any(|segment| match &segment.selector {
            Selector::Names(names) => names.len() > 1,
            Selector::Indexes(indexes) => indexes.len() > 1,
            Selector::All | Selector::Slice { .. } | Selector::Filter(_) => false,
        });
        deep > 1 || unions
    }
}

/// A step to one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the member of this name.
    Name(Box<[u8]>),
    /// To the element at this place.
    Index(i64),
}

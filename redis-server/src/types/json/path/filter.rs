//! Filters: which of the values in a container a path leads to.

use std::cell::RefCell;
use std::cmp::Ordering;

use super::Segment;
use super::find::Finder;
use super::regex::Regex;
use crate::types::json::document::{Json, Refused};
use crate::types::json::node::{Kind, Node, Number};

/// Steps of a path that the compilation of a regular expression counts as.
const COMPILATION: usize = 10_000;
/// Bytes of values that are one step when they are compared.
const TEXT_STEP: usize = 64;

/// A condition on a value.
#[derive(Debug)]
pub(super) enum Filter {
    /// One of these holds.
    Any(Vec<Self>),
    /// All of these hold.
    All(Vec<Self>),
    /// It does not hold.
    Not(Box<Self>),
    /// The path leads to something.
    Exists(Operand),
    /// Both compare so.
    Compare(Operand, Comparison, Operand),
    /// The string has a part that matches.
    Matches(Operand, Pattern),
}

/// An operand of a comparison.
#[derive(Debug)]
pub(super) enum Operand {
    /// A value of the path's own.
    Literal(Json),
    /// The first value that these steps match from the current value.
    Current(Vec<Segment>),
    /// The first value that these steps match from the root.
    Root(Vec<Segment>),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// A regular expression.
#[derive(Debug)]
pub(super) enum Pattern {
    /// One that stands in the path.
    Fixed(Box<Regex>),
    /// One that the document has, and the last of them that was met: mostly it is the same for all values.
    Found(Operand, RefCell<Option<Compiled>>),
}

/// A text, and the expression that it is, if it is one.
type Compiled = (Vec<u8>, Option<Box<Regex>>);

impl Pattern {
    /// The one that a string is.
    pub(super) fn fixed(literal: Node<'_>) -> Option<Self> {
        match literal.kind() {
            Kind::String(text) => Regex::new(text).map(|regex| Self::Fixed(Box::new(regex))),
            _ => None,
        }
    }

    /// The one that the string is which an operand leads to.
    pub(super) fn of(operand: Operand) -> Self {
        Self::Found(operand, RefCell::new(None))
    }

    fn matches<'a>(&'a self, finder: &mut Finder<'a, '_>, current: Node<'a>, text: &[u8]) -> Result<bool, Refused> {
        let (operand, last) = match self {
            Self::Fixed(regex) => return regex.is_match(text, |steps| finder.work(steps)),
            Self::Found(operand, last) => (operand, last),
        };
        let Some(pattern) = operand.first(finder, current)? else { return Ok(false) };
        let Kind::String(pattern) = pattern.kind() else { return Ok(false) };
        let mut last = last.borrow_mut();
        if !matches!(&*last, Some((known, _)) if known == pattern) {
            finder.work(COMPILATION)?;
            *last = Some((pattern.to_vec(), Regex::new(pattern).map(Box::new)));
        }
        let Some((_, Some(regex))) = &*last else { return Ok(false) };
        regex.is_match(text, |steps| finder.work(steps))
    }
}

impl Operand {
    /// The first value that it leads to.
    fn first<'a>(&'a self, finder: &mut Finder<'a, '_>, current: Node<'a>) -> Result<Option<Node<'a>>, Refused> {
        match self {
            Self::Literal(json) => Ok(Some(json.root())),
            Self::Current(steps) => finder.first(current, steps),
            Self::Root(steps) => finder.first(finder.root(), steps),
        }
    }
}

impl Filter {
    /// Whether it holds for a value. Recurses as deep as filters may stand in each other.
    pub(super) fn holds<'a>(&'a self, finder: &mut Finder<'a, '_>, current: Node<'a>) -> Result<bool, Refused> {
        finder.work(1)?;
        Ok(match self {
            Self::Any(filters) => {
                for filter in filters {
                    if filter.holds(finder, current)? {
                        return Ok(true);
                    }
                }
                false
            }
            Self::All(filters) => {
                for filter in filters {
                    if !filter.holds(finder, current)? {
                        return Ok(false);
                    }
                }
                true
            }
            Self::Not(filter) => !filter.holds(finder, current)?,
            Self::Exists(operand) => operand.first(finder, current)?.is_some(),
            Self::Compare(left, comparison, right) => {
                let (left, right) = (left.first(finder, current)?, right.first(finder, current)?);
                // Values are compared as a whole.
                finder.work(left.map_or(0, |left| left.raw().len() / TEXT_STEP))?;
                comparison.holds(left, right)
            }
            Self::Matches(operand, pattern) => match operand.first(finder, current)?.map(Node::kind) {
                Some(Kind::String(text)) => pattern.matches(finder, current, text)?,
                _ => false,
            },
        })
    }
}

impl Comparison {
    /// Whether it holds: between values of different types, and what is not there, only that they are unequal.
    fn holds(self, left: Option<Node<'_>>, right: Option<Node<'_>>) -> bool {
        let (Some(left), Some(right)) = (left, right) else { return self == Self::Unequal };
        let order = match (left.kind(), right.kind()) {
            (Kind::Number(left), Kind::Number(right)) => numbers(left, right),
            (Kind::String(left), Kind::String(right)) => Some(left.cmp(right)),
            (Kind::Bool(left), Kind::Bool(right)) => Some(left.cmp(&right)),
            _ => (left == right).then_some(Ordering::Equal),
        };
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::Unequal => order != Some(Ordering::Equal),
            Self::Below => order == Some(Ordering::Less),
            Self::AtMost => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Above => order == Some(Ordering::Greater),
            Self::AtLeast => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

fn numbers(left: Number, right: Number) -> Option<Ordering> {
    match (left, right) {
        (Number::Int(left), Number::Int(right)) => Some(left.cmp(&right)),
        (Number::Uint(left), Number::Uint(right)) => Some(left.cmp(&right)),
        (left, right) => left.to_f64().partial_cmp(&right.to_f64()),
    }
}

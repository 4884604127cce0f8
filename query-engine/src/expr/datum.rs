//! Values of rows.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::document::parse_number;
use crate::query::significant;

/// 2^63, below which a whole number fits 64 bits.
const MAX_WHOLE: f64 = 9_223_372_036_854_775_808.0;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// None.
    Null,
    /// A number.
    Number(f64),
    /// A string.
    Text(Arc<[u8]>),
    /// Several values, of TOLIST, `split` and JSON arrays.
    List(Arc<[Self]>),
    /// A value that answers and groups show as this text: the first of several values in JSON, with the text of them all.
    Shown(Box<Self>, Arc<[u8]>),
}

impl Datum {
    /// A string.
    pub fn text(text: impl AsRef<[u8]>) -> Self {
        Self::Text(text.as_ref().into())
    }

    /// The value to compute with.
    #[must_use]
    pub fn plain(&self) -> &Self {
        if let Self::Shown(value, _) = self { value } else { self }
    }

    /// The number, or that of a string that is one. A list counts as its first item.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => parse_number(text),
            Self::List(list) => list.first()?.number(),
            Self::Shown(value, _) => value.number(),
            Self::Null => None,
        }
    }

    /// As it is written in an answer: numbers with up to twelve digits, lists by their first value.
    #[must_use]
    pub fn bytes(&self) -> Arc<[u8]> {
        match self {
            Self::Null => Arc::from(&b""[..]),
            // A whole number has all of its digits.
            Self::Number(number) if number.trunc() == *number && number.abs() < MAX_WHOLE => {
                (*number as i64).to_string().into_bytes().into()
            }
            Self::Number(number) => significant(*number, 12).into_bytes().into(),
            Self::Text(text) | Self::Shown(_, text) => Arc::clone(text),
            Self::List(list) => list.first().map_or_else(|| Arc::from(&b""[..]), Self::bytes),
        }
    }

    /// Numbers other than 0, and strings and lists that are not empty.
    #[must_use]
    pub fn is_true(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Number(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Shown(value, _) => value.is_true(),
        }
    }

    /// Rising order: nothing first; a number and a string compare as numbers if the string is one, else as strings.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        match (self.plain(), other.plain()) {
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Null, _) => Ordering::Less,
            (_, Self::Null) => Ordering::Greater,
            (Self::Number(one), Self::Number(other)) => order_numbers(*one, *other),
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (Self::List(one), Self::List(other)) => {
                let unequal =
                    one.iter().zip(other.iter()).map(|(one, other)| one.order(other)).find(|order| order.is_ne());
                unequal.unwrap_or_else(|| one.len().cmp(&other.len()))
            }
            (one, other) => match (one.number(), other.number()) {
                (Some(one), Some(other)) => order_numbers(one, other),
                _ => one.bytes().cmp(&other.bytes()),
            },
        }
    }

    /// Bytes that are equal for values that GROUPBY and COUNT_DISTINCT hold to be equal.
    pub(crate) fn key(&self, key: &mut Vec<u8>) {
        match self {
            Self::Null => key.push(0),
            Self::Number(number) => {
                key.push(1);
                key.extend_from_slice(&(number + 0.0).to_bits().to_le_bytes());
            }
            Self::Text(text) | Self::Shown(_, text) => {
                key.push(2);
                key.extend_from_slice(&(text.len() as u64).to_le_bytes());
                key.extend_from_slice(text);
            }
            Self::List(list) => {
                key.push(3);
                key.extend_from_slice(&(list.len() as u64).to_le_bytes());
                list.iter().for_each(|item| item.key(key));
            }
        }
    }
}

fn order_numbers(one: f64, other: f64) -> Ordering {
    one.partial_cmp(&other).unwrap_or_else(|| one.is_nan().cmp(&other.is_nan()))
}

//! An option that cannot be used as it was given.

use std::fmt;

/// Names the option, its value, and what was expected instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    text: String,
}

impl Invalid {
    /// `field` is `value`, but `expected` was expected.
    pub fn new(field: impl fmt::Display, value: impl fmt::Display, expected: impl fmt::Display) -> Self {
        Self { text: format!("{field} is `{value}`, expected {expected}") }
    }

    /// Anything else that is wrong, in a sentence.
    pub fn because(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Invalid {}

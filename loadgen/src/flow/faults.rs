//! The faults of a file, with their lines.

use std::fmt::Display;

use toml::{Spanned, Value as Toml};

use super::Fault;

/// The faults of a text.
pub(super) struct Faults<'t> {
    pub(super) text: &'t str,
    pub(super) list: Vec<Fault>,
}

impl Faults<'_> {
    /// `field` at this place is `value`, but `expected` was expected.
    pub(super) fn add<T>(&mut self, place: &Spanned<T>, field: &str, value: impl Display, expected: impl Display) {
        let line = line_of(self.text, place.span().start);
        self.list.push(Fault { line, text: format!("{field} is `{value}`, expected {expected}") });
    }

    /// The value, or a fault: `error` says what was expected.
    pub(super) fn get<V, T: Display, E: Display>(
        &mut self,
        place: &Spanned<T>,
        field: &str,
        found: Result<V, E>,
    ) -> Option<V> {
        found
            .map_err(|error| {
                let error = error.to_string();
                let expected = error.strip_prefix("expected ").unwrap_or(&error);
                self.add(place, field, place.get_ref(), expected);
            })
            .ok()
    }
}

pub(super) fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
}

/// A value of the file for people.
pub(super) fn shown(value: &Toml) -> String {
    match value {
        Toml::String(text) => text.clone(),
        Toml::Integer(number) => number.to_string(),
        Toml::Float(number) => number.to_string(),
        Toml::Boolean(is_true) => is_true.to_string(),
        Toml::Datetime(time) => time.to_string(),
        Toml::Array(values) => format!("[{}]", values.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Toml::Table(_) => "a table".to_owned(),
    }
}

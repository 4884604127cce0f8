//! The names of values.

use std::collections::BTreeSet;

use toml::Spanned;

use super::faults::Faults;

/// The names of values that are always there.
pub(super) const BUILT_IN: [&str; 2] = ["iteration", "user"];

/// The names of values that all flows have.
#[derive(Default)]
pub(super) struct Names {
    pub(super) numbers: Vec<String>,
    /// Feeders with their columns.
    pub(super) feeders: Vec<(String, Vec<String>)>,
    /// Feeders with a fault of their own.
    pub(super) unread: BTreeSet<String>,
    /// True if users send cookies by themselves.
    pub(super) keeps_cookies: bool,
}

/// A value's name is a word, and no other value has it.
pub(super) fn check_name(name: &Spanned<String>, field: &str, faults: &mut Faults<'_>) {
    let word = name.get_ref();
    let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if !is_word || BUILT_IN.contains(&word.as_str()) {
        let expected = "a word of letters, digits, - and _, other than iteration and user";
        faults.add(name, &format!("the name of {field}"), word, expected);
    }
}

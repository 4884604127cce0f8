//! Parts of a source file: its tests, and words.

/// Whether a file has nothing but tests.
pub(super) fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name, "tests.rs" | "testing.rs" | "oracle.rs" | "command_oracle.rs")
        || path.split('/').any(|part| part == "tests")
}

/// The code in front of a file's tests.
pub(super) fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

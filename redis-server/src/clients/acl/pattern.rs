//! Patterns of keys and channels, and what may be done with the keys.

use crate::protocol::glob;

/// The permissions on a key that a pattern grants, or that a call needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permission {
    /// Its value is read.
    pub read: bool,
    /// Its value is changed, or it is removed.
    pub write: bool,
}

impl Permission {
    /// Everything.
    pub const ALL: Self = Self { read: true, write: true };

    /// The permission that the flags of a key specification require: `RW access update`. One that neither reads nor changes what a value
    /// holds (`EXISTS`) needs nothing but a pattern that matches.
    pub fn needed(flags: &str) -> Self {
        let mut needed = Self::default();
        for word in flags.split(' ') {
            match word {
                "access" => needed.read = true,
                "update" | "insert" | "delete" => needed.write = true,
                _ => {}
            }
        }
        needed
    }

    /// Whether all of `needed` is there.
    pub fn allows(self, needed: Self) -> bool {
        (self.read || !needed.read) && (self.write || !needed.write)
    }
}

/// A glob pattern, with the two simple forms told apart that nearly all have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    text: Box<[u8]>,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// No character is special.
    Literal,
    /// Only the last one is: a star.
    Prefix,
    Glob,
}

impl Pattern {
    pub(super) fn new(text: &[u8]) -> Self {
        let special = |byte: &u8| b"*?[]\\".contains(byte);
        let form = match text.iter().position(special) {
            None => Form::Literal,
            Some(at) if at > 0 && at + 1 == text.len() && text[at] == b'*' => Form::Prefix,
            Some(_) => Form::Glob,
        };
        Self { text: text.into(), form }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(super) fn matches(&self, name: &[u8]) -> bool {
        match self.form {
            Form::Literal => *self.text == *name,
            Form::Prefix => name.starts_with(&self.text[..self.text.len() - 1]),
            Form::Glob => glob::matches(&self.text, name, false),
        }
    }
}

/// A pattern of keys with what may be done with those that match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPattern {
    pub(super) pattern: Pattern,
    pub(super) permission: Permission,
}

impl KeyPattern {
    /// Appends it as a rule: `~app:*`, `%R~shared:*`.
    pub(super) fn describe(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self.permission {
            Permission { read: true, write: false } => b"%R~",
            Permission { read: false, write: true } => b"%W~",
            Permission { .. } => b"~",
        });
        out.extend_from_slice(self.pattern.text());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_matches_as_the_glob_does() {
        for pattern in ["", "a", "app:*", "*", "a*b", "a?", "[ab]c*", "a\\*", "a\\**", "a]*"] {
            for name in ["", "a", "app:", "app:1", "ab", "acb", "a*", "a*x", "bc", "a]", "a]x"] {
                let expected = glob::matches(pattern.as_bytes(), name.as_bytes(), false);
                assert_eq!(Pattern::new(pattern.as_bytes()).matches(name.as_bytes()), expected, "{pattern} {name}");
            }
        }
    }

    #[test]
    fn key_specification_flags_map_to_permissions() {
        let check = |flags: &str, read: bool, write: bool| {
            assert_eq!(Permission::needed(flags), Permission { read, write }, "{flags}");
        };
        check("RO access", true, false);
        check("RW access update", true, true);
        check("OW update", false, true);
        check("RW insert", false, true);
        check("RM delete", false, true);
        check("RO", false, false);
        check("", false, false);
    }
}

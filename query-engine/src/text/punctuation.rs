//! The characters that end words.

use std::borrow::Cow;
use std::fmt;

/// The characters that end words of an index's texts and queries, besides spaces.
///
/// The default is RediSearch's: ASCII punctuation other than `_` and `\`. There a control character is no part of a word
/// and ends none. With a list of its own, an index has words that end at the characters of the list, at spaces and at
/// control characters.
///
/// A backslash takes the character behind it into the word. If the list has the backslash, it does so before another
/// backslash and before characters that end words; before other characters it ends the word itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Punctuation(Option<Separators>);

impl Punctuation {
    /// A list of its own.
    ///
    /// # Errors
    /// When it is empty, or has a character beyond ASCII.
    pub fn new(characters: &[u8]) -> Result<Self, PunctuationError> {
        if characters.is_empty() {
            return Err(PunctuationError::Empty);
        }
        if !characters.is_ascii() {
            return Err(PunctuationError::NotAscii);
        }
        let ends = |byte: &u8| byte.is_ascii_control() || *byte == b' ' || characters.contains(byte);
        let set = (0..=0x7f).filter(ends).fold(0, |set, byte| set | 1 << byte);
        Ok(Self(Some(Separators(set))))
    }

    /// The visible characters that end words, in the order of ASCII.
    pub fn characters(self) -> impl Iterator<Item = char> {
        (b'!'..=b'~').filter(move |byte| self.separates(*byte)).map(char::from)
    }

    /// The list, unless it is the default.
    pub(crate) fn own(self) -> Option<Separators> {
        self.0
    }

    /// Whether a byte ends a word.
    pub(crate) fn separates(self, byte: u8) -> bool {
        self.0.map_or_else(|| is_separator(byte), |own| own.contains(byte))
    }

    /// A word of a query without the backslashes that take characters into it.
    pub(crate) fn unescape(self, word: &[u8]) -> Cow<'_, [u8]> {
        match self.0 {
            None => super::unescape(word),
            Some(_) if !word.contains(&b'\\') => word.into(),
            Some(own) => own.unescape(word),
        }
    }
}

/// RediSearch's separators.
pub(crate) fn is_separator(byte: u8) -> bool {
    byte == b' ' || byte == b'\t' || byte.is_ascii_punctuation() && byte != b'_' && byte != b'\\'
}

/// An index's own separators: a bit per ASCII character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Separators(u128);

impl Separators {
    pub(crate) fn contains(self, byte: u8) -> bool {
        byte.is_ascii() && self.0 >> byte & 1 == 1
    }

    /// Whether a backslash takes the byte behind it into the word.
    pub(crate) fn is_escapable(self, next: u8) -> bool {
        !self.contains(b'\\') || next == b'\\' || self.contains(next)
    }

    /// The bytes up to the next separator that no backslash escapes.
    pub(super) fn word_length(self, text: &[u8]) -> usize {
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            let next = text.get(at + 1);
            if byte == b'\\' && next.is_some_and(|next| self.is_escapable(*next)) {
                at += 2;
            } else if self.contains(byte) {
                return at;
            } else {
                at += 1;
            }
        }
        text.len()
    }

    fn unescape(self, word: &[u8]) -> Cow<'_, [u8]> {
        let mut plain = Vec::with_capacity(word.len());
        let mut bytes = word.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            let escaped = if byte == b'\\' { bytes.next() } else { None };
            plain.push(escaped.unwrap_or(byte));
        }
        plain.into()
    }
}

/// Why a list of characters is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PunctuationError {
    /// It has no character.
    Empty,
    /// It has a character beyond ASCII.
    NotAscii,
}

impl fmt::Display for PunctuationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "PUNCTUATION string cannot be empty",
            Self::NotAscii => "PUNCTUATION has a character beyond ASCII",
        })
    }
}

impl std::error::Error for PunctuationError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_ascii() {
        assert_eq!(Punctuation::new(b""), Err(PunctuationError::Empty));
        assert_eq!(Punctuation::new("。".as_bytes()), Err(PunctuationError::NotAscii));
        let listed: String = Punctuation::new(b".,!").expect("ASCII").characters().collect();
        assert_eq!(listed, "!,.");
        let default: String = Punctuation::default().characters().collect();
        assert_eq!(default, "!\"#$%&'()*+,-./:;<=>?@[]^`{|}~");
    }

    #[test]
    fn escapes_are_removed() {
        let check = |characters: &[u8], word: &str, expected: &str| {
            let punctuation = Punctuation::new(characters).expect("ASCII");
            assert_eq!(punctuation.unescape(word.as_bytes()), expected.as_bytes(), "{word}");
        };
        check(b".", "plain", "plain");
        check(b".", "a\\.b\\cd\\\\e", "a.bcd\\e");
        check(b".", "end\\", "end\\");
    }
}

//! From a text to its words: they end at the punctuation of the index and at spaces; a backslash takes the character behind
//! it into the word.

use std::borrow::Cow;

use unicase::UniCase;

use super::punctuation::is_separator;
use super::{Language, Punctuation, ideographs};

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token<'t> {
    /// In lower case, without escapes.
    pub(crate) word: Cow<'t, [u8]>,
    /// Where it begins in the text (bytes).
    pub(crate) start: usize,
    /// Where it ends in the text.
    pub(crate) end: usize,
    /// The word stands at the place of the word before it.
    pub(crate) same_place: bool,
    /// The word is one ideograph of Chinese or a pair of them, and never a stop word.
    pub(crate) is_gram: bool,
}

/// The words of a text, without those that become empty.
pub(crate) fn tokens(text: &[u8], punctuation: Punctuation, language: Language) -> impl Iterator<Item = Token<'_>> {
    tokens_between(text, punctuation, is_separator).flat_map(move |token| {
        if language.has_spaces() { ideographs::Words::One(Some(token)) } else { ideographs::words(text, token) }
    })
}

/// The words of a phrase in a query. In RediSearch's phrases `$` ends no word.
pub(crate) fn phrase_tokens(text: &[u8], punctuation: Punctuation) -> impl Iterator<Item = Token<'_>> {
    tokens_between(text, punctuation, |byte| byte != b'$' && is_separator(byte))
}

/// `ends` stands for the default punctuation.
fn tokens_between(text: &[u8], punctuation: Punctuation, ends: impl Fn(u8) -> bool) -> impl Iterator<Item = Token<'_>> {
    let own = punctuation.own();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let start = at;
            let rest = &text[start..];
            let end = start + own.map_or_else(|| word_length(rest, &ends), |own| own.word_length(rest));
            at = end + 1;
            let word = normalise(&text[start..end]);
            if !word.is_empty() {
                return Some(Token { word, start, end, same_place: false, is_gram: false });
            }
        }
        None
    })
}

/// The bytes up to the next separator that no backslash escapes.
fn word_length(text: &[u8], is_end: impl Fn(u8) -> bool) -> usize {
    let mut escaped = false;
    let end = text.iter().position(|&byte| {
        let ends = is_end(byte) && !escaped;
        escaped = !escaped && byte == b'\\';
        ends
    });
    end.unwrap_or(text.len())
}

/// Lower case, without escapes, control characters and unescaped blanks.
pub(super) fn normalise(raw: &[u8]) -> Cow<'_, [u8]> {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
    if raw.iter().all(plain) {
        return Cow::Borrowed(raw);
    }
    let (mut word, mut escaped) = (Vec::with_capacity(raw.len()), false);
    for &byte in raw {
        let blank = matches!(byte, b' ' | b'\t') && !escaped;
        if byte == b'\\' && !escaped {
            escaped = true;
            continue;
        }
        if !blank && !byte.is_ascii_control() {
            word.push(byte);
        }
        escaped = false;
    }
    Cow::Owned(lower(&word).into_owned())
}

/// Lower case by Unicode's rules; by ASCII's where the bytes are not UTF-8.
pub(crate) fn lower(text: &[u8]) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        return if text.iter().any(u8::is_ascii_uppercase) { text.to_ascii_lowercase().into() } else { text.into() };
    }
    match std::str::from_utf8(text) {
        Ok(text) => text.to_lowercase().into_bytes().into(),
        Err(_) => text.to_ascii_lowercase().into(),
    }
}

/// A text in the form in which it is the same whatever the case of its letters, by Unicode's full case folding: `ß` is `ss`.
pub(crate) fn fold(text: &[u8]) -> Cow<'_, [u8]> {
    match std::str::from_utf8(text) {
        Ok(valid) if !text.is_ascii() => UniCase::unicode(valid).to_folded_case().into_bytes().into(),
        _ => lower(text),
    }
}

/// Removes the backslash before punctuation and spaces.
pub(crate) fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return text.into();
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let escapes = |next: &u8| next.is_ascii_punctuation() || next.is_ascii_whitespace();
        let escaped = if byte == b'\\' { bytes.next_if(escapes) } else { None };
        plain.push(escaped.unwrap_or(byte));
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_words() {
        let check = |text: &str, expected: &[&str]| {
            let words: Vec<String> = tokens(text.as_bytes(), Punctuation::default(), Language::English)
                .map(|token| String::from_utf8_lossy(&token.word).into_owned())
                .collect();
            assert_eq!(words, expected, "{text}");
        };
        check("Hello, World", &["hello", "world"]);
        check("hello_there World's", &["hello_there", "world", "s"]);
        check("foo\\-bar foo-bar", &["foo-bar", "foo", "bar"]);
        let folded = |text: &str| String::from_utf8(fold(text.as_bytes()).into_owned()).unwrap();
        assert_eq!(folded("Naïve ÄÖ Große ΣΑΣ ﬁ"), "naïve äö grosse σασ fi");
        assert_eq!(folded("Plain"), "plain");
        check("ÉTÉ 日本", &["été", "日本"]);
        check("a\nb\x01", &["ab"]);
        check("  ,.; ", &[]);
        check("trailing\\", &["trailing"]);
        check("two\\ words", &["two words"]);
    }

    #[test]
    fn words_end_at_an_index_own_punctuation() {
        let check = |characters: &str, text: &str, expected: &[&str]| {
            let punctuation = Punctuation::new(characters.as_bytes()).expect("ASCII");
            let words: Vec<String> = tokens(text.as_bytes(), punctuation, Language::English)
                .map(|token| String::from_utf8_lossy(&token.word).into_owned())
                .collect();
            assert_eq!(words, expected, "{characters}: {text}");
            let phrase: Vec<String> = phrase_tokens(text.as_bytes(), punctuation)
                .map(|token| String::from_utf8_lossy(&token.word).into_owned())
                .collect();
            assert_eq!(phrase, expected, "{characters}: {text}");
        };
        check(".", "Hello.World test@email", &["hello", "world", "test@email"]);
        check("_", "one_two,three", &["one", "two,three"]);
        check("$", "a$b -5", &["a", "b", "-5"]);
        // Spaces and control characters end words of any list.
        check(".", "a\tb\nc\r\nd\x01e\x7ff\x0bg", &["a", "b", "c", "d", "e", "f", "g"]);
        check(".", "...", &[]);
        check(".", "日本、語。É", &["日本、語。é"]);
        check("x.", "axb.c", &["a", "b", "c"]);
        // Without the backslash in the list, it takes any character into the word.
        check(".,!", "test\\,value", &["test,value"]);
        check(".,!", "test\\nvalue", &["testnvalue"]);
        check(".,!", "a\\\\b a\\\\\\b a\\\\\\\\b", &["a\\b", "a\\b", "a\\\\b"]);
        check(".,!", "two\\ words\\", &["two words"]);
        // In the list, it ends a word before characters that end none.
        check(",\\", "test\\,value", &["test,value"]);
        check(",\\", "test\\nvalue", &["test", "nvalue"]);
        check(",\\", "a\\\\b a\\\\\\b a\\\\\\\\b", &["a\\b", "a\\", "b", "a\\\\b"]);
        check(",\\", "\\.a\\", &[".a"]);
    }

    #[test]
    fn words_know_where_they_stand() {
        let words = tokens(b"ab, Cd", Punctuation::default(), Language::English);
        let ends: Vec<_> = words.map(|token| (token.start, token.end)).collect();
        assert_eq!(ends, [(0, 2), (4, 6)]);
    }

    #[test]
    fn escapes_are_removed() {
        let check = |text: &str, expected: &str| assert_eq!(unescape(text.as_bytes()), expected.as_bytes());
        check("a\\-b", "a-b");
        check("a\\b", "a\\b");
        check("a\\\\b", "a\\b");
        check("a\\", "a\\");
    }
}

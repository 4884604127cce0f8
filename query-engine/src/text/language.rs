//! Languages and their stemmers.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use snowball_stemmers_rs::{Algorithm, Stemmer};

/// A language of documents and queries; it selects the stemmer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names of languages say all")]
pub enum Language {
    Arabic,
    Armenian,
    Basque,
    Catalan,
    /// Each ideograph is a word, and so are two neighbours.
    Chinese,
    Danish,
    Dutch,
    #[default]
    English,
    Finnish,
    French,
    German,
    Greek,
    Hindi,
    Hungarian,
    Indonesian,
    Irish,
    Italian,
    Lithuanian,
    Nepali,
    Norwegian,
    Portuguese,
    Romanian,
    Russian,
    Serbian,
    Spanish,
    Swedish,
    Tamil,
    Turkish,
    Yiddish,
}

/// Every language by its name in FT.CREATE and FT.SEARCH, with its stemmer, if it has stems.
const LANGUAGES: &[(&str, Language, Option<Algorithm>)] = &[
    ("arabic", Language::Arabic, Some(Algorithm::Arabic)),
    ("armenian", Language::Armenian, Some(Algorithm::Armenian)),
    ("basque", Language::Basque, Some(Algorithm::Basque)),
    ("catalan", Language::Catalan, Some(Algorithm::Catalan)),
    ("chinese", Language::Chinese, None),
    ("danish", Language::Danish, Some(Algorithm::Danish)),
    ("dutch", Language::Dutch, Some(Algorithm::Dutch)),
    ("english", Language::English, Some(Algorithm::English)),
    ("finnish", Language::Finnish, Some(Algorithm::Finnish)),
    ("french", Language::French, Some(Algorithm::French)),
    ("german", Language::German, Some(Algorithm::German)),
    ("greek", Language::Greek, Some(Algorithm::Greek)),
    ("hindi", Language::Hindi, Some(Algorithm::Hindi)),
    ("hungarian", Language::Hungarian, Some(Algorithm::Hungarian)),
    ("indonesian", Language::Indonesian, Some(Algorithm::Indonesian)),
    ("irish", Language::Irish, Some(Algorithm::Irish)),
    ("italian", Language::Italian, Some(Algorithm::Italian)),
    ("lithuanian", Language::Lithuanian, Some(Algorithm::Lithuanian)),
    ("nepali", Language::Nepali, Some(Algorithm::Nepali)),
    ("norwegian", Language::Norwegian, Some(Algorithm::Norwegian)),
    ("portuguese", Language::Portuguese, Some(Algorithm::Portuguese)),
    ("romanian", Language::Romanian, Some(Algorithm::Romanian)),
    ("russian", Language::Russian, Some(Algorithm::Russian)),
    ("serbian", Language::Serbian, Some(Algorithm::Serbian)),
    ("spanish", Language::Spanish, Some(Algorithm::Spanish)),
    ("swedish", Language::Swedish, Some(Algorithm::Swedish)),
    ("tamil", Language::Tamil, Some(Algorithm::Tamil)),
    ("turkish", Language::Turkish, Some(Algorithm::Turkish)),
    ("yiddish", Language::Yiddish, Some(Algorithm::Yiddish)),
];

impl Language {
    /// The name in commands, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Spaces or punctuation stand between all words.
    pub(crate) fn has_spaces(self) -> bool {
        self != Self::Chinese
    }

    fn row(self) -> &'static (&'static str, Self, Option<Algorithm>) {
        LANGUAGES.iter().find(|row| row.1 == self).expect("every language has a row")
    }
}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(name: &str) -> Result<Self, UnknownLanguage> {
        let row = LANGUAGES.iter().find(|row| row.0.eq_ignore_ascii_case(name));
        row.map(|row| row.1).ok_or(UnknownLanguage)
    }
}

/// The name of no supported language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownLanguage;

impl fmt::Display for UnknownLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unsupported language")
    }
}

impl std::error::Error for UnknownLanguage {}

/// A stemmer for one document or query.
pub(crate) struct StemBuffer(Option<Stemmer>);

/// Words longer than this have no stem: stemmers' work may grow with the square of the length, and no language has such words.
const MAX_STEMMED: usize = 256;

impl StemBuffer {
    pub(crate) fn new(language: Language) -> Self {
        Self(language.row().2.map(Stemmer::create))
    }

    /// The stem of a word in lower case; `None` for bytes that are not UTF-8, and in a language without stems.
    pub(crate) fn stem<'w>(&self, word: &'w [u8]) -> Option<Cow<'w, str>> {
        let word = std::str::from_utf8(word).ok().filter(|word| word.len() <= MAX_STEMMED)?;
        self.0.as_ref().map(|stemmer| stemmer.stem(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_found_by_name() {
        for (name, language, _) in LANGUAGES {
            assert_eq!(name.to_uppercase().parse(), Ok(*language));
            assert_eq!(language.name(), *name);
        }
        assert_eq!("klingon".parse::<Language>(), Err(UnknownLanguage));
    }

    #[test]
    fn words_are_stemmed_by_language() {
        let check = |language, word: &str, expected: &str| {
            assert_eq!(StemBuffer::new(language).stem(word.as_bytes()).as_deref(), Some(expected), "{word}");
        };
        check(Language::English, "running", "run");
        check(Language::English, "world", "world");
        check(Language::French, "continuer", "continu");
        check(Language::German, "häuser", "haus");
        assert_eq!(StemBuffer::new(Language::Chinese).stem(b"running"), None);
        assert_eq!(StemBuffer::new(Language::English).stem(b"\xff\xfe"), None);
        assert_eq!(StemBuffer::new(Language::English).stem(&[b'a'; 300]), None);
    }
}

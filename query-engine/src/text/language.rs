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

/// Every language by its name in FT.CREATE and FT.SEARCH, with its stemmer.
const LANGUAGES: &[(&str, Language, Algorithm)] = &[
    ("arabic", Language::Arabic, Algorithm::Arabic),
    ("armenian", Language::Armenian, Algorithm::Armenian),
    ("basque", Language::Basque, Algorithm::Basque),
    ("catalan", Language::Catalan, Algorithm::Catalan),
    ("danish", Language::Danish, Algorithm::Danish),
    ("dutch", Language::Dutch, Algorithm::Dutch),
    ("english", Language::English, Algorithm::English),
    ("finnish", Language::Finnish, Algorithm::Finnish),
    ("french", Language::French, Algorithm::French),
    ("german", Language::German, Algorithm::German),
    ("greek", Language::Greek, Algorithm::Greek),
    ("hindi", Language::Hindi, Algorithm::Hindi),
    ("hungarian", Language::Hungarian, Algorithm::Hungarian),
    ("indonesian", Language::Indonesian, Algorithm::Indonesian),
    ("irish", Language::Irish, Algorithm::Irish),
    ("italian", Language::Italian, Algorithm::Italian),
    ("lithuanian", Language::Lithuanian, Algorithm::Lithuanian),
    ("nepali", Language::Nepali, Algorithm::Nepali),
    ("norwegian", Language::Norwegian, Algorithm::Norwegian),
    ("portuguese", Language::Portuguese, Algorithm::Portuguese),
    ("romanian", Language::Romanian, Algorithm::Romanian),
    ("russian", Language::Russian, Algorithm::Russian),
    ("serbian", Language::Serbian, Algorithm::Serbian),
    ("spanish", Language::Spanish, Algorithm::Spanish),
    ("swedish", Language::Swedish, Algorithm::Swedish),
    ("tamil", Language::Tamil, Algorithm::Tamil),
    ("turkish", Language::Turkish, Algorithm::Turkish),
    ("yiddish", Language::Yiddish, Algorithm::Yiddish),
];

impl Language {
    /// The name in commands, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().0
    }

    fn row(self) -> &'static (&'static str, Self, Algorithm) {
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
pub(crate) struct StemBuffer(Stemmer);

/// Words longer than this have no stem: stemmers' work may grow with the square of the length, and no language has such words.
const MAX_STEMMED: usize = 256;

impl StemBuffer {
    pub(crate) fn new(language: Language) -> Self {
        Self(Stemmer::create(language.row().2))
    }

    /// The stem of a word in lower case; `None` for bytes that are not UTF-8.
    pub(crate) fn stem<'w>(&self, word: &'w [u8]) -> Option<Cow<'w, str>> {
        let word = std::str::from_utf8(word).ok().filter(|word| word.len() <= MAX_STEMMED)?;
        Some(self.0.stem(word))
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
        assert_eq!(StemBuffer::new(Language::English).stem(b"\xff\xfe"), None);
        assert_eq!(StemBuffer::new(Language::English).stem(&[b'a'; 300]), None);
    }
}

//! Words that are neither indexed nor searched.

/// RediSearch's default list, sorted.
const DEFAULT: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
];

/// Words that are left out of TEXT fields and of queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopWords(Vec<Box<[u8]>>);

impl Default for StopWords {
    fn default() -> Self {
        Self::new(DEFAULT)
    }
}

impl StopWords {
    /// A list of its own; words are compared in lower case. Empty: every word is indexed.
    pub fn new<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Self {
        let mut words: Vec<Box<[u8]>> = words.into_iter().map(|word| super::lower(word.as_ref()).into()).collect();
        words.sort_unstable();
        words.dedup();
        Self(words)
    }

    /// Whether a word in lower case is one of them.
    #[must_use]
    pub fn contains(&self, word: &[u8]) -> bool {
        self.0.binary_search_by(|known| known.as_ref().cmp(word)).is_ok()
    }

    /// The words, sorted.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(AsRef::as_ref)
    }
}

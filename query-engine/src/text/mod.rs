//! From text to words: separators, case, stop words, stems.

mod highlight;
mod ideographs;
mod language;
mod phonetic;
mod punctuation;
mod stop_words;
mod synonyms;
mod tokens;

pub use highlight::{FoundWord, Marks, Summary, highlight, summarize};
pub(crate) use ideographs::pieces;
pub(crate) use language::StemBuffer;
pub use language::{Language, UnknownLanguage};
pub(crate) use phonetic::{PHONETIC_PREFIX, phonetic};
pub(crate) use punctuation::Separators;
pub use punctuation::{Punctuation, PunctuationError};
pub use stop_words::StopWords;
pub use synonyms::{MAX_SYNONYM_GROUPS, Synonyms};
pub(crate) use tokens::{fold, lower, phrase_tokens, tokens, unescape};

/// Precedes a stem in the term dictionary, so that words and stems do not meet.
pub(crate) const STEM_PREFIX: u8 = b'+';

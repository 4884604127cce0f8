//! How words sound: double metaphone.

use rphonetic::{DoubleMetaphone, Encoder as _};

/// Precedes a code in the term dictionary, so that words and codes do not meet.
pub(crate) const PHONETIC_PREFIX: u8 = b'<';

/// The part of a word that its sound is read from (bytes). Four letters are a code, and no language needs more of a word for them.
const MAX_LENGTH: usize = 256;

/// The code of a word in lower case, behind its mark; `None` if it has no sound, like a number.
pub(crate) fn phonetic(word: &[u8]) -> Option<Vec<u8>> {
    // Bytes beyond ASCII are silent, as in RediSearch.
    let letters =
        word.iter().take(MAX_LENGTH).map(|byte| if byte.is_ascii_alphabetic() { char::from(*byte) } else { '_' });
    let code = DoubleMetaphone::default().encode(&letters.collect::<String>());
    (!code.is_empty()).then(|| [&[PHONETIC_PREFIX], code.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes of RediSearch 2.10.5, as its FT.EXPLAIN shows them.
    #[test]
    fn words_have_codes() {
        let check = |word: &str, expected: &str| {
            let code = phonetic(word.as_bytes()).unwrap_or_default();
            assert_eq!(String::from_utf8_lossy(&code), expected, "{word}");
        };
        for (word, code) in [
            ("smith", "<SM0"),
            ("running", "<RNNK"),
            ("morphix", "<MRFK"),
            ("jonathan", "<JN0N"),
            ("jones", "<JNS"),
            ("naïve", "<NF"),
            ("ab", "<AP"),
            ("www", ""),
            ("2015", ""),
            ("éñç", ""),
            ("", ""),
        ] {
            check(word, code);
        }
        check(&"a".repeat(8 << 20), "<A");
        check(&"ch".repeat(1 << 20), "<XXXX");
    }
}

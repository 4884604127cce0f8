//! HIGHLIGHT: marks the words of a text that a query has found.

use super::{Language, MIN_STEM_LENGTH, STEM_PREFIX, StemBuffer, tokens};

/// Marks every word of a text that is one of `words`, as [`crate::Hit::words`] gives them, or has its stem among them.
/// RediSearch marks these words in all fields, also in those that the query does not name.
#[must_use]
pub fn highlight(text: &[u8], words: &[Box<[u8]>], language: Language, open: &[u8], close: &[u8]) -> Vec<u8> {
    let stemmer = StemBuffer::new(language);
    let (mut marked, mut copied) = (Vec::with_capacity(text.len() * 2), 0);
    for token in tokens(text).filter(|token| is_found(&token.word, words, &stemmer)) {
        for part in [&text[copied..token.start], open, &text[token.start..token.end], close] {
            marked.extend_from_slice(part);
        }
        copied = token.end;
    }
    marked.extend_from_slice(&text[copied..]);
    marked
}

fn is_found(word: &[u8], words: &[Box<[u8]>], stemmer: &StemBuffer) -> bool {
    if words.iter().any(|found| **found == *word) {
        return true;
    }
    let stems = words.iter().filter_map(|found| found.strip_prefix(&[STEM_PREFIX]));
    let mut stems = stems.filter(|_| word.len() >= MIN_STEM_LENGTH).peekable();
    if stems.peek().is_none() {
        return false;
    }
    let own = stemmer.stem(word);
    stems.any(|stem| own.as_ref().is_some_and(|own| own.as_bytes() == stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_stems_are_marked() {
        let check = |words: &[&str], expected: &str| {
            let text = "Hello, world! Running the runs: hello_x hello-world (HELLO)";
            let words: Vec<Box<[u8]>> = words.iter().map(|word| word.as_bytes().into()).collect();
            let marked = highlight(text.as_bytes(), &words, Language::English, b"[", b"]");
            assert_eq!(String::from_utf8_lossy(&marked), expected);
        };
        check(&["hello", "world"], "[Hello], [world]! Running the runs: hello_x [hello]-[world] ([HELLO])");
        check(&["+run"], "Hello, world! [Running] the [runs]: hello_x hello-world (HELLO)");
        check(&[], "Hello, world! Running the runs: hello_x hello-world (HELLO)");
    }
}

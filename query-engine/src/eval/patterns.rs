//! Words of a dictionary by prefix, suffix, infix, wildcard and distance.

use std::ops::Bound;

use super::levenshtein::Table;
use crate::index::Dictionary;
use crate::index::postings::Postings;

/// A pattern of words.
pub(crate) enum Pattern<'p> {
    Prefix(&'p [u8]),
    Suffix(&'p [u8]),
    Infix(&'p [u8]),
    Wildcard(&'p [u8]),
    Fuzzy {
        text: &'p [u8],
        distance: u8,
        /// Also the empty word.
        finds_empty: bool,
    },
}

/// The words of a dictionary that match, in byte order, at most `most`.
pub(crate) fn expand<'i>(
    dictionary: &'i Dictionary,
    pattern: &Pattern<'_>,
    most: usize,
) -> Vec<(&'i [u8], &'i Postings)> {
    let under = |prefix: &[u8]| {
        let prefix = prefix.to_vec();
        let from = (Bound::Included(prefix.clone().into_boxed_slice()), Bound::Unbounded);
        let words = dictionary.range::<Box<[u8]>, _>(from).map(|(word, postings)| (word.as_ref(), postings));
        words.take_while(move |(word, _)| word.starts_with(&prefix))
    };
    match pattern {
        Pattern::Prefix(prefix) => under(prefix).take(most).collect(),
        Pattern::Suffix(suffix) => under(b"").filter(|(word, _)| word.ends_with(suffix)).take(most).collect(),
        Pattern::Infix(infix) => under(b"").filter(|(word, _)| contains(word, infix)).take(most).collect(),
        Pattern::Wildcard(pattern) => {
            let fixed = pattern.iter().take_while(|byte| !matches!(byte, b'*' | b'?' | b'\\')).count();
            under(&pattern[..fixed]).filter(|(word, _)| wildcard(pattern, word)).take(most).collect()
        }
        Pattern::Fuzzy { text, distance, finds_empty } => {
            let mut found = fuzzy(dictionary, text, *distance, most);
            found.retain(|(word, _)| *finds_empty || !word.is_empty());
            found
        }
    }
}

fn contains(word: &[u8], part: &[u8]) -> bool {
    part.is_empty() || word.windows(part.len()).any(|window| window == part)
}

/// Skips all words under a beginning that is too far away. Stems are words here, as in RediSearch.
fn fuzzy<'i>(dictionary: &'i Dictionary, text: &[u8], distance: u8, most: usize) -> Vec<(&'i [u8], &'i Postings)> {
    let (mut table, mut found) = (Table::new(text, distance), Vec::new());
    let mut from: Bound<Vec<u8>> = Bound::Unbounded;
    loop {
        let start = from.as_ref().map(Vec::as_slice);
        let Some((word, postings)) = dictionary.range::<[u8], _>((start, Bound::Unbounded)).next() else { break };
        if found.len() >= most {
            break;
        }
        let check = std::str::from_utf8(word).map(|text| table.check(text));
        match check {
            Ok(Err(beginning)) => {
                from = after_all_under(beginning.as_bytes())
                    .map_or_else(|| Bound::Excluded(word.to_vec()), Bound::Included);
                continue;
            }
            Ok(Ok(true)) => found.push((word.as_ref(), postings)),
            Ok(Ok(_)) | Err(_) => {}
        }
        from = Bound::Excluded(word.to_vec());
    }
    found
}

/// The lowest bytes above everything with a prefix.
fn after_all_under(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut above = prefix[..=last].to_vec();
    above[last] += 1;
    Some(above)
}

/// `*` stands for any bytes, `?` for one; a backslash takes the next as it is. Linear in word × stars.
pub(super) fn wildcard(pattern: &[u8], word: &[u8]) -> bool {
    let (mut at, mut word_at) = (0, 0);
    // Where to go on if what follows the last star does not match: behind the star, and one byte later in the word.
    let mut retry = None;
    while word_at < word.len() {
        let (byte, length) = match pattern.get(at) {
            Some(b'*') => {
                at += 1;
                retry = Some((at, word_at));
                continue;
            }
            Some(b'\\') if at + 1 < pattern.len() => (Some(pattern[at + 1]), 2),
            Some(b'?') => (Some(word[word_at]), 1),
            other => (other.copied(), 1),
        };
        if byte == Some(word[word_at]) {
            at += length;
            word_at += 1;
            continue;
        }
        let Some((behind_star, from)) = retry else { return false };
        (at, word_at) = (behind_star, from + 1);
        retry = Some((behind_star, from + 1));
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match() {
        let check = |pattern: &str, word: &str, expected: bool| {
            assert_eq!(wildcard(pattern.as_bytes(), word.as_bytes()), expected, "{pattern} {word}");
        };
        check("h?l*o", "hello", true);
        check("h?l*o", "helo", true);
        check("h?l*o", "hlo", false);
        check("*", "", true);
        check("?", "", false);
        check("a\\*", "a*", true);
        check("a\\*", "ab", false);
        check("*ab*ab", "abab", true);
        check("*ab*ab", "ab", false);
        check("a*b*c", "a1b2c3", false);
    }

    #[test]
    fn hostile_wildcards_end() {
        let pattern = b"*a".repeat(5000);
        assert!(!wildcard(&pattern, &b"b".repeat(5000)));
        assert!(!wildcard(&pattern, &b"a".repeat(4999)));
    }

    #[test]
    fn words_are_found() {
        let words = ["abc", "abd", "b", "xabc", "zab", "+abc", "äbc"];
        let dictionary: Dictionary = words.iter().map(|word| (word.as_bytes().into(), Postings::default())).collect();
        let check = |pattern: Pattern<'_>, expected: &[&str]| {
            let found: Vec<_> = expand(&dictionary, &pattern, 100)
                .into_iter()
                .map(|(word, _)| String::from_utf8_lossy(word).into_owned())
                .collect();
            assert_eq!(found, expected);
        };
        check(Pattern::Prefix(b"ab"), &["abc", "abd"]);
        check(Pattern::Suffix(b"abc"), &["+abc", "abc", "xabc"]);
        check(Pattern::Infix(b"ab"), &["+abc", "abc", "abd", "xabc", "zab"]);
        check(Pattern::Wildcard(b"a?c"), &["abc"]);
        let fuzzy = |text, distance| Pattern::Fuzzy { text, distance, finds_empty: true };
        check(fuzzy(b"abc", 1), &["+abc", "abc", "abd", "xabc", "äbc"]);
        check(fuzzy(b"zzzzz", 2), &[]);
        assert_eq!(expand(&dictionary, &Pattern::Prefix(b"a"), 1).len(), 1);
    }
}

//! HIGHLIGHT and SUMMARIZE: marks the words of a text that a query has found, and cuts out what is around them.

use super::{Language, PHONETIC_PREFIX, Punctuation, STEM_PREFIX, StemBuffer, StopWords, phonetic, tokens};
use crate::schema::MIN_STEM_LENGTH;

/// A word that a document was found by.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundWord {
    /// The word; a stem begins with `+`, a phonetic code with `<`.
    pub text: Box<[u8]>,
    /// How rare it is: TFIDF's inverse document frequency.
    pub rarity: f64,
}

impl FoundWord {
    /// The word stands for all words with this stem.
    #[must_use]
    pub fn is_stem(&self) -> bool {
        self.text.first() == Some(&STEM_PREFIX)
    }

    /// The word stands for all words that sound alike.
    #[must_use]
    pub fn is_phonetic(&self) -> bool {
        self.text.first() == Some(&PHONETIC_PREFIX)
    }
}

/// How texts are read and marked.
#[derive(Clone, Copy, Debug)]
pub struct Marks<'m> {
    /// The words that are marked, as [`crate::Hit::words`] gives them.
    pub words: &'m [FoundWord],
    /// The text's language.
    pub language: Language,
    /// The schema's punctuation.
    pub punctuation: Punctuation,
    /// Stands before each of them.
    pub open: &'m [u8],
    /// Stands behind each of them.
    pub close: &'m [u8],
}

impl Marks<'_> {
    /// A text without spaces may be cut at its end and before an ideograph, not within one.
    fn may_cut(&self, text: &[u8], at: usize) -> bool {
        !self.language.has_spaces() && text.get(at).is_none_or(|byte| *byte >= 0xc0)
    }
}

/// How a text is summarised.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'s> {
    /// The most fragments.
    pub fragments: usize,
    /// Words of a fragment, roughly.
    pub words: usize,
    /// Stands behind each fragment.
    pub separator: &'s [u8],
    /// The schema's stop words, which count as no distance.
    pub stop_words: &'s StopWords,
    /// A text in which nothing was found stays whole.
    pub keeps_unfound: bool,
}

/// Words between two matches that still belong to one fragment, RediSearch's.
const MAX_DISTANCE: usize = 8;

/// Bytes of a word, as RediSearch estimates.
const WORD_BYTES: usize = 6;

/// Marks every word of a text that a query has found, or has its stem among what was found. RediSearch marks these words in
/// all fields, also in those that the query does not name.
#[must_use]
pub fn highlight(text: &[u8], marks: &Marks<'_>) -> Vec<u8> {
    let found = matches(text, marks, None);
    marked(text, 0..text.len(), &found, marks)
}

/// Cuts out the fragments of a text with the rarest words that a query has found, and marks these words. A text without any
/// of them is cut at its beginning, unless it stays whole.
#[must_use]
pub fn summarize(text: &[u8], marks: &Marks<'_>, summary: &Summary<'_>) -> Vec<u8> {
    let found = matches(text, marks, Some(summary.stop_words));
    if found.is_empty() && summary.keeps_unfound {
        return text.to_vec();
    }
    if found.is_empty() {
        return beginning(text, summary, marks);
    }
    let mut fragments: Vec<Fragment<'_>> = fragments(&found).map(|matches| Fragment::new(matches, marks)).collect();
    fragments.sort_by(|one, other| other.score.total_cmp(&one.score));
    fragments.truncate(summary.fragments);
    fragments.sort_by_key(Fragment::start);
    let (mut out, last) = (Vec::new(), text.len().saturating_sub(1));
    for (at, fragment) in fragments.iter().enumerate() {
        let before = at.checked_sub(1).map_or(0, |before| fragments[before].end());
        let after = fragments.get(at + 1).map_or(last, Fragment::start);
        let span = fragment.with_context((text, marks), summary.words, before, after);
        push_single_spaced(&mut out, &marked(text, span, fragment.matches, marks));
        out.extend_from_slice(summary.separator);
    }
    out
}

/// A word of the text that was found.
#[derive(Clone, Copy, Debug)]
struct Match {
    /// Its number among the words that are no stop words.
    position: usize,
    start: usize,
    end: usize,
    /// Which of the words that were found it is.
    word: usize,
}

/// The words of a text that were found. Without stop words positions count all words.
fn matches(text: &[u8], marks: &Marks<'_>, stop_words: Option<&StopWords>) -> Vec<Match> {
    let stemmer = StemBuffer::new(marks.language);
    // An empty text is found by the empty word.
    if let (true, Some(word)) = (text.is_empty(), marks.words.iter().position(|word| word.text.is_empty())) {
        return vec![Match { position: 0, start: 0, end: 0, word }];
    }
    let (mut found, mut counted) = (Vec::<Match>::new(), 0);
    for token in tokens(text, marks.punctuation, marks.language) {
        if !token.is_gram && stop_words.is_some_and(|words| words.contains(&token.word)) {
            continue;
        }
        counted += usize::from(!token.same_place);
        let Some(word) = find(&token.word, marks.words, &stemmer) else { continue };
        match found.last_mut() {
            Some(last) if token.start < last.end => last.end = last.end.max(token.end),
            _ => found.push(Match { position: counted - 1, start: token.start, end: token.end, word }),
        }
    }
    found
}

fn find(word: &[u8], words: &[FoundWord], stemmer: &StemBuffer) -> Option<usize> {
    let stem =
        if word.len() >= MIN_STEM_LENGTH && words.iter().any(FoundWord::is_stem) { stemmer.stem(word) } else { None };
    let code = if words.iter().any(FoundWord::is_phonetic) { phonetic(word) } else { None };
    words.iter().position(|found| {
        let is_stem = |stem: &str| found.text.strip_prefix(&[STEM_PREFIX]) == Some(stem.as_bytes());
        *found.text == *word || stem.as_deref().is_some_and(is_stem) || code.as_deref() == Some(&*found.text)
    })
}

/// Part of a text with its matches marked.
fn marked(text: &[u8], span: std::ops::Range<usize>, matches: &[Match], marks: &Marks<'_>) -> Vec<u8> {
    let (mut out, mut copied) = (Vec::with_capacity(span.len() * 2), span.start);
    for found in matches {
        for part in [&text[copied..found.start], marks.open, &text[found.start..found.end], marks.close] {
            out.extend_from_slice(part);
        }
        copied = found.end;
    }
    out.extend_from_slice(&text[copied..span.end]);
    out
}

/// Matches near each other.
struct Fragment<'m> {
    matches: &'m [Match],
    score: f64,
}

fn fragments(found: &[Match]) -> impl Iterator<Item = &[Match]> {
    found.chunk_by(|one, other| other.position - one.position <= MAX_DISTANCE)
}

impl<'m> Fragment<'m> {
    /// Its score counts each word once.
    fn new(matches: &'m [Match], marks: &Marks<'_>) -> Self {
        let mut words: Vec<usize> = matches.iter().map(|found| found.word).collect();
        words.sort_unstable();
        words.dedup();
        Self { matches, score: words.into_iter().map(|word| marks.words[word].rarity).sum() }
    }

    fn start(&self) -> usize {
        self.matches.first().map_or(0, |found| found.start)
    }

    fn end(&self) -> usize {
        self.matches.last().map_or(0, |found| found.end)
    }

    /// The fragment with words before and behind, as far as its neighbours leave room. Words that are cut are left out,
    /// which may be the first or the last of the text, as in RediSearch.
    fn with_context(
        &self,
        (text, marks): (&[u8], &Marks<'_>),
        words: usize,
        lowest: usize,
        highest: usize,
    ) -> std::ops::Range<usize> {
        let (start, end) = (self.start(), self.end());
        let positions = self.matches.first().zip(self.matches.last());
        let spanned = positions.map_or(0, |(first, last)| last.position - first.position + 1);
        let between = spanned - self.matches.len();
        if words <= between {
            return start..end;
        }
        let separates = |at: usize| marks.punctuation.separates(text[at]);
        let room = (words - between) / 2 * WORD_BYTES;
        let mut low = start.saturating_sub(room).max(lowest);
        while low < start && !marks.may_cut(text, low) && !separates(low) {
            low += 1;
        }
        while low < start && separates(low) {
            low += 1;
        }
        let mut high = (end + room).min(highest);
        while high > end && !marks.may_cut(text, high + 1) && !separates(high) {
            high -= 1;
        }
        while high > end && separates(high) {
            high -= 1;
        }
        low..(high + 1).clamp(end, text.len())
    }
}

/// The beginning of a text in which nothing was found, up to the last separator that fits.
fn beginning(text: &[u8], summary: &Summary<'_>, marks: &Marks<'_>) -> Vec<u8> {
    let bytes = WORD_BYTES.saturating_mul(summary.words).saturating_mul(summary.fragments).saturating_add(WORD_BYTES);
    let mut out = Vec::new();
    push_single_spaced(&mut out, &text[..bytes.min(text.len())]);
    let is_whole = bytes >= text.len();
    let ends = |at: &usize| {
        marks.punctuation.separates(out[at - 1]) || (is_whole || *at < out.len()) && marks.may_cut(&out, *at)
    };
    let cut = (1..=out.len()).rev().find(ends).unwrap_or(1);
    out.truncate(cut);
    let kept = out.trim_ascii_end().len();
    out.truncate(kept);
    out
}

/// Appends a text with one space for any number.
fn push_single_spaced(out: &mut Vec<u8>, text: &[u8]) {
    let mut is_space = false;
    for &byte in text {
        let was_space = std::mem::replace(&mut is_space, byte.is_ascii_whitespace());
        if !is_space {
            out.push(byte);
        } else if !was_space {
            out.push(b' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<FoundWord> {
        words.iter().map(|word| FoundWord { text: word.as_bytes().into(), rarity: 1.0 }).collect()
    }

    fn marks(words: &[FoundWord], punctuation: Punctuation) -> Marks<'_> {
        Marks { words, language: Language::English, punctuation, open: b"[", close: b"]" }
    }

    #[test]
    fn words_end_at_an_index_own_punctuation() {
        let check = |found: &[&str], marked: &str, cut: &str| {
            let text = "write to me@home.org, or_to you@home.org for.all reasons";
            let (words, stop_words) = (words(found), StopWords::default());
            let marks = marks(&words, Punctuation::new(b"._").expect("ASCII"));
            assert_eq!(String::from_utf8_lossy(&highlight(text.as_bytes(), &marks)), marked);
            let summary =
                Summary { fragments: 1, words: 3, separator: b"...", stop_words: &stop_words, keeps_unfound: false };
            assert_eq!(String::from_utf8_lossy(&summarize(text.as_bytes(), &marks, &summary)), cut);
        };
        let whole = "write to me@home.org, or_to you@home.org for.all reasons";
        check(&["me@home"], "write to [me@home].org, or_to you@home.org for.all reasons", "to [me@home].org,...");
        check(&["home"], whole, "write to me@home.org,");
        check(&["org", "all"], "write to me@home.org, or_to you@home.[org] for.[all] reasons", "[org] for.[all] ...");
    }

    #[test]
    fn words_and_stems_are_marked() {
        let check = |found: &[&str], expected: &str| {
            let words = words(found);
            let text = "Hello, world! Running the runs: hello_x hello-world (HELLO)";
            let marks = marks(&words, Punctuation::default());
            assert_eq!(String::from_utf8_lossy(&highlight(text.as_bytes(), &marks)), expected);
        };
        check(&["hello", "world"], "[Hello], [world]! Running the runs: hello_x [hello]-[world] ([HELLO])");
        check(&["<RNNK"], "Hello, world! [Running] the runs: hello_x hello-world (HELLO)");
        check(&["+run"], "Hello, world! [Running] the [runs]: hello_x hello-world (HELLO)");
        check(&[], "Hello, world! Running the runs: hello_x hello-world (HELLO)");
    }

    #[test]
    fn fragments_are_cut_out() {
        let check = |text: &str, found: &[&str], fragments: usize, length: usize, expected: &str| {
            let (words, stop_words) = (words(found), StopWords::default());
            let marks = marks(&words, Punctuation::default());
            let summary =
                Summary { fragments, words: length, separator: b"... ", stop_words: &stop_words, keeps_unfound: false };
            let shown = summarize(text.as_bytes(), &marks, &summary);
            assert_eq!(String::from_utf8_lossy(&shown), expected, "{text}");
        };
        let text = "one two three four five six seven eight nine ten  eleven twelve";
        check(text, &["six"], 3, 4, "four five [six] seven eight... ");
        check(text, &["six"], 3, 0, "[six]... ");
        check(text, &["gone"], 1, 2, "one two three");
        check(text, &["two", "twelve"], 1, 2, "[two] three... ");
        check("six", &["six"], 1, 20, "[six]... ");
        check("", &["six"], 1, 20, "");
        check("", &[""], 1, 20, "[]... ");
        check("word", &["six"], 1, 20, "w");
    }
}

//! Chinese is written without spaces. Each ideograph is a word, and so are each two neighbours: a query's run of ideographs is the phrase
//! of its pairs, and finds the run inside any longer one. No dictionary decides where words end.

use std::borrow::Cow;
use std::ops::Range;

use super::tokens::{Token, normalise};

/// A run of at most so many ideographs is a word as a whole, too, so that it can have synonyms.
const LONGEST_WORD: usize = 8;

/// A part of a text between spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Letters and digits: a word as in other languages.
    Letters(Range<usize>),
    /// Where each of the ideographs begins, and where the last one ends.
    Ideographs(Vec<usize>),
}

impl Piece {
    /// The words that stand for the piece, each a place behind the one before: pairs of ideographs, and the last ideograph alone.
    pub(crate) fn phrase(&self, text: &str) -> Vec<Vec<u8>> {
        match self {
            Self::Letters(range) => {
                let word = letters(&text[range.clone()]);
                if word.is_empty() { Vec::new() } else { vec![word.into_owned()] }
            }
            Self::Ideographs(bounds) => {
                let pairs = bounds.windows(3).map(|three| three[0]..three[2]);
                let last = bounds.windows(2).last().map(|two| two[0]..two[1]);
                pairs.chain(last).map(|range| text.as_bytes()[range].to_vec()).collect()
            }
        }
    }
}

/// The pieces of a text, in its order. Punctuation beyond ASCII stands between them.
pub(crate) fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut goes_on = false;
    for (start, character) in text.char_indices() {
        let end = start + character.len_utf8();
        let half = half_width(character);
        let separates = is_punctuation(character) || half != character && half.is_ascii_punctuation();
        match pieces.last_mut() {
            _ if separates => {}
            Some(Piece::Ideographs(bounds)) if goes_on && is_ideograph(character) => bounds.push(end),
            Some(Piece::Letters(range)) if goes_on && !is_ideograph(character) => range.end = end,
            _ if is_ideograph(character) => pieces.push(Piece::Ideographs(vec![start, end])),
            _ => pieces.push(Piece::Letters(start..end)),
        }
        goes_on = !separates;
    }
    pieces
}

/// The words of Chinese that are between two ASCII separators; one that is ASCII or no UTF-8 stays as it is.
pub(super) fn words<'t>(text: &'t [u8], token: Token<'t>) -> Words<'t> {
    let raw = &text[token.start..token.end];
    match std::str::from_utf8(raw) {
        Ok(chinese) if !raw.is_ascii() => {
            let words = pieces(chinese).into_iter().flat_map(|piece| words_of(chinese, token.start, piece));
            Words::Several(words.collect::<Vec<_>>().into_iter())
        }
        _ => Words::One(Some(token)),
    }
}

/// The words of a token.
pub(super) enum Words<'t> {
    One(Option<Token<'t>>),
    Several(std::vec::IntoIter<Token<'t>>),
}

impl<'t> Iterator for Words<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        match self {
            Self::One(token) => token.take(),
            Self::Several(tokens) => tokens.next(),
        }
    }
}

/// The words of a piece of a text that begins at `offset`.
fn words_of(text: &str, offset: usize, piece: Piece) -> Vec<Token<'_>> {
    let token = |range: &Range<usize>, word| Token {
        word,
        start: offset + range.start,
        end: offset + range.end,
        same_place: false,
        is_gram: false,
    };
    match piece {
        Piece::Letters(range) => {
            let word = letters(&text[range.clone()]);
            if word.is_empty() { Vec::new() } else { vec![token(&range, word)] }
        }
        Piece::Ideographs(bounds) => {
            let count = bounds.len() - 1;
            let word = |from: usize, to: usize| {
                let range = bounds[from]..bounds[to];
                token(&range, Cow::Borrowed(&text.as_bytes()[range.clone()]))
            };
            let grams = (0..count).flat_map(|at| {
                let one = Token { is_gram: true, ..word(at, at + 1) };
                let whole = (at == 0 && (3..=LONGEST_WORD).contains(&count)).then(|| word(0, count));
                let pair = (at + 1 < count).then(|| Token { is_gram: true, ..word(at, at + 2) });
                let others = whole.into_iter().chain(pair);
                std::iter::once(one).chain(others.map(|token| Token { same_place: true, ..token }))
            });
            grams.collect()
        }
    }
}

/// A word of letters, as it is indexed: full-width forms are those of ASCII.
fn letters(raw: &str) -> Cow<'_, [u8]> {
    if raw.chars().all(|character| half_width(character) == character) {
        return normalise(raw.as_bytes());
    }
    let half: String = raw.chars().map(half_width).collect();
    Cow::Owned(normalise(half.as_bytes()).into_owned())
}

/// The character of ASCII whose full-width form it is, or itself.
fn half_width(character: char) -> char {
    match character {
        '\u{ff01}'..='\u{ff5e}' => char::from((u32::from(character) - 0xfee0) as u8),
        other => other,
    }
}

/// An ideograph, or a syllable of Japanese, which has no spaces either.
fn is_ideograph(character: char) -> bool {
    matches!(
        character,
        '\u{3005}'..='\u{3007}'
            | '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}'
    )
}

/// Spaces and punctuation beyond ASCII: of Latin texts, of Chinese, and its vertical forms.
fn is_punctuation(character: char) -> bool {
    !character.is_ascii() && character.is_whitespace()
        || matches!(
            character,
            '\u{a1}' | '\u{ab}' | '\u{b7}' | '\u{bb}' | '\u{bf}'
                | '\u{2010}'..='\u{205e}'
                | '\u{3000}'..='\u{3004}'
                | '\u{3008}'..='\u{303f}'
                | '\u{fe30}'..='\u{fe4f}'
                | '\u{ff5f}'..='\u{ff65}'
        )
}

#[cfg(test)]
mod tests {
    use super::super::{Language, Punctuation, tokens};

    fn shown(text: &str) -> String {
        let words = tokens(text.as_bytes(), Punctuation::default(), Language::Chinese).map(|token| {
            let word = String::from_utf8_lossy(&token.word).into_owned();
            if token.same_place { format!("+{word}") } else { word }
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ideographs_and_their_pairs_are_words() {
        assert_eq!(shown("编程"), "编 +编程 程");
        assert_eq!(shown("我喜欢编程"), "我 +我喜欢编程 +我喜 喜 +喜欢 欢 +欢编 编 +编程 程");
        assert_eq!(
            shown("一二三四五六七八九"),
            "一 +一二 二 +二三 三 +三四 四 +四五 五 +五六 六 +六七 七 +七八 八 +八九 九"
        );
        assert_eq!(shown("Redis支持主从"), "redis 支 +支持主从 +支持 持 +持主 主 +主从 从");
        assert_eq!(shown("の"), "の");
    }

    #[test]
    fn punctuation_and_spaces_end_words() {
        assert_eq!(shown("你好，世界。"), "你 +你好 好 世 +世界 界");
        assert_eq!(shown("“光”！　ＡＢＣ８月"), "光 abc8 月");
        assert_eq!(shown("Naïve—Été ①"), "naïve été ①");
        assert_eq!(shown("hello\\-world 那时\\-b"), "hello-world 那 +那时 时 -b");
        assert_eq!(shown("，。"), "");
    }

    #[test]
    fn words_know_where_they_stand() {
        let text = "x 那时，the end";
        for token in tokens(text.as_bytes(), Punctuation::default(), Language::Chinese) {
            assert_eq!(&text.as_bytes()[token.start..token.end], &*token.word);
        }
        let invalid: Vec<_> = tokens(b"a\xffb", Punctuation::default(), Language::Chinese).collect();
        assert_eq!((invalid.len(), &*invalid[0].word), (1, &b"a\xffb"[..]));
    }
}

//! A query's tokens: at each place the longest one.

use std::ops::Range as Span;

use crate::text::{Punctuation, Separators};

/// A token's kind and, for words, the part of the query that is its text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Term(Span<usize>),
    /// A number; `true` for digits alone.
    Number(f64, bool, Span<usize>),
    /// `"…"`, without the quotes.
    Exact(Span<usize>),
    /// `word*`, `*word` and `*word*`: the word, whether stars are before and behind it, and whether it names a parameter.
    Affix {
        text: Span<usize>,
        before: bool,
        after: bool,
        is_param: bool,
    },
    /// `w'…'`, without what is around it, and whether it names a parameter.
    Wildcard(Span<usize>, bool),
    /// `@name`.
    Modifier(Span<usize>),
    /// `$name`.
    Attribute(Span<usize>),
    /// `==`, `!=`, `<`, `<=`, `>`, `>=` behind a modifier.
    Comparison(Comparison),
    Arrow,
    Colon,
    Semicolon,
    Or,
    Open,
    Close,
    OpenBrace,
    CloseBrace,
    OpenBracket,
    CloseBracket,
    Minus,
    Tilde,
    Star,
    Percent,
    Quote,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

const COMPARISONS: &[(&[u8], Comparison)] = &[
    (b"==", Comparison::Equal),
    (b"!=", Comparison::NotEqual),
    (b"<=", Comparison::LessOrEqual),
    (b"<", Comparison::Less),
    (b">=", Comparison::GreaterOrEqual),
    (b">", Comparison::Greater),
];

/// Reads tokens and keeps what an error would show.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'q> {
    query: &'q [u8],
    /// Whether dialect 2 or later is read.
    modern: bool,
    at: usize,
    /// Where the last token begins.
    pub(super) offset: usize,
    /// The text of the last token that has one.
    pub(super) near: Span<usize>,
    after_modifier: bool,
    /// The schema's punctuation, unless it is the default.
    own: Option<Separators>,
    /// Inside of brackets, and in `@one|two` until the colon, words end as with the default punctuation.
    in_brackets: bool,
    in_names: bool,
}

/// Characters with a meaning in queries. They end words of any punctuation, unless a backslash escapes them.
const SYNTAX: &[u8] = b"\"$%()*-:;<=>@[]{|}~";

impl<'q> Lexer<'q> {
    pub(super) fn new(query: &'q [u8], modern: bool, punctuation: Punctuation) -> Self {
        let (own, near) = (punctuation.own(), 0..0);
        Self { query, modern, at: 0, offset: 0, near, after_modifier: false, own, in_brackets: false, in_names: false }
    }

    pub(super) fn text(&self, span: &Span<usize>) -> &'q [u8] {
        &self.query[span.clone()]
    }

    /// Where the next token begins if there are only blanks before it, and a plus.
    pub(super) fn after_blanks(&self) -> usize {
        let begin = self.at + self.query[self.at..].iter().take_while(|byte| is_space(**byte)).count();
        begin + usize::from(self.query.get(begin) == Some(&b'+'))
    }

    pub(super) fn next(&mut self) -> Token {
        loop {
            let start = self.at;
            let Some(&byte) = self.query.get(start) else { return Token::End };
            if let Some(token) = self.read(byte) {
                self.offset = start;
                self.after_modifier = matches!(token, Token::Modifier(_));
                self.in_brackets = match token {
                    Token::OpenBrace | Token::OpenBracket => true,
                    Token::CloseBrace | Token::CloseBracket => false,
                    _ => self.in_brackets,
                };
                self.in_names = match token {
                    Token::Modifier(_) => true,
                    Token::Or | Token::Term(_) | Token::Number(..) => self.in_names,
                    _ => false,
                };
                return token;
            }
            // Spaces, control characters and punctuation without a meaning. An operator stands behind spaces alone.
            self.at = self.at.max(start + 1);
            self.after_modifier &= is_space(byte);
        }
    }

    fn read(&mut self, byte: u8) -> Option<Token> {
        if let Some(comparison) = self.after_modifier.then(|| self.comparison()).flatten() {
            return Some(Token::Comparison(comparison));
        }
        if let Some(token) = self.word(byte) {
            return Some(token);
        }
        let rest = &self.query[self.at..];
        let (length, token) = match byte {
            b'=' if rest.get(1) == Some(&b'>') => {
                self.near = self.at + 1..(self.at + 3).min(self.query.len());
                (2, Token::Arrow)
            }
            b':' => (1, Token::Colon),
            b';' => (1, Token::Semicolon),
            b'|' => (1, Token::Or),
            b'(' => (1, Token::Open),
            b')' => (1, Token::Close),
            b'{' => (1, Token::OpenBrace),
            b'}' => (1, Token::CloseBrace),
            b'[' => (1, Token::OpenBracket),
            b']' => (1, Token::CloseBracket),
            b'-' => (1, Token::Minus),
            b'~' => (1, Token::Tilde),
            b'*' => (1, Token::Star),
            b'%' => (1, Token::Percent),
            b'"' => (1, Token::Quote),
            _ => return None,
        };
        self.at += length;
        Some(token)
    }

    /// Spaces and an operator, if a number or a parameter can follow.
    fn comparison(&mut self) -> Option<Comparison> {
        let blank = self.query[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let rest = &self.query[self.at + blank..];
        let (operator, comparison) = COMPARISONS.iter().find(|(operator, _)| rest.starts_with(operator))?;
        if !self.modern {
            return None;
        }
        self.at += blank + operator.len();
        Some(*comparison)
    }

    /// Tokens with a text: the longest of those that begin here.
    fn word(&mut self, byte: u8) -> Option<Token> {
        let start = self.at;
        if byte == b'"' {
            return self.exact();
        }
        if self.modern && self.query[start..].starts_with(b"''") {
            self.at = start + 2;
            return Some(Token::Term(start + 1..start + 1));
        }
        let is_wildcard = self.modern && self.query[start..].starts_with(b"w'");
        if let Some(token) = is_wildcard.then(|| self.wildcard()).flatten() {
            return Some(token);
        }
        if byte == b'@' {
            let name = self.span_of_term(start + 1)?;
            (self.at, self.near) = (name.end, name.clone());
            return Some(Token::Modifier(name));
        }
        let before = byte == b'*';
        let (text, is_param) = self.plain(start + usize::from(before))?;
        let after = self.query.get(text.end) == Some(&b'*');
        self.near = text.clone();
        self.at = text.end + usize::from(after);
        if before || after {
            return Some(Token::Affix { text, before, after, is_param });
        }
        if is_param {
            return Some(Token::Attribute(text));
        }
        Some(self.number(&text).unwrap_or(Token::Term(text)))
    }

    /// A term, a number or a parameter's name, and whether it is the latter.
    fn plain(&self, start: usize) -> Option<(Span<usize>, bool)> {
        if self.query.get(start) == Some(&b'$') {
            return Some((self.span_of_term(start + 1)?, true));
        }
        let term = match self.own.filter(|_| !self.in_brackets && !self.in_names) {
            Some(own) => self.span_of_own(start, own),
            None => self.span_of_term(start),
        };
        let term = term.map_or(start, |span| span.end);
        let end = term.max(start + number_length(&self.query[start..], self.modern));
        (end > start).then_some((start..end, false))
    }

    fn number(&self, text: &Span<usize>) -> Option<Token> {
        let digits = self.text(text);
        if number_length(digits, self.modern) < digits.len() {
            return None;
        }
        let value = std::str::from_utf8(digits).ok()?.parse().ok()?;
        Some(Token::Number(value, digits.iter().all(u8::is_ascii_digit), text.clone()))
    }

    /// Letters, digits, `_`, bytes beyond ASCII, and characters with a backslash.
    fn span_of_term(&self, start: usize) -> Option<Span<usize>> {
        let mut end = start;
        while let Some(&byte) = self.query.get(end) {
            let next = self.query.get(end + 1);
            if byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80 {
                end += 1;
            } else if byte == b'\\' && next.is_some_and(|next| next.is_ascii_punctuation() || is_space(*next)) {
                end += 2;
            } else {
                break;
            }
        }
        (end > start).then_some(start..end)
    }

    /// A term of an index with punctuation of its own: all characters that end no word and have no meaning in queries.
    fn span_of_own(&self, start: usize, own: Separators) -> Option<Span<usize>> {
        let mut end = start;
        while let Some(&byte) = self.query.get(end) {
            let next = self.query.get(end + 1);
            let escapes = |next: &u8| own.is_escapable(*next) || SYNTAX.contains(next);
            if byte == b'\\' {
                if !next.is_some_and(escapes) {
                    break;
                }
                end += 2;
            } else if own.contains(byte) || SYNTAX.contains(&byte) {
                break;
            } else {
                end += 1;
            }
        }
        (end > start).then_some(start..end)
    }

    fn exact(&mut self) -> Option<Token> {
        let start = self.at + 1;
        let end = start + closing(&self.query[start..], b'"')?;
        self.at = end + 1;
        if start == end {
            // Dialect 1 knows no empty word.
            return Some(if self.modern { Token::Term(start..end) } else { Token::Quote });
        }
        self.near = start..end;
        Some(Token::Exact(start..end))
    }

    fn wildcard(&mut self) -> Option<Token> {
        let start = self.at + 2;
        let end = start + closing(&self.query[start..], b'\'').filter(|length| *length > 0)?;
        let is_param = self.query[start] == b'$';
        let text = start + usize::from(is_param)..end;
        (self.at, self.near) = (end + 1, text.clone());
        Some(Token::Wildcard(text, is_param))
    }
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// Where the quote is that no backslash escapes.
fn closing(text: &[u8], quote: u8) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|&byte| {
        let closes = byte == quote && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

/// The length of the number or infinity at the beginning, or 0. Dialect 1 has no `+`.
fn number_length(text: &[u8], modern: bool) -> usize {
    let digits = |from: usize| text[from.min(text.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let signed = match text.first() {
        Some(b'-') => 1,
        Some(b'+') if modern => 1,
        _ => 0,
    };
    let infinite = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    if text.get(infinite..infinite + 3).is_some_and(|word| word.eq_ignore_ascii_case(b"inf")) {
        return infinite + 3;
    }
    let whole = digits(signed);
    if whole == 0 {
        return 0;
    }
    let mut end = signed + whole;
    if text.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'-')) || modern && text.get(end + 1) == Some(&b'+'));
        if digits(end + 1 + sign) > 0 {
            end += 1 + sign + digits(end + 1 + sign);
        }
    }
    end
}

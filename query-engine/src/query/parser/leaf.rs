//! Words, phrases, affixes, fuzzy words, and attributes.

use std::ops::Range as Span;

use super::{Attribute, Item, Parser, vector};
use crate::query::lexer::Token;
use crate::query::node::{Kind, Node};
use crate::query::{MAX_DEPTH, QueryError};
use crate::text::{lower, phrase_tokens, pieces};

/// The most changes of a fuzzy word.
const MAX_DISTANCE: u8 = 3;

impl Parser<'_> {
    /// Reads a part that is text and has no parts of its own.
    pub(super) fn leaf(&mut self, token: Token) -> Result<Token, QueryError> {
        match token {
            Token::Term(ref span) if self.modern && self.is_missing(span) => {
                let next = self.lexer.next();
                if next == Token::Open { self.missing() } else { self.word(&token, next) }
            }
            Token::Term(_) | Token::Number(..) if !self.modern => self.words(token),
            Token::Term(_) | Token::Number(..) => {
                let next = self.lexer.next();
                self.word(&token, next)
            }
            Token::Attribute(_) if self.modern => {
                let next = self.lexer.next();
                self.word(&token, next)
            }
            Token::Exact(span) => {
                let text = self.lexer.text(&span).to_vec();
                self.exact(&text)?;
                Ok(self.lexer.next())
            }
            Token::Affix { .. } | Token::Wildcard(..) => {
                let mut node = self.pattern(&token)?;
                if let (Kind::Affix { text, .. }, Token::Affix { is_param: true, .. }) = (&mut node.kind, &token) {
                    *text = lower(text).into_owned();
                }
                self.push(Some(node), true);
                Ok(self.lexer.next())
            }
            Token::Percent => self.fuzzy(),
            _ => Err(self.unexpected()),
        }
    }

    /// Dialect 2: each word is a part of its own. `next` was read behind it.
    fn word(&mut self, token: &Token, next: Token) -> Result<Token, QueryError> {
        let node = self.token(token)?;
        self.push(node, true);
        Ok(next)
    }

    /// Dialect 1: words that follow each other are one part. It ends before a stop word, which is a part of its own, and before a number behind
    /// two words.
    fn words(&mut self, first: Token) -> Result<Token, QueryError> {
        let mut nodes: Vec<Node> = self.token(&first)?.into_iter().collect();
        let mut next = self.lexer.next();
        while match &next {
            Token::Term(span) => !nodes.is_empty() && !self.is_stop_word(&self.plain(span)),
            Token::Number(..) => nodes.len() == 1,
            _ => false,
        } {
            nodes.extend(self.token(&next)?);
            next = self.lexer.next();
        }
        let node = if nodes.len() > 1 { Some(Node::with(Kind::Phrase { exact: false }, nodes)) } else { nodes.pop() };
        self.push(node, true);
        Ok(next)
    }

    pub(super) fn is_stop_word(&self, word: &[u8]) -> bool {
        !self.options.keep_stop_words && self.schema.stop_words.contains(word)
    }

    /// The node of a word, number or parameter; `None` for stop words, and for what is no word in Chinese.
    fn token(&mut self, token: &Token) -> Result<Option<Node>, QueryError> {
        self.count_leaf()?;
        Ok(match token {
            Token::Attribute(name) => {
                let name = self.lexer.text(name).to_vec();
                let value = self.param(&name);
                let is_number = std::str::from_utf8(&value).is_ok_and(|text| text.parse::<f64>().is_ok());
                let text = lower(&self.schema.punctuation.unescape(&value)).into_owned();
                self.word_or_pieces(text)?.map(|word| Node { verbatim: is_number, ..word })
            }
            Token::Number(_, _, span) => Some(Node { verbatim: self.modern, ..Node::token(self.lexer.text(span)) }),
            Token::Term(span) => {
                let text = self.plain(span);
                if self.is_stop_word(&text) {
                    return Ok(None);
                }
                self.word_or_pieces(text)?
            }
            _ => return Err(self.unexpected()),
        })
    }

    /// A word without escapes. One that has ideographs stands for itself and for its pieces, in any order; `None` if it has punctuation
    /// alone.
    fn word_or_pieces(&mut self, word: Vec<u8>) -> Result<Option<Node>, QueryError> {
        let Some(pieces) = self.pieces(&word) else {
            return Ok(Some(Node::token(word)));
        };
        let mut nodes = Vec::new();
        for mut words in pieces {
            // The pair before it has the last ideograph, too.
            words.truncate((words.len() - 1).max(1));
            for _ in &words {
                self.count_leaf()?;
            }
            nodes.push(joined(Kind::Phrase { exact: true }, words.into_iter().map(Node::token).collect()));
        }
        if nodes.is_empty() {
            return Ok(None);
        }
        let pieces = joined(Kind::Phrase { exact: false }, nodes);
        let is_word = matches!(pieces.kind, Kind::Token { .. });
        Ok(Some(if is_word { pieces } else { Node::with(Kind::Union, vec![Node::token(word), pieces]) }))
    }

    /// The words of each piece of Chinese, one behind the other. `None` if the language has spaces, or the word is ASCII.
    fn pieces(&self, word: &[u8]) -> Option<Vec<Vec<Vec<u8>>>> {
        let language = self.options.language.unwrap_or(self.schema.language);
        match std::str::from_utf8(word) {
            Ok(text) if !language.has_spaces() && !text.is_ascii() => {
                Some(pieces(text).iter().map(|piece| piece.phrase(text)).filter(|words| !words.is_empty()).collect())
            }
            _ => None,
        }
    }

    /// A word in lower case, without escapes.
    pub(super) fn plain(&self, span: &Span<usize>) -> Vec<u8> {
        lower(&self.schema.punctuation.unescape(self.lexer.text(span))).into_owned()
    }

    /// The words of a phrase in quotes; stop words stay.
    fn exact(&mut self, text: &[u8]) -> Result<(), QueryError> {
        let (mut words, mut ends_with_pair) = (Vec::new(), false);
        // Dialect 1 knows no parameters, also not in quotes.
        let is_param = |pair: &[u8]| pair[0] == b'$' && (pair[1].is_ascii_alphanumeric() || pair[1] == b'_');
        if !self.modern
            && text.windows(2).enumerate().any(|(at, pair)| is_param(pair) && (at == 0 || text[at - 1] != b'\\'))
        {
            let text = text.trim_ascii();
            let first = text.strip_prefix(b"$").unwrap_or(text);
            let near = first.split(|byte| *byte == b' ' || *byte == b'$').next().unwrap_or_default();
            let near = String::from_utf8_lossy(near).into_owned();
            return Err(QueryError::Syntax { offset: self.lexer.offset + 1, near });
        }
        for token in phrase_tokens(text, self.schema.punctuation) {
            let texts = match self.pieces(&token.word) {
                None => {
                    ends_with_pair = false;
                    vec![token.word.into_owned()]
                }
                Some(pieces) if pieces.is_empty() => continue,
                Some(pieces) => {
                    ends_with_pair = pieces.last().is_some_and(|words| words.len() > 1);
                    pieces.concat()
                }
            };
            for text in texts {
                self.count_leaf()?;
                words.push(Node::token(text));
            }
        }
        if ends_with_pair {
            words.pop();
        }
        let phrase = Kind::Phrase { exact: true };
        let phrase = if self.modern { Node::with(phrase, words) } else { joined(phrase, words) };
        self.push(Some(Node { verbatim: true, ..phrase }), true);
        Ok(())
    }

    /// An affix or a wildcard.
    pub(super) fn pattern(&mut self, token: &Token) -> Result<Node, QueryError> {
        self.count_leaf()?;
        let text = |parser: &mut Self, span, is_param| {
            let raw = parser.lexer.text(span);
            if is_param { parser.param(raw) } else { raw.to_vec() }
        };
        match token {
            Token::Affix { text: span, before, after, is_param } => {
                let raw = text(self, span, *is_param);
                let text = if *is_param { raw } else { self.schema.punctuation.unescape(&raw).into_owned() };
                Ok(Node::new(Kind::Affix { text, before: *before, after: *after }))
            }
            Token::Wildcard(span, is_param) => Ok(Node::new(Kind::Wildcard { pattern: text(self, span, *is_param) })),
            _ => Err(self.unexpected()),
        }
    }

    /// `%word%`, with one percent sign per change.
    fn fuzzy(&mut self) -> Result<Token, QueryError> {
        let mut distance = 1;
        let mut token = self.lexer.next();
        while token == Token::Percent && distance < MAX_DISTANCE {
            distance += 1;
            token = self.lexer.next();
        }
        self.count_leaf()?;
        let text = match &token {
            Token::Term(span) | Token::Number(_, _, span) => self.plain(span),
            Token::Attribute(span) if self.modern => {
                let name = self.lexer.text(span).to_vec();
                lower(&self.param(&name)).into_owned()
            }
            _ => return Err(self.unexpected()),
        };
        for _ in 0..distance {
            if self.lexer.next() != Token::Percent {
                return Err(self.unexpected());
            }
        }
        self.push(Some(Node::new(Kind::Fuzzy { text, distance, finds_empty: self.modern })), true);
        Ok(self.lexer.next())
    }

    /// `=> {$name: value; …}` for the part on top of the stack.
    pub(super) fn attributes(&mut self) -> Result<(), QueryError> {
        if self.lexer.next() != Token::OpenBrace {
            return Err(self.unexpected());
        }
        let pairs = self.attribute_list()?;
        if let Some(Item::Operand { node: Some(node), .. }) = self.stack.last_mut() {
            for (name, value) in pairs {
                apply(node, &name, &value)?;
            }
        }
        Ok(())
    }

    /// Names and values, behind the brace.
    pub(super) fn attribute_list(&mut self) -> Result<Vec<Attribute>, QueryError> {
        let mut token = self.lexer.next();
        let mut pairs = Vec::new();
        while let Token::Attribute(name) = &token {
            let name = self.lexer.text(name).to_vec();
            if self.lexer.next() != Token::Colon {
                return Err(self.unexpected());
            }
            let value = match self.lexer.next() {
                Token::Term(span) | Token::Number(_, _, span) => self.lexer.text(&span).to_vec(),
                Token::Attribute(span) if self.modern => {
                    let name = self.lexer.text(&span).to_vec();
                    self.param(&name)
                }
                _ => return Err(self.unexpected()),
            };
            pairs.push((name, value));
            token = self.lexer.next();
            if token == Token::Semicolon {
                token = self.lexer.next();
            } else {
                break;
            }
        }
        if token != Token::CloseBrace || pairs.len() > MAX_DEPTH {
            return Err(self.unexpected());
        }
        Ok(pairs)
    }
}

pub(super) fn apply(node: &mut Node, name: &[u8], value: &[u8]) -> Result<(), QueryError> {
    let text = String::from_utf8_lossy(value);
    let shown = String::from_utf8_lossy(name).into_owned();
    let invalid = || QueryError::AttributeValue { name: shown.clone(), value: text.clone().into_owned() };
    match name.to_ascii_lowercase().as_slice() {
        b"weight" => {
            node.weight = text.parse().ok().filter(|weight: &f64| *weight >= 0.0).ok_or_else(invalid)?;
        }
        b"slop" => {
            let slop: i64 = text.parse().ok().filter(|slop| *slop >= -1).ok_or_else(invalid)?;
            node.slop = u32::try_from(slop).ok().or(if slop < 0 { None } else { Some(u32::MAX) });
        }
        name if vector::is_parameter(name) && matches!(node.kind, Kind::Vector(_)) => {
            if let Kind::Vector(query) = &mut node.kind {
                query.set(name, value)?;
            }
        }
        b"phonetic" => node.phonetic = Some(boolean(&text).ok_or_else(invalid)?),
        b"inorder" => node.in_order = Some(boolean(&text).ok_or_else(invalid)?),
        _ => return Err(QueryError::Attribute(shown)),
    }
    Ok(())
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// The only node, or all under one.
fn joined(kind: Kind, mut nodes: Vec<Node>) -> Node {
    match nodes.pop() {
        Some(only) if nodes.is_empty() => only,
        last => Node::with(kind, nodes.into_iter().chain(last).collect()),
    }
}

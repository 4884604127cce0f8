//! A shift-reduce parser with a stack of its own, so that a hostile query costs no more of the thread's stack than a kind one.
//!
//! The grammar is RediSearch's, with its precedences. The parser compares the precedence of the stack's top with that
//! of the next token, and decides by it whether to reduce first. Some trees surprise, as RediSearch's do: `a b* c*`
//! nests to the right.

mod field;
mod leaf;
mod vector;

use super::check::check;
use super::lexer::{Lexer, Token};
use super::node::{Kind, Node};
use super::{Dialect, MAX_DEPTH, ParseOptions, QueryError};
use crate::schema::{FieldMask, Schema};

/// Reads a query into a tree, without expanding words.
pub(super) fn parse(text: &[u8], schema: &Schema, options: &ParseOptions<'_>) -> Result<Node, QueryError> {
    let modern = options.dialect != Dialect::One;
    let lexer = Lexer::new(text, modern, schema.punctuation);
    let mut parser =
        Parser { lexer, schema, options, modern, stack: Vec::new(), leaves: 0, missing_param: None, bad_param: None };
    let root = parser.run()?;
    // A parameter is looked up when the syntax is right.
    match (parser.missing_param, parser.bad_param) {
        (Some(name), _) => Err(QueryError::NoParameter(name)),
        (None, Some(error)) => Err(error),
        (None, None) => {
            let root = root.unwrap_or_else(|| Node::new(Kind::Empty));
            vector::check_names(&root, schema)?;
            check(&root, schema, options.is_near)?;
            Ok(root)
        }
    }
}

/// An attribute's name and value.
type Attribute = (Vec<u8>, Vec<u8>);

/// An item on the stack.
#[derive(Debug)]
enum Item {
    /// A part that is complete. Stop words leave `None`. `is_text`: it may stand behind `@field:`.
    Operand {
        node: Option<Node>,
        is_text: bool,
    },
    /// `*`, which is a query of its own.
    All,
    Or,
    Minus,
    Tilde,
    /// `@field:`, before its text.
    Fields(FieldMask),
    Open,
}

/// Precedences of rules and tokens; a rule is applied before a token of the same or a lower one is read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    /// The end and what closes: everything is joined before.
    Lowest,
    Tilde1,
    Quote1,
    Minus1,
    Number1,
    Term1,
    Affix1,
    Percent1,
    Open1,
    Modifier1,
    And1,
    Or,
    Modifier,
    Term,
    Quote,
    Open,
    Unary,
    And,
    Arrow,
    Colon,
    Number,
    Affix,
    Percent,
    Attribute,
    Wildcard,
}

struct Parser<'q> {
    lexer: Lexer<'q>,
    schema: &'q Schema,
    options: &'q ParseOptions<'q>,
    modern: bool,
    stack: Vec<Item>,
    leaves: usize,
    missing_param: Option<String>,
    /// The error for a parameter whose value does not fit, unless one is missing.
    bad_param: Option<QueryError>,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<Option<Node>, QueryError> {
        let mut token = self.lexer.next();
        if token == Token::End {
            return Ok(None);
        }
        loop {
            token = match self.stack.last() {
                Some(Item::Operand { .. } | Item::All) => {
                    if token == Token::End {
                        return self.finish();
                    }
                    self.behind_operand(token)?
                }
                _ => self.operand(token)?,
            };
            if self.stack.len() > MAX_DEPTH {
                // Dialect 1 tells where.
                return Err(if self.modern { QueryError::TooDeep } else { self.unexpected() });
            }
        }
    }

    fn finish(&mut self) -> Result<Option<Node>, QueryError> {
        self.reduce(Binding::Lowest);
        match (self.stack.pop(), self.stack.is_empty()) {
            (Some(Item::All), true) => Ok(Some(Node::new(Kind::All))),
            (Some(Item::Operand { node, .. }), true) => Ok(node),
            _ => Err(self.unexpected()),
        }
    }

    fn unexpected(&self) -> QueryError {
        let near = String::from_utf8_lossy(self.lexer.text(&self.lexer.near)).into_owned();
        QueryError::Syntax { offset: self.lexer.offset, near }
    }

    /// Reads on behind a complete part; returns the token that was not yet used.
    fn behind_operand(&mut self, token: Token) -> Result<Token, QueryError> {
        let is_all = matches!(self.stack.last(), Some(Item::All));
        if token == Token::Close {
            self.close()?;
            return Ok(self.lexer.next());
        }
        if token == Token::Arrow && self.modern && self.lexer.clone().next() == Token::OpenBracket {
            if !is_all {
                self.reduce(Binding::Arrow);
            }
            self.lexer.next();
            return self.nearest();
        }
        if is_all {
            return Err(self.unexpected());
        }
        match token {
            Token::Or => {
                self.reduce(Binding::Or);
                self.stack.push(Item::Or);
                Ok(self.lexer.next())
            }
            Token::Arrow => {
                self.reduce(Binding::Arrow);
                self.attributes()?;
                Ok(self.lexer.next())
            }
            _ => {
                let binding = self.binding(&token).ok_or_else(|| self.unexpected())?;
                self.reduce(binding);
                self.operand(token)
            }
        }
    }

    /// Reads the beginning of a part, or all of a small one.
    fn operand(&mut self, token: Token) -> Result<Token, QueryError> {
        if self.is_inside_field() && self.modern && matches!(token, Token::Modifier(_)) {
            return Err(self.unexpected());
        }
        match token {
            Token::Open => self.stack.push(Item::Open),
            Token::Minus => self.stack.push(Item::Minus),
            Token::Tilde => self.stack.push(Item::Tilde),
            Token::Star if self.stack.iter().all(|item| self.modern && matches!(item, Item::Open)) => {
                self.stack.push(Item::All)
            }
            Token::Modifier(name) => return self.field(&name),
            _ => return self.leaf(token),
        }
        Ok(self.lexer.next())
    }

    fn is_inside_field(&self) -> bool {
        self.stack.iter().any(|item| matches!(item, Item::Fields(_)))
    }

    fn push(&mut self, node: Option<Node>, is_text: bool) {
        self.stack.push(Item::Operand { node, is_text });
    }

    fn close(&mut self) -> Result<(), QueryError> {
        self.reduce(Binding::Lowest);
        let inside = self.stack.pop();
        if !matches!(self.stack.pop(), Some(Item::Open)) {
            return Err(self.unexpected());
        }
        self.stack.extend(inside);
        Ok(())
    }

    /// How strongly a token that begins a part holds back what stands before it; `None` if it begins none.
    fn binding(&self, token: &Token) -> Option<Binding> {
        let (old, modern) = match token {
            Token::Term(_) => (Binding::Term1, Binding::Term),
            Token::Number(..) => (Binding::Number1, Binding::Number),
            Token::Exact(_) | Token::Quote => (Binding::Quote1, Binding::Quote),
            Token::Affix { .. } => (Binding::Affix1, Binding::Affix),
            Token::Wildcard(..) => (Binding::Affix1, Binding::Wildcard),
            Token::Modifier(_) => (Binding::Modifier1, Binding::Modifier),
            Token::Attribute(_) => (Binding::Lowest, Binding::Attribute),
            Token::Open => (Binding::Open1, Binding::Open),
            Token::Minus => (Binding::Minus1, Binding::Unary),
            Token::Tilde => (Binding::Tilde1, Binding::Unary),
            Token::Percent => (Binding::Percent1, Binding::Percent),
            _ => return None,
        };
        Some(if self.modern { modern } else { old })
    }

    /// The precedence of the rule that would join the top of the stack with what stands below it.
    fn rule(&self) -> Option<Binding> {
        let below = self.stack.len().checked_sub(2).map(|at| &self.stack[at])?;
        match (below, self.modern) {
            (Item::Operand { .. }, true) => Some(Binding::And),
            (Item::Operand { .. }, false) => Some(Binding::And1),
            (Item::Or, _) => Some(Binding::Or),
            (Item::Minus, false) => Some(Binding::Minus1),
            (Item::Tilde, false) => Some(Binding::Tilde1),
            (Item::Minus | Item::Tilde, true) => Some(Binding::Unary),
            (Item::Fields(_), true) => Some(Binding::Colon),
            (Item::Fields(_), false) => Some(Binding::Modifier1),
            (Item::Open | Item::All, _) => None,
        }
    }

    /// Joins what binds at least as strongly as the next token.
    fn reduce(&mut self, next: Binding) {
        while self.rule().is_some_and(|rule| rule >= next) {
            let Some(Item::Operand { node, is_text }) = self.stack.pop() else { return };
            let joined = match self.stack.pop() {
                Some(Item::Operand { node: left, is_text: left_is_text }) => {
                    (join(left, node, Node::intersect), is_text && left_is_text)
                }
                Some(Item::Or) => {
                    let Some(Item::Operand { node: left, is_text: left_is_text }) = self.stack.pop() else { return };
                    (join(left, node, Node::unite), is_text && left_is_text)
                }
                Some(Item::Minus) => (node.map(|node| Node::with(Kind::Not, vec![node])), is_text),
                Some(Item::Tilde) => (node.map(|node| Node::with(Kind::Optional, vec![node])), is_text),
                Some(Item::Fields(mask)) => {
                    let restricted = node.map(|mut node| {
                        node.restrict(mask);
                        node
                    });
                    (restricted, false)
                }
                Some(Item::Open | Item::All) | None => return,
            };
            self.push(joined.0, joined.1);
        }
    }

    fn count_leaf(&mut self) -> Result<(), QueryError> {
        self.leaves += 1;
        let most = self.options.max_leaves;
        if self.leaves > most { Err(QueryError::TooManyLeaves(most)) } else { Ok(()) }
    }

    /// The value of a parameter. One that is absent is an error at the end.
    fn param(&mut self, name: &[u8]) -> Vec<u8> {
        let found = self.options.params.iter().find(|(known, _)| known.as_bytes() == name);
        if found.is_none() && self.missing_param.is_none() {
            self.missing_param = Some(String::from_utf8_lossy(name).into_owned());
        }
        found.map_or_else(Vec::new, |(_, value)| value.to_vec())
    }
}

fn join(left: Option<Node>, right: Option<Node>, both: impl Fn(Node, Node) -> Node) -> Option<Node> {
    match (left, right) {
        (Some(left), Some(right)) => Some(both(left, right)),
        (left, right) => left.or(right),
    }
}

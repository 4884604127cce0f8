//! `@field:` and what stands behind it: text, tags, ranges, circles.

use std::ops::Range as Span;

use super::{Item, Parser};
use crate::index::geo::{Circle, Place};
use crate::index::ranges::Range;
use crate::query::QueryError;
use crate::query::lexer::{Comparison, Token};
use crate::query::node::{FieldName, Kind, Node, UNITS};
use crate::schema::FieldKind;
use crate::shape::{Relation, Shape};
use crate::text::unescape;

impl Parser<'_> {
    /// Reads behind `@name`.
    pub(super) fn field(&mut self, name: &Span<usize>) -> Result<Token, QueryError> {
        let first = self.field_name(name);
        let mut mask = self.mask(&first);
        let mut is_single = true;
        loop {
            match self.lexer.next() {
                Token::Or => {
                    let (Token::Term(other) | Token::Number(_, _, other)) = self.lexer.next() else {
                        return Err(self.unexpected());
                    };
                    let other = self.field_name(&other);
                    mask |= self.mask(&other);
                    is_single = false;
                }
                Token::Comparison(comparison) if is_single => return self.comparison(first, comparison),
                Token::Colon => break,
                _ => return Err(self.unexpected()),
            }
        }
        match self.lexer.next() {
            Token::OpenBrace if is_single => self.tags(first),
            Token::OpenBracket if is_single => {
                let node = self.bracket(first)?;
                self.push(Some(node), false);
                Ok(self.lexer.next())
            }
            Token::Star | Token::Modifier(_) if self.modern => Err(self.unexpected()),
            token => {
                self.stack.push(Item::Fields(mask));
                Ok(token)
            }
        }
    }

    pub(super) fn field_name(&self, name: &Span<usize>) -> FieldName {
        let name = unescape(self.lexer.text(name));
        FieldName { name: String::from_utf8_lossy(&name).into_owned(), id: self.schema.find(&name) }
    }

    fn mask(&self, field: &FieldName) -> u128 {
        field.id.map_or(0, |id| self.schema.mask(id))
    }

    pub(super) fn is_missing(&self, span: &Span<usize>) -> bool {
        self.lexer.text(span).eq_ignore_ascii_case(b"ismissing")
    }

    /// `ismissing(@field)`, behind the parenthesis.
    pub(super) fn missing(&mut self) -> Result<Token, QueryError> {
        let Token::Modifier(name) = self.lexer.next() else { return Err(self.unexpected()) };
        let field = self.field_name(&name);
        if self.is_inside_field() || self.lexer.next() != Token::Close {
            return Err(self.unexpected());
        }
        if !field.id.is_some_and(|id| self.schema.field(id).index_missing) {
            return Err(QueryError::NotIndexedMissing(field.name));
        }
        self.count_leaf()?;
        self.push(Some(Node::new(Kind::Missing { field })), false);
        Ok(self.lexer.next())
    }

    /// `@field > 5` and the like.
    fn comparison(&mut self, field: FieldName, comparison: Comparison) -> Result<Token, QueryError> {
        // Only blanks and a sign stand between an operator and its number.
        let expected = self.lexer.after_blanks();
        let token = self.lexer.next();
        if self.lexer.offset > expected {
            return Err(self.unexpected());
        }
        let (value, next) = (self.number_from(token)?, self.lexer.next());
        let all = Range::inclusive(f64::NEG_INFINITY, f64::INFINITY);
        let range = match comparison {
            Comparison::Equal | Comparison::NotEqual => Range::inclusive(value, value),
            Comparison::Less => Range { max: value, includes_max: false, ..all },
            Comparison::LessOrEqual => Range { max: value, ..all },
            Comparison::Greater => Range { min: value, includes_min: false, ..all },
            Comparison::GreaterOrEqual => Range { min: value, ..all },
        };
        self.count_leaf()?;
        let node = Node::new(Kind::Numeric { field, range });
        let is_negative = comparison == Comparison::NotEqual;
        self.push(Some(if is_negative { Node::with(Kind::Not, vec![node]) } else { node }), false);
        Ok(next)
    }

    /// A number or a numeric parameter.
    pub(super) fn number_from(&mut self, token: Token) -> Result<f64, QueryError> {
        match token {
            Token::Number(value, ..) => Ok(value),
            Token::Minus => {
                let token = self.lexer.next();
                Ok(-self.number_from_plain(token)?)
            }
            token => self.number_from_plain(token),
        }
    }

    fn number_from_plain(&mut self, token: Token) -> Result<f64, QueryError> {
        match token {
            Token::Number(value, ..) => Ok(value),
            Token::Attribute(name) if self.modern => {
                let name = self.lexer.text(&name).to_vec();
                let value = self.param(&name);
                if self.missing_param.is_some() {
                    return Ok(0.0);
                }
                crate::document::parse_number(&value).ok_or_else(|| QueryError::NotANumber {
                    name: String::from_utf8_lossy(&name).into_owned(),
                    value: String::from_utf8_lossy(&value).into_owned(),
                })
            }
            _ => Err(self.unexpected()),
        }
    }

    /// `[min max]` and `[longitude latitude radius unit]`, behind the bracket.
    fn bracket(&mut self, field: FieldName) -> Result<Node, QueryError> {
        self.count_leaf()?;
        let token = self.lexer.next();
        let is_param = matches!(token, Token::Attribute(_));
        if self.modern && matches!(token, Token::Term(_)) {
            if self.is_vector_range(&token) {
                return self.vector_range(field);
            }
            return self.shape(field, &token);
        }
        let (first, excludes_first) = self.bound(token)?;
        let token = self.lexer.next();
        if token == Token::CloseBracket && self.modern && !excludes_first {
            return Ok(Node::new(Kind::Numeric { field, range: Range::inclusive(first, first) }));
        }
        let is_second_param = matches!(token, Token::Attribute(_));
        let (second, excludes_second) = self.bound(token)?;
        match self.lexer.next() {
            Token::CloseBracket => {
                // The wrong infinity is an error of a parameter alone.
                for (is_param, value, is_upper) in [(is_param, first, false), (is_second_param, second, true)] {
                    if is_param && value == if is_upper { f64::NEG_INFINITY } else { f64::INFINITY } {
                        return Err(QueryError::RangeEnd { is_upper, value: value.to_string() });
                    }
                }
                let (includes_min, includes_max) = (!excludes_first, !excludes_second);
                let range = Range { min: first, max: second, includes_min, includes_max };
                Ok(Node::new(Kind::Numeric { field, range }))
            }
            _ if excludes_first || excludes_second => Err(self.unexpected()),
            token => {
                let radius = self.number_from(token)?;
                self.circle(field, first, second, radius)
            }
        }
    }

    /// `relation $shape]`, behind the relation.
    fn shape(&mut self, field: FieldName, relation: &Token) -> Result<Node, QueryError> {
        let next = self.lexer.next();
        let (Token::Term(relation), Token::Attribute(name)) = (relation, &next) else {
            // A number may follow a command, and then no bracket.
            self.number_from(next)?;
            self.lexer.next();
            return Err(self.unexpected());
        };
        let name = name.clone();
        let offset = self.lexer.offset;
        if self.lexer.next() != Token::CloseBracket {
            return Err(self.unexpected());
        }
        let relation = Relation::parse(self.lexer.text(relation)).ok_or(QueryError::ShapeRelation { offset })?;
        let name = self.lexer.text(&name).to_vec();
        let text = self.param(&name);
        let kind = field.id.and_then(|id| self.schema.fields().get(id)).map(|field| &field.kind);
        let shape = match kind {
            Some(FieldKind::Shape(surface)) if self.missing_param.is_none() => Shape::parse(&text, *surface),
            _ => return Ok(Node::new(Kind::Shape { field, relation, text, shape: None })),
        };
        // An error of the syntax comes first.
        let shape =
            shape.map_err(|error| _ = self.bad_param.get_or_insert(QueryError::Shape(error))).ok().map(Box::new);
        Ok(Node::new(Kind::Shape { field, relation, text, shape }))
    }

    /// An end of a range, and whether a parenthesis excludes it.
    fn bound(&mut self, token: Token) -> Result<(f64, bool), QueryError> {
        let excludes = token == Token::Open;
        let token = if excludes { self.lexer.next() } else { token };
        Ok((self.number_from(token)?, excludes))
    }

    fn circle(&mut self, field: FieldName, longitude: f64, latitude: f64, radius: f64) -> Result<Node, QueryError> {
        let name = match self.lexer.next() {
            Token::Term(span) => self.lexer.text(&span).to_vec(),
            Token::Number(..) if self.modern => return Err(QueryError::GeoUnit),
            Token::Attribute(span) if self.modern => {
                let name = self.lexer.text(&span).to_vec();
                self.param(&name)
            }
            _ => return Err(self.unexpected()),
        };
        if self.lexer.next() != Token::CloseBracket {
            return Err(self.unexpected());
        }
        if let Some(missing) = self.missing_param.take() {
            return Err(QueryError::NoParameter(missing));
        }
        let unit =
            UNITS.iter().find(|unit| unit.name.as_bytes().eq_ignore_ascii_case(&name)).ok_or(QueryError::GeoUnit)?;
        if radius.is_nan() || radius <= 0.0 {
            return Err(QueryError::GeoRadius);
        }
        // No document lies beyond Redis' limits of latitude, but a circle may.
        if longitude.abs() > 180.0 || latitude.abs() > 90.0 || longitude.is_nan() || latitude.is_nan() {
            return Err(QueryError::GeoPlace);
        }
        let centre = Place { longitude, latitude };
        let circle = Circle { centre, radius: radius * unit.metres };
        Ok(Node::new(Kind::Geo { field, circle, radius, unit: *unit }))
    }

    /// `{a|b c|d*}`, behind the brace. In dialect 1 the closing brace may lack, and a list goes on behind it: `@t:{a}|b` are
    /// two tags.
    fn tags(&mut self, field: FieldName) -> Result<Token, QueryError> {
        let (mut tags, mut is_closed) = (vec![], false);
        loop {
            let token = self.lexer.next();
            let mut next = self.tag(token, &mut tags, is_closed)?;
            while next == Token::CloseBrace && (!is_closed || !self.modern) {
                is_closed = true;
                next = self.lexer.next();
            }
            if next == Token::Or && !(is_closed && self.modern) {
                continue;
            }
            if !is_closed && self.modern {
                return Err(self.unexpected());
            }
            self.push(Some(Node::with(Kind::Tag { field }, tags)), false);
            return Ok(next);
        }
    }

    /// The rest of an affix in quotes, which may end with a star.
    fn quoted_affix(&mut self, span: &Span<usize>, before: bool, tags: &mut Vec<Node>) -> Result<Token, QueryError> {
        let next = self.lexer.next();
        let after = next == Token::Star;
        tags.push(self.affix_node(span, before, after)?);
        if after { Ok(self.lexer.next()) } else { Ok(next) }
    }

    fn affix_node(&mut self, span: &Span<usize>, before: bool, after: bool) -> Result<Node, QueryError> {
        self.count_leaf()?;
        let text = unescape(self.lexer.text(span)).into_owned();
        Ok(Node::new(Kind::Affix { text, before, after }))
    }

    /// One tag of a list; returns the token behind it. Behind the brace a stop word is a tag of its own.
    fn tag(&mut self, token: Token, tags: &mut Vec<Node>, is_behind: bool) -> Result<Token, QueryError> {
        let mut token = token;
        if let Token::Affix { .. } | Token::Wildcard(..) = token {
            tags.push(self.pattern(&token)?);
            return Ok(self.lexer.next());
        }
        if token == Token::Star && self.modern {
            // `*"text"` and `*"text"*`
            let Token::Exact(span) = self.lexer.next() else { return Err(self.unexpected()) };
            return self.quoted_affix(&span, true, tags);
        }
        let mut words = Vec::new();
        loop {
            let is_last = is_behind && matches!(&token, Token::Term(span) if self.is_stop_word(&self.plain(span)));
            if is_last && !words.is_empty() {
                break;
            }
            let word = match &token {
                Token::Term(span) | Token::Number(_, _, span) | Token::Exact(span) => self.lexer.text(span).to_vec(),
                Token::Attribute(span) if self.modern => {
                    let name = self.lexer.text(span).to_vec();
                    self.param(&name)
                }
                _ if words.is_empty() => return Err(self.unexpected()),
                _ => break,
            };
            let quoted =
                if let (Token::Exact(span), true) = (&token, words.is_empty()) { Some(span.clone()) } else { None };
            token = self.lexer.next();
            if let Some(span) = quoted.filter(|_| token == Token::Star && self.modern) {
                tags.push(self.affix_node(&span, false, true)?);
                return Ok(self.lexer.next());
            }
            self.count_leaf()?;
            words.push(Node::token(word));
            if is_last {
                break;
            }
        }
        let tag = if words.len() > 1 { Some(Node::with(Kind::Phrase { exact: false }, words)) } else { words.pop() };
        tags.extend(tag);
        Ok(token)
    }
}

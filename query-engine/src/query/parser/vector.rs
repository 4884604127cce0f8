//! `=>[KNN …]` and `[VECTOR_RANGE …]`.

use super::leaf::apply;
use super::{Attribute, Item, Parser};
use crate::query::QueryError;
use crate::query::lexer::Token;
use crate::query::node::{FieldName, HybridPolicy, Kind, Near, Node, VectorQuery};
use crate::query::number::general;
use crate::schema::{FieldKind, Schema};
use crate::vector::{Algorithm, VectorOptions};

/// The most attributes of one command, above all that have a meaning.
const MAX_ATTRIBUTES: usize = 16;

impl Parser<'_> {
    /// `KNN k @field $vector [name value …] [AS name]` for all that was read, behind `=>[`.
    pub(super) fn nearest(&mut self) -> Result<Token, QueryError> {
        let filter = match (self.stack.pop(), self.stack.is_empty()) {
            (Some(Item::All), true) => None,
            (Some(Item::Operand { node, .. }), true) => node,
            _ => return Err(self.unexpected()),
        };
        self.count_leaf()?;
        let command = self.lexer.next();
        let Token::Term(span) = command else { return Err(self.unexpected()) };
        let command = self.lexer.text(&span);
        let (offset, near) = (self.lexer.offset, String::from_utf8_lossy(command).into_owned());
        let (k, missing_k) = self.k()?;
        let Token::Modifier(name) = self.lexer.next() else { return Err(self.unexpected()) };
        let field = self.field_name(&name);
        let Token::Attribute(param) = self.lexer.next() else { return Err(self.unexpected()) };
        let param = self.lexer.text(&param).to_vec();
        let attributes = self.nearest_attributes()?;
        if !command.eq_ignore_ascii_case(b"KNN") {
            return Err(QueryError::VectorCommand { offset, near });
        }
        let near = Near::Nearest { k, ef_runtime: None, policy: None, batch_size: None };
        let query = self.vector_query(field, &param, near)?;
        // The number is looked up last.
        self.missing_param = self.missing_param.take().or(missing_k);
        let Some(mut query) = query.filter(|_| self.missing_param.is_none()) else {
            // The parameter is missing, which is said at the end of the text.
            self.push(None, false);
            return self.end();
        };
        for (name, value) in &attributes {
            query.set(name, value)?;
        }
        let mut outer = None;
        let default = format!("__{}_score", query.field.name);
        let mut node = Node::with(Kind::Vector(Box::new(query)), filter.into_iter().collect());
        let mut token = self.lexer.next();
        if token == Token::Arrow {
            if self.lexer.next() != Token::OpenBrace {
                return Err(self.unexpected());
            }
            if let Kind::Vector(query) = &mut node.kind {
                outer = query.yields.take();
            }
            let attributes = self.attribute_list()?;
            if self.missing_param.is_some() {
                self.push(None, false);
                return self.end();
            }
            for (name, value) in attributes {
                apply(&mut node, &name, &value)?;
            }
            token = self.lexer.next();
        }
        if token != Token::End {
            return Err(self.unexpected());
        }
        if let Kind::Vector(query) = &mut node.kind {
            if let (Some(one), Some(other)) = (&outer, &query.yields) {
                return Err(QueryError::DistanceTwice(one.clone(), other.clone()));
            }
            query.yields = query.yields.take().or(outer).or(Some(default));
        }
        self.push(Some(node), false);
        Ok(token)
    }

    /// Reads to the end of the text.
    fn end(&mut self) -> Result<Token, QueryError> {
        while self.lexer.next() != Token::End {}
        Ok(Token::End)
    }

    /// The number of neighbours, and the name of its parameter if that is missing.
    fn k(&mut self) -> Result<(usize, Option<String>), QueryError> {
        let (name, text) = match self.lexer.next() {
            Token::Number(_, true, span) => (String::new(), self.lexer.text(&span).to_vec()),
            Token::Attribute(span) => {
                let name = String::from_utf8_lossy(self.lexer.text(&span)).into_owned();
                match self.options.params.iter().find(|(known, _)| *known == name) {
                    Some((_, value)) => (name, value.to_vec()),
                    None => return Ok((0, Some(name))),
                }
            }
            _ => return Err(self.unexpected()),
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        match text.parse::<usize>() {
            Ok(k) => Ok((k, None)),
            // Digits of the query that are too many.
            Err(_) if name.is_empty() => Ok((usize::MAX, None)),
            Err(_) => {
                // A parameter without a value is told first.
                self.bad_param.get_or_insert(QueryError::NotANumber { name, value: text });
                Ok((0, None))
            }
        }
    }

    /// Names with values up to the bracket; `AS` is the name of the distance and stands last.
    fn nearest_attributes(&mut self) -> Result<Vec<Attribute>, QueryError> {
        let mut attributes = Vec::new();
        loop {
            let name = match self.lexer.next() {
                Token::CloseBracket => return Ok(attributes),
                Token::Term(span) if attributes.len() < MAX_ATTRIBUTES => self.lexer.text(&span).to_vec(),
                _ => return Err(self.unexpected()),
            };
            let value = match self.lexer.next() {
                Token::Term(span) | Token::Number(_, _, span) => self.lexer.text(&span).to_vec(),
                Token::Attribute(span) => {
                    let name = self.lexer.text(&span).to_vec();
                    self.param(&name)
                }
                _ => return Err(self.unexpected()),
            };
            if name.eq_ignore_ascii_case(b"AS") {
                attributes.push((b"yield_distance_as".to_vec(), value));
                return if self.lexer.next() == Token::CloseBracket { Ok(attributes) } else { Err(self.unexpected()) };
            }
            attributes.push((name, value));
        }
    }

    pub(super) fn is_vector_range(&self, token: &Token) -> bool {
        matches!(token, Token::Term(span) if self.lexer.text(span).eq_ignore_ascii_case(b"VECTOR_RANGE"))
    }

    /// `radius $vector]`, behind VECTOR_RANGE.
    pub(super) fn vector_range(&mut self, field: FieldName) -> Result<Node, QueryError> {
        let token = self.lexer.next();
        let radius = self.number_from(token)?;
        let Token::Attribute(param) = self.lexer.next() else { return Err(self.unexpected()) };
        let param = self.lexer.text(&param).to_vec();
        if self.lexer.next() != Token::CloseBracket {
            return Err(self.unexpected());
        }
        if radius < 0.0 {
            return Err(QueryError::VectorRadius(general(radius)));
        }
        let query = self.vector_query(field, &param, Near::Within { radius, epsilon: None })?;
        Ok(Node::new(query.map_or(Kind::Empty, |query| Kind::Vector(Box::new(query)))))
    }

    /// `None` if the parameter is missing.
    fn vector_query(&mut self, field: FieldName, param: &[u8], near: Near) -> Result<Option<VectorQuery>, QueryError> {
        let blob = self.param(param);
        if self.missing_param.is_some() {
            return Ok(None);
        }
        let size = |options: VectorOptions| QueryError::VectorSize { given: blob.len(), expected: options.blob_size() };
        let vector = options(&field, self.schema).map(|options| options.vector(&blob).map_err(|_| size(options)));
        let vector = vector.filter(|vector| vector.is_ok() || !self.options.explains);
        let param = String::from_utf8_lossy(param).into_owned();
        let vector = vector.transpose()?;
        let given = Vec::new();
        Ok(Some(VectorQuery { field, param, vector, near, given, yields: None, of_hnsw: false, of_vamana: false }))
    }
}

fn options(field: &FieldName, schema: &Schema) -> Option<VectorOptions> {
    match schema.field(field.id?).kind {
        FieldKind::Vector(options) => Some(options),
        _ => None,
    }
}

/// Whether an attribute is one of vector queries alone.
pub(super) fn is_parameter(name: &[u8]) -> bool {
    let names: [&[u8]; 8] = [
        b"yield_distance_as",
        b"ef_runtime",
        b"epsilon",
        b"hybrid_policy",
        b"batch_size",
        b"search_window_size",
        b"search_buffer_capacity",
        b"use_search_history",
    ];
    names.iter().any(|known| name.eq_ignore_ascii_case(known))
}

const TWICE: QueryError = QueryError::VectorParameter("Parameter was specified twice");
const NO_OPTION: QueryError = QueryError::VectorParameter("Invalid option");
const BAD_VALUE: QueryError = QueryError::VectorParameter("Invalid value was given");
const NOT_A_RANGE: QueryError = QueryError::VectorParameter("range query attributes were sent for a non-range query");
const NOT_HYBRID: QueryError = QueryError::VectorParameter("hybrid query attributes were sent for a non-hybrid query");

impl VectorQuery {
    /// Sets a parameter by its name.
    pub(super) fn set(&mut self, name: &[u8], value: &[u8]) -> Result<(), QueryError> {
        let text = String::from_utf8_lossy(value).into_owned();
        if name.eq_ignore_ascii_case(b"yield_distance_as") {
            self.yields = Some(text);
            return Ok(());
        }
        self.set_option(name, &text)?;
        self.given.push((String::from_utf8_lossy(name).into_owned(), text));
        Ok(())
    }

    /// Sets a parameter of the search itself.
    fn set_option(&mut self, name: &[u8], text: &str) -> Result<(), QueryError> {
        let count = || text.parse::<usize>().ok().filter(|count| *count > 0).ok_or(BAD_VALUE);
        match (name.to_ascii_lowercase().as_slice(), &mut self.near) {
            (b"ef_runtime", Near::Nearest { ef_runtime, .. }) => {
                self.of_hnsw = true;
                once(ef_runtime, count)
            }
            (b"search_window_size", Near::Nearest { ef_runtime, .. }) => {
                self.of_vamana = true;
                once(ef_runtime, count)
            }
            // A walk over whole vectors has neither a second buffer nor a choice of what it remembers.
            (b"search_window_size" | b"search_buffer_capacity", _) => {
                self.of_vamana = true;
                count().map(drop)
            }
            (b"use_search_history", _) => {
                self.of_vamana = true;
                let is_known = ["on", "off", "auto"].iter().any(|known| text.eq_ignore_ascii_case(known));
                if is_known { Ok(()) } else { Err(BAD_VALUE) }
            }
            (b"batch_size", Near::Nearest { batch_size, .. }) => once(batch_size, count),
            (b"hybrid_policy", Near::Nearest { policy, .. }) => {
                once(policy, || match text.to_ascii_lowercase().as_str() {
                    "batches" => Ok(HybridPolicy::Batches),
                    "adhoc_bf" => Ok(HybridPolicy::AdHoc),
                    _ => Err(QueryError::VectorParameter("invalid hybrid policy was given")),
                })
            }
            (b"epsilon", Near::Within { epsilon, .. }) => {
                let given = text.parse().ok().filter(|given: &f64| given.is_finite() && *given > 0.0);
                once(epsilon, || given.ok_or(BAD_VALUE))
            }
            (b"epsilon", Near::Nearest { .. }) => Err(NOT_A_RANGE),
            (b"batch_size" | b"hybrid_policy", Near::Within { .. }) => Err(NOT_HYBRID),
            _ => Err(NO_OPTION),
        }
    }

    /// Checks that parameters fit each other and the index.
    fn check(&self, schema: &Schema, is_hybrid: bool) -> Result<(), QueryError> {
        if self.vector.is_none() {
            return Ok(());
        }
        let algorithm = options(&self.field, schema).map(|options| options.algorithm);
        let is_vamana = matches!(algorithm, Some(Algorithm::Vamana { .. }));
        let is_hnsw = matches!(algorithm, Some(Algorithm::Hnsw { .. }));
        match self.near {
            _ if self.of_hnsw && !is_hnsw || self.of_vamana && !is_vamana => Err(NO_OPTION),
            Near::Within { epsilon: Some(_), .. } if !is_hnsw && !is_vamana => Err(NO_OPTION),
            Near::Nearest { policy, batch_size, .. } if !is_hybrid && (policy.is_some() || batch_size.is_some()) => {
                Err(NOT_HYBRID)
            }
            Near::Nearest { policy: Some(HybridPolicy::AdHoc), batch_size: Some(_), .. } => {
                Err(QueryError::VectorParameter("'batch size' is irrelevant for 'ADHOC_BF' policy"))
            }
            Near::Nearest { policy: Some(HybridPolicy::AdHoc), ef_runtime: Some(_), .. } => {
                Err(QueryError::VectorParameter("'EF_RUNTIME' is irrelevant for 'ADHOC_BF' policy"))
            }
            Near::Nearest { .. } | Near::Within { .. } => Ok(()),
        }
    }
}

fn once<T>(place: &mut Option<T>, value: impl FnOnce() -> Result<T, QueryError>) -> Result<(), QueryError> {
    if place.is_some() {
        return Err(TWICE);
    }
    *place = Some(value()?);
    Ok(())
}

/// Checks that distances have names of their own, and ranges parameters that their index has.
pub(super) fn check_names(root: &Node, schema: &Schema) -> Result<(), QueryError> {
    let (mut open, mut names) = (vec![root], Vec::new());
    while let Some(node) = open.pop() {
        if let Kind::Vector(query) = &node.kind {
            query.check(schema, !node.children.is_empty())?;
            if let Some(name) = &query.yields {
                if schema.find(name.as_bytes()).is_some() {
                    return Err(QueryError::PropertyExists(name.clone()));
                }
                if names.contains(&name) {
                    return Err(QueryError::PropertyTwice(name.clone()));
                }
                names.push(name);
            }
        }
        open.extend(&node.children);
    }
    Ok(())
}

//! Expressions over attributes (`VSIM … FILTER`): `.year > 1980 and .genre in ["drama", "crime"]`.
//!
//! An expression becomes a program in postfix order, so neither reading nor evaluating it calls itself.

use std::fmt;

use super::json;

/// The most tokens of an expression.
pub const MAX_FILTER_TOKENS: usize = 4096;

/// A value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(f64),
    Text(Vec<u8>),
    Null,
    Tuple(Vec<Self>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Not,
    Power,
    Multiply,
    Divide,
    Modulo,
    Add,
    Subtract,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    In,
    And,
    Or,
}

/// Names; a longer one stands before its beginning.
const OPERATORS: &[(&[u8], Operator)] = &[
    (b"**", Operator::Power),
    (b"*", Operator::Multiply),
    (b"/", Operator::Divide),
    (b"%", Operator::Modulo),
    (b"+", Operator::Add),
    (b"-", Operator::Subtract),
    (b">=", Operator::GreaterOrEqual),
    (b">", Operator::Greater),
    (b"<=", Operator::LessOrEqual),
    (b"<", Operator::Less),
    (b"==", Operator::Equal),
    (b"!=", Operator::NotEqual),
    (b"!", Operator::Not),
    (b"&&", Operator::And),
    (b"||", Operator::Or),
];

const WORDS: &[(&[u8], Operator)] =
    &[(b"not", Operator::Not), (b"in", Operator::In), (b"and", Operator::And), (b"or", Operator::Or)];

impl Operator {
    fn precedence(self) -> u8 {
        match self {
            Self::Not => 6,
            Self::Power => 5,
            Self::Multiply | Self::Divide | Self::Modulo => 4,
            Self::Add | Self::Subtract => 3,
            Self::Greater | Self::GreaterOrEqual | Self::Less | Self::LessOrEqual => 2,
            Self::Equal | Self::NotEqual | Self::In => 2,
            Self::And => 1,
            Self::Or => 0,
        }
    }

    /// Operators of the same strength that go on at the right first.
    fn is_right(self) -> bool {
        matches!(self, Self::Power | Self::Not)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Value(Value),
    /// `.name`.
    Field(Vec<u8>),
    Apply(Operator),
}

/// An expression that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    steps: Vec<Step>,
}

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// Where no token is (bytes); 0 if all tokens are some, but their order is wrong.
    pub offset: usize,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "syntax error in FILTER expression at offset {}", self.offset)
    }
}

impl std::error::Error for FilterError {}

enum Open {
    Parenthesis,
    Operator(Operator),
}

struct Parser<'f> {
    text: &'f [u8],
    at: usize,
    steps: Vec<Step>,
    open: Vec<Open>,
}

impl Filter {
    /// Reads an expression.
    ///
    /// # Errors
    /// When the text is none, or has more than [`MAX_FILTER_TOKENS`] tokens.
    pub fn parse(text: &[u8]) -> Result<Self, FilterError> {
        let mut parser = Parser { text, at: 0, steps: Vec::new(), open: Vec::new() };
        if parser.run().is_none() {
            let mut parser = Parser { text, at: 0, steps: Vec::new(), open: Vec::new() };
            return Err(FilterError { offset: parser.no_token().unwrap_or(0) });
        }
        Ok(Self { steps: parser.steps })
    }

    /// Whether attributes (JSON) fulfil it. They do not if they lack a field that it names.
    #[must_use]
    pub fn accepts(&self, attributes: &[u8]) -> bool {
        self.value(attributes).is_some_and(|value| is_true(&value))
    }

    fn value(&self, attributes: &[u8]) -> Option<Value> {
        let mut stack = Vec::new();
        for step in &self.steps {
            let value = match step {
                Step::Value(value) => value.clone(),
                Step::Field(name) => json::field(attributes, name)?,
                Step::Apply(Operator::Not) => truth(!is_true(&stack.pop()?)),
                Step::Apply(operator) => {
                    let (right, left) = (stack.pop()?, stack.pop()?);
                    apply(*operator, &left, &right)
                }
            };
            stack.push(value);
        }
        stack.pop()
    }
}

fn apply(operator: Operator, left: &Value, right: &Value) -> Value {
    let (one, other) = (number(left), number(right));
    match operator {
        Operator::Power => Value::Number(one.powf(other)),
        Operator::Multiply => Value::Number(one * other),
        Operator::Divide => Value::Number(one / other),
        Operator::Modulo => Value::Number(one % other),
        Operator::Add => Value::Number(one + other),
        Operator::Subtract => Value::Number(one - other),
        Operator::Greater => truth(one > other),
        Operator::GreaterOrEqual => truth(one >= other),
        Operator::Less => truth(one < other),
        Operator::LessOrEqual => truth(one <= other),
        Operator::Equal => truth(is_equal(left, right)),
        Operator::NotEqual => truth(!is_equal(left, right)),
        Operator::In => truth(is_in(left, right)),
        Operator::And => truth(is_true(left) && is_true(right)),
        Operator::Or | Operator::Not => truth(is_true(left) || is_true(right)),
    }
}

fn truth(is: bool) -> Value {
    Value::Number(f64::from(is))
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Number(number) => *number != 0.0,
        Value::Text(text) => !text.is_empty(),
        Value::Null => false,
        Value::Tuple(_) => true,
    }
}

/// A value as a number; 0 if it is none.
fn number(value: &Value) -> f64 {
    match value {
        Value::Number(number) => *number,
        Value::Text(text) => crate::document::parse_number(text).unwrap_or(0.0),
        Value::Null | Value::Tuple(_) => 0.0,
    }
}

fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Text(one), Value::Text(other)) => one == other,
        (Value::Null, other) | (other, Value::Null) => *other == Value::Null,
        (Value::Tuple(_), _) | (_, Value::Tuple(_)) => left == right,
        (one, other) => number(one) == number(other),
    }
}

/// Among the items of a tuple, or a part of a string.
fn is_in(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (left, Value::Tuple(items)) => items.iter().any(|item| is_equal(left, item)),
        (Value::Text(part), Value::Text(text)) => {
            part.is_empty() || text.windows(part.len()).any(|window| window == part)
        }
        _ => false,
    }
}

impl Parser<'_> {
    fn run(&mut self) -> Option<()> {
        let (mut is_behind_value, mut tokens) = (false, 0);
        while let Some(byte) = self.peek() {
            tokens += 1;
            if tokens > MAX_FILTER_TOKENS {
                return None;
            }
            is_behind_value = if is_behind_value { self.behind_value(byte)? } else { self.value(byte)? };
        }
        if !is_behind_value {
            return None;
        }
        while let Some(open) = self.open.pop() {
            let Open::Operator(operator) = open else { return None };
            self.steps.push(Step::Apply(operator));
        }
        Some(())
    }

    /// Where the first thing stands that is no token, if one does.
    fn no_token(&mut self) -> Option<usize> {
        while let Some(byte) = self.peek() {
            let is_field = byte == b'.' && self.text.get(self.at + 1).is_some_and(|next| !next.is_ascii_digit());
            let is_token = match byte {
                b'(' | b')' => {
                    self.at += 1;
                    true
                }
                b'[' => self.tuple().is_some(),
                b'.' if is_field => {
                    self.at += 1;
                    !self.field().is_empty()
                }
                _ => self.operator().is_some() || self.scalar().is_some(),
            };
            if !is_token {
                self.pass_broken(byte);
                return Some(self.at);
            }
        }
        None
    }

    /// Passes what Redis has read before it gives up: a string without an end, or letters and operators that are none together.
    fn pass_broken(&mut self, first: u8) {
        let is_read = |byte: u8| byte.is_ascii_alphabetic() || b"+-*%/!()<>=|&".contains(&byte);
        match first {
            b'"' | b'\'' => self.at = self.text.len(),
            _ if is_read(first) => _ = self.take_while(is_read),
            _ => {}
        }
    }

    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// An operator or a closing parenthesis; returns whether a value is complete.
    fn behind_value(&mut self, byte: u8) -> Option<bool> {
        if byte == b')' {
            self.at += 1;
            loop {
                match self.open.pop()? {
                    Open::Parenthesis => return Some(true),
                    Open::Operator(operator) => self.steps.push(Step::Apply(operator)),
                }
            }
        }
        let operator = self.operator().filter(|operator| *operator != Operator::Not)?;
        while let Some(Open::Operator(above)) = self.open.last() {
            let (above, strength) = (*above, operator.precedence());
            if above.precedence() < strength || above.precedence() == strength && operator.is_right() {
                break;
            }
            self.open.pop();
            self.steps.push(Step::Apply(above));
        }
        self.open.push(Open::Operator(operator));
        Some(false)
    }

    /// A value, or what may stand before it; returns whether it is complete.
    fn value(&mut self, byte: u8) -> Option<bool> {
        let step = match byte {
            b'(' => {
                self.at += 1;
                self.open.push(Open::Parenthesis);
                return Some(false);
            }
            b'.' if !self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit) => {
                self.at += 1;
                let name = self.field().to_vec();
                if name.is_empty() {
                    return None;
                }
                Step::Field(name)
            }
            b'[' => Step::Value(self.tuple()?),
            _ => {
                if let Some(Operator::Not) = self.clone_operator() {
                    self.operator();
                    self.open.push(Open::Operator(Operator::Not));
                    return Some(false);
                }
                Step::Value(self.scalar()?)
            }
        };
        self.steps.push(step);
        Some(true)
    }

    /// The operator that stands here, without passing it.
    fn clone_operator(&mut self) -> Option<Operator> {
        let at = self.at;
        let operator = self.operator();
        self.at = at;
        operator
    }

    fn operator(&mut self) -> Option<Operator> {
        let rest = &self.text[self.at..];
        if let Some((name, operator)) = OPERATORS.iter().find(|(name, _)| rest.starts_with(name)) {
            self.at += name.len();
            return Some(*operator);
        }
        let at = self.at;
        let word = self.word();
        let found = WORDS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, operator)| *operator);
        if found.is_none() {
            self.at = at;
        }
        found
    }

    /// Letters, digits, `_` and bytes beyond ASCII.
    fn word(&mut self) -> &[u8] {
        self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80)
    }

    /// The name of a field, which may have a `-` too.
    fn field(&mut self) -> &[u8] {
        self.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || byte >= 0x80)
    }

    fn take_while(&mut self, is_part: impl Fn(u8) -> bool) -> &[u8] {
        let rest = &self.text[self.at..];
        let length = rest.iter().take_while(|byte| is_part(**byte)).count();
        self.at += length;
        &rest[..length]
    }

    /// `[a, b, …]`.
    fn tuple(&mut self) -> Option<Value> {
        self.at += 1;
        let mut items = Vec::new();
        if self.peek()? == b']' {
            self.at += 1;
            return Some(Value::Tuple(items));
        }
        loop {
            self.peek()?;
            items.push(self.scalar()?);
            match self.peek()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Some(Value::Tuple(items));
                }
                _ => return None,
            }
        }
    }

    /// A string, a number, true, false or null.
    fn scalar(&mut self) -> Option<Value> {
        let rest = &self.text[self.at..];
        let &first = rest.first()?;
        if matches!(first, b'"' | b'\'') {
            return self.string(first);
        }
        let is_number = |(at, byte): &(usize, &u8)| {
            let follows_exponent = *at > 0 && matches!(rest[at - 1], b'e' | b'E');
            byte.is_ascii_digit()
                || matches!(byte, b'.' | b'e' | b'E')
                || matches!(byte, b'+' | b'-') && (*at == 0 || follows_exponent)
        };
        if first.is_ascii_digit() || matches!(first, b'-' | b'+' | b'.') {
            let length = rest.iter().enumerate().take_while(is_number).count();
            let value = std::str::from_utf8(&rest[..length]).ok()?.parse().ok()?;
            self.at += length;
            return Some(Value::Number(value));
        }
        let at = self.at;
        let value = match self.word() {
            b"true" => Value::Number(1.0),
            b"false" => Value::Number(0.0),
            b"null" => Value::Null,
            _ => {
                self.at = at;
                return None;
            }
        };
        Some(value)
    }

    fn string(&mut self, quote: u8) -> Option<Value> {
        let (mut text, mut at) = (Vec::new(), self.at + 1);
        loop {
            match *self.text.get(at)? {
                b'\\' => {
                    text.push(*self.text.get(at + 1)?);
                    at += 2;
                }
                byte if byte == quote => {
                    self.at = at + 1;
                    return Some(Value::Text(text));
                }
                byte => {
                    text.push(byte);
                    at += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ATTRIBUTES: &[u8] =
        br#"{"year": 1984, "genre": "crime", "tags": ["a", 7], "rating": "8.5", "none": null, "on": true}"#;

    #[test]
    fn expressions_are_evaluated() {
        let check = |text: &str, expected: bool| {
            let filter = Filter::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(filter.accepts(ATTRIBUTES), expected, "{text}");
        };
        for text in [
            ".year > 1980 and .genre == \"crime\"",
            ".year>=1984&&.year<=1984",
            ".year - 1 == 1983",
            ".year == 1990 or .genre in ['drama', 'crime']",
            "7 in .tags and 'a' in .tags",
            "\"rim\" in .genre",
            ".rating * 2 == 17",
            "2 + 3 * 4 == 14 and (2 + 3) * 4 == 20",
            "2 ** 3 ** 2 == 512",
            "10 - 4 - 3 == 3",
            "-2 + 5 == 3 and 7 % 4 == 3 and 1 / 4 == .25",
            "not .year == 1 or 1",
            "!(.year == 1)",
            ".none == null and .year != null",
            ".on",
            ".on == true",
            "1e3 == 1000",
            "5 -3 == 2",
        ] {
            check(text, true);
        }
        for text in [
            ".absent == null",
            ".absent or 1",
            ".year < 1980",
            ".genre in [\"drama\"]",
            ".genre in []",
            ".none",
            "0 or ''",
            "\"8.5\" == \"8.50\"",
            ".genre > 0",
        ] {
            check(text, false);
        }
        let filter = Filter::parse(b".year > 1").expect("valid");
        assert!(!filter.accepts(b"") && !filter.accepts(b"no json"));
    }

    #[test]
    fn malformed_expressions_are_refused() {
        let (deep, wide) = ("(".repeat(100_000), "1+".repeat(100_000));
        for text in [
            "",
            " ",
            ".",
            "1 +",
            "+ ",
            "1 1",
            "(1",
            "1)",
            "()",
            "[1",
            "[1 2]",
            "[[1]]",
            "'a",
            ".a ==",
            "== 1",
            "1 not 2",
            "a",
            ".a b",
            "and",
            "1 and and 2",
            &deep,
            &wide,
        ] {
            assert!(Filter::parse(text.as_bytes()).is_err(), "{}", &text[..text.len().min(20)]);
        }
        let nots = format!("{}1", "!".repeat(4000));
        assert!(Filter::parse(nots.as_bytes()).is_ok_and(|filter| filter.accepts(b"{}")));
    }
}

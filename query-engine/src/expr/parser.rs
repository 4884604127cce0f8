//! Precedence climbing, with a limit on its depth.

use super::functions;
use super::{Arithmetic, Comparison, Datum, ExpressionError, MAX_EXPRESSION_DEPTH, Node};

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Text(Vec<u8>),
    Property(String),
    Symbol(String),
    Arithmetic(Arithmetic),
    Comparison(Comparison),
    And,
    Or,
    Not,
    Open,
    Close,
    Comma,
    End,
}

pub(super) fn parse(text: &[u8]) -> Result<Node, ExpressionError> {
    let mut parser = Parser { text, at: 0, start: 0, token: Token::End, open: 0, unknown: None };
    parser.advance()?;
    let root = parser.operators(0)?.0;
    match parser.unknown.take() {
        _ if parser.token != Token::End => Err(parser.unexpected()),
        Some(name) => Err(ExpressionError::UnknownSymbol(name)),
        None => Ok(root),
    }
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    /// Where the current token begins.
    start: usize,
    token: Token,
    open: usize,
    /// The first word that is neither a function nor NULL. A fault of syntax behind it counts first.
    unknown: Option<String>,
}

/// A node and how deep it is: operators in a row make a tree as deep as they are many.
type Measured = (Node, usize);

impl Parser<'_> {
    fn unexpected(&self) -> ExpressionError {
        ExpressionError::Syntax(self.start)
    }

    /// Precedence of the current token as an operator: `||`, `&&`, comparisons, `+ -`, `* / %`, `^`.
    fn level(&self) -> Option<u8> {
        match self.token {
            Token::Or => Some(1),
            Token::And => Some(2),
            Token::Comparison(_) => Some(4),
            Token::Arithmetic(Arithmetic::Add | Arithmetic::Subtract) => Some(5),
            Token::Arithmetic(Arithmetic::Multiply | Arithmetic::Divide | Arithmetic::Remainder) => Some(6),
            Token::Arithmetic(Arithmetic::Power) => Some(7),
            _ => None,
        }
    }

    /// Operators of at least a level.
    fn operators(&mut self, least: u8) -> Result<Measured, ExpressionError> {
        self.open += 1;
        if self.open > MAX_EXPRESSION_DEPTH {
            return Err(ExpressionError::TooDeep);
        }
        let (mut left, mut depth) = self.operand()?;
        while let Some(level) = self.level().filter(|level| *level >= least) {
            let operator = self.token.clone();
            self.advance()?;
            // Powers join from the right, everything else from the left.
            let (right, right_depth) = self.operators(if level == 7 { 7 } else { level + 1 })?;
            depth = depth.max(right_depth) + 1;
            if depth > MAX_EXPRESSION_DEPTH {
                return Err(ExpressionError::TooDeep);
            }
            let (one, other) = (Box::new(left), Box::new(right));
            left = match operator {
                Token::Or => Node::Or(one, other),
                Token::And => Node::And(one, other),
                Token::Comparison(comparison) => {
                    if matches!(self.token, Token::Comparison(_)) {
                        return Err(self.unexpected());
                    }
                    Node::Comparison(comparison, one, other)
                }
                Token::Arithmetic(operator) => Node::Arithmetic(operator, one, other),
                _ => return Err(self.unexpected()),
            };
        }
        self.open -= 1;
        Ok((left, depth))
    }

    fn operand(&mut self) -> Result<Measured, ExpressionError> {
        let token = self.token.clone();
        match token {
            Token::Number(number) => self.leaf(Node::Literal(Datum::Number(number))),
            Token::Text(text) => self.leaf(Node::Literal(Datum::text(text))),
            Token::Property(name) => self.leaf(Node::Property(name)),
            Token::Not => {
                self.advance()?;
                // `!` binds less than comparisons.
                let (inside, depth) = self.operators(4)?;
                Ok((Node::Not(Box::new(inside)), depth + 1))
            }
            Token::Open => {
                self.advance()?;
                let inside = self.operators(0)?;
                self.expect(&Token::Close)?;
                Ok(inside)
            }
            Token::Symbol(name) => self.symbol(&name),
            _ => Err(self.unexpected()),
        }
    }

    fn leaf(&mut self, node: Node) -> Result<Measured, ExpressionError> {
        self.advance()?;
        Ok((node, 1))
    }

    fn expect(&mut self, token: &Token) -> Result<(), ExpressionError> {
        if self.token != *token {
            return Err(self.unexpected());
        }
        self.advance()
    }

    fn symbol(&mut self, name: &str) -> Result<Measured, ExpressionError> {
        self.advance()?;
        if self.token != Token::Open {
            let is_null = name == "NULL";
            if !is_null {
                self.unknown.get_or_insert_with(|| name.to_owned());
            }
            return Ok((Node::Literal(Datum::Null), 1));
        }
        self.advance()?;
        let (mut arguments, mut depth) = (Vec::new(), 0);
        while self.token != Token::Close {
            if !arguments.is_empty() {
                self.expect(&Token::Comma)?;
            }
            let (argument, inside) = self.operators(0)?;
            arguments.push(argument);
            depth = depth.max(inside);
        }
        self.advance()?;
        let function = functions::find(name).ok_or_else(|| ExpressionError::UnknownFunction(name.to_owned()))?;
        if !function.arity.contains(&arguments.len()) {
            return Err(ExpressionError::Arguments(function.name));
        }
        Ok((Node::Call(function, arguments), depth + 1))
    }

    /// Reads the next token. A sign belongs to a number unless an operand stands before it.
    fn advance(&mut self) -> Result<(), ExpressionError> {
        let after_operand = matches!(
            self.token,
            Token::Number(_) | Token::Text(_) | Token::Property(_) | Token::Close | Token::Symbol(_)
        ) && self.at > 0;
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.start = self.at;
        let rest = &self.text[self.at..];
        let Some(&byte) = rest.first() else {
            self.token = Token::End;
            return Ok(());
        };
        let (token, length) = match byte {
            b'"' | b'\'' => quoted(rest).ok_or_else(|| self.unexpected())?,
            b'@' => {
                let (name, length) = name(&rest[1..]).ok_or_else(|| self.unexpected())?;
                (Token::Property(name), length + 1)
            }
            b'a'..=b'z' | b'A'..=b'Z' => {
                let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
                (Token::Symbol(String::from_utf8_lossy(&rest[..length]).into_owned()), length)
            }
            _ if byte.is_ascii_digit() || matches!(byte, b'+' | b'-') && !after_operand => {
                number(rest).ok_or_else(|| self.unexpected())?
            }
            _ => operator(rest).ok_or_else(|| self.unexpected())?,
        };
        (self.token, self.at) = (token, self.at + length);
        if matches!(&self.token, Token::Symbol(name) if name == "inf") && self.text.get(self.at) != Some(&b'(') {
            self.token = Token::Number(f64::INFINITY);
        }
        Ok(())
    }
}

/// A number with an optional sign, or an infinity.
fn number(text: &[u8]) -> Option<(Token, usize)> {
    let sign = usize::from(matches!(text[0], b'+' | b'-'));
    if text[sign..].starts_with(b"inf") {
        let value = if text[0] == b'-' { f64::NEG_INFINITY } else { f64::INFINITY };
        return Some((Token::Number(value), sign + 3));
    }
    let digits = |from: usize| text[from.min(text.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = sign + digits(sign);
    if end == sign {
        return None;
    }
    if text.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let exponent_sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + exponent_sign);
        if exponent > 0 {
            end += 1 + exponent_sign + exponent;
        }
    }
    let value = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
    Some((Token::Number(value), end))
}

/// A string in quotes; a backslash takes the next character as it is.
fn quoted(text: &[u8]) -> Option<(Token, usize)> {
    let (mut plain, mut at) = (Vec::new(), 1);
    loop {
        match *text.get(at)? {
            b'\\' => {
                plain.push(*text.get(at + 1)?);
                at += 2;
            }
            byte if byte == text[0] => return Some((Token::Text(plain), at + 1)),
            byte => {
                plain.push(byte);
                at += 1;
            }
        }
    }
}

fn name(text: &[u8]) -> Option<(String, usize)> {
    let (mut plain, mut at) = (Vec::new(), 0);
    while let Some(&byte) = text.get(at) {
        if byte == b'\\' && at + 1 < text.len() {
            plain.push(text[at + 1]);
            at += 2;
        } else if byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80 {
            plain.push(byte);
            at += 1;
        } else {
            break;
        }
    }
    (at > 0).then(|| (String::from_utf8_lossy(&plain).into_owned(), at))
}

fn operator(text: &[u8]) -> Option<(Token, usize)> {
    let two: &[(&[u8], Token)] = &[
        (b"==", Token::Comparison(Comparison::Equal)),
        (b"!=", Token::Comparison(Comparison::NotEqual)),
        (b"<=", Token::Comparison(Comparison::LessOrEqual)),
        (b">=", Token::Comparison(Comparison::GreaterOrEqual)),
        (b"&&", Token::And),
        (b"||", Token::Or),
        (b"<", Token::Comparison(Comparison::Less)),
        (b">", Token::Comparison(Comparison::Greater)),
        (b"!", Token::Not),
        (b"(", Token::Open),
        (b")", Token::Close),
        (b",", Token::Comma),
        (b"+", Token::Arithmetic(Arithmetic::Add)),
        (b"-", Token::Arithmetic(Arithmetic::Subtract)),
        (b"*", Token::Arithmetic(Arithmetic::Multiply)),
        (b"/", Token::Arithmetic(Arithmetic::Divide)),
        (b"%", Token::Arithmetic(Arithmetic::Remainder)),
        (b"^", Token::Arithmetic(Arithmetic::Power)),
    ];
    let (spelling, token) = two.iter().find(|(spelling, _)| text.starts_with(spelling))?;
    Some((token.clone(), spelling.len()))
}

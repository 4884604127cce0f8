//! Expressions of APPLY and FILTER: text → tree → value for a row.

mod calendar;
mod datum;
mod functions;
mod parser;

use std::fmt;

pub use datum::Datum;
pub(crate) use functions::TERMS;

/// A part of an expression.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Literal(Datum),
    /// `@name`.
    Property(String),
    Arithmetic(Arithmetic, Box<Self>, Box<Self>),
    Comparison(Comparison, Box<Self>, Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Not(Box<Self>),
    Call(&'static functions::Function, Vec<Self>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// An expression that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    root: Node,
}

/// The most parentheses, operators and calls that may be open at once.
pub const MAX_EXPRESSION_DEPTH: usize = 128;

/// Why a text is no expression, or has no value for a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpressionError {
    /// An unexpected token at this byte.
    Syntax(usize),
    /// Deeper than [`MAX_EXPRESSION_DEPTH`].
    TooDeep,
    /// A call of a function that there is not.
    UnknownFunction(String),
    /// A word that is neither a function nor NULL.
    UnknownSymbol(String),
    /// A call with too few or too many arguments.
    Arguments(&'static str),
    /// The row lacks a property.
    Missing(String),
    /// An operator's side or a function's argument is no number.
    NotANumber,
    /// A function's argument is of the wrong type.
    Type {
        /// The function's name.
        function: &'static str,
        /// The argument's place, from 0.
        argument: usize,
        /// RediSearch's number of the type that is given.
        given: u8,
        /// The function wants a number, else a string.
        wants_number: bool,
    },
    /// `to_number` of this text, shortened to 64 bytes.
    NoNumber(String),
    /// `format` with a bad format.
    Format,
    /// `format` with too few arguments.
    FormatArguments,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(offset) => write!(f, "Syntax error at offset {offset}"),
            Self::TooDeep => f.write_str("Expression is nested too deeply"),
            Self::UnknownFunction(name) => write!(f, "Unknown function name '{name}'"),
            Self::UnknownSymbol(name) => write!(f, "Unknown symbol '{name}'"),
            Self::Arguments("format") => f.write_str("Need at least one argument for format"),
            Self::Arguments(name @ ("split" | "log" | "floor" | "abs" | "ceil" | "sqrt" | "log2" | "exp")) => {
                write!(f, "Invalid number of arguments for {name}")
            }
            Self::Arguments(name) => write!(f, "Invalid arguments for function '{name}'"),
            Self::Missing(name) => write!(f, "{name}: has no value, consider using EXISTS if applicable"),
            Self::NotANumber => f.write_str("Could not convert value to a number"),
            Self::NoNumber(text) => write!(f, "to_number: cannot convert string '{text}'"),
            Self::Type { function, argument, given, wants_number } => {
                write!(f, "Invalid type ({given}) for argument {argument} in function '{function}'. ")?;
                // RediSearch tells the check in its source.
                let check = if *wants_number { "TYPE(v, RSValue_Number)" } else { "STRING(v, 0)" };
                write!(f, "VALIDATE_ARG__{check} was false.")
            }
            Self::Format => f.write_str("Unknown format specifier passed"),
            Self::FormatArguments => f.write_str("Not enough arguments for format"),
        }
    }
}

impl std::error::Error for ExpressionError {}

/// The properties of a row.
pub trait Row {
    /// The value of `@name`; `None` if the row lacks it.
    fn property(&self, name: &str) -> Option<Datum>;
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// When the text is none.
    pub fn parse(text: &[u8]) -> Result<Self, ExpressionError> {
        Ok(Self { root: parser::parse(text)? })
    }

    /// The value for a row.
    ///
    /// # Errors
    /// When the row lacks a property outside of `exists`, or a value has the wrong type.
    pub fn value(&self, row: &dyn Row) -> Result<Datum, ExpressionError> {
        value(&self.root, row)
    }

    /// The names of all properties in their order, each once, for what a caller must load.
    #[must_use]
    pub fn properties(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.walk(|node| {
            if let Node::Property(name) = node {
                names.push(name.as_str());
            }
        });
        let mut known = std::collections::HashSet::new();
        names.retain(|name| known.insert(*name));
        names
    }

    /// Its root, as FT.PROFILE names it: `Function upper`, `Operator +`, `Property name`.
    #[must_use]
    pub fn summary(&self) -> String {
        match &self.root {
            Node::Literal(datum) => format!("Literal {}", String::from_utf8_lossy(&datum.bytes())),
            Node::Property(name) => format!("Property {name}"),
            Node::Arithmetic(operator, ..) => format!("Operator {}", operator.sign()),
            Node::Comparison(comparison, ..) => format!("Predicate {}", comparison.sign()),
            Node::And(..) => "Predicate &&".to_owned(),
            Node::Or(..) => "Predicate ||".to_owned(),
            Node::Not(_) => "Inverted".to_owned(),
            Node::Call(function, _) => format!("Function {}", function.name),
        }
    }

    /// True if the expression asks for the words that a row was found by.
    pub(crate) fn reads_terms(&self) -> bool {
        let mut reads = false;
        self.walk(|node| reads |= matches!(node, Node::Call(function, _) if function.reads_terms()));
        reads
    }

    /// Calls `each` with all nodes in their order.
    fn walk<'e>(&'e self, mut each: impl FnMut(&'e Node)) {
        let mut open = vec![&self.root];
        while let Some(node) = open.pop() {
            each(node);
            match node {
                Node::Literal(_) | Node::Property(_) => {}
                Node::Arithmetic(_, one, other)
                | Node::Comparison(_, one, other)
                | Node::And(one, other)
                | Node::Or(one, other) => open.extend([other.as_ref(), one]),
                Node::Not(one) => open.push(one),
                Node::Call(_, arguments) => open.extend(arguments.iter().rev()),
            }
        }
    }
}

/// Trees are at most [`MAX_EXPRESSION_DEPTH`] deep, so this may call itself.
fn value(node: &Node, row: &dyn Row) -> Result<Datum, ExpressionError> {
    let truth = |is: bool| Datum::Number(f64::from(u8::from(is)));
    match node {
        Node::Literal(datum) => Ok(datum.clone()),
        Node::Property(name) => row.property(name).ok_or_else(|| ExpressionError::Missing(name.clone())),
        Node::Arithmetic(operator, one, other) => {
            let (one, other) = (value(one, row)?, value(other, row)?);
            let (Some(one), Some(other)) = (one.number(), other.number()) else {
                return Err(ExpressionError::NotANumber);
            };
            Ok(Datum::Number(operator.apply(one, other)))
        }
        Node::Comparison(comparison, one, other) => {
            let (one, other) = (value(one, row)?, value(other, row)?);
            Ok(truth(comparison.holds(&one, &other)))
        }
        Node::And(one, other) => Ok(truth(value(one, row)?.is_true() && value(other, row)?.is_true())),
        Node::Or(one, other) => Ok(truth(value(one, row)?.is_true() || value(other, row)?.is_true())),
        Node::Not(one) => Ok(truth(!value(one, row)?.is_true())),
        Node::Call(function, arguments) => function.call(arguments, row),
    }
}

impl Arithmetic {
    fn sign(self) -> char {
        match self {
            Self::Add => '+',
            Self::Subtract => '-',
            Self::Multiply => '*',
            Self::Divide => '/',
            Self::Remainder => '%',
            Self::Power => '^',
        }
    }

    fn apply(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Add => one + other,
            Self::Subtract => one - other,
            Self::Multiply => one * other,
            // As in RediSearch, nothing divides by 0, and remainders are those of whole numbers.
            Self::Divide if other == 0.0 => f64::NAN,
            Self::Divide => one / other,
            Self::Remainder if other as i64 == 0 => f64::NAN,
            Self::Remainder => (one as i64).wrapping_rem(other as i64) as f64,
            Self::Power => one.powf(other),
        }
    }
}

impl Comparison {
    fn sign(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }

    fn holds(self, one: &Datum, other: &Datum) -> bool {
        let order = one.order(other);
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

#[cfg(test)]
mod tests;

//! Every error that a client can be sent, with the genuine server's texts.

use std::borrow::Cow;
use std::fmt;

use crate::command::Args;

/// Longest part of a client's argument that an error repeats, in bytes.
const MAX_ECHO: usize = 128;

/// An error reply; its [`Display`](fmt::Display) is the line that is sent, code first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The key holds another type.
    WrongType,
    /// Arguments that do not fit.
    Syntax,
    /// Not a 64-bit integer.
    NotInteger,
    /// A 64-bit integer where one of 32 bits is needed.
    NotInt32,
    /// Not a double.
    NotFloat,
    /// No such key, where one is needed.
    NoSuchKey,
    /// An index outside of the value.
    IndexOutOfRange,
    /// A number that must not be negative, or is too large.
    OutOfRange,
    /// Arity.
    WrongArity(Cow<'static, str>),
    /// `SELECT` and its like got a number that is none of a database.
    DbIndex,
    /// An expiry that does not fit, by command.
    InvalidExpire(&'static str),
    /// A sum that does not fit in 64 bits.
    Overflow,
    /// A sum of floats that is not finite.
    NanOrInfinity,
    /// The client must authenticate first.
    NoAuth,
    /// The memory that data may take is used up.
    OutOfMemory,
    /// Any other, complete with its code.
    Static(&'static str),
    /// Any other that names something, complete with its code.
    Message(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WrongType => "WRONGTYPE Operation against a key holding the wrong kind of value",
            Self::Syntax => "ERR syntax error",
            Self::NotInteger => "ERR value is not an integer or out of range",
            Self::NotInt32 => "ERR value is out of range, value must between -2147483648 and 2147483647",
            Self::NotFloat => "ERR value is not a valid float",
            Self::NoSuchKey => "ERR no such key",
            Self::IndexOutOfRange => "ERR index out of range",
            Self::OutOfRange => "ERR value is out of range",
            Self::WrongArity(name) => return write!(f, "ERR wrong number of arguments for '{name}' command"),
            Self::DbIndex => "ERR DB index is out of range",
            Self::InvalidExpire(name) => return write!(f, "ERR invalid expire time in '{name}' command"),
            Self::Overflow => "ERR increment or decrement would overflow",
            Self::NanOrInfinity => "ERR increment would produce NaN or Infinity",
            Self::NoAuth => "NOAUTH Authentication required.",
            Self::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.",
            Self::Static(text) => text,
            Self::Message(text) => text,
        })
    }
}

impl std::error::Error for Error {}

impl Error {
    /// The first word, by which `INFO errorstats` counts.
    pub fn code(&self) -> String {
        self.to_string().split(' ').next().unwrap_or_default().to_owned()
    }

    /// No command has this name.
    pub fn unknown_command(args: Args<'_>) -> Self {
        let mut rest = String::new();
        for arg in args.iter().skip(1) {
            if rest.len() >= MAX_ECHO {
                break;
            }
            rest.push_str(&format!("'{}' ", echo(arg, MAX_ECHO - rest.len())));
        }
        Self::Message(format!("ERR unknown command '{}', with args beginning with: {rest}", echo(args.at(0), MAX_ECHO)))
    }

    /// The command has no such subcommand.
    pub fn unknown_subcommand(args: Args<'_>) -> Self {
        let sub = echo(args.get(1).unwrap_or_default(), MAX_ECHO);
        let name = echo(args.at(0), MAX_ECHO).to_uppercase();
        Self::Message(format!("ERR unknown subcommand '{sub}'. Try {name} HELP."))
    }

    /// The arguments of a subcommand do not fit.
    pub fn subcommand_syntax(args: Args<'_>) -> Self {
        let sub = echo(args.get(1).unwrap_or_default(), MAX_ECHO);
        let name = echo(args.at(0), MAX_ECHO).to_uppercase();
        Self::Message(format!("ERR unknown subcommand or wrong number of arguments for '{sub}'. Try {name} HELP."))
    }
}

/// A client's bytes as text, cut to `max` bytes.
pub(crate) fn echo(bytes: &[u8], max: usize) -> Cow<'_, str> {
    String::from_utf8_lossy(&bytes[..bytes.len().min(max)])
}

//! Errors of a configuration, and their messages.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::parse::quote;
use super::setting::{Flags, Id};

/// Where a directive was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A configuration file.
    File {
        /// Its path.
        path: Arc<Path>,
        /// The line, from 1.
        line: usize,
    },
    /// Standard input, read because of the argument `-`.
    Stdin {
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        variable: String,
    },
    /// A flag.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}, at line {line}", path.display()),
            Self::Stdin { line } => write!(f, "standard input, at line {line}"),
            Self::Environment { variable } => write!(f, "the environment variable {variable}"),
            Self::CommandLine => f.write_str("the command line"),
        }
    }
}

/// Why the server cannot start with this configuration.
#[derive(Debug)]
pub struct ConfigError {
    pub(super) origin: Origin,
    /// The directive as it was written, secrets hidden.
    pub(super) directive: String,
    pub(super) reason: Reason,
}

/// The cause of an error.
#[derive(Debug)]
pub(super) enum Reason {
    /// A file could not be read.
    Unreadable(String),
    /// A quote is not closed.
    Quotes,
    /// Files include each other, or too deeply.
    TooDeep,
    /// No setting has that name.
    Unknown { name: String },
    /// The value does not fit.
    BadValue { id: Id, words: String, expected: String },
    /// A user that cannot be made, or a command that cannot be renamed.
    Refused(String),
    /// An argument that is neither a file, a flag nor a flag's value.
    Misplaced,
    /// `--check` with anything but one file.
    CheckWhat,
    /// `--fix` with anything but one file, and `--yes`.
    FixWhat,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::File { .. } | Origin::Stdin { .. } => {
                writeln!(f, "*** FATAL CONFIG FILE ERROR ***\nReading {}", self.origin)?;
            }
            Origin::Environment { .. } | Origin::CommandLine => {
                writeln!(f, "*** FATAL CONFIG ERROR ***\nReading {}", self.origin)?;
            }
        }
        if !self.directive.is_empty() {
            writeln!(f, ">>> '{}'", self.directive)?;
        }
        match &self.reason {
            Reason::Unreadable(error) => f.write_str(error),
            Reason::Refused(why) => f.write_str(why),
            Reason::Quotes => f.write_str("Unbalanced quotes in configuration line"),
            Reason::TooDeep => f.write_str("Too many files include each other"),
            Reason::Misplaced => f.write_str("Expected '--name value', or one configuration file before all flags"),
            Reason::FixWhat => f.write_str("Expected '--fix FILE' or '--fix FILE --yes', and nothing else"),
            Reason::CheckWhat => f.write_str("Expected '--check FILE', and nothing else"),
            Reason::Unknown { name } => {
                write!(f, "Bad directive or wrong number of arguments: no setting is called '{name}'")?;
                nearest(name).map_or(Ok(()), |near| write!(f, "; did you mean '{near}'?"))
            }
            Reason::BadValue { id, words, expected } => {
                let setting = id.setting();
                write!(f, "{expected}\n'{}' takes {}", setting.name, setting.kind)?;
                if words.is_empty() { Ok(()) } else { write!(f, ", not {words}") }
            }
        }
    }
}

impl std::error::Error for ConfigError {}

/// Something worth a line in the log, though the server starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning(pub(super) String);

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why `CONFIG SET` or `CONFIG REWRITE` was refused. Its text is the error reply, after `ERR `.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// No setting has that name.
    Unknown(String),
    /// The setting does not take that value, or no value at all now.
    Failed {
        /// The name as the client wrote it.
        name: String,
        /// The reason.
        reason: String,
    },
    /// `CONFIG REWRITE` without a file.
    NoFile,
    /// `CONFIG REWRITE` could not write the file.
    Rewrite(String),
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "Unknown option or number of arguments for CONFIG SET - '{name}'"),
            Self::Failed { name, reason } => {
                write!(f, "CONFIG SET failed (possibly related to argument '{name}') - {reason}")
            }
            Self::NoFile => f.write_str("The server is running without a config file"),
            Self::Rewrite(error) => write!(f, "Rewriting config file: {error}"),
        }
    }
}

impl std::error::Error for SetError {}

/// The replacement for a secret.
pub(super) const HIDDEN_WORDS: &str = "(hidden)";

/// Words as they would be written in a file; of a secret nothing is shown.
pub(super) fn shown(id: Option<Id>, words: &[bytes::Bytes]) -> String {
    if id.is_some_and(|id| id.setting().flags.has(Flags::SENSITIVE)) {
        return HIDDEN_WORDS.to_owned();
    }
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

/// The setting whose name is nearest, when it is near enough to be meant.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let limit = (name.len() / 3).clamp(1, 4);
    let names = Id::all().flat_map(|id| [id.setting().name, id.setting().alias]);
    let measured = names.filter(|known| !known.is_empty()).map(|known| (distance(&name, known), known));
    measured.min().filter(|(distance, _)| *distance <= limit).map(|(_, known)| known)
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

//! The words that make a user: splitting them, and what can be wrong with them.

use crate::command::Registry;
use crate::config::{Config, settings};
use crate::protocol::error::shown;
use std::borrow::Cow;
use std::fmt;

/// The context in which rules are parsed.
#[derive(Clone, Copy, Debug)]
pub struct Defaults {
    /// The commands that there are.
    pub registry: &'static Registry,
    /// Whether a new user, or selector, may use every channel before any rule: `acl-pubsub-default`.
    pub all_channels: bool,
}

impl Defaults {
    /// Those of a configuration.
    pub fn new(config: &Config, registry: &'static Registry) -> Self {
        Self { registry, all_channels: config.word(settings::ACL_PUBSUB_DEFAULT) == "allchannels" }
    }
}

/// An error in a rule, in the words of Redis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// No rule has this form.
    Syntax,
    /// A command, subcommand or category that does not exist.
    Unknown,
    /// A key pattern behind `~*`.
    AllKeys,
    /// A channel pattern behind `&*`.
    AllChannels,
    /// A password to be removed that the user does not have.
    NoSuchPassword,
    /// A hash that is none.
    BadHash,
    /// `+config|get|dir`.
    FirstArgOfSubcommand,
    /// The number of a database that no server has.
    DatabaseRange,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "Syntax error",
            Self::Unknown => "Unknown command or category name in ACL",
            Self::AllKeys => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. \
                 Try 'resetkeys' to start with an empty list of patterns"
            }
            Self::AllChannels => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any \
                 effect. Try 'resetchannels' to start with an empty list of channels"
            }
            Self::NoSuchPassword => "The password you are trying to remove from the user does not exist",
            Self::BadHash => {
                "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
            }
            Self::FirstArgOfSubcommand => "Allowing first-arg of a subcommand is not supported",
            Self::DatabaseRange => "The provided database ID is out of range",
        })
    }
}

/// Why the words of a user cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// A selector that begins with this word is not closed.
    Unmatched(String),
    /// A rule, and what is wrong with it.
    Rule(String, RuleError),
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmatched(word) => write!(f, "Unmatched parenthesis in acl selector starting at '{word}'."),
            Self::Rule(word, error) => write!(f, "Error in ACL SETUSER modifier '{word}': {error}"),
        }
    }
}

impl std::error::Error for SetError {}

/// The words with those of each selector put together: `(+get`, `~a)` is `(+get ~a)`. As in the genuine server, a
/// parenthesis inside of an open selector begins it anew.
///
/// # Errors
/// The word that begins a selector which is not closed.
pub(super) fn merged<'a>(words: &[&'a [u8]]) -> Result<Vec<Cow<'a, [u8]>>, SetError> {
    let mut merged = Vec::with_capacity(words.len());
    let mut open: Option<(&[u8], Vec<u8>)> = None;
    for &word in words {
        if word.first() == Some(&b'(') && word.last() != Some(&b')') {
            open = Some((word, word.to_vec()));
        } else if let Some((_, selector)) = &mut open {
            selector.push(b' ');
            selector.extend_from_slice(word);
            if word.last() == Some(&b')') {
                merged.extend(open.take().map(|(_, selector)| Cow::Owned(selector)));
            }
        } else {
            merged.push(Cow::Borrowed(word));
        }
    }
    match open {
        Some((first, _)) => Err(SetError::Unmatched(shown(first).into_owned())),
        None => Ok(merged),
    }
}

/// Whether a name or pattern would break up a line of the file of users.
pub(crate) fn has_spaces(text: &[u8]) -> bool {
    // Those that C's isspace() knows, and the end of a C string.
    text.iter().any(|byte| matches!(byte, b' ' | b'\t'..=b'\r' | 0))
}

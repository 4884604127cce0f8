//! The arguments of a call, read from left to right.

use crate::command::{Args, Result};
use crate::protocol::error::{Error, echo};

/// Bytes of an argument that an error repeats.
pub(super) const MAX_ECHO: usize = 128;

/// The arguments that are left.
#[derive(Clone, Copy)]
pub(super) struct Words<'a> {
    args: Args<'a>,
    at: usize,
}

impl<'a> Words<'a> {
    /// The arguments from `at` on.
    pub(super) fn new(args: Args<'a>, at: usize) -> Self {
        Self { args, at }
    }

    pub(super) fn left(&self) -> usize {
        self.args.len().saturating_sub(self.at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left() == 0
    }

    pub(super) fn peek(&self) -> Option<&'a [u8]> {
        self.args.get(self.at)
    }

    /// The next argument, as an error shows it.
    pub(super) fn shown(&self) -> String {
        self.peek().map_or_else(String::new, |word| echo(word, MAX_ECHO).into_owned())
    }

    /// The place of the next argument.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn next(&mut self) -> Option<&'a [u8]> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    /// Takes the next argument if it is this word, in any case of letters.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let is_it = self.peek().is_some_and(|next| next.eq_ignore_ascii_case(word.as_bytes()));
        self.at += usize::from(is_it);
        is_it
    }

    /// All arguments that are left.
    pub(super) fn rest(self) -> impl Iterator<Item = &'a [u8]> {
        self.args.from(self.at).iter()
    }

    /// The argument of an option.
    pub(super) fn need(&mut self, option: &str) -> Result<&'a [u8]> {
        self.next().ok_or_else(|| bad(option, "Expected an argument, but none provided"))
    }

    /// The argument of an option as text.
    pub(super) fn text(&mut self, option: &str) -> Result<&'a str> {
        let word = self.need(option)?;
        std::str::from_utf8(word).map_err(|_| bad(option, &format!("`{}` is no UTF-8", echo(word, MAX_ECHO))))
    }

    /// The argument of an option as a number that fits.
    pub(super) fn number<N: std::str::FromStr>(&mut self, option: &str) -> Result<N> {
        let word = self.need(option)?;
        let number = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
        number.ok_or_else(|| {
            bad(option, &format!("Could not convert argument to expected type (`{}`)", echo(word, MAX_ECHO)))
        })
    }

    /// A number, and so many arguments behind it.
    pub(super) fn list(&mut self, option: &str) -> Result<Self> {
        let count: usize = self.number(option)?;
        if count > self.left() {
            return Err(bad(option, "Expected an argument, but none provided"));
        }
        let list = Self { args: self.args.first(self.at + count), at: self.at };
        self.at += count;
        Ok(list)
    }
}

/// The error for an option's arguments.
pub(super) fn bad(option: &str, why: &str) -> Error {
    Error::Message(format!("Bad arguments for {option}: {why}"))
}

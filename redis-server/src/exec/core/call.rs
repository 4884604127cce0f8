//! A call that runs, and what becomes of its wish to wait.

use std::ops::Range;

use crate::command::{Args, Row};
use crate::exec::replication::Copies;

/// A command with its arguments, resolved and allowed.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The command's row.
    pub row: &'static Row,
    /// Its arguments.
    pub args: Args<'a>,
}

/// A wish to wait for keys, left by a handler that found nothing.
#[derive(Clone, Debug)]
pub struct Block {
    /// When to give up, in milliseconds of Unix time; `None`: never.
    pub deadline: Option<u64>,
    /// Which of the call's keys are waited for.
    pub keys: Range<usize>,
    /// Arguments that say something else while the command waits, by position: `$` is an id then.
    pub replaced: Vec<(usize, String)>,
    /// The reply when the wait was in vain.
    pub in_vain: InVain,
    /// The group that is read, if one is: the wait ends when the key holds no stream any more, with which the group went.
    pub group: Option<Box<[u8]>>,
}

/// The answer of a command that has waited in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InVain {
    /// The null array.
    Null,
    /// How many copies there are of what was changed.
    Copies(Copies),
}

/// A key that has changed while a client waited for it.
#[derive(Clone, Debug)]
pub struct Ready {
    /// Number of its database.
    pub db: usize,
    /// The key.
    pub key: Box<[u8]>,
    /// Keys that must be locked to serve it, as far as they are known.
    pub needs: Vec<Box<[u8]>>,
}

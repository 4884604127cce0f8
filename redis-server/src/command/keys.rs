//! Which arguments of a command are keys (<https://redis.io/docs/latest/develop/reference/key-specs/>).

use smallvec::SmallVec;

use super::args::Args;
use crate::keyspace::Access;
use crate::protocol::number;

/// One key specification: where keys begin, how to find them, and what happens to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// Where to begin.
    pub begin: Begin,
    /// How to go on from there.
    pub find: Find,
    /// The use of the keys.
    pub usage: Use,
}

/// Where the keys of a specification begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At this argument.
    Index(u8),
    /// Behind this word, searched from argument `from` on (from the end backwards if negative).
    Keyword {
        /// The word, in upper case.
        word: &'static str,
        /// Where the search begins.
        from: i8,
    },
    /// Nowhere that the table can tell.
    Unknown,
}

/// How the keys of a specification are found from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// Every `step`th argument up to `last`, relative to the beginning; negative: counted from the last argument.
    Range {
        /// Last key.
        last: i8,
        /// Distance.
        step: u8,
        /// Take only the first 1/limit of the range; 0 and 1: all.
        limit: u8,
    },
    /// A count at `count`, keys from `first` on, both relative to the beginning.
    KeyNum {
        /// Where the number of keys stands.
        count: u8,
        /// Where the first key stands.
        first: u8,
        /// Distance.
        step: u8,
    },
    /// Not by the table.
    Unknown,
}

/// The use of a key, in the words of `COMMAND INFO`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Whether the key is locked for writing.
    pub access: Access,
    /// Flags such as `RO access` in the order of the genuine server, separated by blanks.
    pub flags: &'static str,
}

impl KeySpec {
    /// The same specification with other flags, such as `RW access delete`.
    pub const fn flags(self, flags: &'static str) -> Self {
        Self { usage: Use { access: self.usage.access, flags }, ..self }
    }

    /// Appends the positions of the keys in `args`; `None` when the arguments do not fit the specification.
    pub fn find(&self, args: Args<'_>, found: &mut SmallVec<[(usize, Access); 8]>) -> Option<()> {
        let begin = match self.begin {
            Begin::Index(index) => usize::from(index),
            Begin::Keyword { word, from } => match keyword(args, word, from) {
                Some(at) => at + 1,
                None => return Some(()),
            },
            Begin::Unknown => return Some(()),
        };
        match self.find {
            Find::Range { last, step, limit } => {
                let last = if last >= 0 {
                    begin + last as usize
                } else {
                    args.len().checked_sub(last.unsigned_abs().into())?
                };
                let last =
                    if limit > 1 { begin + (last + 1).saturating_sub(begin) / usize::from(limit) - 1 } else { last };
                if begin > last || last >= args.len() {
                    return None;
                }
                found.extend((begin..=last).step_by(step.into()).map(|at| (at, self.usage.access)));
            }
            Find::KeyNum { count, first, step } => {
                let at = begin + usize::from(count);
                let count = usize::try_from(number::parse_i64(args.get(at)?)?).ok().filter(|&count| count > 0)?;
                let first = begin + usize::from(first);
                let span = (count - 1).checked_mul(step.into())?;
                if first.checked_add(span)? >= args.len() {
                    return None;
                }
                found.extend((first..=first + span).step_by(step.into()).map(|at| (at, self.usage.access)));
            }
            Find::Unknown => {}
        }
        Some(())
    }
}

/// Position of a word, searched from argument `from` on (backwards from the end if negative).
fn keyword(args: Args<'_>, word: &str, from: i8) -> Option<usize> {
    let is_word = |&at: &usize| args.get(at).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
    if from >= 0 {
        (from as usize..args.len()).find(is_word)
    } else {
        let last = args.len().checked_sub(from.unsigned_abs().into())?;
        (1..=last).rev().find(is_word)
    }
}

const fn range(first: u8, last: i8, step: u8, access: Access, flags: &'static str) -> KeySpec {
    KeySpec { begin: Begin::Index(first), find: Find::Range { last, step, limit: 0 }, usage: Use { access, flags } }
}

/// One key that is only read.
pub const fn read(index: u8) -> KeySpec {
    range(index, 0, 1, Access::Read, "RO access")
}

/// Keys from `first` to `last` (negative: counted from the end, as in the genuine table) that are only read.
pub const fn reads(first: u8, last: i8, step: u8) -> KeySpec {
    range(first, last, step, Access::Read, "RO access")
}

/// One key that is overwritten.
pub const fn write(index: u8) -> KeySpec {
    range(index, 0, 1, Access::Write, "OW update")
}

/// Keys from `first` to `last` that are overwritten.
pub const fn writes(first: u8, last: i8, step: u8) -> KeySpec {
    range(first, last, step, Access::Write, "OW update")
}

/// One key that is read and changed.
pub const fn update(index: u8) -> KeySpec {
    range(index, 0, 1, Access::Write, "RW access update")
}

/// A count at `index` and as many keys behind it, which are only read.
pub const fn numkeys(index: u8) -> KeySpec {
    keynum(index, Access::Read, "RO access")
}

/// A count at `index` and as many keys behind it.
pub const fn keynum(index: u8, access: Access, flags: &'static str) -> KeySpec {
    let find = Find::KeyNum { count: 0, first: 1, step: 1 };
    KeySpec { begin: Begin::Index(index), find, usage: Use { access, flags } }
}

/// A key behind a word that may be absent, such as `STORE key`.
pub const fn optional(word: &'static str, from: i8, access: Access, flags: &'static str) -> KeySpec {
    let find = Find::Range { last: 0, step: 1, limit: 0 };
    KeySpec { begin: Begin::Keyword { word, from }, find, usage: Use { access, flags } }
}

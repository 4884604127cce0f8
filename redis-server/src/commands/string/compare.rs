//! Commands with a condition on a string's value: SET, DELEX and DELIFEQ; DIGEST.

use xxhash_rust::xxh3::xxh3_64;

use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{Key, StrRef};
use crate::protocol::error::Error;

/// Digits of a digest.
const DIGITS: usize = 16;

/// A condition on a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    /// Which argument it is compared with.
    index: usize,
    /// Whether that is a digest.
    by_digest: bool,
    /// Whether it must be the same, or another one.
    wants_equal: bool,
}

impl Comparison {
    /// The condition that the word at `at` names, if there is a value behind it.
    pub(super) fn parse(args: Args<'_>, at: usize) -> Option<Self> {
        const WORDS: [(&str, bool, bool); 4] =
            [("IFEQ", false, true), ("IFNE", false, false), ("IFDEQ", true, true), ("IFDNE", true, false)];
        let (_, by_digest, wants_equal) = *WORDS.iter().find(|(word, ..)| args.is(at, word))?;
        args.get(at + 1).map(|_| Self { index: at + 1, by_digest, wants_equal })
    }

    /// Whether the condition holds for the string at a key; where there is none, it is another one than any.
    ///
    /// # Errors
    /// If the digest to compare with does not have 16 characters.
    pub(super) fn holds(self, args: Args<'_>, value: Option<StrRef<'_>>) -> Result<bool> {
        let wanted = args.at(self.index);
        if self.by_digest && wanted.len() != DIGITS {
            return Err(Error::Static("ERR must be exactly 16 hexadecimal characters"));
        }
        let is_equal = value.is_some_and(|value| {
            if self.by_digest {
                digest_of(value).as_bytes().eq_ignore_ascii_case(wanted)
            } else {
                value.with(|bytes| bytes == wanted)
            }
        });
        Ok(is_equal == self.wants_equal)
    }
}

/// The XXH3 of a string, in hexadecimal.
fn digest_of(value: StrRef<'_>) -> String {
    format!("{:016x}", value.with(xxh3_64))
}

/// DIGEST key
pub(super) fn digest(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    match cx.db.string(args.key(0))? {
        Some(value) => cx.reply.bulk(digest_of(value).as_bytes()),
        None => cx.reply.null(),
    }
    Ok(())
}

/// DELIFEQ key value
pub(super) fn delifeq(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    let is_it = cx.db.string(key)?.is_some_and(|value| value.with(|bytes| bytes == args.at(2)));
    remove_if(cx, key, is_it);
    Ok(())
}

/// `DELEX key [IFEQ value|IFNE value|IFDEQ digest|IFDNE digest]`
pub(super) fn delex(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let key = args.key(0);
    if !matches!(args.len(), 2 | 4) {
        return Err(Error::WrongArity("delex".into()));
    }
    let is_there = cx.db.get(key).is_some();
    if args.len() == 2 || !is_there {
        remove_if(cx, key, is_there);
        return Ok(());
    }
    // The type is looked at before the condition.
    let no_string = Error::Static("ERR Key should be of string type if conditions are specified");
    let value = cx.db.string(key).map_err(|_| no_string)?;
    let invalid = Error::Static("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE");
    let holds = Comparison::parse(args, 2).ok_or(invalid)?.holds(args, value)?;
    remove_if(cx, key, holds);
    Ok(())
}

fn remove_if(cx: &mut Ctx<'_>, key: &Key<'_>, is_it: bool) {
    if is_it && let Some(entry) = cx.db.remove(key) {
        cx.discard(entry, false);
        cx.changed(key, Event::DEL);
        cx.instead(&[b"DEL", key.bytes]);
    }
    cx.reply.int(is_it.into());
}

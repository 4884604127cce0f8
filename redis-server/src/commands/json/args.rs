//! Arguments and answers of JSON's commands.

use crate::command::{Args, Result};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::protocol::Reply;
use crate::protocol::error::{Error, echo};
use crate::types::json::{Edits, Json, Path, Refused};

/// Longest text that is answered, as long as the longest argument.
pub(super) const MAX_TEXT: usize = 512 << 20;

pub(super) const TOO_LONG: Error = Error::Static("ERR the answer would be longer than 536870912 bytes");

/// Bytes of an argument that an error repeats.
pub(super) const MAX_ECHO: usize = 128;

/// There is no document, and the command needs one.
pub(super) const NO_DOCUMENT: Error = Error::Static("ERR could not perform this operation on a key that doesn't exist");

/// The path in an argument; without it, the root as a legacy path.
pub(super) fn path(args: Args<'_>, index: usize) -> Result<Path> {
    args.get(index).map_or_else(|| Ok(Path::root(true)), path_of)
}

pub(super) fn path_of(text: &[u8]) -> Result<Path> {
    Path::parse(text).map_err(|error| Error::Message(format!("ERR {error}")))
}

/// The value in an argument.
pub(super) fn value(args: Args<'_>, index: usize) -> Result<Json> {
    Json::parse(args.at(index)).map_err(|error| Error::Message(format!("ERR {error}")))
}

/// The values in all arguments from this one on.
pub(super) fn values(args: Args<'_>, from: usize) -> Result<Vec<Json>> {
    (from..args.len()).map(|index| value(args, index)).collect()
}

/// Returns an error if the reply has grown by more than `MAX_TEXT` bytes since it had `before` bytes.
pub(super) fn check_len(reply: &Reply, before: usize) -> Result {
    if reply.len() - before > MAX_TEXT { Err(TOO_LONG) } else { Ok(()) }
}

pub(super) fn refused(why: Refused) -> Error {
    Error::Message(format!("ERR {why}"))
}

pub(super) fn no_path(path: &str) -> Error {
    Error::Message(format!("ERR Path '{path}' does not exist"))
}

/// Changes what a path leads to: `change` is called for each value, and says what is to be answered for it, or that it is none of
/// its kind. Nothing has changed after an error.
pub(super) fn change<T>(
    cx: &mut Ctx<'_>,
    args: Args<'_>,
    path: &Path,
    event: Event,
    mut change: impl FnMut(&mut Edits<'_>, usize) -> Result<Option<T>>,
) -> Result<Vec<Option<T>>> {
    let key = args.key(0);
    let json = cx.db.json_mut(key)?.ok_or(NO_DOCUMENT)?;
    let mut edits = json.edit(path).map_err(refused)?;
    let mut results = Vec::with_capacity(edits.len());
    for index in 0..edits.len() {
        results.push(change(&mut edits, index)?);
    }
    let is_changed = !edits.is_untouched();
    edits.apply().map_err(refused)?;
    if is_changed {
        cx.changed(key, event);
    }
    Ok(results)
}

/// Answers for the values that were changed; `kind` is what a legacy path must have led to.
pub(super) fn answer<T>(
    reply: &mut Reply,
    path: &Path,
    kind: &str,
    results: Vec<Option<T>>,
    write: impl Fn(&mut Reply, T),
) -> Result {
    if path.is_legacy() {
        let missing = || Error::Message(format!("ERR Path '{}' does not exist or not {kind}", path.text()));
        write(reply, results.into_iter().flatten().next_back().ok_or_else(missing)?);
        return Ok(());
    }
    reply.array(results.len());
    for result in results {
        match result {
            Some(result) => write(reply, result),
            None => reply.null(),
        }
    }
    Ok(())
}

/// An argument that is an integer, by a name.
pub(super) fn integer(args: Args<'_>, index: usize, name: &str) -> Result<i64> {
    args.int(index).map_err(|_| {
        let found = echo(args.at(index), MAX_ECHO);
        Error::Message(format!("ERR {name} must be an integer of 64 bits, not '{found}'"))
    })
}

//! JSON documents (<https://redis.io/docs/latest/commands/?group=json>).
//!
//! A path that begins with `$` leads to any number of values, and what is answered is a list; a legacy path means one value: where it
//! leads to several, reading commands answer for the first, and those that change, which change all of them, for the
//! last.

mod array;
mod change;
mod get;
mod look;
mod set;

use crate::command::{Args, Categories, Flags, KeySpec, Result, Weight, read, reads, update, weight, write, writes};
use crate::commands::definition::{Definition, Family, cmd, container, sub};
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::protocol::Reply;
use crate::protocol::error::{Error, echo};
use crate::types::json::{Edits, Json, Path, Refused};

/// Longest text that is answered, as long as the longest argument.
const MAX_TEXT: usize = 512 << 20;
const TOO_LONG: Error = Error::Static("ERR the answer would be longer than 536870912 bytes");

/// Bytes of an argument that an error repeats.
const MAX_ECHO: usize = 128;

/// There is no document, and the command needs one.
const NO_DOCUMENT: Error = Error::Static("ERR could not perform this operation on a key that doesn't exist");

/// The path in an argument; without it, the root as a legacy path.
fn path(args: Args<'_>, index: usize) -> Result<Path> {
    args.get(index).map_or_else(|| Ok(Path::root(true)), path_of)
}

fn path_of(text: &[u8]) -> Result<Path> {
    Path::parse(text).map_err(|error| Error::Message(format!("ERR {error}")))
}

/// The value in an argument.
fn value(args: Args<'_>, index: usize) -> Result<Json> {
    Json::parse(args.at(index)).map_err(|error| Error::Message(format!("ERR {error}")))
}

/// The values in all arguments from this one on.
fn values(args: Args<'_>, from: usize) -> Result<Vec<Json>> {
    (from..args.len()).map(|index| value(args, index)).collect()
}

/// Returns an error if the reply has grown by more than `MAX_TEXT` bytes since it had `before` bytes.
fn check_len(reply: &Reply, before: usize) -> Result {
    if reply.len() - before > MAX_TEXT { Err(TOO_LONG) } else { Ok(()) }
}

fn refused(why: Refused) -> Error {
    Error::Message(format!("ERR {why}"))
}

fn no_path(path: &str) -> Error {
    Error::Message(format!("ERR Path '{path}' does not exist"))
}

/// Changes what a path leads to: `change` is called for each value, and says what is to be answered for it, or that it is none of
/// its kind. Nothing has changed after an error.
fn change<T>(
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
fn answer<T>(
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
fn integer(args: Args<'_>, index: usize, name: &str) -> Result<i64> {
    args.int(index).map_err(|_| {
        let found = echo(args.at(index), MAX_ECHO);
        Error::Message(format!("ERR {name} must be an integer of 64 bits, not '{found}'"))
    })
}

const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE;
const GROW: Flags = Flags::WRITE.and(Flags::DENYOOM);

/// All keys, each in front of a path and a value.
const TRIPLES: KeySpec = writes(1, -1, 3);
/// All arguments but the last.
const KEYS: KeySpec = reads(1, -2, 1);

/// The work is that of reading the text of values, of looking through a document, and of moving what stands behind a change.
const fn row(definition: Definition) -> Definition {
    definition.weighs(Weight::Of(weight::values_and_payload))
}

#[rustfmt::skip]
const DEBUG: &[Definition] = &[
    sub("help",   2, look::debug_help, Flags(0), &[]),
    row(sub("memory", -3, look::debug_memory, READ, &[read(2).flags("RO")])),
];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "json", category: Categories::JSON, commands: &[
    row(cmd("json.arrappend", -4, array::arrappend, GROW,  &[update(1)])),
    row(cmd("json.arrindex",  -4, array::arrindex,  READ,  &[read(1)])),
    row(cmd("json.arrinsert", -5, array::arrinsert, GROW,  &[update(1)])),
    row(cmd("json.arrlen",    -2, look::arrlen,     READ,  &[read(1)])),
    row(cmd("json.arrpop",    -2, array::arrpop,    WRITE, &[update(1)])),
    row(cmd("json.arrtrim",    5, array::arrtrim,   WRITE, &[update(1)])),
    row(cmd("json.clear",     -2, change::clear,    WRITE, &[update(1)])),
    container("json.debug",   -2, DEBUG),
    row(cmd("json.del",       -2, set::del,         WRITE, &[update(1).flags("RW delete")])),
    row(cmd("json.forget",    -2, set::del,         WRITE, &[update(1).flags("RW delete")])),
    row(cmd("json.get",       -2, get::get,         READ,  &[read(1)])),
    row(cmd("json.merge",      4, set::merge,       GROW,  &[update(1)])),
    row(cmd("json.mget",      -3, get::mget,        READ,  &[KEYS])),
    row(cmd("json.mset",      -4, set::mset,        GROW,  &[TRIPLES])),
    row(cmd("json.numincrby",  4, change::numincrby, GROW, &[update(1)])),
    row(cmd("json.nummultby",  4, change::nummultby, GROW, &[update(1)])),
    row(cmd("json.objkeys",   -2, look::objkeys,    READ,  &[read(1)])),
    row(cmd("json.objlen",    -2, look::objlen,     READ,  &[read(1)])),
    row(cmd("json.resp",      -2, look::resp,       READ,  &[read(1)])),
    row(cmd("json.set",       -4, set::set,         GROW,  &[write(1).flags("RW update")])),
    row(cmd("json.strappend", -3, change::strappend, GROW, &[update(1)])),
    row(cmd("json.strlen",    -2, look::strlen,     READ,  &[read(1)])),
    row(cmd("json.toggle",     3, change::toggle,   GROW,  &[update(1)])),
    row(cmd("json.type",      -2, look::type_of,    READ,  &[read(1).flags("RO")])),
] };

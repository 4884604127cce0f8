//! JSON documents (<https://redis.io/docs/latest/commands/?group=json>).
//!
//! A path that begins with `$` selects any number of values, and the reply is a list. A legacy path means one value. If it selects several,
//! reading commands reply for the first one. Commands that write change all of them, and reply for the last one.

mod args;
mod array;
mod change;
mod get;
mod look;
mod set;

use crate::command::{Categories, Flags, KeySpec, Weight, read, reads, update, weight, write, writes};
use crate::commands::definition::{Definition, Family, cmd, container, sub};

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

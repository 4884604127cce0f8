//! Search indexes over hashes and JSON documents (<https://redis.io/docs/latest/commands/?group=search>).

mod aggregate;
mod catalog;
mod config;
mod create;
mod cursor;
mod dictionary;
mod expand;
mod explain;
mod fields;
mod find;
mod hybrid;
mod info;
mod legacy;
mod load;
mod lookup;
mod pipeline;
mod profile;
mod query;
mod sections;
mod show;
mod spell;
mod suggest;
mod temporary;
mod vector;
mod words;

pub(in crate::commands) use sections::describe;
pub(crate) use temporary::end_idle;

use crate::command::{Categories, Flags, Footprint, Weight, write};
use crate::commands::definition::{Definition, Family, cmd, container, sub};

const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE;
const GROW: Flags = Flags::WRITE.and(Flags::DENYOOM);

/// Queries take as long as they find documents, and may wait for others: they run beside the workers.
const fn query(definition: Definition) -> Definition {
    definition.locks(Footprint::Free).weighs(Weight::Much)
}

#[rustfmt::skip]
const CONFIG: &[Definition] = &[
    sub("get",  3, config::get,  Flags::ADMIN, &[]),
    sub("help", 3, config::help, Flags::ADMIN, &[]),
    sub("set", -3, config::set,  Flags::ADMIN, &[]),
];

#[rustfmt::skip]
const CURSOR: &[Definition] = &[
    query(sub("del",   4, cursor::del,  READ, &[])),
    query(sub("gc",   -2, cursor::gc,   READ, &[])),
    query(sub("read", -4, cursor::read, READ, &[])),
];

#[rustfmt::skip]
const DEBUG: &[Definition] = &[
    query(sub("dump_geomidx",      4, catalog::shapes,  Flags::ADMIN, &[])),
    query(sub("gc_forceinvoke",   -3, catalog::compact, Flags::ADMIN, &[])),
    query(sub("gc_forcebginvoke", -3, catalog::compact, Flags::ADMIN, &[])),
    sub("ttl",        3, temporary::time_left, Flags::ADMIN, &[]),
    sub("ttl_expire", 3, temporary::expire,    Flags::ADMIN, &[]),
    sub("ttl_pause",  3, temporary::pause,     Flags::ADMIN, &[]),
];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "search", category: Categories::SEARCH, commands: &[
    cmd("ft._aliasaddifnx",    3, legacy::alias_if_new,   GROW,  &[]).locks(Footprint::Free),
    cmd("ft._aliasdelifx",     2, legacy::alias_del_if_there, WRITE, &[]).locks(Footprint::Free),
    query(cmd("ft._alterifnx", -5, create::alter_if_new,  GROW,  &[])),
    cmd("ft._createifnx",     -4, legacy::create_if_new,  GROW,  &[]).locks(Footprint::Free),
    query(cmd("ft._dropifx",  -2, legacy::drop_if_there,  WRITE, &[])),
    query(cmd("ft._dropindexifx", -2, legacy::drop_index_if_there, WRITE, &[])),
    query(cmd("ft._list",      1, catalog::list,          READ,  &[]).also(Categories::ADMIN)),
    cmd("ft.add",             -4, legacy::add,            GROW,  &[write(2).flags("RW update")]),
    query(cmd("ft.aggregate", -3, aggregate::aggregate,   READ,  &[])),
    cmd("ft.aliasadd",         3, catalog::alias_add,     GROW,  &[]).locks(Footprint::Free),
    cmd("ft.aliasdel",         2, catalog::alias_del,     WRITE, &[]).locks(Footprint::Free),
    cmd("ft.aliasupdate",      3, catalog::alias_update,  GROW,  &[]).locks(Footprint::Free),
    query(cmd("ft.alter",     -5, create::alter,          GROW,  &[])),
    container("ft.config",    -2, CONFIG),
    container("ft.debug",     -2, DEBUG),
    cmd("ft.create",          -4, create::create,         GROW,  &[]).locks(Footprint::Free),
    container("ft.cursor",    -2, CURSOR),
    cmd("ft.dictadd",         -3, dictionary::add,        GROW,  &[]).locks(Footprint::Free),
    cmd("ft.dictdel",         -3, dictionary::del,        WRITE, &[]).locks(Footprint::Free),
    cmd("ft.dictdump",         2, dictionary::dump,       READ,  &[]).locks(Footprint::Free),
    cmd("ft.del",             -3, legacy::del,            WRITE, &[write(2).flags("RW delete")]),
    query(cmd("ft.drop",      -2, legacy::drop,           WRITE, &[])),
    query(cmd("ft.dropindex", -2, create::drop_index,     WRITE, &[])),
    query(cmd("ft.explain",   -3, explain::explain,       READ,  &[])),
    query(cmd("ft.explaincli", -3, explain::explain_cli,  READ,  &[])),
    query(cmd("ft.get",        3, legacy::get,            READ,  &[])),
    query(cmd("ft.hybrid",    -3, hybrid::hybrid,         READ,  &[])),
    query(cmd("ft.info",       2, info::info,             READ,  &[])),
    query(cmd("ft.mget",      -3, legacy::mget,           READ,  &[])),
    query(cmd("ft.profile",   -5, profile::profile,       READ,  &[])),
    cmd("ft.safeadd",         -4, legacy::add,            GROW,  &[write(2).flags("RW update")]),
    query(cmd("ft.search",    -3, find::search,           READ,  &[])),
    query(cmd("ft.spellcheck", -3, spell::spell_check,    READ,  &[])),
    query(cmd("ft.syndump",    2, dictionary::syn_dump,   READ,  &[])),
    query(cmd("ft.synupdate", -4, dictionary::syn_update, GROW,  &[])),
    query(cmd("ft.tagvals",    3, catalog::tag_values,    READ,  &[])),
] };

/// The commands of suggestions.
#[rustfmt::skip]
pub(super) static SUGGESTIONS: Family = Family { group: "suggestion", category: Categories::SEARCH, commands: &[
    cmd("ft.sugadd", -4, suggest::add, GROW,  &[]).locks(Footprint::Free),
    cmd("ft.sugdel",  3, suggest::del, WRITE, &[]).locks(Footprint::Free),
    query(cmd("ft.sugget", -3, suggest::get, READ, &[])),
    cmd("ft.suglen",  2, suggest::len, READ,  &[]).locks(Footprint::Free),
] };

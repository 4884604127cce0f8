//! Search indexes over hashes and JSON documents (<https://redis.io/docs/latest/commands/?group=search>).

mod adapt;
mod aggregate;
mod catalog;
mod cluster;
mod config;
mod create;
mod cursor;
mod dictionary;
mod expand;
mod explain;
mod fields;
mod find;
mod gathered;
mod hybrid;
mod info;
mod legacy;
mod load;
mod lookup;
mod merge;
mod pipeline;
mod profile;
mod query;
mod scope;
mod sections;
mod show;
mod spell;
mod suggest;
mod temporary;
mod vector;
mod wire;
mod words;

pub(in crate::commands) use cluster::gather;
pub(in crate::commands) use sections::describe;
pub(crate) use temporary::look_after;

use gathered::changed;

use crate::command::{Args, Categories, Flags, Footprint, Result, Weight, write};
use crate::commands::definition::{Definition, Family, cmd, container, sub};
use crate::exec::core::Ctx;
use crate::protocol::error::Error;

const READ: Flags = Flags::READONLY;
const WRITE: Flags = Flags::WRITE;
/// Commands that nodes of a cluster send each other.
const INNER: Flags = Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::NO_MULTI);
const DEBUGS: Flags = Flags::ADMIN.and(Flags::NOSCRIPT);
const GROW: Flags = Flags::WRITE.and(Flags::DENYOOM);

/// Queries take as long as they find documents, and may wait for others: they run beside the workers.
const fn query(definition: Definition) -> Definition {
    definition.locks(Footprint::Free).weighs(Weight::Much)
}

#[rustfmt::skip]
const CONFIG: &[Definition] = &[
    sub("get",  3, config::get,  Flags::ADMIN, &[]),
    sub("help", 3, config::help, Flags::ADMIN, &[]),
    sub("set", -3, |cx, args| changed(cx, args, config::set), Flags::ADMIN, &[]).gathers(),
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

/// FT.DEBUG by valkey-search's name: one command without subcommands.
fn debug(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let found = DEBUG.iter().find(|known| args.is(1, known.command.name));
    let known = found.ok_or(Error::Static("Unknown subcommand of FT._DEBUG"))?;
    if !known.command.accepts(args.len()) {
        return Err(Error::WrongArity("FT._DEBUG".into()));
    }
    (known.handler)(cx, args)
}

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "search", category: Categories::SEARCH, commands: &[
    cmd("ft._aliasaddifnx",    3, |cx, args| changed(cx, args, legacy::alias_if_new),   GROW,  &[]).locks(Footprint::Free).gathers(),
    cmd("ft._aliasdelifx",     2, |cx, args| changed(cx, args, legacy::alias_del_if_there), WRITE, &[]).locks(Footprint::Free).gathers(),
    query(cmd("ft._alterifnx", -5, |cx, args| changed(cx, args, create::alter_if_new),  GROW,  &[])).gathers(),
    cmd("ft._createifnx",     -4, |cx, args| changed(cx, args, legacy::create_if_new),  GROW,  &[]).locks(Footprint::Free).gathers(),
    query(cmd("ft._dropifx",  -2, |cx, args| changed(cx, args, legacy::drop_if_there),  WRITE, &[])).gathers(),
    query(cmd("ft._dropindexifx", -2, |cx, args| changed(cx, args, legacy::drop_index_if_there), WRITE, &[])).gathers(),
    query(cmd("ft._catalog",   2, cluster::catalog,       INNER, &[])),
    query(cmd("ft._define",   -3, cluster::define,        INNER.and(WRITE), &[])),
    query(cmd("ft._debug",    -2, debug,                  DEBUGS, &[])),
    query(cmd("ft._list",      1, catalog::list,          READ,  &[]).also(Categories::ADMIN)),
    query(cmd("ft._propose",  -2, cluster::propose,       INNER.and(WRITE), &[])).gathers(),
    query(cmd("ft._shard",    -3, cluster::shard,         INNER.and(READ), &[])),
    query(cmd("ft._sync",      1, cluster::sync,          INNER, &[])).gathers(),
    cmd("ft.add",             -4, legacy::add,            GROW,  &[write(2).flags("RW update")]),
    query(cmd("ft.aggregate", -3, aggregate::aggregate,   READ,  &[])).gathers(),
    cmd("ft.aliasadd",         3, |cx, args| changed(cx, args, catalog::alias_add),     GROW,  &[]).locks(Footprint::Free).gathers(),
    cmd("ft.aliasdel",         2, |cx, args| changed(cx, args, catalog::alias_del),     WRITE, &[]).locks(Footprint::Free).gathers(),
    cmd("ft.aliasupdate",      3, |cx, args| changed(cx, args, catalog::alias_update),  GROW,  &[]).locks(Footprint::Free).gathers(),
    query(cmd("ft.alter",     -5, |cx, args| changed(cx, args, create::alter),          GROW,  &[])).gathers(),
    container("ft.config",    -2, CONFIG),
    container("ft.debug",     -2, DEBUG),
    cmd("ft.create",          -4, |cx, args| changed(cx, args, create::create),         GROW,  &[]).locks(Footprint::Free).gathers(),
    container("ft.cursor",    -2, CURSOR),
    cmd("ft.dictadd",         -3, |cx, args| changed(cx, args, dictionary::add),        GROW,  &[]).locks(Footprint::Free).gathers(),
    cmd("ft.dictdel",         -3, |cx, args| changed(cx, args, dictionary::del),        WRITE, &[]).locks(Footprint::Free).gathers(),
    cmd("ft.dictdump",         2, dictionary::dump,       READ,  &[]).locks(Footprint::Free),
    cmd("ft.del",             -3, legacy::del,            WRITE, &[write(2).flags("RW delete")]),
    query(cmd("ft.drop",      -2, |cx, args| changed(cx, args, legacy::drop),           WRITE, &[])).gathers(),
    query(cmd("ft.dropindex", -2, |cx, args| changed(cx, args, create::drop_index),     WRITE, &[])).gathers(),
    query(cmd("ft.explain",   -3, explain::explain,       READ,  &[])),
    query(cmd("ft.explaincli", -3, explain::explain_cli,  READ,  &[])),
    query(cmd("ft.get",        3, legacy::get,            READ,  &[])).gathers(),
    query(cmd("ft.hybrid",    -3, hybrid::hybrid,         READ,  &[])).gathers(),
    query(cmd("ft.info",      -2, info::info,             READ,  &[])).gathers(),
    query(cmd("ft.mget",      -3, legacy::mget,           READ,  &[])).gathers(),
    query(cmd("ft.profile",   -5, profile::profile,       READ,  &[])).gathers(),
    cmd("ft.safeadd",         -4, legacy::add,            GROW,  &[write(2).flags("RW update")]),
    query(cmd("ft.search",    -3, merge::search,          READ,  &[])).gathers(),
    query(cmd("ft.spellcheck", -3, spell::spell_check,    READ,  &[])).gathers(),
    query(cmd("ft.syndump",    2, dictionary::syn_dump,   READ,  &[])),
    query(cmd("ft.synupdate", -4, |cx, args| changed(cx, args, dictionary::syn_update), GROW,  &[])).gathers(),
    query(cmd("ft.tagvals",    3, catalog::tag_values,    READ,  &[])).gathers(),
] };

/// The commands of suggestions.
#[rustfmt::skip]
pub(super) static SUGGESTIONS: Family = Family { group: "suggestion", category: Categories::SEARCH, commands: &[
    cmd("ft.sugadd", -4, |cx, args| changed(cx, args, suggest::add), GROW,  &[]).locks(Footprint::Free).gathers(),
    cmd("ft.sugdel",  3, |cx, args| changed(cx, args, suggest::del), WRITE, &[]).locks(Footprint::Free).gathers(),
    query(cmd("ft.sugget", -3, suggest::get, READ, &[])),
    cmd("ft.suglen",  2, suggest::len, READ,  &[]).locks(Footprint::Free),
] };

//! The server (<https://redis.io/docs/latest/commands/?group=server>).

mod acl;
mod basics;
mod command;
mod config;
mod debug;
mod digest;
mod docs;
mod flags;
mod hotkeys;
mod info;
mod latency;
mod memory;
mod module;
mod slowlog;
pub(super) mod snapshot;

pub(crate) use hotkeys::end_if_due as end_hot_keys_if_due;
pub(super) use module::loaded as loaded_modules;

use crate::command::{Categories, Flags, Footprint, Weight};
use crate::commands::definition::{Family, cmd};
use crate::commands::server::flags::{ADMIN, ANY_TIME};

const SAVES: Flags = Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::NO_ASYNC_LOADING);

const QUERY: Flags = ANY_TIME.and(Flags::FAST);

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "server", category: Categories(0), commands: &[
    acl::COMMAND,
    command::COMMAND,
    config::COMMAND,
    debug::COMMAND,
    hotkeys::COMMAND,
    info::COMMAND,
    latency::COMMAND,
    memory::COMMAND,
    module::COMMAND,
    slowlog::COMMANDLOG,
    slowlog::COMMAND,
    cmd("bgrewriteaof", 1, snapshot::rewrite, SAVES,                              &[]),
    cmd("bgsave",   -1, snapshot::bgsave,  SAVES,                                 &[]).locks(Footprint::Still),
    cmd("lastsave",  1, snapshot::last_save, QUERY,                               &[]).also(basics::ADMINISTRATIVE).tips(&["nondeterministic_output"]),
    cmd("lolwut",   -1, basics::lolwut,    Flags::READONLY.and(Flags::FAST),      &[]),
    cmd("monitor",   1, basics::monitor,   ADMIN,                                 &[]),
    cmd("save",      1, snapshot::save,    SAVES.and(Flags::NO_MULTI),            &[]).locks(Footprint::Everything).weighs(Weight::Much),
    cmd("shutdown", -1, snapshot::shutdown, ADMIN.and(Flags::NO_MULTI).and(Flags::ALLOW_BUSY), &[]),
    cmd("time",      1, basics::time,      QUERY,                                 &[]).tips(&["nondeterministic_output"]),
] };

//! `MODULE`: none can be loaded, as they are shared objects for the genuine server. The commands of some modules are built in. The list
//! names these modules, as client libraries look for them here.

use super::config::caller;
use super::flags::ANY_TIME;
use crate::command::{Args, Flags, Result};
use crate::commands::definition::{Definition, container, sub};
use crate::commands::help::help;
use crate::config::{Caller, Level, settings};
use crate::exec::core::Ctx;
use crate::protocol::Reply;
use crate::protocol::error::Error;

/// A module whose commands are built in, and the version that has them.
pub(super) struct BuiltIn {
    pub(super) name: &'static str,
    pub(super) version: i64,
}

impl BuiltIn {
    /// Its name; Valkey's module for JSON has another one.
    pub(super) fn name(&self, level: Level) -> &'static str {
        if level.is_valkey() && self.name == "ReJSON" { "json" } else { self.name }
    }
}

/// All of them.
pub(super) const BUILT_IN: &[BuiltIn] = &[
    #[cfg(feature = "bloom")]
    BuiltIn { name: "bf", version: 20800 },
    #[cfg(feature = "json")]
    BuiltIn { name: "ReJSON", version: 20800 },
    #[cfg(feature = "search")]
    BuiltIn { name: "search", version: 21005 },
    #[cfg(feature = "vector-sets")]
    BuiltIn { name: "vectorset", version: 1 },
];

/// MODULE LIST
fn list(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let level = cx.config().level();
    loaded(cx.reply, level);
    Ok(())
}

/// Appends what MODULE LIST and HELLO tell of modules.
pub(in crate::commands) fn loaded(reply: &mut Reply, level: Level) {
    reply.array(BUILT_IN.len());
    for module in BUILT_IN {
        let version = &module.version;
        reply.map(4);
        reply.bulk(b"name");
        reply.bulk(module.name(level).as_bytes());
        reply.bulk(b"ver");
        reply.int(*version);
        reply.bulk(b"path");
        reply.bulk(b"");
        reply.bulk(b"args");
        reply.array(0);
    }
}

/// `MODULE LOAD path [arg …]`, `MODULE LOADEX path [CONFIG name value …] [ARGS arg …]`
fn load(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    permitted(cx)?;
    tracing::warn!("MODULE: {} is not loaded, modules are not supported", String::from_utf8_lossy(args.at(2)));
    Err(Error::Static("ERR Error loading the extension. Please check the server logs."))
}

/// MODULE UNLOAD name
fn unload(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    permitted(cx)?;
    Err(Error::Static("ERR Error unloading module: no such module with that name"))
}

/// Whether `enable-module-command` lets this client.
fn permitted(cx: &Ctx<'_>) -> Result {
    match cx.config().word(settings::ENABLE_MODULE_COMMAND) {
        "yes" => Ok(()),
        "local" if caller(cx) == Caller::Local => Ok(()),
        _ => Err(Error::Static(
            "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you can run it from a \
             local connection, otherwise you need to set this option in the configuration file, and then restart the \
             server.",
        )),
    }
}

/// MODULE HELP
fn module_help(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    help(cx, "MODULE", HELP);
    Ok(())
}

const HELP: &[&str] = &[
    "LIST",
    "    Return a list of loaded modules.",
    "LOAD <path> [<arg> ...]",
    "    Load a module library from <path>, passing to it any optional arguments.",
    "LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
    "    Load a module library from <path>, while passing it module configurations and optional arguments.",
    "UNLOAD <name>",
    "    Unload a module.",
];

const ADMIN: Flags = Flags::ADMIN.and(Flags::NOSCRIPT);
const LOADING: Flags = ADMIN.and(Flags::NO_ASYNC_LOADING);

/// The row.
#[rustfmt::skip]
pub(super) const COMMAND: Definition = container("module", -2, &[
    sub("help",    2, module_help, ANY_TIME, &[]),
    sub("list",    2, list,        ADMIN,    &[]).tips(&["nondeterministic_output_order"]),
    sub("load",   -3, load,        LOADING,  &[]),
    sub("loadex", -3, load,        LOADING,  &[]),
    sub("unload",  3, unload,      LOADING,  &[]),
]);

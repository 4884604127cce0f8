//! Functions: FCALL and FUNCTION (<https://redis.io/docs/latest/develop/programmability/functions-intro/>).

use crate::command::{Args, Flags, Footprint, Result};
use crate::commands::definition::{Definition, sub};
use crate::commands::help::help;
use crate::exec::core::Ctx;
use crate::exec::script::Library;
use crate::persistence::rdb::{self, FunctionsRefused};
use crate::protocol::error::{Error, shown};
use crate::protocol::glob;

/// `FCALL function numkeys [key …] [arg …]`
pub(super) fn fcall(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    run(cx, args, false)
}

/// `FCALL_RO function numkeys [key …] [arg …]`
pub(super) fn fcall_ro(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    run(cx, args, true)
}

fn run(cx: &mut Ctx<'_>, args: Args<'_>, read_only: bool) -> Result {
    // Before the commands that it calls.
    cx.show_to_monitors(args);
    let scripts = &cx.instance().scripts;
    scripts.with_engine(|engine| engine.call_function(cx, args, read_only))
}

/// The libraries have changed: that counts as a change of the data.
fn changed(cx: &Ctx<'_>) {
    cx.count_changes(1);
}

/// `FUNCTION LOAD [REPLACE] code`
fn load(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    for at in 2..args.len() - 1 {
        if !args.is(at, "REPLACE") {
            let text = shown(args.at(at)).into_owned();
            return Err(Error::Message(format!("ERR Unknown option given: {text}")));
        }
    }
    let scripts = &cx.instance().scripts;
    let code = args.at(args.len() - 1);
    let name = scripts.with_engine(|engine| engine.load_library(cx, code, args.len() > 3))?;
    cx.reply.bulk(&name);
    changed(cx);
    Ok(())
}

/// `FUNCTION DELETE library`
fn delete(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let scripts = &cx.instance().scripts;
    if !scripts.with_engine(|engine| engine.remove_library(args.at(2))) {
        return Err(Error::Static("ERR Library not found"));
    }
    cx.reply.ok();
    changed(cx);
    Ok(())
}

/// `FUNCTION FLUSH [ASYNC|SYNC]`
fn flush(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() > 3 {
        return Err(Error::subcommand_syntax(args));
    }
    if args.len() == 3 && !args.is(2, "SYNC") && !args.is(2, "ASYNC") {
        return Err(Error::Static("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    let scripts = &cx.instance().scripts;
    scripts.with_engine(|engine| engine.flush_libraries(cx));
    cx.reply.ok();
    changed(cx);
    Ok(())
}

/// `FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE]`
fn list(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (mut pattern, mut with_code) = (None, false);
    let mut at = 2;
    while at < args.len() {
        if !with_code && args.is(at, "WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && args.is(at, "LIBRARYNAME") {
            at += 1;
            pattern = Some(args.get(at).ok_or(Error::Static("ERR library name argument was not given"))?);
        } else {
            let text = shown(args.at(at)).into_owned();
            return Err(Error::Message(format!("ERR Unknown argument {text}")));
        }
        at += 1;
    }
    let scripts = &cx.instance().scripts;
    scripts.with_engine(|engine| {
        let is_wanted = |name: &[u8]| pattern.is_none_or(|pattern| glob::matches(pattern, name, true));
        let libraries: Vec<_> = engine.libraries().iter().filter(|library| is_wanted(&library.name)).collect();
        cx.reply.array(libraries.len());
        libraries.into_iter().for_each(|library| show(cx, library, with_code));
    });
    Ok(())
}

fn show(cx: &mut Ctx<'_>, library: &Library, with_code: bool) {
    let reply = &mut *cx.reply;
    reply.map(if with_code { 4 } else { 3 });
    reply.bulk(b"library_name");
    reply.bulk(&library.name);
    reply.bulk(b"engine");
    reply.bulk(b"LUA");
    reply.bulk(b"functions");
    reply.array(library.functions.len());
    for function in &library.functions {
        reply.map(3);
        reply.bulk(b"name");
        reply.bulk(&function.name);
        reply.bulk(b"description");
        match &function.description {
            Some(text) => reply.bulk(text),
            None => reply.null(),
        }
        reply.bulk(b"flags");
        reply.set(function.flags.names().count());
        function.flags.names().for_each(|name| reply.simple(name));
    }
    if with_code {
        reply.bulk(b"library_code");
        reply.bulk(&library.code);
    }
}

/// FUNCTION DUMP
fn dump(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let scripts = &cx.instance().scripts;
    let payload =
        scripts.with_engine(|engine| rdb::dump_functions(engine.libraries().iter().map(|library| &*library.code)));
    cx.reply.bulk(&payload);
    Ok(())
}

/// `FUNCTION RESTORE payload [FLUSH|APPEND|REPLACE]`
fn restore(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.len() > 4 {
        return Err(Error::subcommand_syntax(args));
    }
    let is = |word: &str| args.len() == 4 && args.is(3, word);
    let (flush, replace) = (is("FLUSH"), is("REPLACE"));
    if args.len() == 4 && !flush && !replace && !is("APPEND") {
        return Err(Error::Static("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE."));
    }
    let codes = rdb::restore_functions(args.at(2)).map_err(|refused| {
        Error::Static(match refused {
            FunctionsRefused::Footer => "ERR DUMP payload version or checksum are wrong",
            FunctionsRefused::Type => "ERR given type is not a function",
            FunctionsRefused::Content => "ERR failed loading the given functions payload",
        })
    })?;
    let scripts = &cx.instance().scripts;
    scripts.with_engine(|engine| engine.restore(cx, &codes, flush, replace))?;
    cx.reply.ok();
    changed(cx);
    Ok(())
}

/// FUNCTION STATS
fn stats(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    use std::sync::atomic::Ordering::Relaxed;
    let scripts = &cx.instance().scripts;
    if cx.instance().exclusive.is_busy() && !scripts.status.is_function() {
        return Err(scripts.busy_error());
    }
    let reply = &mut *cx.reply;
    reply.map(2);
    reply.bulk(b"running_script");
    scripts.status.with_slow(|slow| {
        let Some(slow) = slow else { return reply.null() };
        reply.map(3);
        reply.bulk(b"name");
        reply.bulk(slow.name.as_bytes());
        reply.bulk(b"command");
        let words = slow.command.args();
        reply.array(words.len());
        words.iter().for_each(|word| reply.bulk(word));
        reply.bulk(b"duration_ms");
        reply.int(slow.began.elapsed().as_millis() as i64);
    });
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.int(scripts.figures.libraries.load(Relaxed) as i64);
    reply.bulk(b"functions_count");
    reply.int(scripts.figures.functions.load(Relaxed) as i64);
    Ok(())
}

/// FUNCTION KILL
fn kill(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    cx.instance().scripts.status.kill(true)?;
    cx.reply.ok();
    Ok(())
}

/// FUNCTION HELP
fn function_help(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    help(cx, "FUNCTION", HELP);
    Ok(())
}

const HELP: &[&str] = &[
    "LOAD [REPLACE] <FUNCTION CODE>",
    "    Create a new library with the given library name and code.",
    "DELETE <LIBRARY NAME>",
    "    Delete the given library.",
    "LIST [LIBRARYNAME PATTERN] [WITHCODE]",
    "    Return general information on all the libraries:",
    "    * Library name",
    "    * The engine used to run the Library",
    "    * Library description",
    "    * Functions list",
    "    * Library code (if WITHCODE is given)",
    "    It also possible to get only function that matches a pattern using LIBRARYNAME argument.",
    "STATS",
    "    Return information about the current function running:",
    "    * Function name",
    "    * Command used to run the function",
    "    * Duration in MS that the function is running",
    "    If no function is running, return nil",
    "    In addition, returns a list of available engines.",
    "KILL",
    "    Kill the current running function.",
    "FLUSH [ASYNC|SYNC]",
    "    Delete all the libraries.",
    "    When called without the optional mode argument, the behavior is determined by the",
    "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
    "    * ASYNC: Asynchronously flush the libraries.",
    "    * SYNC: Synchronously flush the libraries.",
    "DUMP",
    "    Return a serialized payload representing the current libraries, can be restored using FUNCTION RESTORE command",
    "RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]",
    "    Restore the libraries represented by the given payload, it is possible to give a restore policy to",
    "    control how to handle existing libraries (default APPEND):",
    "    * FLUSH: delete all existing libraries.",
    "    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.",
    "    * REPLACE: appends the restored libraries to the existing libraries, On collision, replace the old",
    "      libraries with the new libraries (notice that even on this option there is a chance of failure",
    "      in case of functions name collision with another library).",
];

const CHANGES: Flags = Flags::WRITE.and(Flags::NOSCRIPT);
const ALL_SHARDS: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];

#[rustfmt::skip]
pub(super) const SUBCOMMANDS: &[Definition] = &[
    sub("delete",   3, delete,  CHANGES, &[]).locks(Footprint::Alone).tips(ALL_SHARDS),
    sub("dump",     2, dump,    Flags::NOSCRIPT, &[]).locks(Footprint::Alone),
    sub("flush",   -2, flush,   CHANGES, &[]).locks(Footprint::Alone).tips(ALL_SHARDS),
    sub("help",     2, function_help, Flags::LOADING.and(Flags::STALE), &[]),
    sub("kill",     2, kill,    Flags::NOSCRIPT.and(Flags::ALLOW_BUSY), &[]).tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
    sub("list",    -2, list,    Flags::NOSCRIPT, &[]).locks(Footprint::Alone).tips(&["nondeterministic_output_order"]),
    sub("load",    -3, load,    CHANGES.and(Flags::DENYOOM), &[]).locks(Footprint::Alone).tips(ALL_SHARDS),
    sub("restore", -3, restore, CHANGES.and(Flags::DENYOOM), &[]).locks(Footprint::Alone).tips(ALL_SHARDS),
    sub("stats",    2, stats,   Flags::NOSCRIPT.and(Flags::ALLOW_BUSY), &[]).tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"]),
];

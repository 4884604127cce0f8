//! Scripts: EVAL and SCRIPT (<https://redis.io/docs/latest/commands/?group=scripting>).

use crate::command::{Args, Categories, Flags, Footprint, KeySpec, Result, Role, keynum};
use crate::commands::definition::{Definition, Family, cmd, container, sub};
use crate::commands::help::help;
use crate::exec::core::Ctx;
use crate::keyspace::Access;
use crate::protocol::error::Error;

/// `EVAL script numkeys [key …] [arg …]`
fn eval(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    run(cx, args, false, false)
}

/// `EVAL_RO script numkeys [key …] [arg …]`
fn eval_ro(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    run(cx, args, false, true)
}

/// `EVALSHA sha1 numkeys [key …] [arg …]`
fn evalsha(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    run(cx, args, true, false)
}

/// `EVALSHA_RO sha1 numkeys [key …] [arg …]`
fn evalsha_ro(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    run(cx, args, true, true)
}

fn run(cx: &mut Ctx<'_>, args: Args<'_>, is_sha: bool, read_only: bool) -> Result {
    // Before the commands that it calls.
    cx.show_to_monitors(args);
    let scripts = &cx.instance().scripts;
    scripts.with_engine(|engine| engine.eval(cx, args, is_sha, read_only))
}

/// `SCRIPT LOAD script`
fn load(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let scripts = &cx.instance().scripts;
    let sha = scripts.with_engine(|engine| engine.add_script(cx, args.at(2), true))?;
    cx.reply.bulk(&sha);
    Ok(())
}

/// `SCRIPT EXISTS sha1 [sha1 …]`
fn exists(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let scripts = &cx.instance().scripts;
    scripts.with_engine(|engine| {
        cx.reply.array(args.len() - 2);
        for name in args.from(2).iter() {
            cx.reply.int(engine.scripts().holds(name).into());
        }
    });
    Ok(())
}

/// `SCRIPT SHOW sha1`
fn show(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let scripts = &cx.instance().scripts;
    scripts.with_engine(|engine| match engine.scripts().source(args.at(2)) {
        Some(source) => {
            cx.reply.bulk(source);
            Ok(())
        }
        None => Err(Error::Static("NOSCRIPT No matching script.")),
    })
}

/// `SCRIPT FLUSH [ASYNC|SYNC]`
fn flush(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if !(args.len() == 2 || args.len() == 3 && (args.is(2, "SYNC") || args.is(2, "ASYNC"))) {
        return Err(Error::Static("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    let scripts = &cx.instance().scripts;
    scripts.with_engine(|engine| engine.flush_scripts(cx));
    cx.reply.ok();
    Ok(())
}

/// SCRIPT KILL
fn kill(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    cx.instance().scripts.status.kill(false)?;
    cx.reply.ok();
    Ok(())
}

/// `SCRIPT DEBUG YES|SYNC|NO`: there is no debugger, so it can only be turned off.
fn debug(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if args.is(2, "NO") {
        cx.reply.ok();
        return Ok(());
    }
    Err(Error::Static(if args.is(2, "YES") || args.is(2, "SYNC") {
        "ERR the Lua debugger is not supported"
    } else {
        "ERR Use SCRIPT DEBUG YES/SYNC/NO"
    }))
}

/// SCRIPT HELP
fn script_help(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    help(cx, "SCRIPT", HELP);
    Ok(())
}

const HELP: &[&str] = &[
    "DEBUG (YES|SYNC|NO)",
    "    Set the debug mode for subsequent scripts executed.",
    "EXISTS <sha1> [<sha1> ...]",
    "    Return information about the existence of the scripts in the script cache.",
    "FLUSH [ASYNC|SYNC]",
    "    Flush the Lua scripts cache. Very dangerous on replicas.",
    "    When called without the optional mode argument, the behavior is determined by the",
    "    lazyfree-lazy-user-flush configuration directive. Valid modes are:",
    "    * ASYNC: Asynchronously flush the scripts cache.",
    "    * SYNC: Synchronously flush the scripts cache.",
    "KILL",
    "    Kill the currently executing Lua script.",
    "LOAD <script>",
    "    Load a script into the scripts cache without executing it.",
];

/// Flags of what runs scripts.
pub(super) const RUNS: Flags =
    Flags::NOSCRIPT.and(Flags::STALE).and(Flags::SKIP_MONITOR).and(Flags::NO_MANDATORY_KEYS).and(Flags::MAY_REPLICATE);
/// Flags of what runs scripts that write nothing.
pub(super) const RUNS_RO: Flags =
    Flags::READONLY.and(Flags::NOSCRIPT).and(Flags::STALE).and(Flags::SKIP_MONITOR).and(Flags::NO_MANDATORY_KEYS);
/// Keys of a script, which it may do anything with.
pub(super) const KEYS: &[KeySpec] = &[keynum(2, Access::Write, "RW access update")];
/// Keys of a script that reads.
pub(super) const KEYS_RO: &[KeySpec] = &[keynum(2, Access::Read, "RO access")];
/// Tips for what concerns all nodes.
pub(super) const ALL_NODES: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];

#[rustfmt::skip]
const SUBCOMMANDS: &[Definition] = &[
    sub("debug",   3, debug,       Flags::NOSCRIPT, &[]),
    sub("exists", -3, exists,      Flags::NOSCRIPT, &[]).locks(Footprint::Alone).tips(&["request_policy:all_shards", "response_policy:agg_logical_and"]),
    sub("flush",  -2, flush,       Flags::NOSCRIPT, &[]).locks(Footprint::Alone).tips(ALL_NODES),
    sub("help",    2, script_help, Flags::LOADING.and(Flags::STALE), &[]),
    sub("kill",    2, kill,        Flags::NOSCRIPT.and(Flags::ALLOW_BUSY), &[]).tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
    sub("load",    3, load,        Flags::NOSCRIPT.and(Flags::STALE), &[]).locks(Footprint::Alone).tips(ALL_NODES),
    sub("show",    3, show,        Flags::NOSCRIPT.and(Flags::STALE), &[]).locks(Footprint::Alone),
];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "scripting", category: Categories::SCRIPTING, commands: &[
    cmd("eval",       -3, eval,       RUNS,    KEYS).role(Role::Eval).locks(Footprint::Alone),
    cmd("eval_ro",    -3, eval_ro,    RUNS_RO, KEYS_RO).role(Role::Eval).locks(Footprint::Alone),
    cmd("evalsha",    -3, evalsha,    RUNS,    KEYS).role(Role::EvalNamed).locks(Footprint::Alone),
    cmd("evalsha_ro", -3, evalsha_ro, RUNS_RO, KEYS_RO).role(Role::EvalNamed).locks(Footprint::Alone),
    cmd("fcall",      -3, super::function::fcall,    RUNS,    KEYS).role(Role::EvalNamed).locks(Footprint::Alone),
    cmd("fcall_ro",   -3, super::function::fcall_ro, RUNS_RO, KEYS_RO).role(Role::EvalNamed).locks(Footprint::Alone),
    container("function", -2, super::function::SUBCOMMANDS),
    container("script",   -2, SUBCOMMANDS),
] };

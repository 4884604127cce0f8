//! CLIENT: subcommands for one connection, and for holding back others.

use super::hello;
use crate::clients::client::{ReplyMode, flag};
use crate::command::{Args, Result};
use crate::config::settings;
use crate::exec::core::{Ctx, Pause};
use crate::protocol::error::{Error, c_string, shown};

/// CLIENT ID
pub(super) fn id(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    cx.reply.int(cx.client.shared.id as i64);
    Ok(())
}

/// CLIENT GETNAME
pub(super) fn getname(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let labels = cx.client.shared.labels();
    if labels.name.is_empty() {
        cx.reply.null();
    } else {
        cx.reply.bulk(labels.name.as_bytes());
    }
    Ok(())
}

/// CLIENT SETNAME connection-name
pub(super) fn setname(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    hello::set_name(cx, args.at(2))?;
    cx.reply.ok();
    Ok(())
}

/// CLIENT SETINFO LIB-NAME name | LIB-VER version
pub(super) fn setinfo(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let is_name = match args.at(2).to_ascii_lowercase().as_slice() {
        b"lib-name" => true,
        b"lib-ver" => false,
        _ => {
            let option = shown(args.at(2));
            return Err(Error::Message(format!("ERR Unrecognized option '{option}'")));
        }
    };
    let Some(text) = hello::label(c_string(args.at(3))) else {
        let option = shown(args.at(2));
        return Err(Error::Message(format!("ERR {option} cannot contain spaces, newlines or special characters.")));
    };
    let mut labels = cx.client.shared.labels();
    if is_name {
        labels.lib_name = text;
    } else {
        labels.lib_version = text;
    }
    cx.reply.ok();
    Ok(())
}

/// `CLIENT CAPA capability [capability …]`. Unknown capabilities are ignored.
pub(super) fn capa(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if (2..args.len()).any(|at| args.is(at, "redirect")) {
        cx.client.shared.set_flag(flag::REDIRECTS, true);
    }
    cx.reply.ok();
    Ok(())
}

/// CLIENT IMPORT-SOURCE ON | OFF
pub(super) fn import_source(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if !cx.config().is_on(settings::IMPORT_MODE) && !args.is(2, "off") {
        return Err(Error::Static("ERR Server is not in import mode"));
    }
    let on = args.is(2, "on");
    if !on && !args.is(2, "off") {
        return Err(Error::Syntax);
    }
    cx.client.shared.set_flag(flag::IMPORTS, on);
    cx.reply.ok();
    Ok(())
}

/// CLIENT REPLY ON | OFF | SKIP
pub(super) fn reply(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let client = &mut *cx.client;
    if args.is(2, "on") {
        client.reply_mode = ReplyMode::On;
        cx.reply.ok();
    } else if args.is(2, "off") {
        client.reply_mode = ReplyMode::Off;
    } else if args.is(2, "skip") {
        if client.reply_mode != ReplyMode::Off {
            client.reply_mode = ReplyMode::SkipNext;
        }
    } else {
        return Err(Error::Syntax);
    }
    Ok(())
}

/// CLIENT NO-EVICT ON | OFF
pub(super) fn no_evict(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let on = on_or_off(args)?;
    cx.client.shared.set_flag(flag::NO_EVICT, on);
    cx.instance().client_memory.look_again();
    cx.reply.ok();
    Ok(())
}

/// CLIENT NO-TOUCH ON | OFF
pub(super) fn no_touch(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let on = on_or_off(args)?;
    cx.client.no_touch = on;
    cx.client.shared.set_flag(flag::NO_TOUCH, on);
    cx.reply.ok();
    Ok(())
}

fn on_or_off(args: Args<'_>) -> Result<bool> {
    if args.is(2, "on") {
        Ok(true)
    } else if args.is(2, "off") {
        Ok(false)
    } else {
        Err(Error::Syntax)
    }
}

/// `CLIENT PAUSE timeout [WRITE | ALL]`
pub(super) fn pause(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let writes_only = match args.get(3) {
        None => false,
        Some(_) if args.is(3, "write") => true,
        Some(_) if args.is(3, "all") => false,
        Some(_) => return Err(Error::Static("ERR CLIENT PAUSE mode must be WRITE or ALL")),
    };
    let timeout = args.int(2).map_err(|_| Error::Static("ERR timeout is not an integer or out of range"))?;
    let timeout = u64::try_from(timeout).map_err(|_| Error::Static("ERR timeout is negative"))?;
    cx.instance().pause(Pause { until: cx.now().saturating_add(timeout), writes_only }, cx.now());
    cx.reply.ok();
    Ok(())
}

/// CLIENT UNPAUSE
pub(super) fn unpause(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    cx.instance().unpause();
    cx.reply.ok();
    Ok(())
}

/// The error reply to a blocked client that CLIENT UNBLOCK … ERROR ends.
const UNBLOCKED: Error = Error::Static("UNBLOCKED client unblocked via CLIENT UNBLOCK");

/// `CLIENT UNBLOCK client-id [TIMEOUT | ERROR]`
pub(super) fn unblock(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let with_error = match args.get(3) {
        None => false,
        Some(_) if args.len() > 4 => return Err(Error::subcommand_syntax(args)),
        Some(_) if args.is(3, "timeout") => false,
        Some(_) if args.is(3, "error") => true,
        Some(_) => return Err(Error::Static("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
    };
    let id = args.int(2)?;
    let target = u64::try_from(id).ok().and_then(|id| cx.instance().client(id));
    let parked = target.and_then(|target| target.blocked().clone());
    let done = parked.is_some_and(|parked| {
        if !with_error {
            return parked.time_out();
        }
        let done = parked.fail(&UNBLOCKED);
        if done {
            cx.failed(parked.row(), &UNBLOCKED);
        }
        done
    });
    cx.reply.int(i64::from(done));
    Ok(())
}

/// CLIENT HELP
pub(super) fn help(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    crate::commands::help::help(cx, "CLIENT", HELP);
    Ok(())
}

const HELP: &[&str] = &[
    "CACHING (YES|NO)",
    "    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
    "CAPA <option> [options...]",
    "    Tell what the client is capable of. Options are:",
    "    * REDIRECT",
    "      It follows redirections from a replica to its primary without a cluster.",
    "GETREDIR",
    "    Return the client ID we are redirecting to when tracking is enabled.",
    "GETNAME",
    "    Return the name of the current connection.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current client connection.",
    "KILL <ip:port>",
    "    Kill connection made from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Kill connections. Options are:",
    "    * ADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made from the specified address",
    "    * LADDR (<ip:port>|<unixsocket>:0)",
    "      Kill connections made to specified local address",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Kill connections by type.",
    "    * USER <username>",
    "      Kill connections authenticated by <username>.",
    "    * ID (<client-id> [<client-id>...])",
    "      Kill connections by their ids.",
    "    * MAXAGE (<seconds>), IDLE (<seconds>)",
    "      Kill connections that are so old, or have been idle for so long.",
    "    * NAME, LIB-NAME, LIB-VER, IP, DB, FLAGS, CAPA (<value>)",
    "      Kill connections that have this, and all of these flags.",
    "    * NOT-<option> (<value>)",
    "      Kill connections that have something else; not of MAXAGE, IDLE and SKIPME.",
    "    * SKIPME (YES|NO)",
    "      Skip killing current connection (default: yes).",
    "LIST [options ...]",
    "    Return information about client connections. Options:",
    "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
    "      Return clients of specified type.",
    "    * All others of KILL; SKIPME is NO by default.",
    "UNPAUSE",
    "    Stop the current client pause, resuming traffic.",
    "PAUSE <timeout> [WRITE|ALL]",
    "    Suspend all, or just write, clients for <timeout> milliseconds.",
    "REPLY (ON|OFF|SKIP)",
    "    Control the replies sent to the current connection.",
    "SETINFO <LIB-NAME|LIB-VER> <value>",
    "    Tell the name or version of the client library.",
    "SETNAME <name>",
    "    Assign the name <name> to the current connection.",
    "UNBLOCK <clientid> [TIMEOUT|ERROR]",
    "    Unblock the specified blocked client.",
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
    "         [OPTIN] [OPTOUT] [NOLOOP]",
    "    Control server assisted client side caching.",
    "TRACKINGINFO",
    "    Report tracking status for the current connection.",
    "NO-EVICT (ON|OFF)",
    "    Protect current client connection from eviction.",
    "NO-TOUCH (ON|OFF)",
    "    Leave the last use of the keys that this connection reads alone.",
];

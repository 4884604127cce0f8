//! `CONFIG`: the settings in force, and what a change brings about.

use std::sync::Arc;

use super::flags::{ADMIN, ANY_TIME};
use crate::clients::client::flag;
use crate::command::{Args, Result, Role};
use crate::commands::definition::{Definition, container, sub};
use crate::commands::help::help;
use crate::config::{Caller, Id, SetError, logging, settings, tls};
use crate::exec::core::{Ctx, Instance, peer_tls};
use crate::exec::run::client_eviction;
use crate::process;
use crate::protocol::error::Error;

/// `CONFIG GET parameter [parameter …]`
fn get(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let patterns: Vec<&[u8]> = args.from(2).iter().collect();
    let mut found = cx.config().get(&patterns);
    if cx.config().level().is_valkey() {
        found.sort_unstable();
    }
    cx.reply.map(found.len());
    for (name, value) in found {
        cx.reply.bulk(name.as_bytes());
        cx.reply.bulk(&value);
    }
    Ok(())
}

/// `CONFIG SET parameter value [parameter value …]`
fn set(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if !args.len().is_multiple_of(2) {
        return Err(Error::Syntax);
    }
    let pairs: Vec<(&[u8], &[u8])> = (2..args.len()).step_by(2).map(|at| (args.at(at), args.at(at + 1))).collect();
    let instance = cx.instance();
    let is_denied =
        |(name, _): &(&[u8], &[u8])| [&b"appendonly"[..], b"dir"].iter().any(|it| name.eq_ignore_ascii_case(it));
    if (instance.exclusive.is_loading() || instance.loading.is_aside()) && pairs.iter().any(is_denied) {
        return Err(Error::Loading);
    }
    let changed = instance.config.set_and(&pairs, caller(cx), |changed| {
        changed.iter().try_for_each(|&id| apply(instance, id).map_err(|reason| (id, reason)))
    });
    if changed.map_err(refused)?.contains(&settings::REQUIREPASS.id()) {
        instance.acl.set_default_password(&instance.config.text(settings::REQUIREPASS));
    }
    instance.observers.refresh(&instance.config);
    instance.refresh_usage();
    instance.cluster.refresh_settings(instance);
    client_eviction::recount(instance, cx.now());
    cx.reply.ok();
    Ok(())
}

/// Applies settings that take effect at once; all others are read at each use.
fn apply(instance: &Arc<Instance>, id: Id) -> std::result::Result<(), String> {
    let config = &instance.config;
    let is = |other: Id| id == other;
    if is(settings::MAXCLIENTS.id()) {
        let wanted = config.size(settings::MAXCLIENTS);
        let granted = instance.runtime().map_or(wanted, |runtime| runtime.set_max_connections(wanted));
        if granted < wanted {
            return Err(format!(
                "The operating system is not able to handle the specified number of clients, try with {granted}"
            ));
        }
    } else if is(settings::TRACKING_TABLE_MAX_KEYS.id()) {
        instance.tracking.limit(config);
    } else if is(settings::REPL_BACKLOG_SIZE.id()) {
        instance.replication.resize_backlog(instance);
    } else if is(settings::DIR.id()) {
        let dir = config.string(settings::DIR).unwrap_or_default();
        std::env::set_current_dir(&dir).map_err(|error| error.to_string())?;
    } else if [settings::OOM_SCORE_ADJ.id(), settings::OOM_SCORE_ADJ_VALUES.id()].contains(&id) {
        instance.set_oom_score().map_err(|error| format!("Failed to set the score: {error}"))?;
    } else if is(settings::PROC_TITLE_TEMPLATE.id()) {
        if let Some(title) = instance.process().and_then(|process| process.title.as_ref()) {
            title.refresh(config);
        }
    } else if is(settings::CRASH_LOG_ENABLED.id()) {
        process::enable_crash_reports(config.is_on(settings::CRASH_LOG_ENABLED));
    } else if is(settings::LOGLEVEL.id()) {
        server_runtime::set_log_level(logging::level(config)).map_err(|error| error.to_string())?;
    } else if let Some(runtime) = instance.runtime().filter(|_| tls::SETTINGS.contains(&id)) {
        tls::renew(config, runtime).map_err(|error| no_tls(id, &error))?;
    } else if is(settings::TLS_CLUSTER.id()) && config.is_on(settings::TLS_CLUSTER) {
        peer_tls::bus_config(config).map_err(|error| no_tls(id, &error))?;
    } else if is(settings::APPENDONLY.id()) {
        if !config.is_on(settings::APPENDONLY) {
            instance.aof.turn_off();
        } else if !instance.aof.is_on() {
            instance.aof.turn_on(instance).map_err(|error| {
                tracing::warn!("CONFIG SET appendonly: {error}");
                "Unable to turn on AOF. Check server logs."
            })?;
        }
    } else if is(settings::APPENDFSYNC.id()) {
        // Its own reply is the first that keeps the new promise.
        instance.aof.review(instance);
    } else if is(settings::AOF_DISABLE_AUTO_GC.id()) && !config.is_on(settings::AOF_DISABLE_AUTO_GC) {
        instance.aof.remove_history();
    } else if let Some((_, reason)) = FIXED.iter().find(|(fixed, _)| is(*fixed)) {
        tracing::warn!("CONFIG SET {}: the server listens where it was started", id.setting().name);
        return Err((*reason).to_owned());
    }
    Ok(())
}

fn no_tls(id: Id, error: &dyn std::fmt::Display) -> String {
    tracing::warn!("CONFIG SET {}: {error}", id.setting().name);
    "Unable to update TLS configuration. Check server logs.".to_owned()
}

const NO_PORT: &str = "Unable to listen on this port. Check server logs.";

/// Settings that cannot change at run time, with the error that Redis replies in such a case.
const FIXED: [(Id, &str); 3] = [
    (settings::PORT.id(), NO_PORT),
    (settings::TLS_PORT.id(), NO_PORT),
    (settings::BIND.id(), "Failed to bind to specified addresses."),
];

/// CONFIG REWRITE
fn rewrite(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    let users = cx.instance().acl.config_lines(cx.config());
    cx.config().rewrite(&users).map_err(refused)?;
    cx.reply.ok();
    Ok(())
}

/// CONFIG RESETSTAT
fn resetstat(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    cx.instance().stats.reset(cx.instance().totals());
    cx.instance().reaper.reset();
    cx.instance().shortage.reset();
    cx.instance().replication.figures.reset();
    cx.instance().acl.lock_log().reset_counts();
    cx.reply.ok();
    Ok(())
}

/// CONFIG HELP
fn config_help(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    help(cx, "CONFIG", HELP);
    Ok(())
}

fn refused(error: SetError) -> Error {
    Error::Message(format!("ERR {error}"))
}

/// Whether the client is on this machine.
pub(super) fn caller(cx: &Ctx<'_>) -> Caller {
    let client = &cx.client.shared;
    let unix = client.flags.load(std::sync::atomic::Ordering::Relaxed) & flag::UNIX != 0;
    let addr = client.addr.parse::<std::net::SocketAddr>();
    let local = unix || addr.is_ok_and(|addr| addr.ip().to_canonical().is_loopback());
    if local { Caller::Local } else { Caller::Remote }
}

const HELP: &[&str] = &[
    "GET <pattern>",
    "    Return parameters matching the glob-like <pattern> and their values.",
    "SET <directive> <value>",
    "    Set the configuration <directive> to <value>.",
    "RESETSTAT",
    "    Reset statistics reported by the INFO command.",
    "REWRITE",
    "    Rewrite the configuration file.",
];

/// The row.
#[rustfmt::skip]
pub(super) const COMMAND: Definition = container("config", -2, &[
    sub("get",       -3, get,         ADMIN,    &[]),
    sub("help",       2, config_help, ANY_TIME, &[]),
    sub("resetstat",  2, resetstat,   ADMIN,    &[]),
    sub("rewrite",    2, rewrite,     ADMIN,    &[]),
    sub("set",       -4, set,         ADMIN,    &[]).role(Role::ConfigSet).tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
]);

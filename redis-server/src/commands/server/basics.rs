//! The small ones: time, role, MONITOR, SHUTDOWN.

use crate::clients::client::flag;
use crate::command::{Args, Categories, Result};
use crate::exec::Ctx;
use crate::exec::clock::now_ms;
use crate::protocol::error::Error;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

/// ACL categories of what tells about the server's place among others.
pub(super) const ADMINISTRATIVE: Categories = Categories::ADMIN.and(Categories::DANGEROUS);

/// TIME
pub(super) fn time(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    cx.reply.array(2);
    cx.reply.bulk_int(now.as_secs() as i64);
    cx.reply.bulk_int(now.subsec_micros().into());
    Ok(())
}

/// LASTSAVE
pub(super) fn last_save(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    // As in the genuine server, the start counts as the first time; nothing is written to disk so far.
    cx.reply.int((cx.instance.started_at.min(now_ms()) / 1000) as i64);
    Ok(())
}

/// ROLE
pub(super) fn role(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    cx.reply.array(3);
    cx.reply.bulk(b"master");
    cx.reply.int(0);
    cx.reply.array(0);
    Ok(())
}

/// `LOLWUT [VERSION version]: rust, spreading over a plate.`
pub(super) fn lolwut(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    const COLUMNS: usize = 48;
    const ROWS: usize = 8;
    let mut text = String::new();
    for row in 0..ROWS {
        for _ in 0..COLUMNS {
            let shades: Vec<char> = " .:*#".chars().collect();
            let most = (row * shades.len()).div_ceil(ROWS).max(1);
            text.push(shades[cx.worker.random_below(most)]);
        }
        text.push('\n');
    }
    text.push_str(&format!(
        "\nIron does rust, slowly. Redis ver. {} (redis-server {})\n",
        crate::REDIS_VERSION,
        env!("CARGO_PKG_VERSION")
    ));
    cx.reply.verbatim(*b"txt", text.as_bytes());
    Ok(())
}

/// MONITOR
pub(super) fn monitor(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    let client = &cx.client.shared;
    if client.flags.load(Relaxed) & flag::MONITOR == 0 {
        client.set_flag(flag::MONITOR, true);
        cx.instance.observers.add_monitor(&cx.instance.config, client);
    }
    cx.reply.ok();
    Ok(())
}

/// `SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]`
pub(super) fn shutdown(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (mut save, mut nosave, mut now_or_force, mut abort) = (false, false, false, false);
    for at in 1..args.len() {
        match args.at(at).to_ascii_lowercase().as_slice() {
            b"save" => save = true,
            b"nosave" => nosave = true,
            b"now" | b"force" => now_or_force = true,
            b"abort" => abort = true,
            _ => return Err(Error::Syntax),
        }
    }
    if save && nosave || abort && (save || nosave || now_or_force) {
        return Err(Error::Syntax);
    }
    if abort {
        return Err(Error::Static("ERR No shutdown in progress."));
    }
    let Some(runtime) = cx.instance.runtime() else {
        return Err(Error::Static("ERR Errors trying to SHUTDOWN. Check logs."));
    };
    if save {
        tracing::warn!("SHUTDOWN SAVE: snapshots are not supported");
        return Err(Error::Static("ERR Errors trying to SHUTDOWN. Check logs."));
    }
    tracing::info!("SHUTDOWN by {}", cx.client.shared.addr);
    cx.client.close = true;
    // Every command has run to its end; idle connections have nothing to wait for.
    runtime.abort();
    Ok(())
}

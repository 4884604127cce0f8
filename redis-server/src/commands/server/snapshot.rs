//! Snapshots, and the end of the server.

use std::sync::atomic::Ordering::Relaxed;

use crate::command::{Args, Result};
use crate::commands::databases::empty;
use crate::exec::aof;
use crate::exec::core::Ctx;
use crate::exec::gate::Occupation;
use crate::exec::snapshot::{self, Merge, Occupied, Purpose, SaveAtEnd, Shutdown};
use crate::protocol::error::Error;

/// SAVE
pub(super) fn save(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    if cx.instance().background.is_running(Purpose::Snapshot) {
        return Err(IN_PROGRESS);
    }
    snapshot::save_views(cx.instance(), &cx.views()).map_err(|_| Error::Static("ERR"))?;
    cx.reply.ok();
    Ok(())
}

const IN_PROGRESS: Error = Error::Static("ERR Background save already in progress");

/// `BGSAVE [SCHEDULE]`
pub(super) fn bgsave(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let schedules = match args.len() {
        1 => false,
        2 if args.is(1, "SCHEDULE") => true,
        _ => return Err(Error::Syntax),
    };
    // Inside of a transaction, what it changes behind this must not be in the file, nor what it changed before be missing.
    let is_in_exec = !cx.may_wait();
    let begun = match cx.instance().background.running() {
        Some(running) => Err(Occupied(running.purpose)),
        None if is_in_exec => Err(Occupied(Purpose::AofBase)),
        None => snapshot::begin_now(cx.instance(), cx.still()?),
    };
    match begun {
        Ok(()) => cx.reply.simple("Background saving started"),
        Err(Occupied(Purpose::Snapshot | Purpose::Replicas | Purpose::Load)) => return Err(IN_PROGRESS),
        Err(Occupied(Purpose::AofBase)) if schedules || is_in_exec => {
            cx.instance().snapshots.schedule();
            cx.reply.simple("Background saving scheduled");
        }
        Err(Occupied(Purpose::AofBase)) => {
            return Err(Error::Static(
                "ERR The append-only file is being rewritten: BGSAVE SCHEDULE saves when that has ended.",
            ));
        }
    }
    Ok(())
}

/// LASTSAVE
pub(super) fn last_save(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    cx.reply.int(cx.instance().snapshots.saved_at() as i64);
    Ok(())
}

/// BGREWRITEAOF
pub(super) fn rewrite(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    let aof = &cx.instance().aof;
    if aof.figures.is_rewriting.load(Relaxed) {
        return Err(Error::Static("ERR Background append only file rewriting already in progress"));
    }
    // Inside of a transaction it begins when that has ended.
    let is_put_off = !cx.may_wait() || cx.instance().background.running().is_some();
    aof.rewrite(cx.instance(), is_put_off).map_err(|error| {
        tracing::warn!("BGREWRITEAOF: {error}");
        Error::Static(
            "ERR Can't execute an AOF background rewriting. Please check the server logs for more information.",
        )
    })?;
    let word = if is_put_off { "scheduled" } else { "started" };
    cx.reply.simple(&format!("Background append only file rewriting {word}"));
    Ok(())
}

/// DEBUG LOADAOF
pub(super) fn load_aof(cx: &mut Ctx<'_>) -> Result {
    let still = cx.still()?;
    let scripts = &cx.instance().scripts;
    scripts.with_engine(|engine| engine.flush_libraries(cx));
    aof::reload(cx, still).map_err(|error| {
        tracing::warn!("DEBUG LOADAOF: {error}");
        Error::Static("ERR Error trying to load the AOF files, check server logs.")
    })?;
    cx.forget_read_keys();
    tracing::warn!("Append Only File loaded by DEBUG LOADAOF");
    cx.reply.ok();
    Ok(())
}

/// `DEBUG RELOAD [NOSAVE] [NOFLUSH] [MERGE]`
pub(super) fn reload(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (mut saves, mut flushes, mut merge) = (true, true, Merge::Refuse);
    for at in 2..args.len() {
        match args.at(at).to_ascii_lowercase().as_slice() {
            b"nosave" => saves = false,
            b"noflush" => flushes = false,
            b"merge" => merge = Merge::Replace,
            _ => {
                return Err(Error::Static("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options."));
            }
        }
    }
    if saves {
        snapshot::save_views(cx.instance(), &cx.views()).map_err(|_| Error::Static("ERR"))?;
    }
    if flushes {
        (0..cx.instance().databases().len()).for_each(|db| empty(cx, db, false));
        cx.forget_read_keys();
        let scripts = &cx.instance().scripts;
        scripts.with_engine(|engine| engine.flush_libraries(cx));
    }
    let path = snapshot::path(cx.config());
    let loaded = cx.with_views(|cx, views| snapshot::load(cx, views, &path, merge));
    if let Err(error) = loaded {
        tracing::warn!("DEBUG RELOAD: {}: {error}", path.display());
        return Err(Error::Static("ERR Error trying to load the RDB dump, check server logs."));
    }
    tracing::warn!("DB reloaded by DEBUG RELOAD");
    // The data set equals the file.
    cx.forget_changes();
    cx.reply.ok();
    Ok(())
}

/// `SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]`
pub(super) fn shutdown(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (mut save, mut nosave, mut now, mut force, mut abort) = (false, false, false, false, false);
    for at in 1..args.len() {
        match args.at(at).to_ascii_lowercase().as_slice() {
            b"save" => save = true,
            b"nosave" => nosave = true,
            b"now" => now = true,
            b"force" => force = true,
            b"abort" => abort = true,
            _ => return Err(Error::Syntax),
        }
    }
    if save && nosave || abort && (save || nosave || now || force) {
        return Err(Error::Syntax);
    }
    if abort {
        if !cx.instance().ending.take_back() {
            return Err(Error::Static("ERR No shutdown in progress."));
        }
        tracing::info!("Shutdown manually aborted.");
        cx.reply.ok();
        return Ok(());
    }
    let Some(runtime) = cx.instance().runtime() else { return Err(snapshot::GOES_ON) };
    tracing::info!("User requested shutdown, by {}", cx.client.shared.addr);
    let save = match (save, nosave) {
        (true, _) => SaveAtEnd::Always,
        (_, true) => SaveAtEnd::Never,
        _ => SaveAtEnd::Configured,
    };
    let (is_busy, saves) =
        (cx.instance().exclusive.occupation() == Some(Occupation::Script), save.is_due(cx.instance()));
    if is_busy && saves {
        return Err(cx.instance().busy_error());
    }
    let has_replicas = !cx.instance().replication.replicas().is_empty();
    if cx.may_wait() && !is_busy && (saves || has_replicas && !now) {
        let shutdown = Shutdown { save, force, now };
        snapshot::shut_down(cx.instance(), shutdown, &cx.client.shared).map_err(|_| snapshot::GOES_ON)?;
        cx.block(0, 0..0, false);
        return Ok(());
    }
    cx.instance().background.abort_and_wait();
    cx.client.close = true;
    // Every command has run to its end; idle connections have nothing to wait for.
    runtime.abort();
    Ok(())
}

//! Snapshots, and the end of the server.

use crate::command::{Args, Footprint, Result};
use crate::commands::databases::empty;
use crate::exec::Ctx;
use crate::exec::snapshot::{self, Merge, SaveAtEnd};
use crate::exec::tracking;
use crate::keyspace::View;
use crate::protocol::error::Error;

/// SAVE
pub(super) fn save(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    snapshot::save_views(cx.instance, &views(cx)).map_err(|_| Error::Static("ERR"))?;
    cx.reply.ok();
    Ok(())
}

/// All databases in a call that has locked everything.
fn views<'c, 'a>(cx: &'c Ctx<'a>) -> Vec<&'c View<'a>> {
    let view = |(number, view): (usize, &'c View<'a>)| if number == cx.client.db { &cx.db } else { view };
    cx.others.iter().enumerate().map(view).collect()
}

/// LASTSAVE
pub(super) fn last_save(cx: &mut Ctx<'_>, _args: Args<'_>) -> Result {
    cx.reply.int(cx.instance.snapshots.saved_at() as i64);
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
        snapshot::save_views(cx.instance, &views(cx)).map_err(|_| Error::Static("ERR"))?;
    }
    if flushes {
        (0..cx.others.len()).for_each(|db| empty(cx, db, false));
        tracking::flushed(cx);
        let scripts = &cx.instance.scripts;
        scripts.with_engine(|engine| engine.flush_libraries(cx));
    }
    let path = snapshot::path(&cx.instance.config);
    let loaded = with_views(cx, |cx, views| snapshot::load(cx, views, &path, merge));
    if let Err(error) = loaded {
        tracing::warn!("DEBUG RELOAD: {}: {error}", path.display());
        return Err(Error::Static("ERR Error trying to load the RDB dump, check server logs."));
    }
    tracing::warn!("DB reloaded by DEBUG RELOAD");
    // What is here is what the file says.
    cx.dirty.set(0);
    cx.reply.ok();
    Ok(())
}

/// Calls `work` with all databases of a call that has locked everything; the call itself has none meanwhile.
fn with_views<'a, R>(cx: &mut Ctx<'a>, work: impl FnOnce(&mut Ctx<'a>, Vec<&mut View<'a>>) -> R) -> R {
    let db = cx.client.db;
    let mut views = std::mem::take(&mut cx.others);
    std::mem::swap(&mut cx.db, &mut views[db]);
    let result = work(cx, views.iter_mut().collect());
    std::mem::swap(&mut cx.db, &mut views[db]);
    cx.others = views;
    result
}

/// Who may save is alone with the data; who saves nothing, or takes back, need not be.
pub(super) fn locks_of_shutdown(args: Args<'_>) -> Footprint {
    let saves_nothing = (1..args.len()).any(|at| args.is(at, "NOSAVE") || args.is(at, "ABORT"));
    if saves_nothing { Footprint::Keys } else { Footprint::Alone }
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
        // Nobody is waited for at the end, so there is no time at which it could be taken back.
        return Err(Error::Static("ERR No shutdown in progress."));
    }
    let failed = Error::Static("ERR Errors trying to SHUTDOWN. Check logs.");
    let Some(runtime) = cx.instance.runtime() else { return Err(failed) };
    tracing::info!("User requested shutdown, by {}", cx.client.shared.addr);
    let wanted = match (save, nosave) {
        (true, _) => SaveAtEnd::Always,
        (_, true) => SaveAtEnd::Never,
        _ => SaveAtEnd::Configured,
    };
    if wanted.is_due(cx.instance) {
        snapshot::save_at_end(cx.instance, force).map_err(|_| failed)?;
    }
    cx.client.close = true;
    // Every command has run to its end; idle connections have nothing to wait for.
    runtime.abort();
    Ok(())
}

//! Values that go to another key or database.

use crate::command::{Args, DatabasePositions, Footprint, Result};
use crate::config::settings;
use crate::exec::Event;
use crate::exec::core::Ctx;
use crate::keyspace::{Entry, Key};
use crate::protocol::error::Error;

const SAME_OBJECT: Error = Error::Static("ERR source and destination objects are the same");

/// RENAME key newkey
pub(super) fn rename(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    move_to(cx, args, true)?;
    cx.reply.ok();
    Ok(())
}

/// RENAMENX key newkey
pub(super) fn renamenx(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let done = move_to(cx, args, false)?;
    cx.reply.int(done.into());
    Ok(())
}

/// Moves the entry of the first key to the second one; whether it did.
fn move_to(cx: &mut Ctx<'_>, args: Args<'_>, replace: bool) -> Result<bool> {
    let (from, to) = (args.key(0), args.key(1));
    if cx.db.get_mut(from).is_none() {
        return Err(Error::NoSuchKey);
    }
    if from.bytes == to.bytes || !replace && cx.db.get_mut(to).is_some() {
        return Ok(false);
    }
    let entry = cx.db.remove(from).ok_or(Error::NoSuchKey)?;
    put(cx, to, entry.renamed(to.bytes));
    cx.changed(from, Event::RENAME_FROM);
    cx.changed(to, Event::RENAME_TO);
    Ok(true)
}

/// Stores an entry. The configuration decides how the replaced entry is freed.
fn put(cx: &mut Ctx<'_>, key: &Key<'_>, entry: Entry) {
    if let Some(replaced) = cx.db.put(key, entry) {
        let in_background = cx.config().is_on(settings::LAZYFREE_LAZY_SERVER_DEL);
        cx.discard(replaced, in_background);
    }
}

/// The lock footprint of COPY: all databases if it has the option `DB`.
pub(super) fn copy_footprint(args: Args<'_>) -> Footprint {
    let elsewhere = (3..args.len()).any(|at| args.is(at, "DB"));
    if elsewhere { Footprint::Everything } else { Footprint::Keys }
}

/// The options of COPY.
enum CopyOption {
    Replace,
    /// The database whose number stands at this position.
    Into(usize),
}

/// The options of COPY.
fn copy_options(args: Args<'_>) -> impl Iterator<Item = Result<CopyOption>> {
    let mut at = 3;
    std::iter::from_fn(move || {
        let option = match at {
            _ if at >= args.len() => return None,
            _ if args.is(at, "REPLACE") => Ok(CopyOption::Replace),
            _ if args.is(at, "DB") && at + 1 < args.len() => Ok(CopyOption::Into(at + 1)),
            _ => Err(Error::Syntax),
        };
        at += if matches!(option, Ok(CopyOption::Into(_))) { 2 } else { 1 };
        Some(option)
    })
}

/// Where COPY names databases: all of them count, though the last one is taken.
pub(super) fn copied_to(args: Args<'_>) -> DatabasePositions {
    let named = |option| match option {
        Ok(CopyOption::Replace) => None,
        Ok(CopyOption::Into(at)) => Some(Ok(at)),
        Err(error) => Some(Err(error)),
    };
    copy_options(args).filter_map(named).collect::<Result<_>>().unwrap_or_default()
}

/// Where MOVE names a database.
pub(super) fn moved_to(_: Args<'_>) -> DatabasePositions {
    DatabasePositions::from_slice(&[2])
}

/// `COPY source destination [DB destination-db] [REPLACE]`
pub(super) fn copy(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let (from, to) = (args.key(0), args.key(1));
    let here = cx.client.db;
    let (mut db, mut replace) = (here, false);
    for option in copy_options(args) {
        match option? {
            CopyOption::Replace => replace = true,
            CopyOption::Into(at) => db = database(cx, args, at)?,
        }
    }
    if db != 0 && cx.instance.cluster.is_enabled() {
        return Err(Error::Static("ERR Copying to another database is not allowed in cluster mode"));
    }
    if db == here && from.bytes == to.bytes {
        return Err(SAME_OBJECT);
    }
    let copy = cx.db.get(from).map(|entry| entry.copied(to.bytes));
    let done = copy.is_some_and(|copy| {
        copy.set_access(cx.database().usage().fresh(cx.now()));
        put_in(cx, db, to, copy, replace, Event::COPY_TO)
    });
    cx.reply.int(done.into());
    Ok(())
}

/// MOVE key db
pub(super) fn move_key(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if cx.instance.cluster.is_enabled() {
        return Err(Error::Static("ERR MOVE is not allowed in cluster mode"));
    }
    let key = args.key(0);
    let db = database(cx, args, 2)?;
    if db == cx.client.db {
        return Err(SAME_OBJECT);
    }
    let there = |cx: &mut Ctx<'_>| in_database(cx, db, |cx| cx.db.get_mut(key).is_some());
    if cx.db.get_mut(key).is_none() || there(cx) {
        cx.reply.int(0);
        return Ok(());
    }
    if let Some(entry) = cx.db.remove(key) {
        in_database(cx, db, |cx| put(cx, key, entry));
        cx.changed(key, Event::MOVE_FROM);
        cx.changed_in(db, key, Event::MOVE_TO);
    }
    cx.reply.int(1);
    Ok(())
}

/// Stores an entry in database `db`, unless the key is there and may not be replaced; whether it did.
fn put_in(cx: &mut Ctx<'_>, db: usize, key: &Key<'_>, entry: Entry, replace: bool, event: Event) -> bool {
    in_database(cx, db, |cx| {
        let free = replace || cx.db.get_mut(key).is_none();
        if free {
            put(cx, key, entry);
            cx.changed(key, event);
        }
        free
    })
}

/// Calls `run` with database `db` in the place of the client's. All databases hash alike, so keys stay valid.
fn in_database<R>(cx: &mut Ctx<'_>, db: usize, run: impl FnOnce(&mut Ctx<'_>) -> R) -> R {
    let here = cx.client.db;
    cx.select(db);
    let result = run(cx);
    cx.select(here);
    result
}

/// Argument `index` as the number of a database.
fn database(cx: &Ctx<'_>, args: Args<'_>, index: usize) -> Result<usize> {
    let number = i32::try_from(args.int(index)?).map_err(|_| Error::NotInt32)?;
    usize::try_from(number).ok().filter(|&db| db < cx.instance().databases().len()).ok_or(Error::DbIndex)
}

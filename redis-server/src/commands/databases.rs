//! Whole databases: the part of <https://redis.io/docs/latest/commands/?group=server> that is about keys.

use crate::command::{Args, Categories, DatabasePositions, Flags, Footprint, Reach, Result, Weight};
use crate::commands::definition::{Family, cmd};
use crate::config::settings;
use crate::exec::core::Ctx;
use crate::exec::{search, snapshot};
use crate::keyspace::{Access, Database, Garbage, Key, Removed, View};
use crate::protocol::error::Error;

/// DBSIZE
fn dbsize(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    cx.reply.count(cx.db.shown_len());
    Ok(())
}

/// `FLUSHDB [ASYNC|SYNC]`
fn flushdb(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let in_background = in_background(cx, args)?;
    empty(cx, cx.client.db, in_background);
    cx.forget_read_keys();
    cx.instance().cluster.flushed(cx.instance());
    // An empty database may have keys elsewhere.
    cx.verbatim(args);
    cx.reply.ok();
    Ok(())
}

/// `FLUSHALL [ASYNC|SYNC]`
fn flushall(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    let in_background = in_background(cx, args)?;
    for db in 0..cx.instance().databases().len() {
        empty(cx, db, in_background);
    }
    cx.forget_read_keys();
    cx.instance().cluster.flushed(cx.instance());
    // Behind a FLUSHALL in an append-only file stands the data that came later: no snapshot shows that moment.
    if !cx.worker.loads_file
        && snapshot::flushed(cx.instance())
        && snapshot::save_views(cx.instance(), &cx.views()).is_ok()
    {
        // The file holds this state, so changes count from here on.
        cx.forget_changes();
    }
    // An empty database may have keys elsewhere.
    cx.verbatim(args);
    cx.reply.ok();
    Ok(())
}

/// Whether the entries are to be freed by another thread.
fn in_background(cx: &Ctx<'_>, args: Args<'_>) -> Result<bool> {
    match args.len() {
        1 => Ok(cx.config().is_on(settings::LAZYFREE_LAZY_USER_FLUSH)),
        2 if args.is(1, "ASYNC") => Ok(true),
        2 if args.is(1, "SYNC") => Ok(false),
        _ => Err(Error::Syntax),
    }
}

/// Takes everything out of a database; transactions that watch one of its keys fail.
pub(super) fn empty(cx: &mut Ctx<'_>, db: usize, in_background: bool) {
    cx.all_ready(db);
    if db == 0 {
        search::flush(cx);
    }
    let db = cx.view_mut(db);
    db.database().touch_where(|key| db.peek(key).is_some());
    let (database, removed) = (db.database(), db.clear());
    let keys: usize = removed.iter().map(Removed::len).sum();
    cx.count_changes(keys as u64);
    for removed in database.save_removed(removed) {
        cx.discard_all(Garbage::Entries(removed), in_background);
    }
}

/// SWAPDB index1 index2
fn swapdb(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if cx.instance.cluster.is_enabled() {
        return Err(Error::Static("ERR SWAPDB is not allowed in cluster mode"));
    }
    let number =
        |index, text| args.int(index).ok().and_then(|number| i32::try_from(number).ok()).ok_or(Error::Static(text));
    let first = number(1, "ERR invalid first DB index")?;
    let second = number(2, "ERR invalid second DB index")?;
    let index =
        |number| usize::try_from(number).ok().filter(|&db| db < cx.instance().databases().len()).ok_or(Error::DbIndex);
    let (first, second) = (index(first)?, index(second)?);
    if first != second {
        swap(cx, first, second);
    }
    cx.count_changes(1);
    cx.reply.ok();
    Ok(())
}

/// Where SWAPDB names databases.
fn swapped(_: Args<'_>) -> DatabasePositions {
    DatabasePositions::from([1, 2])
}

/// Exchanges the entries of two databases; clients that watch or wait for a key find it changed.
fn swap(cx: &mut Ctx<'_>, first: usize, second: usize) {
    let (low, high) = (first.min(second), first.max(second));
    let (a, b) = cx.two_views(low, high);
    for db in [a.database(), b.database()] {
        // All databases hash alike: a key of one can be looked up in the other.
        // One whose time is over counts as absent on both sides.
        let lives = |view: &View<'_>, key: &Key<'_>| view.peek(key).is_some();
        db.touch_where(|key| lives(a, key) || lives(b, key));
    }
    Database::swap(a, b);
    cx.all_ready(low);
    cx.all_ready(high);
}

const DANGEROUS: Categories = Categories::KEYSPACE.and(Categories::DANGEROUS);
const FLUSH: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];
const COUNT: &[&str] = &["request_policy:all_shards", "response_policy:agg_sum"];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "server", category: Categories(0), commands: &[
    cmd("dbsize",    1, dbsize,   Flags::READONLY.and(Flags::FAST), &[]).also(Categories::KEYSPACE).tips(COUNT).locks(Footprint::Walk),
    cmd("flushall", -1, flushall, Flags::WRITE,                     &[]).also(DANGEROUS).tips(FLUSH).locks(Footprint::Everything).reaches(Reach::All).weighs(Weight::Much),
    cmd("flushdb",  -1, flushdb,  Flags::WRITE,                     &[]).also(DANGEROUS).tips(FLUSH).locks(Footprint::Database(Access::Write)).weighs(Weight::Much),
    cmd("swapdb",    3, swapdb,   Flags::WRITE.and(Flags::FAST),    &[]).also(DANGEROUS).locks(Footprint::Everything).reaches(Reach::Named(swapped)),
] };

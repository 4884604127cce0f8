//! Whole databases: the part of <https://redis.io/docs/latest/commands/?group=server> that is about keys.

use crate::command::{Args, Categories, Ctx, Family, Flags, Footprint, Result, cmd};
use crate::config::settings;
use crate::db::{Access, Removed, View};
use crate::error::Error;

/// DBSIZE
fn dbsize(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    cx.reply.count(cx.db.len());
    Ok(())
}

/// FLUSHDB [ASYNC|SYNC]
fn flushdb(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    in_background(cx, args)?;
    let removed = empty(&mut cx.db);
    cx.dirty += count(&removed);
    cx.reply.ok();
    Ok(())
}

/// FLUSHALL [ASYNC|SYNC]
fn flushall(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    in_background(cx, args)?;
    for db in std::iter::once(&mut cx.db).chain(&mut cx.others) {
        let removed = empty(db);
        cx.dirty += count(&removed);
    }
    cx.reply.ok();
    Ok(())
}

/// Whether the entries are to be freed by another thread.
fn in_background(cx: &Ctx<'_>, args: Args<'_>) -> Result<bool> {
    match args.len() {
        1 => Ok(cx.instance.config.is_on(settings::LAZYFREE_LAZY_USER_FLUSH)),
        2 if args.is(1, "ASYNC") => Ok(true),
        2 if args.is(1, "SYNC") => Ok(false),
        _ => Err(Error::Syntax),
    }
}

/// Takes everything out of a database; transactions that watch one of its keys fail.
fn empty(db: &mut View<'_>) -> Vec<Removed> {
    db.database().watched.touch_where(|key| db.holds(&db.key(key)));
    db.clear()
}

fn count(removed: &[Removed]) -> u64 {
    removed.iter().map(|removed| removed.len() as u64).sum()
}

const DANGEROUS: Categories = Categories::KEYSPACE.and(Categories::DANGEROUS);
const FLUSH: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "server", category: Categories(0), commands: &[
    cmd("dbsize",    1, dbsize,   Flags::READONLY.and(Flags::FAST), &[]).also(Categories::KEYSPACE).tips(&["request_policy:all_shards", "response_policy:agg_sum"]),
    cmd("flushall", -1, flushall, Flags::WRITE, &[]).also(DANGEROUS).tips(FLUSH).locks(Footprint::Everything),
    cmd("flushdb",  -1, flushdb,  Flags::WRITE, &[]).also(DANGEROUS).tips(FLUSH).locks(Footprint::Database(Access::Write)),
] };

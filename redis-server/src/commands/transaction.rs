//! Transactions (<https://redis.io/docs/latest/commands/?group=transactions>).

use std::sync::atomic::Ordering::Relaxed;

use crate::clients::client::{Multi, count, flag};
use crate::command::{Args, Begin, Categories, Find, Flags, KeySpec, Result, Role, Use};
use crate::commands::definition::{Family, cmd};
use crate::exec::core::Ctx;
use crate::exec::run::transaction::{discard_transaction, forget_watched, not_inside, note_watched};
use crate::exec::run::{permission, window};
use crate::keyspace::{Access, Entry};
use crate::protocol::error::Error;

/// MULTI
fn multi(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    if cx.client.multi.is_some() {
        return Err(refuse_inside(cx, "multi", "ERR MULTI calls can not be nested"));
    }
    cx.client.multi = Some(Box::new(Multi::default()));
    cx.client.shared.set_flag(flag::MULTI, true);
    cx.client.shared.counts[count::MULTI].store(1, Relaxed);
    cx.reply.ok();
    Ok(())
}

/// The error of MULTI and WATCH inside a transaction. Valkey aborts the transaction.
fn refuse_inside(cx: &mut Ctx<'_>, name: &str, of_redis: &'static str) -> Error {
    if !cx.config().level().is_valkey() {
        return Error::Static(of_redis);
    }
    cx.client.multi.iter_mut().for_each(|multi| multi.aborted = true);
    not_inside(name)
}

/// EXEC
fn exec(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    let Some(multi) = cx.client.multi.take() else { return Err(Error::Static("ERR EXEC without MULTI")) };
    let touched = cx.client.shared.watched.is_touched() || cx.client.watch_until.is_some_and(|until| until <= cx.now());
    // The transaction's own changes must not be looked for among the watched keys.
    discard_transaction(cx.instance(), cx.client);
    if multi.aborted {
        return Err(Error::Static("EXECABORT Transaction discarded because of previous errors."));
    }
    if touched {
        cx.reply.null_array();
        return Ok(());
    }
    cx.reply.array(multi.queue.len());
    cx.without_waiting(|cx| {
        for (row, args) in &multi.queue {
            match permission::recheck(cx, row, args.args()) {
                Ok(()) => window::run_queued(cx, row, args.args()),
                Err(error) => {
                    cx.refused(row, &error);
                    cx.reply.error(&error);
                }
            }
        }
    });
    Ok(())
}

/// DISCARD
fn discard(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    if cx.client.multi.is_none() {
        return Err(Error::Static("ERR DISCARD without MULTI"));
    }
    discard_transaction(cx.instance(), cx.client);
    cx.reply.ok();
    Ok(())
}

/// `WATCH key [key …]`
fn watch(cx: &mut Ctx<'_>, args: Args<'_>) -> Result {
    if cx.client.multi.is_some() {
        return Err(refuse_inside(cx, "watch", "ERR WATCH inside MULTI is not allowed"));
    }
    for key in args.keys() {
        // A key whose time is over counts as absent, and its removal is no change.
        let (now, stored) = (cx.now(), cx.db.stored(key));
        let was_over = stored.is_some_and(|entry| entry.is_expired(now));
        let expires = stored.and_then(Entry::expire_at).filter(|_| !was_over);
        let client = &mut *cx.client;
        if client.watching.insert((client.db, key.bytes.into())) {
            // A change of the deadline touches the key, so the deadline of now is enough.
            client.watch_until = client.watch_until.into_iter().chain(expires).min();
            cx.db.database().watch(key, &client.shared.watched, was_over);
        }
    }
    note_watched(cx.client);
    cx.reply.ok();
    Ok(())
}

/// UNWATCH
fn unwatch(cx: &mut Ctx<'_>, _: Args<'_>) -> Result {
    forget_watched(cx.instance(), cx.client);
    cx.reply.ok();
    Ok(())
}

const FLAGS: Flags = Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE);
const QUICK: Flags = FLAGS.and(Flags::FAST).and(Flags::ALLOW_BUSY);

/// Locked for writing, so that a thread that changes a key sees all its watchers.
const WATCHED: KeySpec = KeySpec {
    begin: Begin::Index(1),
    find: Find::Range { last: -1, step: 1, limit: 0 },
    usage: Use { access: Access::Write, flags: "RO" },
};

/// The table.
#[rustfmt::skip]
pub(super) static FAMILY: Family = Family { group: "transactions", category: Categories::TRANSACTION, commands: &[
    cmd("discard", 1, discard, QUICK,                           &[]).role(Role::Discard),
    cmd("exec",    1, exec,    FLAGS.and(Flags::SKIP_SLOWLOG),  &[]).role(Role::Exec),
    cmd("multi",   1, multi,   QUICK,                           &[]).role(Role::Begin),
    cmd("unwatch", 1, unwatch, QUICK,                           &[]),
    cmd("watch",  -2, watch,   QUICK,                           &[WATCHED]).role(Role::Begin),
] };

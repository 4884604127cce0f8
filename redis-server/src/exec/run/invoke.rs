//! A call's keys and locks, and the call of its handler.

use std::time::Instant;

use smallvec::SmallVec;

use super::panics::Blame;
use super::tracking;
use crate::clients::client::{Client, Multi, ReplyMode, flag};
use crate::command::{Args, Flags, Footprint, Role, Row};
use crate::exec::core::{Call, Ctx, Ready, Worker};
use crate::exec::gate::Marks;
use crate::keyspace::{Access, Database, Key, View, begin_call};
use crate::protocol::{Mark, Reply};

/// Whether a call that runs alone needs that the server stands still.
pub(crate) fn needs_still(call: &Call<'_>, client: &Client) -> bool {
    has_footprint(call.row, call.args, client, |footprint| matches!(footprint, Footprint::Still))
}

#[inline]
pub(crate) fn has_footprint(row: &Row, args: Args<'_>, client: &Client, is: impl Fn(Footprint) -> bool) -> bool {
    match &client.multi {
        Some(multi) if row.command.role == Role::Exec => {
            multi.queue.iter().any(|(row, args)| is(row.command.footprint_of(args.args())))
        }
        _ => is(row.command.footprint_of(args)),
    }
}

/// Most commands that run under one set of locks: enough for their cache misses to overlap, few enough that other
/// workers do not wait long.
pub const WINDOW: usize = 32;

/// Says what becomes of keys whose time is over; where `others_decide`, they stay.
#[inline]
pub(crate) fn treat_expired(db: &mut View<'_>, worker: &Worker, client: &Client, others_decide: bool) {
    let instance = &*worker.instance;
    let is_importing = instance.is_importing();
    if is_importing {
        db.keep_lasting();
    }
    // A client that brings imported data sees all of it.
    if worker.loads || is_importing && client.shared.has_flag(flag::IMPORTS) {
        db.ignore_expiry();
    } else if others_decide
        || instance.keeps_expired()
        || instance.may_be_paused() && instance.paused(db.now()).is_some()
    {
        db.keep_expired();
    }
}

pub(crate) type Keys<'a> = SmallVec<[(Key<'a>, Access); WINDOW]>;

/// Appends the keys of a call, hashed, with what it does to them.
#[inline]
pub(crate) fn collect_keys<'a>(database: &Database, call: &Call<'a>, keys: &mut Keys<'a>) {
    let command = call.row.command;
    if command.only_key != 0 {
        let (key, access) = only_key(call);
        keys.push((database.key(key), access));
    } else if !command.keys.is_empty() {
        let positions = command.key_positions(call.args);
        keys.extend(positions.into_iter().map(|(at, access)| (database.key(call.args.at(at)), access)));
    }
}

/// The keys of a call, or of all those that EXEC will run, hashed.
pub(crate) fn declared_keys<'a>(database: &Database, client: &'a Client, call: &Call<'a>) -> Keys<'a> {
    let mut keys = Keys::new();
    match queue_of(std::slice::from_ref(call), client) {
        Some(multi) => multi.queue.iter().for_each(|(row, args)| {
            collect_keys(database, &Call { row, args: args.args() }, &mut keys);
        }),
        None => collect_keys(database, call, &mut keys),
    }
    keys
}

/// The key of a call whose row says where its only one is, and what it does to it.
#[inline]
pub(crate) fn only_key<'a>(call: &Call<'a>) -> (&'a [u8], Access) {
    let command = call.row.command;
    // Arity guarantees that the argument is there.
    (call.args.at(command.only_key.into()), command.only_access)
}

/// Takes the locks of a window: the view of the client's database, and the others' if everything is locked.
pub(crate) fn lock<'a>(
    worker: &'a Worker,
    client: &Client,
    calls: &[Call<'_>],
    keys: &mut Keys<'_>,
) -> (View<'a>, Vec<View<'a>>) {
    let instance = &*worker.instance;
    let database = instance.database(client.db);
    let now = worker.now_ms();
    match footprint(calls, client.multi.as_deref()) {
        Footprint::Keys | Footprint::Walk | Footprint::WalkEverything if worker.is_slow() => {
            // It borrows its keys.
            (database.lock_none(now), Vec::new())
        }
        Footprint::Keys | Footprint::Walk | Footprint::WalkEverything => match calls {
            [call] if queue_of(calls, client).is_some() => {
                let all = declared_keys(database, client, call);
                (database.lock(all.iter().map(|(key, access)| (key.shard(), *access)), now), Vec::new())
            }
            _ => (database.lock_keys(keys, now), Vec::new()),
        },
        Footprint::Free | Footprint::Alone | Footprint::Still => (database.lock_none(now), Vec::new()),
        Footprint::Database(access) => (database.lock_all(access, now), Vec::new()),
        Footprint::Everything | Footprint::Depends(_) => {
            let mut others: Vec<_> = instance.databases().iter().map(|db| db.lock_all(Access::Write, now)).collect();
            let db = std::mem::replace(&mut others[client.db], database.lock_none(now));
            (db, others)
        }
    }
}

/// The locks of a call, as marks. For a slow call: all that it has to mark. For a call that is to run (`walks`): also those
/// that it takes on its way.
pub(crate) fn marks(worker: &Worker, client: &Client, call: &Call<'_>, walks: bool) -> Marks {
    let database = worker.instance.database(client.db);
    let whole = |db, access| Marks::Whole { db, access };
    match footprint(std::slice::from_ref(call), client.multi.as_deref()) {
        Footprint::Walk if walks => Marks::Walk { db: Some(client.db) },
        Footprint::WalkEverything if walks => Marks::Walk { db: None },
        Footprint::Keys | Footprint::Walk | Footprint::WalkEverything => {
            let keys = declared_keys(database, client, call);
            Marks::keys(client.db, keys.iter().map(|(key, access)| (key.hash(), *access)))
        }
        Footprint::Free | Footprint::Alone | Footprint::Still => Marks::None,
        Footprint::Database(access) => whole(Some(client.db), access),
        Footprint::Everything | Footprint::Depends(_) => whole(None, Access::Write),
    }
}

/// The transaction whose keys must be locked too, if the call is EXEC.
pub(crate) fn queue_of<'c>(calls: &[Call<'_>], client: &'c Client) -> Option<&'c Multi> {
    matches!(calls, [call] if call.row.command.role == Role::Exec).then_some(client.multi.as_deref()).flatten()
}

/// The footprint of the calls; EXEC's is that of all commands it will run.
pub(crate) fn footprint(calls: &[Call<'_>], multi: Option<&Multi>) -> Footprint {
    let [call] = calls else { return Footprint::Keys };
    match multi {
        Some(multi) if call.row.command.role == Role::Exec => footprint_of_queue(multi),
        _ => call.row.command.footprint_of(call.args),
    }
}

/// The widest footprint among the commands of a transaction.
pub(crate) fn footprint_of_queue(multi: &Multi) -> Footprint {
    let (mut whole, mut access) = (false, Access::Read);
    for (row, args) in &multi.queue {
        let command = row.command;
        if command.flags.has(Flags::WRITE) {
            access = Access::Write;
        }
        match command.footprint_of(args.args()) {
            // Keys behind a SELECT belong to a database that is not known yet; a survey looks into all
            // databases, which it must not wait for while it holds a part of one.
            _ if matches!(command.role, Role::Select | Role::Survey) => return Footprint::Everything,
            Footprint::WalkEverything
            | Footprint::Everything
            | Footprint::Free
            | Footprint::Alone
            | Footprint::Still
            | Footprint::Depends(_) => return Footprint::Everything,
            Footprint::Database(wanted) => {
                access = access.max(wanted);
                whole = true;
            }
            Footprint::Walk => whole = true,
            Footprint::Keys => {}
        }
    }
    if whole { Footprint::Database(access) } else { Footprint::Keys }
}

/// Runs a command of one that is alone with the data, a script or a transaction, under locks of its own, and accounts for
/// it. Returns keys that clients wait for and that have become ready.
pub(crate) fn run_among_others<'a>(
    worker: &'a Worker,
    client: &'a mut Client,
    row: &'static Row,
    args: Args<'_>,
    reply: &'a mut Reply,
) -> Vec<Ready> {
    let instance = &*worker.instance;
    let call = Call { row, args };
    let mut keys: Keys<'_> = SmallVec::new();
    collect_keys(instance.database(client.db), &call, &mut keys);
    let (mut db, others) = lock(worker, client, &[call], &mut keys);
    treat_expired(&mut db, worker, client, false);
    let keys: SmallVec<[Key<'_>; 4]> = keys.iter().map(|(key, _)| *key).collect();
    let mut cx = Ctx::new(worker, db, reply, client);
    cx.others = others;
    cx.may_block = false;
    timed_inside(&mut cx, &Call { row, args: args.with_keys(&keys) });
    std::mem::take(&mut cx.ready)
}

/// Runs a call and accounts for it alone.
pub(crate) fn timed(cx: &mut Ctx<'_>, call: &Call<'_>) {
    let began = Instant::now();
    invoke(cx, call);
    cx.worker.finished(cx, call, began.elapsed().as_nanos() as u64);
}

/// [`timed`] for a call that has come with another one, in a transaction or a script.
pub(crate) fn timed_inside(cx: &mut Ctx<'_>, call: &Call<'_>) {
    let before = cx.reply.len();
    timed(cx, call);
    cx.worker.replied(cx, call, cx.reply.len() - before);
}

/// Calls the handler; an error takes the place of what it wrote.
#[inline(always)]
#[allow(clippy::inline_always, reason = "measured: every command of a window passes here")]
pub fn invoke(cx: &mut Ctx<'_>, call: &Call<'_>) {
    if cx.journaled { invoke_journaled(cx, call) } else { invoke_handler(cx, call) }
}

/// [`invoke`] where somebody is told what the call changes.
#[inline(never)]
pub(crate) fn invoke_journaled(cx: &mut Ctx<'_>, call: &Call<'_>) {
    cx.begin_call();
    invoke_handler(cx, call);
    cx.end_call(call.args);
}

#[inline(always)]
#[allow(clippy::inline_always, reason = "measured: every command of a window passes here")]
pub(crate) fn invoke_handler(cx: &mut Ctx<'_>, call: &Call<'_>) {
    let mark = cx.reply.mark();
    let mode = cx.client.reply_mode;
    begin_call();
    let blame = Blame::new(cx.worker, call.row);
    let result = (cx.instance.handlers[usize::from(call.row.id)])(cx, call.args);
    blame.lift();
    if let Err(error) = result {
        cx.reply.truncate(mark);
        cx.reply.error(&error);
        cx.worker.failed(call.row, &error);
    }
    if mode != ReplyMode::On || cx.client.reply_mode != ReplyMode::On {
        muffle(cx, call.row, mode, mark);
    }
    if cx.client.tracking.is_some() {
        tracking::after_call(cx, call);
    }
}

/// Drops the reply of a client that wanted none when the command began.
#[cold]
pub(crate) fn muffle(cx: &mut Ctx<'_>, row: &Row, before: ReplyMode, mark: Mark) {
    let now = cx.client.reply_mode;
    // A subscriber's messages are no replies.
    let pushes = row.command.flags.has(Flags::PUBSUB.and(Flags::NOSCRIPT));
    if now != ReplyMode::On && matches!(before, ReplyMode::Off | ReplyMode::Skip) && !pushes {
        cx.reply.truncate(mark);
    }
    // CLIENT REPLY SKIP inside of a transaction takes effect behind it.
    if cx.may_block {
        cx.client.reply_mode = match now {
            ReplyMode::SkipNext => ReplyMode::Skip,
            ReplyMode::Skip => ReplyMode::On,
            ReplyMode::On | ReplyMode::Off => now,
        };
    }
}

//! Windows: calls that run under one set of locks, and what comes before and behind them.

use arrayvec::ArrayVec;
use smallvec::SmallVec;

use super::invoke::WINDOW;
use crate::clients::client::{Client, ReplyMode};
use crate::command::{Args, Row, Weight};
use crate::exec::core::{Call, Ctx, Ready, Worker};
use crate::exec::run::admission::{self, refuse};
use crate::exec::run::invoke::{
    Keys, collect_keys, declared_keys, invoke, lock, only_key, run_among_others, timed, timed_inside, treat_expired,
};
use crate::exec::run::judge::{self, Refused};
use crate::exec::run::parked::{self, Waiting};
use crate::exec::run::{blocking, slow, tracking};
use crate::exec::{eviction, gate};
use crate::keyspace::{self, Access, Key, View};
use crate::protocol::Reply;
use crate::protocol::error::Error;

/// The outcome of a window.
pub(crate) struct Window {
    /// Calls that have run. None: the only one is slow, and this is a worker's thread; or it is `paused`.
    pub(crate) done: usize,
    /// Keys that clients wait for and that have become ready.
    pub(crate) ready: Vec<Ready>,
    /// The wait of the only call.
    pub(crate) waiting: Option<Waiting>,
    /// Until when the only call waits because its slot is about to be another node's.
    pub(crate) paused: Option<u64>,
}

impl Window {
    /// Nothing has run.
    fn none() -> Self {
        Self { done: 0, ready: Vec::new(), waiting: None, paused: None }
    }
}

/// Before a window takes its locks: makes room in memory, and delivers messages that must precede any reply. A slow call
/// has had its room when it was admitted; the copies of its arguments evict nothing more.
#[inline]
fn before_window(worker: &Worker, client: &Client, reply: &mut Reply) {
    worker.tick();
    if !worker.is_slow() && worker.instance.is_short_of_memory() {
        eviction::make_room_inside(worker);
    }
    if client.tracking.is_some() {
        tracking::deliver(client, reply);
    }
}

/// Runs calls under one set of locks until one makes a key ready that a client waits for.
pub(crate) fn run_window(worker: &Worker, client: &mut Client, calls: &[Call<'_>], reply: &mut Reply) -> Window {
    before_window(worker, client, reply);
    match calls {
        [call] if worker.is_slow() || !call.row.command.batches(call.args.len()) => {
            run_one(worker, client, call, reply)
        }
        _ => run_batch(worker, client, calls, reply),
    }
}

/// Runs a call with any number of keys.
fn run_one(worker: &Worker, client: &mut Client, call: &Call<'_>, reply: &mut Reply) -> Window {
    let mut keys: Keys<'_> = SmallVec::new();
    collect_keys(worker.instance.database(client.db), call, &mut keys);
    let (mut db, others) = lock(worker, client, std::slice::from_ref(call), &mut keys);
    prepare(&mut db, worker, client);
    if worker.is_slow() && others.is_empty() && !db.is_locking() {
        let database = db.database();
        gate::lend(&mut db, &declared_keys(database, client, call));
    }
    if worker.routes
        && let Err(refused) = judge::judge_locked(&worker.instance, client, call, &db, &keys)
    {
        drop((db, others));
        let error = match refused {
            Refused::Because(error) => error,
            Refused::Until(until) if worker.goes_on.get() => return Window { paused: Some(until), ..Window::none() },
            // Its connection waits for an answer, wherever this thread is.
            Refused::Until(_) => Error::Elsewhere(judge::HELD.to_owned()),
        };
        refuse(worker, client, Some(call.row), error, reply);
        return Window { done: 1, ..Window::none() };
    }
    let keys: SmallVec<[Key<'_>; 4]> = keys.iter().map(|(key, _)| *key).collect();
    let call = Call { args: call.args.with_keys(&keys), ..*call };
    if worker.goes_on.get()
        && (slow::meets_much(&db, client, &call)
            || may_be_slow_to_change(worker) && is_slow_to_change(&db, client, &call))
    {
        return Window::none();
    }
    let mut cx = Ctx::new(worker, db, reply, client);
    cx.others = others;
    let muted = matches!(cx.client.reply_mode, ReplyMode::Off | ReplyMode::Skip);
    let before = cx.reply.len();
    invoke(&mut cx, &call);
    worker.finished(&cx, &call, worker.tick());
    worker.sized(&cx, &call, cx.reply.len() - before);
    let waiting = cx.block.take().map(|block| parked::park(&cx, &call, block, muted));
    blocking::serve(&mut cx);
    cx.commit();
    tracking::broadcast(worker);
    Window { done: 1, ready: std::mem::take(&mut cx.ready), waiting, paused: None }
}

/// Runs calls with a key each.
fn run_batch(worker: &Worker, client: &mut Client, calls: &[Call<'_>], reply: &mut Reply) -> Window {
    let database = worker.instance.database(client.db);
    // Collected, all of its room would be copied.
    let mut keys: ArrayVec<_, WINDOW> = ArrayVec::new();
    database.hash_keys(calls.iter().map(only_key), &mut keys);
    let mut db = database.lock_keys(&mut keys, worker.now_ms());
    prepare(&mut db, worker, client);
    let mut calls = calls;
    if worker.routes {
        match worker.instance.cluster.served(client, &keys) {
            0 => {
                drop(db);
                return run_one(worker, client, &calls[0], reply);
            }
            served => calls = &calls[..served],
        }
    }
    if calls.len() > 1 {
        db.prefetch(&mut keys);
    }
    if calls[0].row.command.batches_if_light && worker.goes_on.get() {
        calls = &calls[..light(&db, calls, &keys)];
        if calls.is_empty() {
            return Window::none();
        }
    }
    if worker.goes_on.get() && may_be_slow_to_change(worker) {
        calls = &calls
            [..keys.iter().take_while(|(key, access)| *access == Access::Read || !db.is_slow_to_change(key)).count()];
        if calls.is_empty() {
            return Window::none();
        }
    }
    let mut cx = Ctx::new(worker, db, reply, client);
    let mut done = calls.len();
    let before = cx.reply.len();
    let one_by_one = worker.instance.observers.one_by_one();
    for (at, (call, (key, _))) in calls.iter().zip(&keys).enumerate() {
        let call = Call { args: call.args.with_keys(std::slice::from_ref(key)), ..*call };
        if one_by_one {
            timed(&mut cx, &call);
        } else {
            invoke(&mut cx, &call);
        }
        if !cx.ready.is_empty() || keyspace::has_heavy_replies() && is_next_slow_to_change(&cx, &keys[at + 1..]) {
            done = at + 1;
            break;
        }
    }
    if !one_by_one {
        // The clock costs as much as a small command does: a window is timed as a whole and shared out evenly.
        worker.all_finished(&cx, &calls[..done], worker.tick() / done as u64);
    }
    worker.all_sized(&cx, &calls[..done], cx.reply.len() - before);
    blocking::serve(&mut cx);
    cx.commit();
    tracking::broadcast(worker);
    Window { done, ready: std::mem::take(&mut cx.ready), ..Window::none() }
}

/// Sets a view up before anything looks into it.
#[inline]
fn prepare(db: &mut View<'_>, worker: &Worker, client: &Client) {
    if client.no_touch {
        db.no_touch();
    }
    // Where somebody else is alone, what is allowed meanwhile changes nothing.
    treat_expired(db, worker, client, worker.instance.exclusive.is_busy());
}

/// How many calls there are in front of the first that is much work.
#[cold]
fn light(db: &View<'_>, calls: &[Call<'_>], keys: &[(Key<'_>, Access)]) -> usize {
    let is_light = |(call, (key, _)): &(&Call<'_>, &(Key<'_>, Access))| match call.row.command.weight {
        Weight::Of(weight) => weight(db, call.args.with_keys(std::slice::from_ref(key))) <= slow::LIMIT,
        _ => true,
    };
    calls.iter().zip(keys).take_while(is_light).count()
}

/// True while a snapshot walks through the data, or a reply holds a very large string.
#[inline]
fn may_be_slow_to_change(worker: &Worker) -> bool {
    worker.instance.background.is_walking() || keyspace::has_heavy_replies()
}

/// True if the next call of a window changes what a reply of this window holds.
#[cold]
fn is_next_slow_to_change(cx: &Ctx<'_>, rest: &[(Key<'_>, Access)]) -> bool {
    let is_slow = |(key, access): &(Key<'_>, Access)| *access == Access::Write && cx.db.is_slow_to_change(key);
    cx.worker.goes_on.get() && rest.first().is_some_and(is_slow)
}

/// True if the call changes something that a snapshot in the making has to save first, or that a reply holds.
#[cold]
fn is_slow_to_change(db: &View<'_>, client: &Client, call: &Call<'_>) -> bool {
    let writes = |(key, access): &(Key<'_>, Access)| *access == Access::Write && db.is_locked(key);
    declared_keys(db.database(), client, call).iter().any(|it| writes(it) && db.is_slow_to_change(&it.0))
}

/// Runs a queued command inside EXEC, under EXEC's locks.
pub fn run_queued(cx: &mut Ctx<'_>, row: &'static Row, args: Args<'_>) {
    if cx.worker.is_alone() {
        if let Some(error) = admission::refused_since(cx.worker, cx.client, &Call { row, args }) {
            cx.refused(row, &error);
            return cx.reply.error(&error);
        }
        let ready = run_among_others(cx.worker, cx.client, row, args, cx.reply);
        cx.ready.extend(ready);
        // It may have been SELECT.
        cx.db = cx.instance.database(cx.client.db).lock_none(cx.worker.now_ms());
        return;
    }
    let mut keys: Keys<'_> = SmallVec::new();
    let call = Call { row, args };
    collect_keys(cx.db.database(), &call, &mut keys);
    let keys: SmallVec<[Key<'_>; 4]> = keys.iter().map(|(key, _)| *key).collect();
    timed_inside(cx, &Call { row, args: args.with_keys(&keys) });
}

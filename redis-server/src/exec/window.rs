//! Windows: calls that run under one set of locks, and what comes before and behind them.

use std::time::Instant;

use arrayvec::ArrayVec;
use smallvec::SmallVec;

use crate::clients::client::{Client, Multi, ReplyMode, flag};
use crate::command::{Args, Flags, Footprint, Role, Row};
use crate::exec::blocking::{self, Waiting};
use crate::exec::cluster::{self, Refused};
use crate::exec::core::Call;
use crate::exec::core::Worker;
use crate::exec::core::{Ctx, Ready};
use crate::exec::dispatch::{self, Passed, refuse};
use crate::exec::eviction;
use crate::exec::gate::Marks;
use crate::exec::gate::{Busy, Inside};
use crate::exec::panics::Blame;
use crate::exec::slow;
use crate::exec::tracking;
use crate::keyspace::{Access, Database, Key, View, begin_call};
use crate::protocol::error::Error;
use crate::protocol::{Mark, Reply};

/// Most commands that run under one set of locks: enough for their cache misses to overlap, few enough that other
/// workers do not wait long.
pub const WINDOW: usize = 32;

/// Runs calls that are admitted, as many as possible under one set of locks, and appends their replies.
/// All but one-call windows consist of commands that are [batched](crate::command::Command::batches).
///
/// Returns how many are done with, and what has become of the last of them, or of the one behind them.
pub fn run(worker: &Worker, client: &mut Client, calls: &[Call<'_>], reply: &mut Reply) -> (usize, Passed) {
    if let [call] = calls
        && worker.goes_on.get()
        && slow::is_slow(client, call)
    {
        return (1, slow::call::send(worker, client, *call));
    }
    let inside = match worker.instance.exclusive.enter(&worker.activity) {
        Ok(inside) => Some(inside),
        Err(Busy) => match enter_anyway(worker, client, calls, reply) {
            Some(inside) => inside,
            None => return (calls.len(), Passed::Done),
        },
    };
    let is_refused = |call: &Call<'_>| dispatch::refused_since(worker, client, call).is_some();
    if dispatch::serves_as_replica(worker) && calls.iter().any(is_refused) {
        drop(inside);
        return run_apart(worker, client, calls, reply);
    }
    let is_marked = inside.as_ref().is_some_and(|inside| inside.marked);
    let (free, held) = if is_marked { slow::unmarked(worker, client, calls) } else { (calls.len(), None) };
    let mut done = 0;
    while done < free {
        let window = run_window(worker, client, &calls[done..free], reply);
        if let Some(until) = window.paused {
            return (done, Passed::Paused(until));
        }
        if window.done == 0 {
            return (done + 1, slow::call::send(worker, client, calls[done]));
        }
        if !window.ready.is_empty() {
            slow::serve(worker, client, window.ready);
        }
        if let Some(waiting) = window.waiting {
            return (calls.len(), Passed::Blocked(waiting));
        }
        done += window.done;
    }
    (done, held.map_or(Passed::Done, Passed::Held))
}

/// [`run`] for calls of which some do not run any more: each in a window of its own.
#[cold]
#[inline(never)]
fn run_apart(worker: &Worker, client: &mut Client, calls: &[Call<'_>], reply: &mut Reply) -> (usize, Passed) {
    for (at, call) in calls.iter().enumerate() {
        if let Some(error) = dispatch::refused_since(worker, client, call) {
            refuse(worker, client, Some(call.row), error, reply);
            continue;
        }
        let (done, passed) = run(worker, client, std::slice::from_ref(call), reply);
        if !matches!(passed, Passed::Done) {
            return (at + done, passed);
        }
    }
    (calls.len(), Passed::Done)
}

/// Begins a worker's work while a thread is alone for too long, or data is loaded: without being counted as at work, if all calls may
/// run then; else refuses them.
#[cold]
#[inline(never)]
fn enter_anyway<'w>(
    worker: &'w Worker,
    client: &mut Client,
    calls: &[Call<'_>],
    reply: &mut Reply,
) -> Option<Option<Inside<'w>>> {
    let instance = &worker.instance;
    loop {
        let refusal = if worker.loads { None } else { calls.iter().find_map(|call| instance.refusal(call.row)) };
        if let Some(error) = refusal {
            calls.iter().for_each(|call| refuse(worker, client, Some(call.row), error.clone(), reply));
            return None;
        }
        if instance.exclusive.is_busy() {
            return Some(None);
        }
        // It was over just now.
        if let Ok(inside) = instance.exclusive.enter(&worker.activity) {
            return Some(Some(inside));
        }
    }
}

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
    if !worker.is_slow && worker.instance.is_short_of_memory() {
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
        [call] if worker.is_slow || !call.row.command.batches(call.args.len()) => run_one(worker, client, call, reply),
        _ => run_batch(worker, client, calls, reply),
    }
}

/// Runs a call with any number of keys.
fn run_one(worker: &Worker, client: &mut Client, call: &Call<'_>, reply: &mut Reply) -> Window {
    let mut keys: Keys<'_> = SmallVec::new();
    collect_keys(worker.instance.database(client.db), call, &mut keys);
    let (mut db, others) = lock(worker, client, std::slice::from_ref(call), &mut keys);
    prepare(&mut db, worker, client);
    if worker.is_slow && others.is_empty() && !db.is_locking() {
        let database = db.database();
        slow::lend(&mut db, &declared_keys(database, client, call));
    }
    if worker.routes
        && let Err(refused) = cluster::judge_locked(&worker.instance, client, call, &db, &keys)
    {
        drop((db, others));
        let error = match refused {
            Refused::Because(error) => error,
            Refused::Until(until) if worker.goes_on.get() => return Window { paused: Some(until), ..Window::none() },
            // Its connection waits for an answer, wherever this thread is.
            Refused::Until(_) => Error::Elsewhere(cluster::HELD.to_owned()),
        };
        refuse(worker, client, Some(call.row), error, reply);
        return Window { done: 1, ..Window::none() };
    }
    let keys: SmallVec<[Key<'_>; 4]> = keys.iter().map(|(key, _)| *key).collect();
    let call = Call { args: call.args.with_keys(&keys), ..*call };
    if worker.goes_on.get()
        && (slow::meets_much(&db, client, &call)
            || worker.instance.background.is_walking() && saves_vast_first(&db, client, &call))
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
    let waiting = cx.block.take().map(|block| blocking::park(&cx, &call, block, muted));
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
    if worker.goes_on.get() && worker.instance.background.is_walking() {
        calls = &calls
            [..keys.iter().take_while(|(key, access)| *access == Access::Read || !db.saves_vast_first(key)).count()];
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
        if !cx.ready.is_empty() {
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

/// Says what becomes of keys whose time is over; where `others_decide`, they stay.
#[inline]
fn treat_expired(db: &mut View<'_>, worker: &Worker, client: &Client, others_decide: bool) {
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
fn collect_keys<'a>(database: &Database, call: &Call<'a>, keys: &mut Keys<'a>) {
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

/// Whether a snapshot in the making has to save something vast before the call changes it.
#[cold]
fn saves_vast_first(db: &View<'_>, client: &Client, call: &Call<'_>) -> bool {
    let writes = |(key, access): &(Key<'_>, Access)| *access == Access::Write && db.is_locked(key);
    declared_keys(db.database(), client, call).iter().any(|it| writes(it) && db.saves_vast_first(&it.0))
}

/// The key of a call whose row says where its only one is, and what it does to it.
#[inline]
fn only_key<'a>(call: &Call<'a>) -> (&'a [u8], Access) {
    let command = call.row.command;
    // Arity guarantees that the argument is there.
    (call.args.at(command.only_key.into()), command.only_access)
}

/// Takes the locks of a window: the view of the client's database, and the others' if everything is locked.
fn lock<'a>(worker: &'a Worker, client: &Client, calls: &[Call<'_>], keys: &mut Keys<'_>) -> (View<'a>, Vec<View<'a>>) {
    let instance = &*worker.instance;
    let database = instance.database(client.db);
    let now = worker.now_ms();
    match footprint(calls, client.multi.as_deref()) {
        Footprint::Keys | Footprint::Walk | Footprint::WalkEverything if worker.is_slow => {
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
fn footprint(calls: &[Call<'_>], multi: Option<&Multi>) -> Footprint {
    let [call] = calls else { return Footprint::Keys };
    match multi {
        Some(multi) if call.row.command.role == Role::Exec => footprint_of_queue(multi),
        _ => call.row.command.footprint_of(call.args),
    }
}

/// The widest footprint among the commands of a transaction.
fn footprint_of_queue(multi: &Multi) -> Footprint {
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

/// Runs a queued command inside EXEC, under EXEC's locks.
pub fn run_queued(cx: &mut Ctx<'_>, row: &'static Row, args: Args<'_>) {
    if cx.worker.is_alone {
        if let Some(error) = dispatch::refused_since(cx.worker, cx.client, &Call { row, args }) {
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

/// Runs a call and accounts for it alone.
fn timed(cx: &mut Ctx<'_>, call: &Call<'_>) {
    let began = Instant::now();
    invoke(cx, call);
    cx.worker.finished(cx, call, began.elapsed().as_nanos() as u64);
}

/// [`timed`] for a call that has come with another one, in a transaction or a script.
fn timed_inside(cx: &mut Ctx<'_>, call: &Call<'_>) {
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
fn invoke_journaled(cx: &mut Ctx<'_>, call: &Call<'_>) {
    cx.begin_call();
    invoke_handler(cx, call);
    cx.end_call(call.args);
}

#[inline(always)]
#[allow(clippy::inline_always, reason = "measured: every command of a window passes here")]
fn invoke_handler(cx: &mut Ctx<'_>, call: &Call<'_>) {
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
fn muffle(cx: &mut Ctx<'_>, row: &Row, before: ReplyMode, mark: Mark) {
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

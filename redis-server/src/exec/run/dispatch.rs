//! Admission: from the words that a client sent to a command that may run, and what becomes of it.

use std::sync::atomic::Ordering::Relaxed;

use crate::clients::client::{Client, count};
use crate::command::{Args, Footprint, Role, Row};
use crate::exec::core::clock::now_ms;
use crate::exec::core::{Call, Worker};
use crate::exec::gate::Busy;
use crate::exec::gate::Inside;
use crate::exec::run::admission::{self, Admission, quiet_reply, refuse};
use crate::exec::run::invoke::has_footprint;
use crate::exec::run::outcome::Passed;
use crate::exec::run::window::run_window;
use crate::exec::run::{alone, slow};
use crate::protocol::Reply;

/// Ends a connection that speaks HTTP, with nothing said. The log tells of one a minute: a page can send many.
#[cold]
fn abort(worker: &Worker, client: &mut Client, reply: &mut Reply) {
    const PAUSE_MS: u64 = 60_000;
    if worker.instance.attacks.is_due(now_ms(), PAUSE_MS) {
        tracing::warn!(
            "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands to Redis. This is likely \
             due to an attacker attempting to use Cross Protocol Scripting to compromise your Redis instance. Connection from {} \
             aborted.",
            client.shared.addr
        );
    }
    reply.clear();
    client.close = true;
}

/// Does what admission has decided about a command that runs alone.
pub fn pass(worker: &Worker, client: &mut Client, admission: Admission, args: Args<'_>, reply: &mut Reply) -> Passed {
    let passed = pass_on(worker, client, admission, args, reply);
    if client.asking.is_on() && !matches!(passed, Passed::Held(_) | Passed::Paused(_)) {
        client.end_asking();
    }
    passed
}

fn pass_on(worker: &Worker, client: &mut Client, admission: Admission, args: Args<'_>, reply: &mut Reply) -> Passed {
    match admission {
        Admission::Run(row) => {
            client.note_command(row);
            // Of what is let in while data is loaded, nothing needs to be.
            if runs_alone(row, args, client) && (worker.loads || !worker.instance.exclusive.is_loading()) {
                let passed = alone::run_alone(worker, client, Call { row, args }, reply);
                // EXEC may have run HELLO. A client whose script goes on is away with it.
                if matches!(passed, Passed::Done) {
                    reply.set_resp3(client.resp3);
                }
                return passed;
            }
            let (_, passed) = run(worker, client, &[Call { row, args }], reply);
            if matches!(passed, Passed::Done | Passed::Blocked(_)) {
                reply.set_resp3(client.resp3);
            }
            return passed;
        }
        Admission::Queue(row) => {
            client.note_command(row);
            if let Some(multi) = &mut client.multi {
                if row.command.role == Role::Select {
                    let chosen = row.command.named_databases(args, worker.instance.databases().len());
                    multi.db = chosen.first().map(|(_, db)| *db).or(multi.db);
                }
                let args = args.to_owned();
                client.shared.queued.fetch_add(args.memory() as u64, Relaxed);
                multi.queue.push((row, args));
                client.shared.counts[count::MULTI].store(multi.queue.len() as u32 + 1, Relaxed);
            }
            quiet_reply(client, || reply.simple("QUEUED"));
        }
        Admission::Refuse(error, row) => refuse(worker, client, row, error, reply),
        Admission::Wait(until) => return Passed::Paused(until),
        Admission::Abort => abort(worker, client, reply),
    }
    Passed::Done
}

/// Whether a call runs alone with the data: a script, a role change, or a transaction with one.
#[inline]
fn runs_alone(row: &Row, args: Args<'_>, client: &Client) -> bool {
    let is_transaction = row.command.role == Role::Exec;
    has_footprint(row, args, client, |footprint| match footprint {
        Footprint::Alone | Footprint::Still => true,
        Footprint::Free => is_transaction,
        _ => false,
    })
}

/// Runs calls that are admitted, as many as possible under one set of locks, and appends their replies.
/// All but one-call windows consist of commands that are [batched](crate::command::Command::batches).
///
/// Returns how many are done with, and what has become of the last of them, or of the one behind them.
pub fn run(worker: &Worker, client: &mut Client, calls: &[Call<'_>], reply: &mut Reply) -> (usize, Passed) {
    if let [call] = calls
        && worker.goes_on.get()
        && slow::is_slow(worker, client, call)
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
    let is_refused = |call: &Call<'_>| admission::refused_since(worker, client, call).is_some();
    if admission::serves_as_replica(worker) && calls.iter().any(is_refused) {
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
pub(crate) fn run_apart(
    worker: &Worker,
    client: &mut Client,
    calls: &[Call<'_>],
    reply: &mut Reply,
) -> (usize, Passed) {
    for (at, call) in calls.iter().enumerate() {
        if let Some(error) = admission::refused_since(worker, client, call) {
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
pub(crate) fn enter_anyway<'w>(
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

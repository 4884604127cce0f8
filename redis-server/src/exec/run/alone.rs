//! Commands that are alone with the data, each on a stack of its own, so that a slow script can be interrupted.
//!
//! Nearly all of them end in their first turn, and have cost two switches of stacks. One that is interrupted becomes a
//! [`Interrupted`]. Its connection waits for [`Pending`](super::outcome::Pending), and the thread that has the worker lets it [`go_on`] between
//! other tasks.

use std::cell::RefMut;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::{fmt, mem};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

use crate::clients::client::Client;
use crate::command::{OwnedArgs, Row};
use crate::config::settings;
use crate::exec::core::clock::now_ms;
use crate::exec::core::{Call, Ctx, Instance, Worker};
use crate::exec::gate::{Alone, Held, Hindered, Still};
use crate::exec::run::outcome::{self, Answer, Finished, Interrupted, Passed};
use crate::exec::run::{admission, invoke, judge, panics, slow, stack, tracking};
use crate::protocol::Reply;
use crate::protocol::error::Error;

/// Address space of the stack: Lua's library and its compiler go deep. Only what is touched takes memory.
const STACK: usize = 64 * 1024 * 1024;

/// A job on its stack. When it leaves it for a while, it names who stands in for its client meanwhile.
type Turn = Coroutine<(), Client, (Box<Job>, std::thread::Result<()>), DefaultStack>;

/// The objects that a worker keeps between two scripts, so that the next one need not make them.
#[derive(Default)]
pub struct Spare {
    stack: Option<DefaultStack>,
    job: Option<Box<Job>>,
    /// The command that was interrupted.
    interrupted: Option<Slow>,
}

impl fmt::Debug for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spare").field("interrupted", &self.interrupted.is_some()).finish_non_exhaustive()
    }
}

/// The worker's.
fn spare(worker: &Worker) -> RefMut<'_, Spare> {
    let mut kept = worker.spare.borrow_mut();
    if !kept.is::<Spare>() {
        *kept = Box::<Spare>::default();
    }
    RefMut::map(kept, |kept| kept.downcast_mut().expect("it was put there above"))
}

/// A command that runs alone, with all that it needs.
struct Job {
    worker: Box<Worker>,
    /// The client that runs the command, while it runs; a stand-in otherwise.
    client: Client,
    row: &'static Row,
    args: OwnedArgs,
    reply: Reply,
    alone: Option<Alone>,
}

/// A command that was interrupted.
struct Slow {
    turn: Turn,
    answer: Option<Answer>,
    instance: Arc<Instance>,
}

impl Drop for Slow {
    fn drop(&mut self) {
        // The server ends. A stack cannot be thrown away while Lua is on it: the script is made to leave it.
        while !self.turn.done() {
            self.instance.scripts.status.abort();
            self.turn.resume(());
        }
    }
}

/// Runs a call, or a transaction, alone with the data.
pub fn run_alone(worker: &Worker, client: &mut Client, call: Call<'_>, reply: &mut Reply) -> Passed {
    let instance = &worker.instance;
    let stopped = match stop(worker, client, &call) {
        Ok(stopped) => stopped,
        Err(Wait::Held(held)) => return Passed::Held(held),
        Err(Wait::Refused(error)) => {
            admission::refuse(worker, client, Some(call.row), error, reply);
            return Passed::Done;
        }
    };
    if worker.routes
        && let Err(error) = judge::judge_alone(instance, client, &call)
    {
        drop(stopped);
        admission::refuse(worker, client, Some(call.row), error, reply);
        return Passed::Done;
    }
    if let Some(error) = admission::refused_since(worker, client, &call) {
        drop(stopped);
        admission::refuse(worker, client, Some(call.row), error, reply);
        return Passed::Done;
    }
    worker.tick();
    if client.tracking.is_some() {
        tracking::deliver(client, reply);
    }
    let (stack, job) = {
        let mut spare = spare(worker);
        (spare.stack.take(), spare.job.take())
    };
    let mut job = job.unwrap_or_else(|| Box::new(Job::new(worker, call.row)));
    let stack = stack.map_or_else(|| DefaultStack::new(STACK), Ok);
    let Ok(stack) = stack else {
        let error = Error::Static("ERR there is not enough memory for the stack of a script");
        admission::refuse(worker, client, Some(call.row), error, reply);
        return Passed::Done;
    };
    job.prepare(worker, client, call, stopped);
    let mut turn: Turn = Coroutine::with_stack(stack, move |yielder, ()| {
        let ended = stack::interruptible(yielder, || catch_unwind(AssertUnwindSafe(|| job.run())));
        (job, ended)
    });
    match turn.resume(()) {
        CoroutineResult::Return((job, ended)) => {
            finish(worker, client, turn, job, ended, reply);
            Passed::Done
        }
        CoroutineResult::Yield(deputy) => {
            *client = deputy;
            let (answer, pending) = outcome::lend();
            let instance = Arc::clone(instance);
            spare(worker).interrupted = Some(Slow { turn, answer: Some(answer), instance });
            Passed::Interrupted(Interrupted { pending })
        }
    }
}

/// Why a command is not alone yet.
enum Wait {
    Held(Held),
    Refused(Error),
}

/// The guard that a call that runs alone holds.
enum Stopped {
    Alone(Alone),
    Still(Still),
}

/// Stops all others. While slow calls are at work the connection waits, up to `busy-reply-threshold`: they may wait for
/// another server, and others wait for this script.
fn stop(worker: &Worker, client: &mut Client, call: &Call<'_>) -> Result<Stopped, Wait> {
    let instance = &worker.instance;
    if worker.loads && (worker.is_alone() || instance.exclusive.is_loading()) {
        return Ok(Stopped::Alone(instance.exclusive.already_stopped()));
    }
    // A primary's stream is itself what Still waits for, and changes no role.
    let needs_still = !worker.loads && invoke::needs_still(call, client);
    loop {
        let stopped = match needs_still {
            true => Still::stop(&instance.exclusive).map(Stopped::Still),
            false => instance.exclusive.stop().map(Stopped::Alone),
        };
        match stopped {
            Ok(stopped) => {
                client.held_since = None;
                return Ok(stopped);
            }
            Err(Hindered::Busy) => return Err(Wait::Refused(instance.busy_error())),
            Err(Hindered::Slow) => {}
        }
        let limit = if worker.loads { 0 } else { instance.config.uint(settings::BUSY_REPLY_THRESHOLD) };
        let now = now_ms();
        let since = *client.held_since.get_or_insert(now);
        if limit != 0 && now.saturating_sub(since) >= limit {
            client.held_since = None;
            return Err(Wait::Refused(Error::Static(
                "BUSY a slow command is at work, and a script, or a role change, has to be alone",
            )));
        }
        let seen = instance.exclusive.ended();
        if let Some(mut held) = instance.exclusive.hold(&client.shared, seen, true) {
            held.until = (limit != 0).then(|| since.saturating_add(limit));
            return Err(Wait::Held(held));
        }
    }
}

/// Gives the client back, and the reply; keeps what serves the next command.
fn finish(
    worker: &Worker,
    client: &mut Client,
    turn: Turn,
    mut job: Box<Job>,
    ended: std::thread::Result<()>,
    reply: &mut Reply,
) {
    if ended.is_err() {
        panics::end_process(worker, &job.client.shared);
    }
    mem::swap(&mut job.client, client);
    job.let_others_go_on();
    job.args.clear();
    reply.append(&mut job.reply);
    worker.was_alone.set(true);
    worker.same_time_as(&job.worker);
    let mut spare = spare(worker);
    spare.stack = Some(turn.into_stack());
    spare.job = Some(job);
}

/// Lets the interrupted command of this worker go on for a while; others have their turn in between.
/// True if it is to be called again.
pub fn go_on(worker: &Worker) -> bool {
    let Some(mut slow) = spare(worker).interrupted.take() else { return false };
    let resumed = slow.turn.resume(());
    match resumed {
        CoroutineResult::Yield(_) => spare(worker).interrupted = Some(slow),
        CoroutineResult::Return((job, ended)) => {
            end(worker, slow, job, ended);
            return false;
        }
    }
    true
}

/// Sends what an interrupted command has come to.
fn end(worker: &Worker, mut slow: Slow, mut job: Box<Job>, ended: std::thread::Result<()>) {
    if ended.is_err() {
        panics::end_process(worker, &job.client.shared);
    }
    job.let_others_go_on();
    let Job { client, reply, .. } = *job;
    if let Some(answer) = slow.answer.take() {
        answer.send(&worker.instance, Finished { client, reply, waiting: None });
    }
}

impl Job {
    fn new(worker: &Worker, row: &'static Row) -> Self {
        let (client, worker) = (worker.unconnected_client(), Box::new(worker.alone()));
        Self { worker, client, row, args: OwnedArgs::default(), reply: Reply::default(), alone: None }
    }

    fn prepare(&mut self, worker: &Worker, client: &mut Client, call: Call<'_>, stopped: Stopped) {
        self.worker.same_time_as(worker);
        self.worker.goes_on.set(worker.goes_on.get());
        self.row = call.row;
        self.args.copy_from(call.args);
        self.reply.set_resp3(client.resp3);
        mem::swap(&mut self.client, client);
        match stopped {
            Stopped::Alone(alone) => self.alone = Some(alone),
            Stopped::Still(still) => self.worker.still = Some(still),
        }
    }

    fn let_others_go_on(&mut self) {
        (self.alone, self.worker.still) = (None, None);
    }

    fn run(&mut self) {
        let Self { worker, client, row, args, reply, .. } = self;
        let worker: &Worker = worker;
        let instance = &*worker.instance;
        let db = instance.database(client.db).lock_none(worker.now_ms());
        let mut cx = Ctx::new(worker, db, reply, client);
        if cx.client.no_touch {
            cx.db.no_touch();
        }
        let call = Call { row, args: args.args() };
        invoke::invoke(&mut cx, &call);
        let nanos = worker.tick();
        worker.finished(&cx, &call, nanos);
        worker.sized(&cx, &call, cx.reply.len());
        instance.exclusive.add_alone(nanos);
        let ready = mem::take(&mut cx.ready);
        // A transaction may have made a primary of a replica.
        cx.journaled |= instance.journal.is_on();
        cx.commit();
        drop(cx);
        tracking::broadcast(&self.worker);
        if !ready.is_empty() {
            slow::serve(&self.worker, &mut self.client, ready);
        }
    }
}

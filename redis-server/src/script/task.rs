//! Commands that are alone with the data, each on a stack of its own, so that a slow script can be interrupted.
//!
//! Nearly all of them end in their first turn, and have cost two switches of stacks. One that is interrupted becomes a
//! [`Interrupted`]; its connection waits for [`Pending`], and whoever has the worker lets it [`go_on`] between other tasks.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use tokio::sync::oneshot;

use super::call::Running;
use super::raw;
use crate::blocking;
use crate::client::Client;
use crate::command::{Ctx, OwnedArgs};
use crate::dispatch::{self, Call, Passed};
use crate::instance::Instance;
use crate::registry::Row;
use crate::resp::Reply;
use crate::tracking;
use crate::worker::Worker;
use crate::world::{Alone, World};

/// Address space of the stack: Lua's library and its compiler go deep. Only what is touched takes memory.
const STACK: usize = 64 * 1024 * 1024;

type Turn = Coroutine<(), (), (Box<Job>, std::thread::Result<()>), DefaultStack>;

/// What a worker keeps between two scripts, so that the next one need not make it.
#[derive(Default)]
pub struct Spare {
    stack: Option<DefaultStack>,
    job: Option<Box<Job>>,
    running: Option<Box<Running>>,
    /// The command that was interrupted.
    interrupted: Option<Slow>,
}

impl fmt::Debug for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spare").field("interrupted", &self.interrupted.is_some()).finish_non_exhaustive()
    }
}

/// A command that runs alone, with all that it needs.
struct Job {
    worker: Box<Worker>,
    client: Option<Client>,
    row: &'static Row,
    args: OwnedArgs,
    reply: Reply,
    alone: Option<Alone>,
}

/// The proof that a command was interrupted, for the connection that sent it.
#[derive(Debug)]
pub struct Interrupted {
    /// What the connection waits for.
    pub pending: Pending,
}

/// Becomes ready when an interrupted command has ended.
#[derive(Debug)]
pub struct Pending(oneshot::Receiver<Box<Finished>>);

impl Future for Pending {
    /// `None` when the command has panicked, or the server ends.
    type Output = Option<Box<Finished>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Box<Finished>>> {
        Pin::new(&mut self.0).poll(cx).map(Result::ok)
    }
}

/// What an interrupted command has come to.
#[derive(Debug)]
pub struct Finished {
    /// The session that it was lent.
    pub client: Client,
    /// Its reply.
    pub reply: Reply,
}

/// A command that was interrupted.
struct Slow {
    turn: Turn,
    answer: Option<oneshot::Sender<Box<Finished>>>,
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
    let Ok(alone) = World::stop(instance) else {
        dispatch::refuse(worker, client, Some(call.row), instance.scripts.busy_error(), reply);
        return Passed::Done;
    };
    worker.tick();
    if client.tracking.is_some() {
        tracking::deliver(client, reply);
    }
    let (stack, job) = {
        let spare = &mut *worker.spare.borrow_mut();
        (spare.stack.take(), spare.job.take())
    };
    let mut job = job.unwrap_or_else(|| Box::new(Job::new(worker, call.row)));
    job.prepare(worker, client, call, alone);
    let stack = stack.map_or_else(|| DefaultStack::new(STACK), Ok);
    let Ok(stack) = stack else {
        *client = job.client.take().expect("it was lent a moment ago");
        let error = crate::error::Error::Static("ERR there is not enough memory for the stack of a script");
        dispatch::refuse(worker, client, Some(call.row), error, reply);
        return Passed::Done;
    };
    let mut turn: Turn = Coroutine::with_stack(stack, move |yielder, ()| {
        let ended = raw::interruptible(yielder, || catch_unwind(AssertUnwindSafe(|| job.run())));
        (job, ended)
    });
    match turn.resume(()) {
        CoroutineResult::Return((job, ended)) => {
            let finished = finish(worker, turn, job, ended);
            *client = finished.client;
            let mut written = finished.reply;
            reply.append(&mut written);
            keep_reply(worker, written);
            Passed::Done
        }
        CoroutineResult::Yield(()) => {
            let (answer, pending) = oneshot::channel();
            let instance = Arc::clone(instance);
            worker.spare.borrow_mut().interrupted = Some(Slow { turn, answer: Some(answer), instance });
            Passed::Interrupted(Interrupted { pending: Pending(pending) })
        }
    }
}

/// Takes apart what has ended.
fn finish(worker: &Worker, turn: Turn, mut job: Box<Job>, ended: std::thread::Result<()>) -> Finished {
    let mut client = job.client.take().expect("a job has its client until it ends");
    let reply = std::mem::take(&mut job.reply);
    job.alone = None;
    job.args.clear();
    let mut spare = worker.spare.borrow_mut();
    spare.stack = Some(turn.into_stack());
    spare.job = Some(job);
    drop(spare);
    if let Err(panic) = ended {
        crate::commands::leave(&worker.instance, &mut client);
        // The connection is closed, as for every command that panics.
        resume_unwind(panic);
    }
    Finished { client, reply }
}

/// The room of an emptied reply serves the next script.
fn keep_reply(worker: &Worker, reply: Reply) {
    if let Some(job) = &mut worker.spare.borrow_mut().job {
        job.reply = reply;
    }
}

/// Lets the interrupted command of this worker go on for a while; others have their turn in between.
/// True if it is to be called again.
pub fn go_on(worker: &Worker) -> bool {
    let Some(mut slow) = worker.spare.borrow_mut().interrupted.take() else { return false };
    let resumed = slow.turn.resume(());
    match resumed {
        CoroutineResult::Yield(()) => worker.spare.borrow_mut().interrupted = Some(slow),
        CoroutineResult::Return((job, ended)) => {
            end(worker, slow, job, ended);
            return false;
        }
    }
    true
}

/// Sends what an interrupted command has come to.
fn end(worker: &Worker, mut slow: Slow, mut job: Box<Job>, ended: std::thread::Result<()>) {
    let instance = Arc::clone(&worker.instance);
    let Some(client) = job.client.take() else { return };
    let reply = std::mem::take(&mut job.reply);
    job.alone = None;
    if ended.is_err() {
        // Its connection learns of it from the sender that is dropped.
        return tracing::error!(command = job.row.name(), "a command panicked");
    }
    let sent = slow.answer.take().map(|answer| answer.send(Box::new(Finished { client, reply })));
    if let Some(Err(mut finished)) = sent {
        // The connection has gone meanwhile.
        crate::commands::leave(&instance, &mut finished.client);
    }
}

impl Job {
    fn new(worker: &Worker, row: &'static Row) -> Self {
        let worker = Box::new(worker.alone());
        Self { worker, client: None, row, args: OwnedArgs::default(), reply: Reply::default(), alone: None }
    }

    fn prepare(&mut self, worker: &Worker, client: &mut Client, call: Call<'_>, alone: Alone) {
        let lent = Client::new(Arc::clone(&client.shared), client.identity.clone());
        self.worker.same_time_as(worker);
        self.worker.goes_on.set(worker.goes_on.get());
        self.row = call.row;
        self.args.copy_from(call.args);
        self.reply.set_resp3(client.resp3);
        self.client = Some(std::mem::replace(client, lent));
        self.alone = Some(alone);
    }

    fn run(&mut self) {
        let Self { worker, client, row, args, reply, .. } = self;
        let worker: &Worker = worker;
        let instance = &*worker.instance;
        let client = client.as_mut().expect("a job has its client until it ends");
        let mut cx = Ctx {
            instance,
            worker,
            db: instance.database(client.db).lock_none(worker.now_ms()),
            others: Vec::new(),
            reply,
            client,
            may_block: true,
            serving: false,
            block: None,
            ready: Vec::new(),
            dirty: Cell::new(0),
            garbage: Vec::new(),
        };
        if cx.client.no_touch {
            cx.db.no_touch();
        }
        let call = Call { row, args: args.args() };
        dispatch::invoke(&mut cx, &call);
        worker.finished(&cx, &call, worker.tick());
        let ready = std::mem::take(&mut cx.ready);
        drop(cx);
        tracking::broadcast(&self.worker);
        let client = self.client.as_mut().expect("a job has its client until it ends");
        if !ready.is_empty() {
            blocking::serve_rest(&self.worker, client, ready);
        }
    }
}

impl Spare {
    /// What a script needs for its commands, or a new one.
    pub(super) fn running(worker: &Worker) -> Box<Running> {
        let spare = worker.spare.borrow_mut().running.take();
        spare.unwrap_or_else(|| Box::new(Running::new(worker)))
    }

    /// Keeps it for the next script.
    pub(super) fn keep(worker: &Worker, running: Box<Running>) {
        worker.spare.borrow_mut().running = Some(running);
    }
}

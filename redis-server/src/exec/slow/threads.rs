//! The threads of slow calls.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clients::client::Client;
use crate::command::{OwnedArgs, Row};
use crate::exec::Ready;
use crate::exec::dispatch::{self, Call};
use crate::exec::gate::Busy;
use crate::exec::instance::Instance;
use crate::exec::panics;
use crate::exec::priority;
use crate::exec::session::{Answer, Finished};
use crate::exec::window;
use crate::exec::worker::Worker;
use crate::observe::memory;
use crate::observe::stats::WorkerStats;
use crate::protocol::Reply;
use crate::threads::{self, OnPanic};

/// Most threads: calls that wait for another server (MIGRATE) take one each, and the others need some.
const MAX_THREADS: usize = 16;
/// How long a thread waits for another call before it gives memory back, and how much longer before it ends.
const AT_REST: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(10);

/// The work of a thread.
pub(super) enum Job {
    /// A call, for the session that has come with it.
    Call { client: Client, row: &'static Row, args: OwnedArgs, answer: Answer },
    /// Clients that wait for a key are to be served.
    Serve(Ready),
}

/// Threads, started when there is something to do.
#[derive(Default)]
pub struct Threads {
    state: Arc<State>,
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Threads").field("waiting", &self.state.queue().jobs.len()).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: usize,
    /// Counters of threads that have ended, for the next.
    counters: Vec<Arc<WorkerStats>>,
}

impl State {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job; `None` when there was none for long.
    fn next(&self) -> Option<Job> {
        let mut queue = self.queue();
        queue.idle += 1;
        let await_job = |queue, time| {
            let waited = self.changed.wait_timeout_while(queue, time, |queue: &mut Queue| queue.jobs.is_empty());
            waited.unwrap_or_else(PoisonError::into_inner).0
        };
        let mut queue = await_job(queue, AT_REST);
        if queue.jobs.is_empty() {
            drop(queue);
            memory::give_back(false);
            queue = await_job(self.queue(), IDLE);
        }
        queue.idle -= 1;
        let job = queue.jobs.pop_front();
        queue.threads -= usize::from(job.is_none());
        job
    }
}

impl Threads {
    /// Runs a job some time soon, for `instance`, whose threads these are.
    pub(super) fn run(&self, instance: &Arc<Instance>, job: Job) {
        let mut queue = self.state.queue();
        queue.jobs.push_back(job);
        if queue.jobs.len() <= queue.idle || queue.threads == MAX_THREADS {
            return self.state.changed.notify_one();
        }
        queue.threads += 1;
        let counters = queue.counters.pop().unwrap_or_else(|| instance.stats.add_worker());
        drop(queue);
        let (instance, state) = (Arc::clone(instance), Arc::clone(&self.state));
        let work = move || work(&state, Worker::of_slow_calls(instance, counters));
        // A panic of a call is caught there; elsewhere it would leave the queue's counts wrong.
        if let Err(error) = threads::spawn("slow-calls", OnPanic::EndProcess, work) {
            tracing::warn!("no thread for slow calls: {error}");
            let mut queue = self.state.queue();
            queue.threads -= 1;
            if queue.threads == 0 {
                // Their connections are closed.
                queue.jobs.clear();
            }
        }
    }
}

fn work(state: &State, worker: Worker) {
    priority::lower(priority::SLOW_CALLS);
    while let Some(job) = state.next() {
        job.run(&worker);
    }
    state.queue().counters.push(Arc::clone(&worker.stats));
}

impl Job {
    fn run(self, worker: &Worker) {
        match self {
            Self::Call { client, row, args, answer } => run_call(worker, client, row, args, answer),
            Self::Serve(ready) => {
                let mut client = crate::exec::script::nobody(worker);
                let serve = || super::serve_slowly(worker, &mut client, vec![ready]);
                if catch_unwind(AssertUnwindSafe(serve)).is_err() {
                    tracing::error!("a command that had waited panicked");
                }
            }
        }
    }
}

fn run_call(worker: &Worker, mut client: Client, row: &'static Row, args: OwnedArgs, answer: Answer) {
    let mut reply = Reply::default();
    reply.set_resp3(client.resp3);
    let call = Call { row, args: args.args() };
    let run = || {
        threads::panic_point();
        run_marked(worker, &mut client, call, &mut reply)
    };
    let Ok(waiting) = catch_unwind(AssertUnwindSafe(run)) else {
        // Its connection learns of it from the sender that is dropped.
        let (id, addr, command) = (client.shared.id, &client.shared.addr, panics::command(worker, &client.shared));
        tracing::error!(id, addr, command, "closing client: its command panicked");
        return crate::exec::session::leave(&worker.instance, &mut client);
    };
    answer.send(&worker.instance, Finished { client, reply, waiting });
}

/// Runs a call among the workers; returns what it waits for.
fn run_marked(
    worker: &Worker,
    client: &mut Client,
    call: Call<'_>,
    reply: &mut Reply,
) -> Option<crate::exec::blocking::Waiting> {
    let marks = window::marks(worker, client, &call, false);
    let slow = match worker.instance.exclusive.enter_slow(marks, false) {
        Ok(slow) => slow,
        Err(Busy) => {
            dispatch::refuse(worker, client, Some(call.row), worker.instance.busy_error(), reply);
            return None;
        }
    };
    if let Some(error) = dispatch::refused_since(worker, client, &call) {
        dispatch::refuse(worker, client, Some(call.row), error, reply);
        return None;
    }
    let silent = worker.instance.reaper.silent();
    let window = window::run_window(worker, client, &[call], reply);
    drop(slow);
    worker.instance.reaper.settle(silent);
    if !window.ready.is_empty() {
        super::serve_slowly(worker, client, window.ready);
    }
    window.waiting
}

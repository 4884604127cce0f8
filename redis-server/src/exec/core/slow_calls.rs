//! The threads of slow calls.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Instance, Worker, priority};
use crate::observe::memory;
use crate::observe::stats::WorkerStats;
use crate::threads::{self, OnPanic};

/// Most threads: calls that wait for another server (MIGRATE) take one each, and the others need some.
const MAX_THREADS: usize = 16;
/// How long a thread waits for another call before it gives memory back, and how much longer before it ends.
const AT_REST: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(10);

/// The work of a thread.
pub(in crate::exec) type Job = Box<dyn FnOnce(&Worker) + Send>;

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
    pub(in crate::exec) fn run(&self, instance: &Arc<Instance>, job: Job) {
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
        job(&worker);
    }
    state.queue().counters.push(Arc::clone(&worker.stats));
}

//! Runs the commands that another server has run and sends on: a replica's stream, and slots that come.

use std::thread;
use std::time::Duration;

use arrayvec::ArrayVec;

use crate::clients::client::Client;
use crate::command::Args;
use crate::exec::core::{Call, Worker};
use crate::exec::run::admission::Admission;
use crate::exec::run::dispatch;
use crate::exec::run::invoke::WINDOW;
use crate::exec::run::outcome::Passed;
use crate::protocol::Reply;
use crate::protocol::error::shown;

/// How long it waits for slow calls between two looks.
const NAP: Duration = Duration::from_millis(1);
/// Most bytes of a reply that an error repeats.
const SHOWN: usize = 200;

/// Runs commands in their order, without showing them to clients.
pub(super) struct Replay {
    pub(super) worker: Worker,
    pub(super) client: Client,
    reply: Reply,
}

/// A command that fails here, though it has not failed there.
pub(super) struct Failed {
    /// Its name, as it may be shown.
    pub(super) command: String,
    /// Why.
    pub(super) why: String,
}

impl Failed {
    pub(super) fn new(args: Args<'_>, why: &str) -> Self {
        Self { command: shown(args.at(0)).into_owned(), why: why.to_owned() }
    }
}

impl Replay {
    pub(super) fn new(worker: Worker) -> Self {
        Self { client: worker.nobody(), worker, reply: Reply::default() }
    }

    /// Runs a command alone, or queues it.
    ///
    /// # Errors
    /// It fails.
    pub(super) fn pass(&mut self, admission: Admission, args: Args<'_>) -> Result<(), Failed> {
        let before = self.worker.stats.errors.get();
        let row = match admission {
            Admission::Run(row) => Some(row),
            _ => None,
        };
        let mut passed = dispatch::pass(&self.worker, &mut self.client, admission, args, &mut self.reply);
        while let (Passed::Held(_), Some(row)) = (&passed, row) {
            thread::sleep(NAP);
            passed = dispatch::pass(&self.worker, &mut self.client, Admission::Run(row), args, &mut self.reply);
        }
        self.end(passed, args, before)
    }

    /// Runs calls that are [batched](crate::command::Command::batches), and takes from `calls` what has run.
    ///
    /// # Errors
    /// One fails. The rest is as it was.
    pub(super) fn run_window(&mut self, calls: &mut ArrayVec<Call<'_>, WINDOW>) -> Result<(), Failed> {
        while let Some(last) = calls.last().map(|call| call.args) {
            let before = self.worker.stats.errors.get();
            let (count, passed) = dispatch::run(&self.worker, &mut self.client, calls, &mut self.reply);
            calls.drain(..count);
            if matches!(passed, Passed::Held(_)) {
                // A slow call works on the same.
                thread::sleep(NAP);
            }
            self.end(passed, last, before)?;
        }
        Ok(())
    }

    /// Ends a call without an answer and without a wait.
    fn end(&mut self, passed: Passed, args: Args<'_>, errors_before: u64) -> Result<(), Failed> {
        if let Passed::Blocked(waiting) = passed {
            waiting.leave(&self.client);
        }
        let result = match self.worker.stats.errors.get() > errors_before {
            true => {
                let said = self.reply.to_vec();
                Err(Failed::new(args, &shown(&said[..said.len().min(SHOWN)])))
            }
            false => Ok(()),
        };
        self.reply.clear();
        result
    }
}

//! Runs commands that were run before: those of the append-only file, of a primary, and of the node from which slots come.

use std::thread;
use std::time::Duration;

use arrayvec::ArrayVec;

use crate::clients::client::Client;
use crate::command::{Args, Role, Row};
use crate::exec::core::{Call, Worker, resolve};
use crate::exec::run::admission::Admission;
use crate::exec::run::invoke::{WINDOW, run_among_others};
use crate::exec::run::outcome::Passed;
use crate::exec::run::{dispatch, transaction};
use crate::protocol::error::shown;
use crate::protocol::{Parser, ProtocolError, Reply, RequestLimits, Span, parse_whole_commands};

/// How long it waits for slow calls between two looks.
const NAP: Duration = Duration::from_millis(1);

/// Calls that are [batched](crate::command::Command::batches), to be run together.
pub(super) type Window<'a> = ArrayVec<Call<'a>, WINDOW>;

/// Where commands end among their arguments, and in the input; as many as a window takes.
pub(super) type Ends = ArrayVec<(usize, usize), WINDOW>;

/// Cuts what another server sends into commands.
#[derive(Debug, Default)]
pub(super) struct Commands {
    parser: Parser,
    /// Arguments of the commands that were read last, or of the one that has begun; counted from where the input goes on.
    pub(super) spans: Vec<Span>,
}

impl Commands {
    /// Whether a command has begun that is not complete.
    pub(super) fn is_begun(&self) -> bool {
        self.parser.in_command()
    }

    /// Reads complete commands from where the input goes on; none, if there is none.
    ///
    /// # Errors
    /// These are no commands.
    pub(super) fn read(&mut self, input: &[u8]) -> Result<Ends, ProtocolError> {
        let limits = RequestLimits::OF_SERVERS;
        let mut ends = Ends::new();
        if !self.is_begun() {
            self.spans.clear();
            parse_whole_commands(input, 0, &limits, &mut self.spans, &mut ends);
        }
        if ends.is_empty()
            && !input.is_empty()
            && let Some(end) = self.parser.parse(input, 0, &mut self.spans, &limits)?
        {
            ends.push((self.spans.len(), end));
        }
        Ok(ends)
    }
}

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
        Self { client: worker.unconnected_client(), worker, reply: Reply::default() }
    }

    /// The row of a command.
    ///
    /// # Errors
    /// There is none, or the command has the wrong number of arguments.
    pub(super) fn resolve(&self, args: Args<'_>) -> Result<&'static Row, Failed> {
        resolve::resolve(&self.worker.instance, args).map_err(|error| Failed::new(args, &error.to_string()))
    }

    /// Whether a transaction is being put together.
    pub(super) fn is_in_transaction(&self) -> bool {
        self.client.multi.is_some()
    }

    /// Forgets the transaction that is being put together.
    pub(super) fn discard_transaction(&mut self) {
        transaction::discard_transaction(&self.worker.instance, &mut self.client);
    }

    /// Whether a call may stand in a [`Window`].
    pub(super) fn batches(&self, row: &Row, args: Args<'_>) -> bool {
        !self.is_in_transaction() && row.command.batches(args.len()) && !self.worker.is_alone()
    }

    /// Runs a command by itself, or queues it in the transaction that is being put together.
    ///
    /// # Errors
    /// It fails.
    pub(super) fn pass(&mut self, row: &'static Row, args: Args<'_>) -> Result<(), Failed> {
        let before = self.worker.stats.errors.get();
        let is_queued = self.is_in_transaction() && !row.command.role.runs_inside_multi();
        if self.worker.is_alone() && !is_queued {
            self.run_alone(row, args);
            return self.end(Passed::Done, args, before);
        }
        let admit = || if is_queued { Admission::Queue(row) } else { Admission::Run(row) };
        let mut passed = dispatch::pass(&self.worker, &mut self.client, admit(), args, &mut self.reply);
        while let Passed::Held(_) = &passed {
            thread::sleep(NAP);
            passed = dispatch::pass(&self.worker, &mut self.client, admit(), args, &mut self.reply);
        }
        self.end(passed, args, before)
    }

    /// Runs a command of a worker that is alone with the data: each has locks of its own, those of a transaction too, which therefore
    /// must not be locked together.
    fn run_alone(&mut self, row: &'static Row, args: Args<'_>) {
        let multi = (row.command.role == Role::Exec).then(|| self.client.multi.take()).flatten();
        let Some(multi) = multi else {
            drop(run_among_others(&self.worker, &mut self.client, row, args, &mut self.reply));
            return;
        };
        self.discard_transaction();
        for (row, args) in &multi.queue {
            drop(run_among_others(&self.worker, &mut self.client, row, args.args(), &mut self.reply));
        }
    }

    /// Runs a window, and takes from `calls` what has run.
    ///
    /// # Errors
    /// One fails. The rest is as it was.
    pub(super) fn run_window(&mut self, calls: &mut Window<'_>) -> Result<(), Failed> {
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

    /// Ends a call without an answer and without a wait. Of its errors, the first counts.
    fn end(&mut self, passed: Passed, args: Args<'_>, errors_before: u64) -> Result<(), Failed> {
        if let Passed::Blocked(waiting) = passed {
            waiting.leave(&self.client);
        }
        if self.worker.stats.errors.get() == errors_before {
            self.reply.clear();
            return Ok(());
        }
        let said = self.reply.to_vec();
        self.reply.clear();
        let first = said.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"-")).unwrap_or_default();
        Err(Failed::new(args, &shown(first.trim_ascii_end())))
    }
}

//! The stream of changes, on a replica: cut into commands, run, and passed on.

use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arrayvec::ArrayVec;

use crate::clients::client::Client;
use crate::command::{Args, Role};
use crate::exec::dispatch::{self, Admission, Call, Passed};
use crate::exec::instance::Instance;
use crate::exec::script;
use crate::exec::transaction::discard_transaction;
use crate::exec::window::{self, WINDOW};
use crate::exec::worker::Worker;
use crate::protocol::error::shown;
use crate::protocol::{Parser, Reply, RequestLimits, Span, parse_whole_commands};

/// How long it waits for slow calls between two looks.
const NAP: Duration = Duration::from_millis(1);
/// Bytes of room that are kept when a large value has passed.
const ROOM_KEPT: usize = 1024 * 1024;
/// Longest argument, and longest command: offsets have 32 bits.
const BULK_MAX: u64 = 1 << 31;

/// Runs what the primary sends, in its order.
pub(super) struct Applier {
    worker: Worker,
    client: Client,
    reply: Reply,
    /// What has come since the last whole unit: bytes of a transaction that is not complete stay here.
    input: Vec<u8>,
    /// Where in it that begins which has not run, and how far the command there is parsed.
    at: usize,
    parser: Parser,
    spans: Vec<Span>,
    /// Where in it the last whole unit ends.
    unit: usize,
    /// Commands that are for replicas only.
    apart: Vec<Range<usize>>,
    is_asked: bool,
}

impl Applier {
    pub(super) fn new(instance: &Arc<Instance>) -> Self {
        let worker = Worker::of_link(Arc::clone(instance));
        let mut client = script::nobody(&worker);
        // What comes next may go on with what is here.
        client.db = instance.journal.database().unwrap_or(0);
        Self {
            worker,
            client,
            reply: Reply::default(),
            input: Vec::new(),
            at: 0,
            parser: Parser::default(),
            spans: Vec::new(),
            unit: 0,
            apart: Vec::new(),
            is_asked: false,
        }
    }

    /// Forgets what is not complete: it comes again. The stream goes on in the database in which it was.
    pub(super) fn cut(&mut self) {
        #[cfg(test)]
        if super::tests::is_broken(super::tests::Defect::HalfUnitsStay) {
            return;
        }
        discard_transaction(&self.worker.instance, &mut self.client);
        self.input.clear();
        (self.at, self.unit, self.parser) = (0, 0, Parser::default());
        self.spans.clear();
        self.apart.clear();
    }

    /// [`Applier::cut`], for a stream that begins anew.
    pub(super) fn begin(&mut self) {
        self.cut();
        self.client.db = self.worker.instance.journal.database().unwrap_or(0);
    }

    /// Whether the primary has asked how far this is, since the last call.
    pub(super) fn is_asked(&mut self) -> bool {
        std::mem::take(&mut self.is_asked)
    }

    /// Runs what is complete, and passes on what belongs to whole units.
    ///
    /// # Errors
    /// It is no stream of commands.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.input.extend_from_slice(bytes);
        // Commands point into it while they run.
        let input = std::mem::take(&mut self.input);
        let result = self.run(&input);
        self.input = input;
        let instance = &self.worker.instance;
        let whole = self.apart.partition_point(|apart| apart.end <= self.unit);
        instance.journal.relay(&self.input[..self.unit], &self.apart[..whole], self.client.db);
        self.apart.drain(..whole);
        self.apart.iter_mut().for_each(|apart| *apart = apart.start - self.unit..apart.end - self.unit);
        self.input.drain(..self.unit);
        if self.input.capacity() > ROOM_KEPT {
            self.input.shrink_to(ROOM_KEPT);
        }
        if self.parser.in_command() {
            Parser::relocate(&mut self.spans, self.unit);
        }
        self.at -= self.unit;
        self.unit = 0;
        result
    }

    fn run(&mut self, input: &[u8]) -> Result<(), String> {
        let limits = RequestLimits { max_bulk_len: BULK_MAX, authenticated: true };
        let unreadable = |error: crate::protocol::ProtocolError| format!("the primary sends no commands: {error}");
        loop {
            let mut spans = std::mem::take(&mut self.spans);
            let mut ends: ArrayVec<(usize, usize), WINDOW> = ArrayVec::new();
            if !self.parser.in_command() {
                spans.clear();
                parse_whole_commands(input, self.at, &limits, &mut spans, &mut ends);
            }
            if ends.is_empty() {
                if !self.parser.in_command() {
                    // A bare line end is a sign of life.
                    self.at += input[self.at..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
                }
                let end = if self.at == input.len() {
                    None
                } else {
                    self.parser.parse(input, self.at, &mut spans, &limits).map_err(unreadable)?
                };
                let Some(end) = end else {
                    self.spans = spans;
                    return Ok(());
                };
                ends.push((spans.len(), end));
            }
            self.run_commands(input, &spans, &ends)?;
            self.spans = spans;
        }
    }

    fn run_commands(&mut self, input: &[u8], spans: &[Span], ends: &[(usize, usize)]) -> Result<(), String> {
        let mut window: ArrayVec<Call<'_>, WINDOW> = ArrayVec::new();
        let mut first = 0;
        for &(last, end) in ends {
            let args = Args::new(input, &spans[first..last]);
            first = last;
            if args.is_empty() {
                self.at = end;
                continue;
            }
            let row = match dispatch::resolve(&self.worker.instance, args) {
                Ok(row) => row,
                Err(error) => {
                    self.run_window(&mut window);
                    self.failed(args, &error.to_string());
                    self.at = end;
                    if self.client.multi.is_none() {
                        self.unit = end;
                    }
                    continue;
                }
            };
            let is_ping = row.command.role == Role::Ping;
            if self.client.multi.is_none() && row.command.batches(args.len()) && !is_ping {
                window.push(Call { row, args });
            } else {
                self.run_window(&mut window);
                let is_question = row.command.role == Role::Replica;
                if is_ping || is_question || row.command.role == Role::Publish {
                    self.apart.push(self.at..end);
                }
                self.is_asked |= is_question && args.len() > 1 && args.is(1, "getack");
                if !is_ping && !is_question {
                    let is_queued = self.client.multi.is_some() && !row.command.role.runs_inside_multi();
                    let admission = if is_queued { Admission::Queue(row) } else { Admission::Run(row) };
                    self.pass(admission, args);
                }
            }
            self.at = end;
            if self.client.multi.is_none() {
                self.unit = end;
            }
        }
        self.run_window(&mut window);
        Ok(())
    }

    fn pass(&mut self, admission: Admission, args: Args<'_>) {
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
        self.forget(passed, args, before);
    }

    fn run_window(&mut self, calls: &mut ArrayVec<Call<'_>, WINDOW>) {
        let Some(last) = calls.last().map(|call| call.args) else { return };
        let before = self.worker.stats.errors.get();
        let mut done = 0;
        while done < calls.len() {
            let (count, passed) = window::run(&self.worker, &mut self.client, &calls[done..], &mut self.reply);
            done += count;
            if matches!(passed, Passed::Held(_)) {
                // A slow call works on the same.
                thread::sleep(NAP);
            } else {
                self.forget(passed, last, before);
            }
        }
        calls.clear();
    }

    /// Nobody is answered, and nobody waits.
    fn forget(&mut self, passed: Passed, args: Args<'_>, errors_before: u64) {
        if let Passed::Blocked(waiting) = passed {
            waiting.leave(&self.client);
        }
        if self.worker.stats.errors.get() > errors_before {
            let said = self.reply.to_vec();
            self.failed(args, &shown(&said[..said.len().min(200)]));
        }
        self.reply.clear();
    }

    /// The data may be another than the primary's from here on (`propagation-error-behavior ignore`).
    fn failed(&self, args: Args<'_>, why: &str) {
        tracing::error!(
            "== CRITICAL == This replica is sending an error to its master: '{why}' after processing the command '{}'",
            shown(args.at(0))
        );
    }
}

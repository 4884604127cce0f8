//! The stream of changes, on a replica: cut into commands, run, and passed on.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use arrayvec::ArrayVec;

use crate::command::{Args, Role};
use crate::exec::core::{Call, Instance, Worker};
use crate::exec::replay::{Failed, Replay};
use crate::exec::run::admission::Admission;
use crate::exec::run::invoke::WINDOW;
use crate::exec::run::resolve;
use crate::exec::run::transaction::discard_transaction;
use crate::protocol::{Parser, RequestLimits, Span, parse_whole_commands};

/// Bytes of room that are kept when a large value has passed.
const ROOM_KEPT: usize = 1024 * 1024;

/// Runs what the primary sends, in its order.
pub(super) struct Applier {
    replay: Replay,
    /// Bytes since the last whole unit: those of a transaction that is not complete stay here.
    input: Vec<u8>,
    /// Where in it that begins which has not run, and how far the command there is parsed.
    at: usize,
    parser: Parser,
    /// Its arguments so far, counted from there: the unit in front of it may be longer than spans reach.
    spans: Vec<Span>,
    /// Where in it the last whole unit ends.
    unit: usize,
    /// Commands that are for replicas only.
    apart: Vec<Range<usize>>,
    is_asked: bool,
}

impl Applier {
    pub(super) fn new(instance: &Arc<Instance>) -> Self {
        let mut replay = Replay::new(Worker::of_link(Arc::clone(instance)));
        // The stream may go on in the database that the journal has selected.
        replay.client.db = instance.journal.database().unwrap_or(0);
        Self {
            replay,
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
        discard_transaction(&self.replay.worker.instance, &mut self.replay.client);
        self.input.clear();
        (self.at, self.unit, self.parser) = (0, 0, Parser::default());
        self.spans.clear();
        self.apart.clear();
    }

    /// [`Applier::cut`], for a stream that begins anew.
    pub(super) fn begin(&mut self) {
        self.cut();
        self.replay.client.db = self.replay.worker.instance.journal.database().unwrap_or(0);
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
        let instance = &self.replay.worker.instance;
        let whole = self.apart.partition_point(|apart| apart.end <= self.unit);
        instance.journal.relay(&self.input[..self.unit], &self.apart[..whole], self.replay.client.db);
        self.apart.drain(..whole);
        self.apart.iter_mut().for_each(|apart| *apart = apart.start - self.unit..apart.end - self.unit);
        self.input.drain(..self.unit);
        if self.input.capacity() > ROOM_KEPT {
            self.input.shrink_to(ROOM_KEPT);
        }
        self.at -= self.unit;
        self.unit = 0;
        result
    }

    fn run(&mut self, input: &[u8]) -> Result<(), String> {
        let limits = RequestLimits::OF_SERVERS;
        let unreadable = |error: crate::protocol::ProtocolError| format!("the primary sends no commands: {error}");
        loop {
            let mut spans = std::mem::take(&mut self.spans);
            let mut ends: ArrayVec<(usize, usize), WINDOW> = ArrayVec::new();
            let mut rest = &input[self.at..];
            if !self.parser.in_command() {
                spans.clear();
                parse_whole_commands(rest, 0, &limits, &mut spans, &mut ends);
            }
            if ends.is_empty() {
                if !self.parser.in_command() {
                    // A bare line end is a sign of life.
                    self.at += rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
                    rest = &input[self.at..];
                }
                let end = if rest.is_empty() {
                    None
                } else {
                    self.parser.parse(rest, 0, &mut spans, &limits).map_err(unreadable)?
                };
                let Some(end) = end else {
                    self.spans = spans;
                    return Ok(());
                };
                ends.push((spans.len(), end));
            }
            self.run_commands(rest, &spans, &ends)?;
            self.spans = spans;
        }
    }

    /// Runs commands of `rest`, where the input goes on.
    fn run_commands(&mut self, rest: &[u8], spans: &[Span], ends: &[(usize, usize)]) -> Result<(), String> {
        let mut window: ArrayVec<Call<'_>, WINDOW> = ArrayVec::new();
        let (begin, mut first) = (self.at, 0);
        for &(last, end) in ends {
            let end = begin + end;
            let args = Args::new(rest, &spans[first..last]);
            first = last;
            if args.is_empty() {
                self.at = end;
                continue;
            }
            let row = match resolve::resolve(&self.replay.worker.instance, args) {
                Ok(row) => row,
                Err(error) => {
                    self.run_window(&mut window);
                    self.log(&Failed::new(args, &error.to_string()));
                    self.at = end;
                    if self.replay.client.multi.is_none() {
                        self.unit = end;
                    }
                    continue;
                }
            };
            let is_ping = row.command.role == Role::Ping;
            if self.replay.client.multi.is_none() && row.command.batches(args.len()) && !is_ping {
                window.push(Call { row, args });
            } else {
                self.run_window(&mut window);
                let is_question = row.command.role == Role::Replica;
                if is_ping || is_question || row.command.role == Role::Publish {
                    self.apart.push(self.at..end);
                }
                self.is_asked |= is_question && args.len() > 1 && args.is(1, "getack");
                if !is_ping && !is_question {
                    let is_queued = self.replay.client.multi.is_some() && !row.command.role.runs_inside_multi();
                    let admission = if is_queued { Admission::Queue(row) } else { Admission::Run(row) };
                    if let Err(error) = self.replay.pass(admission, args) {
                        self.log(&error);
                    }
                }
            }
            self.at = end;
            if self.replay.client.multi.is_none() {
                self.unit = end;
            }
        }
        self.run_window(&mut window);
        Ok(())
    }

    fn run_window(&mut self, calls: &mut ArrayVec<Call<'_>, WINDOW>) {
        while let Err(error) = self.replay.run_window(calls) {
            self.log(&error);
        }
    }

    /// The data may be another than the primary's from here on.
    fn log(&self, Failed { command, why }: &Failed) {
        self.replay.worker.instance.stats.unexpected_errors.fetch_add(1, Relaxed);
        tracing::error!(
            "== CRITICAL == This replica is sending an error to its master: '{why}' after processing the command '{command}'"
        );
    }
}

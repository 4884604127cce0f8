//! The stream of changes, on a replica: cut into commands, run, and passed on.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::command::{Args, Role};
use crate::exec::apply::{Commands, Ends, Failed, Replay, Window};
use crate::exec::core::{Call, Instance, Worker};
use crate::protocol::Span;

/// Bytes of room that are kept when a large value has passed.
const ROOM_KEPT: usize = 1024 * 1024;

/// Runs what the primary sends, in its order.
pub(super) struct Applier {
    replay: Replay,
    /// Bytes since the last whole unit: those of a transaction that is not complete stay here.
    input: Vec<u8>,
    /// Where in it that begins which has not run, and how far it is read: spans count from there, as the unit in front of it may be longer
    /// than they reach.
    at: usize,
    commands: Commands,
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
            commands: Commands::default(),
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
        self.replay.discard_transaction();
        self.input.clear();
        (self.at, self.unit, self.commands) = (0, 0, Commands::default());
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
        loop {
            if !self.commands.is_begun() {
                // A bare line end is a sign of life.
                self.at += input[self.at..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            }
            let rest = &input[self.at..];
            let read = self.commands.read(rest).map_err(|error| format!("the primary sends no commands: {error}"))?;
            if read.is_empty() {
                return Ok(());
            }
            let spans = std::mem::take(&mut self.commands.spans);
            self.run_commands(rest, &spans, &read);
            self.commands.spans = spans;
        }
    }

    /// Runs commands of `rest`, where the input goes on.
    fn run_commands(&mut self, rest: &[u8], spans: &[Span], ends: &Ends) {
        let mut window = Window::new();
        let (begin, mut first) = (self.at, 0);
        for &(last, end) in ends {
            let end = begin + end;
            let args = Args::new(rest, &spans[first..last]);
            first = last;
            if args.is_empty() {
                self.at = end;
                continue;
            }
            let row = match self.replay.resolve(args) {
                Ok(row) => row,
                Err(error) => {
                    self.run_window(&mut window);
                    self.log(&error);
                    self.at = end;
                    if !self.replay.is_in_transaction() {
                        self.unit = end;
                    }
                    continue;
                }
            };
            let is_ping = row.command.role == Role::Ping;
            if self.replay.batches(row, args) && !is_ping {
                window.push(Call { row, args });
            } else {
                self.run_window(&mut window);
                let is_question = row.command.role == Role::Replica;
                if is_ping || is_question || row.command.role == Role::Publish {
                    self.apart.push(self.at..end);
                }
                self.is_asked |= is_question && args.len() > 1 && args.is(1, "getack");
                if !is_ping
                    && !is_question
                    && let Err(error) = self.replay.pass(row, args)
                {
                    self.log(&error);
                }
            }
            self.at = end;
            if !self.replay.is_in_transaction() {
                self.unit = end;
            }
        }
        self.run_window(&mut window);
    }

    fn run_window(&mut self, calls: &mut Window<'_>) {
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

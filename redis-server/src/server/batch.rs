//! What has been read, command by command: parsing it, and running it in windows under common locks.

use std::sync::atomic::Ordering::Relaxed;
use std::task::Context;

use bytes::Bytes;
use smallvec::SmallVec;

use super::conn::{Conn, MAX_UNSENT, Progress};
use crate::command::Args;
use crate::config::settings;
use crate::dispatch::{self, Call, Gate, Passed};
use crate::resp::{Parser, ProtocolError, RequestLimits, Span, split_inline};
use crate::worker::Scratch;

/// Replies that are sent before the rest of a batch runs.
const SEND_EARLY: usize = 256 * 1024;
/// Arguments that a worker keeps room for between batches.
const SPANS_KEPT: usize = 4 * 1024;

impl Conn {
    /// Parses and runs every complete command of `input`. Returns how much of it is done with.
    pub(super) fn process(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
        input: &[u8],
        owner: Option<&Bytes>,
    ) -> (usize, Progress) {
        let mut spans = std::mem::take(&mut scratch.spans);
        scratch.reply.set_resp3(self.client.resp3);
        let mut used = 0;
        let progress = loop {
            let before = used;
            let progress = self.process_batch(scratch, input, owner, &mut spans, &mut used);
            match progress {
                // An unfinished command at the end waits for more input.
                Ok(Progress::Done) if used > before && used < input.len() && !self.parser.in_command() => {}
                Ok(progress) => break progress,
                Err(error) => {
                    scratch.reply.error(&format_args!("ERR {error}"));
                    break Progress::Close;
                }
            }
            if scratch.reply.len() > SEND_EARLY && self.send(cx, scratch).is_err() {
                break Progress::Close;
            }
            if self.output.len() > MAX_UNSENT {
                self.stalled = true;
                break Progress::Done;
            }
        };
        self.client.shared.active_at.store(self.worker.now_ms(), Relaxed);
        spans.clear();
        spans.shrink_to(SPANS_KEPT);
        scratch.spans = spans;
        (used, progress)
    }

    /// Parses and runs at most one window of commands from `input[*used..]`.
    fn process_batch(
        &mut self,
        scratch: &mut Scratch,
        input: &[u8],
        owner: Option<&Bytes>,
        spans: &mut Vec<Span>,
        used: &mut usize,
    ) -> Result<Progress, ProtocolError> {
        let limits = RequestLimits {
            max_bulk_len: self.worker.instance.config.uint(settings::PROTO_MAX_BULK_LEN),
            authenticated: self.client.identity.may_enter(&self.worker.instance.acl),
        };
        if !self.parser.in_command() && input.get(*used).is_some_and(|&byte| byte != b'*') {
            return self.process_inline(scratch, &input[*used..], used);
        }
        spans.clear();
        spans.append(&mut self.spans);
        // End of each command in `spans` and in `input`.
        let mut commands: SmallVec<[(usize, usize); dispatch::WINDOW]> = SmallVec::new();
        let mut at = *used;
        let mut failed = None;
        while commands.len() < dispatch::WINDOW && (self.parser.in_command() || input.get(at) == Some(&b'*')) {
            let first = spans.len();
            match self.parser.parse(input, at, spans, &limits) {
                Ok(Some(end)) => {
                    at = end;
                    commands.push((spans.len(), end));
                }
                Ok(None) => {
                    let first = commands.last().map_or(0, |(last, _)| *last).min(first);
                    self.spans.extend_from_slice(&spans[first..]);
                    Parser::relocate(&mut self.spans, at);
                    spans.truncate(first);
                    break;
                }
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let progress = self.run_commands(scratch, input, owner, spans, &commands, used);
        if matches!(progress, Progress::Held | Progress::Close) {
            // What was parsed behind the held command will be parsed again.
            self.parser = Parser::default();
            self.spans.clear();
            return Ok(progress);
        }
        failed.map_or(Ok(progress), Err)
    }

    fn run_commands(
        &mut self,
        scratch: &mut Scratch,
        input: &[u8],
        owner: Option<&Bytes>,
        spans: &[Span],
        commands: &[(usize, usize)],
        used: &mut usize,
    ) -> Progress {
        let mut window: SmallVec<[Call<'_>; dispatch::WINDOW]> = SmallVec::new();
        let mut first = 0;
        for &(last, end) in commands {
            let spans = &spans[first..last];
            first = last;
            if spans.is_empty() {
                *used = end;
                continue;
            }
            let args = owner.map_or_else(|| Args::new(input, spans), |owner| Args::shared(owner, spans));
            let gate = dispatch::gate(&self.worker, &mut self.client, args);
            if let Gate::Run(row) = gate
                && row.command.batched
            {
                window.push(Call { row, args });
                *used = end;
                continue;
            }
            self.run_window(scratch, &mut window);
            match self.pass(scratch, gate, args) {
                Progress::Done => *used = end,
                Progress::Held if self.client.awaits_answer() => {
                    *used = end;
                    return Progress::Held;
                }
                Progress::Held => return Progress::Held,
                Progress::Close => {
                    *used = end;
                    return Progress::Close;
                }
            }
        }
        self.run_window(scratch, &mut window);
        Progress::Done
    }

    fn run_window(&mut self, scratch: &mut Scratch, window: &mut SmallVec<[Call<'_>; dispatch::WINDOW]>) {
        if let Some(last) = window.last() {
            self.client.note_command(last.row);
            dispatch::run(&self.worker, &mut self.client, window, &mut scratch.reply);
            window.clear();
        }
    }

    /// Does what the gate has decided about a command that runs alone.
    fn pass(&mut self, scratch: &mut Scratch, gate: Gate, args: Args<'_>) -> Progress {
        match dispatch::pass(&self.worker, &mut self.client, gate, args, &mut scratch.reply) {
            Passed::Done if self.client.close => Progress::Close,
            Passed::Done => Progress::Done,
            Passed::Blocked(waiting) => {
                self.wait(waiting);
                Progress::Held
            }
            Passed::Interrupted(interrupted) => {
                self.let_run(interrupted);
                Progress::Held
            }
            Passed::Paused(until) => {
                self.pause(until);
                Progress::Held
            }
        }
    }

    fn process_inline(
        &mut self,
        scratch: &mut Scratch,
        input: &[u8],
        used: &mut usize,
    ) -> Result<Progress, ProtocolError> {
        let Some((inline, len)) = split_inline(input)? else { return Ok(Progress::Done) };
        if inline.spans.is_empty() {
            *used += len;
            return Ok(Progress::Done);
        }
        let args = Args::new(&inline.bytes, &inline.spans);
        let gate = dispatch::gate(&self.worker, &mut self.client, args);
        let progress = self.pass(scratch, gate, args);
        if !matches!(progress, Progress::Held) || self.client.awaits_answer() {
            *used += len;
        }
        Ok(progress)
    }
}

//! A client's input, from bytes to replies: parsing it, and running it in windows under common locks.

use std::time::Duration;

use arrayvec::ArrayVec;
use bytes::Bytes;

use crate::command::{Args, Recent};
use crate::config::settings;
use crate::exec::core::clock::Tick;
use crate::exec::core::{Call, Worker, resolve};
use crate::exec::run::admission::{self, Admission};
use crate::exec::run::outcome::Passed;
use crate::exec::run::session::ConnectedClient;
use crate::exec::run::{dispatch, invoke};
use crate::protocol::{Parser, ProtocolError, Reply, RequestLimits, Span, parse_whole_commands, split_inline};

/// Replies that are to leave before more of them are made.
pub(crate) const SEND_EARLY: usize = 256 * 1024;

/// How long the commands of a turn may take: a few times what so many small ones do.
const TURN_TIME: Duration = Duration::from_millis(1);
/// The same with a command that was alone with the data, for which the clients of all workers wait.
const TURN_TIME_ALONE: Duration = Duration::from_micros(200);

/// True if a turn that began then has used its time: connections that wait come before its further commands.
pub(crate) fn is_turn_over(worker: &Worker, began: Tick) -> bool {
    let time = if worker.was_alone.get() { TURN_TIME_ALONE } else { TURN_TIME };
    worker.ticked().since(began) > time
}

/// How far the unfinished command at the head of a client's input is parsed.
#[derive(Debug, Default)]
pub(crate) struct Pipeline {
    pub(crate) parser: Parser,
    /// Its arguments so far.
    spans: Vec<Span>,
}

/// The worker that runs commands, their client, and the place of the replies.
pub(crate) struct Runner<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) client: &'a mut ConnectedClient,
    pub(crate) reply: &'a mut Reply,
    /// When the turn began.
    pub(crate) began: Tick,
}

/// Received bytes.
#[derive(Clone, Copy)]
pub(crate) struct Received<'a> {
    pub(crate) bytes: &'a [u8],
    /// The same, where values may keep a share of it.
    pub(crate) owner: Option<&'a Bytes>,
}

/// A command in its batch: where its arguments end among the batch's, and where it ends in the input.
type Ends = (usize, usize);

/// Commands that will run under common locks.
type Window<'a> = ArrayVec<Call<'a>, { invoke::WINDOW }>;

impl Pipeline {
    /// Parses and runs at most one window of commands from `input[*used..]`. Stops earlier if their replies exceed [`SEND_EARLY`], or if
    /// the turn is over. Sets
    /// `used` behind the commands that have run, and behind a command that now waits for its answer. The outcome of the last
    /// of them tells whether there can be more.
    ///
    /// `spans` is room for arguments.
    pub(crate) fn run(
        &mut self,
        mut runner: Runner<'_>,
        input: Received<'_>,
        spans: &mut Vec<Span>,
        used: &mut usize,
    ) -> Result<Passed, ProtocolError> {
        let bytes = input.bytes;
        if !self.parser.in_command() && bytes.get(*used).is_some_and(|&byte| byte != b'*') {
            return runner.run_inline(&bytes[*used..], used);
        }
        spans.clear();
        // Of a command that has begun the arguments stay in their own place: it may have millions, and come byte by byte.
        let is_begun = self.parser.in_command();
        let mut begun = std::mem::take(&mut self.spans);
        let spans = if is_begun { &mut begun } else { spans };
        let mut commands = ArrayVec::new();
        let parsed = self.parse(bytes, *used, &runner.limits(), spans, &mut commands);
        if is_begun && commands.is_empty() {
            self.spans = begun;
            return parsed.map(|()| Passed::Done);
        }
        let passed = runner.run_commands(input, spans, &commands, used);
        let all_ran = commands.last().is_none_or(|(_, end)| end == used);
        // The limits of unauthenticated clients do not bind one that has just authenticated.
        let is_stale = parsed.is_err() && !commands.is_empty();
        if runner.client.close || !all_ran || !matches!(passed, Passed::Done) || is_stale {
            // Commands that were parsed behind the last one will be parsed again.
            *self = Self::default();
            return Ok(passed);
        }
        parsed.map(|()| passed)
    }

    /// Parses complete commands, up to a window, and keeps the beginning of one behind them. That beginning stays in `spans`
    /// until the command is complete.
    fn parse(
        &mut self,
        input: &[u8],
        mut at: usize,
        limits: &RequestLimits,
        spans: &mut Vec<Span>,
        commands: &mut ArrayVec<Ends, { invoke::WINDOW }>,
    ) -> Result<(), ProtocolError> {
        if !self.parser.in_command() {
            at = parse_whole_commands(input, at, limits, spans, commands);
        }
        while commands.len() < invoke::WINDOW && (self.parser.in_command() || input.get(at) == Some(&b'*')) {
            let was_begun = self.parser.in_command();
            let Some(end) = self.parser.parse(input, at, spans, limits)? else {
                if was_begun {
                    break;
                }
                let first = commands.last().map_or(0, |(last, _)| *last);
                self.spans.extend_from_slice(&spans[first..]);
                Parser::relocate(&mut self.spans, at);
                spans.truncate(first);
                break;
            };
            at = end;
            commands.push((spans.len(), end));
        }
        Ok(())
    }
}

impl Runner<'_> {
    fn limits(&self) -> RequestLimits {
        RequestLimits {
            max_bulk_len: self.worker.instance.config.uint(settings::PROTO_MAX_BULK_LEN),
            authenticated: self.client.identity.may_enter(&self.worker.instance.acl),
        }
    }

    // Not inlined into its caller: its values stay in registers.
    #[inline(never)]
    fn run_commands(&mut self, input: Received<'_>, spans: &[Span], commands: &[Ends], used: &mut usize) -> Passed {
        let mut window: Window<'_> = ArrayVec::new();
        let mut is_plain = admission::is_plain(self.worker, self.client);
        let fills_memory = self.worker.instance.may_refuse_within(input.bytes.len() as u64);
        is_plain &= !fills_memory;
        let nothing = input.owner.map_or_else(|| Args::new(input.bytes, &[]), |owner| Args::shared(owner, &[]));
        let (mut first, mut recent) = (0, Recent::default());
        for (index, &(last, end)) in commands.iter().enumerate() {
            let spans = &spans[first..last];
            first = last;
            let args = nothing.with_spans(spans);
            if is_plain && let Some(row) = resolve::find_batched(self.worker, args, &mut recent) {
                window.push(Call { row, args });
                continue;
            }
            // Of calls of one window admission comes before all of them run, which changes nothing that matters for it, unless
            // they may use up memory: then each call is judged by what those in front of it have left.
            if fills_memory && let Some(passed) = self.run_window(&mut window, &commands[..index], used) {
                return passed;
            }
            let admission = (!spans.is_empty()).then(|| admission::admit(self.worker, self.client, args));
            if let Some(Admission::Run(row)) = admission
                && row.command.batches(args.len())
                && !self.client.asking.is_on()
            {
                // Calls whose weight counts stand in front of all others: what is left of a window looks at its first to know
                // whether it has any.
                let is_behind_others = window.last().is_some_and(|last| !last.row.command.batches_if_light);
                if row.command.batches_if_light
                    && is_behind_others
                    && let Some(passed) = self.run_window(&mut window, &commands[..index], used)
                {
                    return passed;
                }
                window.push(Call { row, args });
                continue;
            }
            if let Some(passed) = self.run_window(&mut window, &commands[..index], used) {
                return passed;
            }
            let Some(admission) = admission else {
                *used = end;
                continue;
            };
            let passed = dispatch::pass(self.worker, self.client, admission, args, self.reply);
            if !has_not_run(&passed) {
                *used = end;
            }
            let ends = self.reply.len() > SEND_EARLY || is_turn_over(self.worker, self.began);
            if self.client.close || ends || !matches!(passed, Passed::Done) {
                return passed;
            }
            is_plain = !fills_memory && admission::is_plain(self.worker, self.client);
        }
        self.run_window(&mut window, commands, used).unwrap_or(Passed::Done)
    }

    /// Runs the commands of a window, the last of `before`; `used` is where the first begins that has not run. `Some` is what
    /// speaks against running more.
    fn run_window(&mut self, window: &mut Window<'_>, before: &[Ends], used: &mut usize) -> Option<Passed> {
        let last = window.last()?;
        self.client.note_command(last.row);
        let (done, passed) = dispatch::run(self.worker, self.client, window, self.reply);
        let before_window = before.len() - window.len();
        if let Some(last_done) = (before_window + done.min(window.len())).checked_sub(1) {
            *used = before[last_done].1;
        }
        window.clear();
        (!matches!(passed, Passed::Done)).then_some(passed)
    }

    fn run_inline(&mut self, input: &[u8], used: &mut usize) -> Result<Passed, ProtocolError> {
        let Some((inline, len)) = split_inline(input)? else { return Ok(Passed::Done) };
        if inline.spans.is_empty() {
            *used += len;
            return Ok(Passed::Done);
        }
        let args = Args::new(&inline.bytes, &inline.spans);
        let admission = admission::admit(self.worker, self.client, args);
        let passed = dispatch::pass(self.worker, self.client, admission, args, self.reply);
        if !has_not_run(&passed) {
            *used += len;
        }
        Ok(passed)
    }
}

/// Whether a command is to be tried again later.
fn has_not_run(passed: &Passed) -> bool {
    matches!(passed, Passed::Paused(_) | Passed::Held(_))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clients::client::ClientShared;
    use crate::config::Config;
    use crate::exec::core::Instance;
    use crate::protocol::Reply;

    /// More input neither moves nor scans the received part of a command again.
    #[test]
    fn the_arguments_of_an_unfinished_command_stay_where_they_are() {
        const ARGUMENTS: usize = 100_000;
        let worker = Worker::new(Arc::new(Instance::new(Arc::new(Config::default()), &crate::commands::TABLE)));
        let shared = ClientShared::new(1, String::new(), String::new(), -1, 0);
        let mut client = ConnectedClient::new(&worker.instance, shared);
        let (mut reply, mut room, mut pipeline) = (Reply::default(), Vec::new(), Pipeline::default());
        let mut receive = |pipeline: &mut Pipeline, room: &mut Vec<Span>, input: &[u8]| {
            let mut used = 0;
            let began = worker.ticked();
            let runner = Runner { worker: &worker, client: &mut client, reply: &mut reply, began };
            pipeline.run(runner, Received { bytes: input, owner: None }, room, &mut used).unwrap();
            (used, reply.to_vec())
        };
        let mut input = format!("*{}\r\n$3\r\nDEL\r\n", ARGUMENTS + 1).into_bytes();
        assert_eq!(receive(&mut pipeline, &mut room, &input).0, 0);
        let (mut places, mut capacity) = (0, room.capacity());
        let mut place = pipeline.spans.as_ptr();
        for argument in 0..ARGUMENTS {
            input.extend_from_slice(b"$1\r\nk\r\n");
            if argument + 1 == ARGUMENTS {
                break;
            }
            assert_eq!(receive(&mut pipeline, &mut room, &input).0, 0);
            places += usize::from(std::mem::replace(&mut place, pipeline.spans.as_ptr()) != place);
            capacity = capacity.max(room.capacity());
        }
        assert!(places <= 20, "it has moved {places} times: more than a vector does that grows");
        assert!(capacity < 100, "{capacity} arguments went through the room of all connections");
        input.extend_from_slice(b"PING\r\n");
        let (used, said) = receive(&mut pipeline, &mut room, &input);
        assert_eq!((used, said), (input.len() - 6, b":0\r\n".to_vec()));
        assert_eq!(pipeline.spans.capacity(), 0, "nothing is held for a command that is over");
    }
}

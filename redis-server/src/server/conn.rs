//! One connection: reads, runs what is complete, writes once per batch.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use server_runtime::{Connection, Peer, Stream};
use smallvec::SmallVec;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Sleep;

use super::output::Output;
use crate::blocking::Waiting;
use crate::client::{Client, ClientShared, End, flag};
use crate::command::Args;
use crate::config::settings;
use crate::dispatch::{self, Call, Gate, Passed};
use crate::error::Error;
use crate::resp::{Parser, ProtocolError, RequestLimits, Span, split_inline};
use crate::worker::{Scratch, Worker, now_ms};

/// Input that is moved to the head of the shared buffer to be completed there; longer input gets a buffer of its own.
const MAX_TAIL: usize = 16 * 1024;
/// Least room that a connection's own buffer offers to a read.
const MIN_ROOM: usize = 16 * 1024;
/// Replies that may wait for a client that does not read them. Beyond, its commands wait too.
const MAX_UNSENT: usize = 64 * 1024 * 1024;
/// Replies that are sent before the rest of a batch runs.
const SEND_EARLY: usize = 256 * 1024;

/// Serves one connection to its end.
pub(super) async fn serve(worker: Rc<Worker>, connection: Connection) {
    let Connection { stream, peer, local, place, shutdown } = connection;
    let _place = place;
    if shutdown.is_triggered() {
        return;
    }
    let client = new_client(&worker, &stream, &peer, &local);
    let mut conn = Conn {
        worker,
        stream,
        client,
        input: BytesMut::new(),
        parser: Parser::default(),
        spans: Vec::new(),
        output: Output::default(),
        waiting: None,
        timer: None,
        soft_limit_since: None,
        stalled: false,
    };
    // An error of the socket ends the connection like its orderly end: there is nobody to be told.
    let _ = poll_fn(|cx| conn.poll(cx)).await;
}

fn new_client(worker: &Worker, stream: &Stream, peer: &Peer, local: &Peer) -> Client {
    use std::os::fd::AsRawFd;
    let instance = &worker.instance;
    let fd = stream.as_raw_fd();
    let shared = ClientShared::new(instance.next_client_id(), peer.to_string(), local.to_string(), fd, now_ms());
    shared.set_flag(flag::UNIX, matches!(peer, Peer::Unix(_)));
    let shared = Arc::new(shared);
    instance.add_client(&shared);
    Client::new(shared, instance.config.text(settings::REQUIREPASS).is_empty())
}

struct Conn {
    worker: Rc<Worker>,
    stream: Stream,
    client: Client,
    /// Input that waits: an unfinished command, or commands behind one that waits.
    input: BytesMut,
    /// How far the unfinished command at the head of `input` is parsed.
    parser: Parser,
    /// Its arguments so far.
    spans: Vec<Span>,
    output: Output,
    /// A blocking command's wait.
    waiting: Option<Waiting>,
    /// Ends the wait for keys, or CLIENT PAUSE.
    timer: Option<Pin<Box<Sleep>>>,
    /// Since when the output is above its soft limit, in milliseconds of Unix time.
    soft_limit_since: Option<u64>,
    /// Whether complete commands wait in `input` for the output to shrink.
    stalled: bool,
}

/// What one batch of input has come to.
enum Progress {
    /// Everything complete has run.
    Done,
    /// A command waits; what is behind it waits too.
    Held,
    /// The connection ends when its output is sent.
    Close,
}

impl Conn {
    /// Works until there is nothing to be done. Ready when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let worker = Rc::clone(&self.worker);
        let mut scratch = worker.scratch.borrow_mut();
        let scratch = &mut *scratch;
        self.client.shared.wake_by(cx.waker());
        loop {
            if self.client.shared.has_mail() && self.take_mail(cx, scratch)? {
                return Poll::Ready(Ok(()));
            }
            if !self.output.is_empty() {
                match self.output.flush(cx, &mut self.stream) {
                    Poll::Ready(sent) => self.sent(sent?),
                    Poll::Pending if self.over_limit() => return Poll::Ready(Ok(())),
                    // Commands go on running for a client that sends before it reads, up to a point.
                    Poll::Pending if self.client.close || self.output.len() > MAX_UNSENT => return Poll::Pending,
                    Poll::Pending => {}
                }
            }
            if self.client.close {
                return Poll::Ready(Ok(()));
            }
            let go_on = if self.is_held() { self.poll_wait(cx, scratch)? } else { std::mem::take(&mut self.stalled) };
            if go_on {
                self.resume(cx, scratch)?;
                continue;
            }
            match self.read(cx, scratch) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(count)) => self.received(cx, scratch, count)?,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn is_held(&self) -> bool {
        self.waiting.is_some() || self.timer.is_some()
    }

    /// Sends what others have left; true if the connection is to end now.
    fn take_mail(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> io::Result<bool> {
        let mail = self.client.shared.take_mail();
        if self.output.is_empty() {
            // Many small messages go out in one piece.
            mail.messages.iter().for_each(|message| scratch.reply.encoded(message));
            self.send(cx, scratch)?;
        } else {
            mail.messages.into_iter().for_each(|message| self.output.push(message));
        }
        if mail.end == End::Now {
            // What the client was told before must still reach it, if its socket takes it.
            let _ = self.output.flush(cx, &mut self.stream)?;
            return Ok(true);
        }
        self.client.close |= mail.end == End::WhenSent;
        self.note_buffers();
        Ok(false)
    }

    /// [`Conn::read_input`], counted.
    fn read(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<io::Result<usize>> {
        let waited = self.input.len();
        let read = self.read_input(cx, scratch);
        if let Poll::Ready(Ok(count @ 1..)) = read {
            let fresh = if self.input.is_empty() { count - waited } else { count };
            self.worker.stats.reads.add(1);
            self.worker.stats.input.add(fresh as u64);
        }
        read
    }

    /// Reads into the shared buffer, or behind input that waits in the connection's own. In the shared buffer, what waited stands before it
    /// and is counted.
    fn read_input(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<io::Result<usize>> {
        if self.input.is_empty() {
            let mut buf = ReadBuf::new(&mut scratch.input);
            return Pin::new(&mut self.stream).poll_read(cx, &mut buf).map_ok(|()| buf.filled().len());
        }
        if !self.is_held() && self.input.len() <= MAX_TAIL && self.parser.needed() <= scratch.input.len() {
            let tail = self.input.len();
            scratch.input[..tail].copy_from_slice(&self.input);
            let mut buf = ReadBuf::new(&mut scratch.input[tail..]);
            let read = Pin::new(&mut self.stream).poll_read(cx, &mut buf).map_ok(|()| buf.filled().len());
            if let Poll::Ready(Ok(1..)) = read {
                // The whole input stands in the shared buffer now.
                self.input = BytesMut::new();
                return read.map_ok(|count| count + tail);
            }
            return read;
        }
        if self.input.len() as u64 > self.worker.instance.config.uint(settings::CLIENT_QUERY_BUFFER_LIMIT) {
            let (id, addr) = (self.client.shared.id, &self.client.shared.addr);
            tracing::warn!(id, addr, "closing client: its input passed client-query-buffer-limit");
            return Poll::Ready(Ok(0));
        }
        self.read_behind(cx)
    }

    /// Reads behind what waits in the connection's own buffer, which is made as large as the unfinished argument needs.
    fn read_behind(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let missing = self.parser.needed().saturating_sub(self.input.len());
        if self.input.capacity() - self.input.len() < missing.clamp(1, MIN_ROOM) {
            self.input.reserve(missing.max(MIN_ROOM));
        }
        let len = self.input.len();
        let room = (self.input.capacity() - len).min(missing.max(MIN_ROOM));
        self.input.resize(len + room, 0);
        let mut buf = ReadBuf::new(&mut self.input[len..]);
        let read = Pin::new(&mut self.stream).poll_read(cx, &mut buf).map_ok(|()| buf.filled().len());
        let count = if let Poll::Ready(Ok(count)) = read { count } else { 0 };
        self.input.truncate(len + count);
        read
    }

    /// Runs what has been received and sends the replies.
    fn received(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch, count: usize) -> io::Result<()> {
        if self.is_held() {
            self.note_buffers();
            return Ok(());
        }
        if !self.input.is_empty() {
            return self.resume(cx, scratch);
        }
        let mut input = std::mem::take(&mut scratch.input);
        let (used, progress) = self.process(cx, scratch, &input[..count], None);
        if used < count {
            self.input.extend_from_slice(&input[used..count]);
            self.reserve_for_argument();
        }
        std::mem::swap(&mut scratch.input, &mut input);
        self.finish(cx, scratch, progress)
    }

    /// Makes room for all of an argument whose length is known, so that it is received where it will stay.
    fn reserve_for_argument(&mut self) {
        if self.parser.pending_bulk().is_some() {
            self.input.reserve(self.parser.needed().saturating_sub(self.input.len()));
        }
    }

    /// Runs what waits in the connection's own buffer.
    fn resume(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> io::Result<()> {
        if self.input.len() < self.parser.needed() {
            return self.finish(cx, scratch, Progress::Done);
        }
        let input = std::mem::take(&mut self.input).freeze();
        let (used, progress) = self.process(cx, scratch, &input, Some(&input));
        if used == 0 {
            // Nothing was complete: go on filling the same buffer.
            self.input = input.try_into_mut().unwrap_or_else(|input| BytesMut::from(&*input));
        } else {
            self.input = BytesMut::from(&input[used..]);
        }
        self.reserve_for_argument();
        self.finish(cx, scratch, progress)
    }

    fn finish(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch, progress: Progress) -> io::Result<()> {
        if matches!(progress, Progress::Close) {
            self.client.close = true;
        }
        self.send(cx, scratch)?;
        self.note_buffers();
        Ok(())
    }

    fn send(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> io::Result<()> {
        if !scratch.reply.is_empty() {
            let sent = self.output.send(cx, &mut self.stream, &mut scratch.reply)?;
            self.sent(sent);
        }
        Ok(())
    }

    fn sent(&self, bytes: usize) {
        self.worker.stats.writes.add(1);
        self.worker.stats.output.add(bytes as u64);
    }

    /// Shows others what waits here.
    fn note_buffers(&self) {
        let shared = &self.client.shared;
        shared.input.store(self.input.len() as u64, Relaxed);
        shared.output.store(self.output.len() as u64, Relaxed);
    }

    /// Parses and runs every complete command of `input`. Returns how much of it is done with.
    fn process(
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
            authenticated: self.client.authenticated || !self.worker.instance.needs_password(),
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
            let gate = dispatch::gate(&self.worker, &self.client, args);
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
                Progress::Held if self.waiting.is_some() => {
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
            Passed::Paused(until) => {
                self.timer = Some(sleep_until(until));
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
        let gate = dispatch::gate(&self.worker, &self.client, args);
        let progress = self.pass(scratch, gate, args);
        if !matches!(progress, Progress::Held) || self.waiting.is_some() {
            *used += len;
        }
        Ok(progress)
    }

    fn wait(&mut self, waiting: Waiting) {
        self.timer = waiting.deadline.map(sleep_until);
        self.waiting = Some(waiting);
    }

    /// Looks whether the wait is over; its answer is in the scratch reply then.
    fn poll_wait(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> io::Result<bool> {
        if let Some(waiting) = &mut self.waiting
            && let Poll::Ready(answer) = Pin::new(&mut waiting.answer).poll(cx)
        {
            // Whoever dropped the answer's sender has claimed the wait without ending it: never in our own code.
            self.end_wait(scratch, &answer.unwrap_or_default());
            return Ok(true);
        }
        let Some(timer) = &mut self.timer else { return Ok(false) };
        if timer.as_mut().poll(cx).is_pending() {
            return Ok(false);
        }
        self.timer = None;
        if let Some(waiting) = &self.waiting {
            if !waiting.parked.abandon() {
                // Somebody answers at this very moment.
                return Ok(false);
            }
            let null = waiting.parked.null();
            self.end_wait(scratch, &null);
        }
        Ok(true)
    }

    fn end_wait(&mut self, scratch: &mut Scratch, answer: &[u8]) {
        self.timer = None;
        if let Some(waiting) = self.waiting.take() {
            waiting.conclude(&self.client, &mut scratch.reply, answer);
        }
    }

    /// Whether the output passes `client-output-buffer-limit`.
    fn over_limit(&mut self) -> bool {
        let class = if self.client.is_subscribed() { 2 } else { 0 };
        let limit = self.worker.instance.config.output_limits()[class];
        let len = self.output.len() as u64;
        if limit.soft == 0 || len <= limit.soft {
            self.soft_limit_since = None;
        }
        let too_long = limit.soft != 0 && len > limit.soft && {
            let now = now_ms();
            now - *self.soft_limit_since.get_or_insert(now) >= limit.soft_seconds * 1000
        };
        let over = too_long || limit.hard != 0 && len > limit.hard;
        if over {
            let (id, addr) = (self.client.shared.id, &self.client.shared.addr);
            tracing::warn!(id, addr, len, "closing client: its output passed client-output-buffer-limit");
        }
        over
    }
}

fn sleep_until(at: u64) -> Pin<Box<Sleep>> {
    Box::pin(tokio::time::sleep(Duration::from_millis(at.saturating_sub(now_ms()))))
}

impl Drop for Conn {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            waiting.leave(&self.client);
        }
        crate::commands::leave(&self.worker, &mut self.client);
        self.worker.instance.remove_client(self.client.shared.id);
    }
}

/// Texts of the errors that a connection may get before it has sent anything.
pub(super) fn refusal() -> String {
    format!("-{}\r\n", Error::Static("ERR max number of clients reached"))
}

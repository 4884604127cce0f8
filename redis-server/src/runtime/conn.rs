//! One connection: reads, runs what is complete, writes once per batch.

use std::future::poll_fn;
use std::io;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::fence;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use server_runtime::{Connection, Peer, Place, Stream};
use tokio::io::AsyncWrite as _;
use tokio::time::Sleep;

use super::output::Output;
use super::{housekeeping, import, replica};
use crate::clients::client::{ClientShared, End, flag};
use crate::clients::output_limit::{self, OutputGuard};
use crate::config::settings;
use crate::exec::core::clock::now_ms;
use crate::exec::core::{Scratch, Worker};
use crate::exec::gate::Held;
use crate::exec::run::outcome::{Finished, Interrupted, Pending};
use crate::exec::run::parked::Waiting;
use crate::exec::run::pipeline::Pipeline;
use crate::exec::run::session::ConnectedClient;
use crate::exec::run::{alone, client_eviction, panics, permission};
use crate::process;
use crate::protocol::Reply;
use crate::protocol::error::Error;

/// Bytes of replies that may wait for a client that has not authenticated and does not read them.
const MAX_UNSENT_UNAUTHENTICATED: u64 = 1024;
/// Replies below this size are sent without a look at `client-output-buffer-limit`.
const LOOK_AT_LIMIT: usize = 64 * 1024;
/// Replies of slow calls from this size on are sent from where they are, and freed elsewhere.
const LARGE_REPLY: usize = 256 * 1024;
/// A reply that goes to the output with its buffer. Otherwise the part that the socket does not take at once would be
/// copied.
const HUGE_REPLY: usize = 4 * 1024 * 1024;
/// Arguments from this length on are received in a buffer of their own by the genuine server.
const LARGE: usize = 32 * 1024;

/// Bytes of commands that run before other connections of the worker have their turn: one read of the socket, and as
/// much of what waits in a connection's own buffer.
pub(super) const TURN_INPUT: usize = 64 * 1024;
/// Bytes of replies that a turn sends: as many as a loopback socket takes within about a tenth of a millisecond.
pub(super) const TURN_OUTPUT: usize = 512 * 1024;

/// The error for a client elsewhere while there is no password.
const DENIED: &str = "-DENIED This server has no password, so it is in protected mode and serves clients on its own machine \
    only. To reach it from here, give the default user a password (requirepass, or ACL SETUSER), or say \
    \"protected-mode no\" in the configuration or by CONFIG SET from the server's machine; without a password, do that \
    only where no stranger can reach the port.\r\n";

/// Serves one connection to its end.
pub(super) async fn serve(worker: Rc<Worker>, connection: Connection<ConnectedClient>) {
    let Connection { mut stream, peer, local, place, shutdown, carried, routes } = connection;
    if shutdown.is_triggered() {
        return;
    }
    if is_denied(&worker, &peer) {
        // One attempt: a new socket's buffer has room for it.
        let _ = poll_fn(|cx| Pin::new(&mut stream).poll_write(cx, DENIED.as_bytes())).await;
        return;
    }
    housekeeping::watch_shutdown(&worker, &shutdown);
    let client = carried.unwrap_or_else(|| new_client(&worker, &stream, &peer, &local));
    let mut conn = Conn {
        worker,
        place,
        client,
        stream,
        input: BytesMut::new(),
        pipeline: Pipeline::default(),
        output: Output::default(),
        timer: None,
        guard: OutputGuard::default(),
        is_told_of_pause: false,
        paused_in: 0,
        stalled: false,
        ended: false,
        undurable: None,
        kept: Vec::new(),
    };
    // An error of the socket ends the connection like its orderly end: there is nobody to be told.
    let served = poll_fn(|cx| conn.poll_guarded(cx)).await;
    let is_replica = conn.client.follower.as_ref().is_some_and(|follower| follower.request.is_some());
    if is_replica && !conn.client.shared.has_flag(flag::GONE) {
        let Conn { worker, stream, client, input, .. } = conn;
        return replica::serve(worker, stream, client, &input).await;
    }
    if conn.client.importing.is_some() && !conn.client.shared.has_flag(flag::GONE) {
        let Conn { worker, stream, client, input, .. } = conn;
        return import::serve(worker, stream, client, input.freeze()).await;
    }
    if let Ok(Served::Moves(target)) = served {
        let Conn { stream, client, place, .. } = conn;
        let id = client.shared.id;
        let connection = Connection { stream, peer, local, place, shutdown, carried: None, routes };
        if let Err(error) = connection.move_to(target, client) {
            tracing::warn!(id, "closing client: it cannot go to worker-{target}: {error}");
        }
    }
}

/// Whether `protected-mode` keeps this peer out.
fn is_denied(worker: &Worker, peer: &Peer) -> bool {
    let instance = &worker.instance;
    let is_remote = peer.socket_addr().is_some_and(|addr| !addr.ip().is_loopback());
    is_remote
        && instance.config.is_on(settings::PROTECTED_MODE)
        && instance.acl.default_account().user().has_no_password()
}

fn new_client(worker: &Worker, stream: &Stream, peer: &Peer, local: &Peer) -> ConnectedClient {
    use std::os::fd::AsRawFd;
    let instance = &worker.instance;
    let fd = stream.as_raw_fd();
    let shared = ClientShared::new(instance.next_client_id(), peer.to_string(), local.to_string(), fd, now_ms());
    shared.set_flag(flag::UNIX, matches!(peer, Peer::Unix(_)));
    shared.set_flag(flag::TLS, stream.is_tls());
    let mut client = ConnectedClient::new(instance, shared);
    if let Some(certificate) = stream.peer_certificate() {
        permission::identify(instance, &mut client, certificate, now_ms());
    }
    client
}

/// A connection that is being served.
pub(super) struct Conn {
    pub(super) worker: Rc<Worker>,
    place: Place,
    /// Input that waits: an unfinished command, or commands behind one that waits.
    pub(super) input: BytesMut,
    pub(super) pipeline: Pipeline,
    pub(super) output: Output,
    /// Ends the wait for keys, or CLIENT PAUSE.
    timer: Option<Pin<Box<Sleep>>>,
    guard: OutputGuard,
    is_told_of_pause: bool,
    /// Which slots were held when a pause began.
    paused_in: u64,
    /// Whether complete commands wait in `input` for the output to shrink.
    pub(super) stalled: bool,
    /// Whether the client has sent all that it had to say, and its last commands have not been answered.
    ended: bool,
    /// Up to where the journal must be in the append-only file, or on disk, before `output` and `kept` are sent.
    undurable: Option<u64>,
    /// Replies that are sent when all connections of this round have been served.
    kept: Vec<u8>,
    /// Dropped behind the others: when the client leaves, what waited for it is freed.
    pub(super) client: ConnectedClient,
    /// Dropped last: a peer that sees the end of the connection finds nothing of the client any more.
    pub(super) stream: Stream,
}

/// The outcome of one batch of input.
pub(super) enum Progress {
    /// Everything complete has run.
    Done,
    /// A command waits, and the commands behind it wait too.
    Held,
    /// The connection ends when its output is sent.
    Close,
}

/// Why a connection is no longer served here.
enum Served {
    /// It is over.
    Over,
    /// It goes to another worker, and has nothing with it but its client.
    Moves(usize),
}

impl Conn {
    /// [`Conn::poll`]; a command that panics ends its own connection and nothing else.
    fn poll_guarded(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Served>> {
        process::serving(self.client.shared.id);
        let polled = catch_unwind(AssertUnwindSafe(|| self.poll(cx))).unwrap_or_else(|_| {
            let shared = &self.client.shared;
            let (id, addr, command) = (shared.id, &shared.addr, panics::command(&self.worker, shared));
            tracing::error!(id, addr, command, "closing client: its command panicked");
            self.worker.renew_scratch();
            Poll::Ready(Ok(Served::Over))
        });
        if polled.is_ready() {
            // Unsent replies of this client are not for the next one, which shares the buffer.
            self.worker.scratch.borrow_mut().reply.clear();
        }
        polled
    }

    /// Works until there is nothing to be done. Ready when the connection is over, or moves.
    ///
    /// The states of a connection, the first that applies, and what each does in a round of the loop:
    ///
    /// | state | is so while | work | next |
    /// |---|---|---|---|
    /// | kept back | `kept` has replies | the first poll sends them; in a later round others come first | any; *moves* |
    /// | told | there is mail | messages of others go out | any; *over* if it is cut off |
    /// | undurable | `output` shows what is not written, or not on disk, and must not be sent before it is | nothing | pending until it is |
    /// | sending | `output` has replies | a turn's worth is sent | any; pending after a turn; *over* at its limit |
    /// | unread | … and so many that commands wait | nothing | pending until the socket takes some |
    /// | closing | `client.close` | nothing: all is sent | *over* |
    /// | held | a command waits for keys, a pause, slow calls, or runs elsewhere | its end is looked for | resuming; else reads on |
    /// | resuming | a wait is over, or `stalled` commands have had a turn | commands in `input` run | any; pending after a turn |
    /// | ended | the client has said all, a command has not answered | its end is awaited | closing |
    /// | reading | none of these | the socket is read, commands run | any; pending without input; *moves* at rest |
    ///
    /// A held connection reads on, too, to notice its client's end; the bytes wait in `input`. Nothing is run while it is
    /// held, so that answers keep the order of their commands. Each state returns to the head of the loop, so mail and output
    /// are looked at between any two of them, and a poll ends with a waker in whatever it waits for.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Served>> {
        let worker = Rc::clone(&self.worker);
        let mut scratch = worker.scratch.borrow_mut();
        let scratch = &mut *scratch;
        debug_assert!(scratch.reply.is_empty(), "every connection leaves the shared buffer empty");
        self.client.shared.wake_by(cx.waker());
        if !self.kept.is_empty() {
            self.send_kept(cx, scratch)?;
            if let Some(target) = self.is_asked_to_move() {
                return Poll::Ready(Ok(Served::Moves(target)));
            }
        }
        let mut sent = 0;
        loop {
            if !self.kept.is_empty() {
                // Connections that were ready at the same time come first.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.client.shared.has_mail() && self.take_mail(cx, scratch)? {
                return Poll::Ready(Ok(Served::Over));
            }
            if (!self.output.is_empty() || self.undurable.is_some())
                && let ControlFlow::Break(polled) = self.flush(cx, &mut sent)
            {
                return polled;
            }
            if self.client.close {
                return Poll::Ready(Ok(Served::Over));
            }
            let go_on = if self.is_held() { self.poll_wait(cx, scratch)? } else { std::mem::take(&mut self.stalled) };
            if self.client.close {
                // The command that it has waited for has panicked, or ended the session.
                continue;
            }
            if go_on {
                // A connection that waited for slow calls keeps its place until it has tried again.
                let _place = self.client.held.take();
                self.resume(cx, scratch)?;
                if self.has_had_turn() {
                    server_runtime::defer(cx);
                    return Poll::Pending;
                }
                continue;
            }
            if self.ended {
                if self.is_held() {
                    return Poll::Pending;
                }
                self.client.close = true;
                continue;
            }
            match self.read(cx, scratch) {
                Poll::Ready(Ok(0)) if self.client.running.is_some() || self.client.held.is_some() => self.ended = true,
                // A client that has sent all it has to say may still read what is on its way.
                Poll::Ready(Ok(0)) if !self.output.is_empty() && !self.client.awaits_answer() => {
                    self.client.close = true
                }
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(Served::Over)),
                Poll::Ready(Ok(count)) => {
                    self.received(cx, scratch, count)?;
                    if let Some(target) = self.is_asked_to_move() {
                        return Poll::Ready(Ok(Served::Moves(target)));
                    }
                    if count >= TURN_INPUT || self.has_had_turn() {
                        server_runtime::defer(cx);
                        return Poll::Pending;
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Sends a turn's worth of what waits, `sent` bytes of which are sent already. `Break`: there is nothing else to be done.
    fn flush(&mut self, cx: &mut Context<'_>, sent: &mut usize) -> ControlFlow<Poll<io::Result<Served>>> {
        if self.awaits_file() {
            return ControlFlow::Break(if self.over_limit() { Poll::Ready(Ok(Served::Over)) } else { Poll::Pending });
        }
        match self.output.flush(cx, &mut self.stream, TURN_OUTPUT) {
            Poll::Ready(Ok(count)) => {
                self.sent(count);
                self.note_buffers();
                *sent += count;
                if !self.output.is_empty() || *sent > TURN_OUTPUT {
                    server_runtime::defer(cx);
                    return ControlFlow::Break(Poll::Pending);
                }
            }
            Poll::Ready(Err(error)) => return ControlFlow::Break(Poll::Ready(Err(error))),
            Poll::Pending if self.over_limit() => return ControlFlow::Break(Poll::Ready(Ok(Served::Over))),
            // Commands go on running for a client that sends before it reads, up to a point.
            Poll::Pending if self.client.close || self.must_read_first() => {
                return ControlFlow::Break(Poll::Pending);
            }
            Poll::Pending => {}
        }
        ControlFlow::Continue(())
    }

    /// Whether commands wait because those before them have taken a turn.
    fn has_had_turn(&self) -> bool {
        self.stalled && !self.must_read_first()
    }

    /// Whether so many replies wait for the client that its commands wait too, as `client-output-buffer-pause` says.
    pub(super) fn must_read_first(&self) -> bool {
        if self.output.is_empty() {
            return false;
        }
        let limit = self.worker.instance.config.size(settings::CLIENT_OUTPUT_BUFFER_PAUSE);
        limit != 0 && self.output.len() > limit
    }

    /// Says once why commands wait: the client may be one that reads when it has sent everything, and so never will.
    pub(super) fn tell_of_pause(&mut self) {
        if !std::mem::replace(&mut self.is_told_of_pause, true) {
            let (id, addr) = (self.client.shared.id, &self.client.shared.addr);
            tracing::warn!(id, addr, "commands wait until their client reads replies: client-output-buffer-pause");
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.client.awaits_answer() || self.timer.is_some()
    }

    /// The worker where the connection is wanted, if it has nothing under way that it would have to take along.
    fn is_asked_to_move(&mut self) -> Option<usize> {
        let has_sent = self.output.is_empty() && self.kept.is_empty();
        let is_at_rest = self.input.is_empty() && has_sent && !self.is_held() && !self.client.close;
        if !is_at_rest || !self.stream.can_move() {
            return None;
        }
        self.place.is_asked_to(|| self.worker.random() as u16)
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
            // They may show more than what they wait behind.
            self.is_undurable();
        }
        if !mail.lost_channels.is_empty() {
            self.client.lose_channels(mail.lost_channels, &mut scratch.reply);
            if self.output.is_empty() {
                self.send(cx, scratch)?;
            } else {
                self.output.push(Bytes::from(std::mem::take(&mut scratch.reply).to_vec()));
                self.is_undurable();
            }
        }
        if mail.end == End::Now {
            // Earlier messages must still reach the client, if its socket takes them.
            if self.undurable.is_none() {
                let _ = self.output.flush(cx, &mut self.stream, usize::MAX)?;
            }
            return Ok(true);
        }
        self.client.close |= mail.end == End::WhenSent;
        self.note_buffers();
        Ok(false)
    }

    pub(super) fn finish(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch, progress: Progress) -> io::Result<()> {
        if matches!(progress, Progress::Close) {
            self.client.close = true;
        }
        if scratch.reply.is_empty() {
            // There is no reply, but the changes are in the file before the worker sleeps, as in the genuine server.
            let instance = &self.worker.instance;
            let _ = instance.aof.holds(instance);
        } else if !self.keep_back(scratch, &progress) {
            self.send(cx, scratch)?;
        }
        self.note_buffers();
        Ok(())
    }

    /// Has the replies wait for the end of the round, if others are served in it and nothing speaks against it.
    fn keep_back(&mut self, scratch: &mut Scratch, progress: &Progress) -> bool {
        if !scratch.rounds.is_shared()
            || !matches!(progress, Progress::Done)
            || self.client.close
            || !self.output.is_empty()
            || self.stream.is_tls()
            || self.worker.instance.aof.is_awaiting_disk()
        {
            return false;
        }
        let (bytes, blobs) = scratch.reply.parts();
        let Some(kept) = blobs.is_empty().then(|| scratch.rounds.keep(bytes)).flatten() else { return false };
        self.kept = kept;
        // The first that leaves has written what all of the round have changed.
        self.undurable = self.worker.instance.aof.unsafe_at(&self.worker.instance);
        scratch.reply.clear();
        true
    }

    /// Sends the replies that have waited for the end of the round.
    fn send_kept(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> io::Result<()> {
        let kept = std::mem::take(&mut self.kept);
        let sent = if self.is_still_undurable() {
            0
        } else {
            match Pin::new(&mut self.stream).poll_write(cx, &kept) {
                Poll::Ready(sent) => sent?,
                Poll::Pending => 0,
            }
        };
        self.output.push(Bytes::copy_from_slice(&kept[sent..]));
        scratch.rounds.give_back(kept);
        self.sent(sent);
        if !self.output.is_empty() {
            self.note_buffers();
        }
        Ok(())
    }

    pub(super) fn send(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> io::Result<()> {
        if !scratch.reply.is_empty() {
            if scratch.reply.len() > LOOK_AT_LIMIT && self.is_too_much(scratch.reply.len()) {
                // The buffer goes too: no client will be sent as much again soon.
                scratch.reply = Reply::default();
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            let is_undurable = self.is_undurable();
            if scratch.reply.len() >= HUGE_REPLY {
                self.output.take(std::mem::take(&mut scratch.reply), &self.worker.instance);
                if !is_undurable && let Poll::Ready(sent) = self.output.flush(cx, &mut self.stream, 0) {
                    self.sent(sent?);
                }
                return Ok(());
            }
            if is_undurable {
                self.output.hold(&mut scratch.reply);
                return Ok(());
            }
            let sent = self.output.send(cx, &mut self.stream, &mut scratch.reply)?;
            self.sent(sent);
        }
        Ok(())
    }

    /// Whether new output must wait until the changes that it shows are written, or on disk. Output that waits already
    /// waits with it.
    fn is_undurable(&mut self) -> bool {
        let instance = &self.worker.instance;
        self.undurable = instance.aof.holds(instance);
        self.undurable.is_some()
    }

    /// Whether what was kept, or waits in the output, has to wait still.
    fn is_still_undurable(&mut self) -> bool {
        let instance = &self.worker.instance;
        self.undurable = self.undurable.and_then(|offset| instance.aof.holds_at(instance, offset));
        self.undurable.is_some()
    }

    /// Whether what the output shows is not written yet, or not on disk; the connection is woken when it may be.
    fn awaits_file(&mut self) -> bool {
        if !self.is_still_undurable() {
            return false;
        }
        let instance = &self.worker.instance;
        if let Some(offset) = self.undurable {
            instance.aof.wait(instance, &self.client.shared, offset);
        }
        self.is_still_undurable()
    }

    fn sent(&self, bytes: usize) {
        self.worker.stats.writes.add(1);
        self.worker.stats.output.add(bytes as u64);
        self.client.shared.traffic.sent.add(bytes as u64);
    }

    /// Shows others what waits here. As in the genuine server, what stands before a large argument does not.
    pub(super) fn note_buffers(&self) {
        let shared = &self.client.shared;
        let parsed = match self.pipeline.parser.pending_bulk() {
            Some(len) if len >= LARGE => self.pipeline.parser.needed() - (len + 2),
            _ => 0,
        };
        let (room, output) = (self.input.capacity() as u64, self.output.held() as u64);
        client_eviction::note(&self.worker.instance, shared, [room, output], self.worker.now_ms());
        shared.input.store(self.input.len().saturating_sub(parsed) as u64, Relaxed);
        shared.input_room.store(room, Relaxed);
        shared.output.store(output, Relaxed);
    }

    pub(super) fn wait(&mut self, waiting: Waiting) {
        self.timer = waiting.deadline.map(sleep_until);
        self.client.waiting = Some(waiting);
    }

    /// Begins to wait until a script ends that is interrupted every now and then.
    pub(super) fn let_run(&mut self, interrupted: Interrupted) {
        self.lend(interrupted.pending);
        let worker = Rc::clone(&self.worker);
        server_runtime::spawn_local(async move {
            while alone::go_on(&worker) {
                server_runtime::yield_now().await;
            }
        });
    }

    /// Begins to wait until a command ends that runs elsewhere, with the session.
    pub(super) fn lend(&mut self, pending: Pending) {
        self.client.running = Some(pending);
        self.client.shared.set_flag(flag::AWAITS, true);
    }

    /// Begins to wait until a slow call of another client has ended.
    pub(super) fn hold(&mut self, held: Held) {
        self.timer = held.until.map(sleep_until);
        self.client.held = Some(held);
        self.client.shared.set_flag(flag::AWAITS, true);
    }

    /// Begins to wait until CLIENT PAUSE is over, or taken back.
    pub(super) fn pause(&mut self, until: u64) {
        self.timer = Some(sleep_until(until));
        let (shared, instance) = (&self.client.shared, &self.worker.instance);
        self.paused_in = instance.cluster.holding();
        shared.set_flag(flag::PAUSED | flag::BLOCKED, true);
        instance.blocked_clients(1);
        // Either CLIENT UNPAUSE sees the flag, or we see what it has done.
        fence(SeqCst);
        if !instance.holds_back(now_ms()) {
            shared.wake();
        }
    }

    fn end_pause(&mut self) {
        if self.client.shared.has_flag(flag::PAUSED) {
            self.timer = None;
            self.client.end_pause();
        }
    }

    /// Looks whether the wait is over; its answer is in the scratch reply then.
    fn poll_wait(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> io::Result<bool> {
        if let Some(running) = &mut self.client.running {
            let Poll::Ready(finished) = Pin::new(running).poll(cx) else { return Ok(false) };
            self.client.running = None;
            self.client.shared.set_flag(flag::AWAITS, false);
            match finished {
                Some(finished) => self.take_back(cx, scratch, *finished)?,
                // It has panicked.
                None => self.client.close = true,
            }
            if self.client.waiting.is_none() {
                return Ok(true);
            }
        }
        if let Some(held) = &self.client.held {
            let is_late = self.timer.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready());
            if held.is_over() || is_late {
                self.timer = None;
                self.client.shared.set_flag(flag::AWAITS, false);
                return Ok(true);
            }
            return Ok(false);
        }
        if let Some(waiting) = &mut self.client.waiting
            && let Poll::Ready(answer) = Pin::new(&mut waiting.answer).poll(cx)
        {
            // A dropped sender belongs to a thread that has claimed the wait without ending it: never in our own code.
            self.end_wait(scratch, &answer.unwrap_or_default());
            return Ok(true);
        }
        let instance = &self.worker.instance;
        let is_held = instance.cluster.holds_slots() && instance.cluster.holding() == self.paused_in;
        if self.client.waiting.is_none() && !is_held && instance.paused(now_ms()).is_none() {
            self.end_pause();
            return Ok(true);
        }
        let Some(timer) = &mut self.timer else { return Ok(false) };
        if timer.as_mut().poll(cx).is_pending() {
            return Ok(false);
        }
        self.end_pause();
        self.timer = None;
        if let Some(waiting) = &self.client.waiting {
            if !waiting.parked.abandon() {
                // Another thread answers at this very moment.
                return Ok(false);
            }
            let null = waiting.parked.null();
            self.end_wait(scratch, &null);
        }
        Ok(true)
    }

    /// Takes back what a command was lent that has run elsewhere, and its reply.
    fn take_back(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch, finished: Finished) -> io::Result<()> {
        let Finished { client, mut reply, waiting } = finished;
        self.client.take_back(client);
        if reply.len() < LARGE_REPLY {
            scratch.reply.append(&mut reply);
        } else {
            self.send(cx, scratch)?;
            if self.is_too_much(reply.len()) {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            self.is_undurable();
            self.output.take(reply, &self.worker.instance);
        }
        if let Some(waiting) = waiting {
            self.wait(waiting);
        }
        Ok(())
    }

    fn end_wait(&mut self, scratch: &mut Scratch, answer: &[u8]) {
        self.timer = None;
        if let Some(waiting) = self.client.waiting.take() {
            waiting.conclude(&self.client, &mut scratch.reply, answer);
        }
    }

    /// Whether so many bytes of replies pass the hard limit, before any of them is sent.
    fn is_too_much(&self, replies: usize) -> bool {
        let waiting = (self.output.len() + replies) as u64;
        output_limit::cuts_off_at(&self.worker.instance.config, &self.client.shared, waiting)
    }

    /// Whether the output passes `client-output-buffer-limit`, or what a stranger may leave unread.
    fn over_limit(&mut self) -> bool {
        let (waiting, instance) = (self.output.len() as u64, &self.worker.instance);
        if waiting > MAX_UNSENT_UNAUTHENTICATED && !self.client.identity.may_enter(&instance.acl) {
            let (id, addr) = (self.client.shared.id, &self.client.shared.addr);
            tracing::warn!(id, addr, waiting, "closing client: it reads no replies and has not authenticated");
            return true;
        }
        self.guard.cuts_off(&instance.config, &self.client.shared, waiting, now_ms())
    }
}

fn sleep_until(at: u64) -> Pin<Box<Sleep>> {
    Box::pin(server_runtime::sleep(Duration::from_millis(at.saturating_sub(now_ms()))))
}

/// Texts of the errors that a connection may get before it has sent anything.
pub(super) fn refusal() -> String {
    format!("-{}\r\n", Error::Static("ERR max number of clients reached"))
}

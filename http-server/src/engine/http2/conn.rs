//! A connection: what comes in is taken as a batch, answered as a batch, and written at once.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use http2::shared::{Arrivals, Shared};
use http2::{Config, Connection as Engine, Event, Reason, RequestHead, StreamId};
use server_runtime::{Place, Stream};
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _, ReadBuf};

use super::later::Laters;
use super::plain::{self, Short};
use super::stream;
use crate::engine::exchange::Origin;
use crate::engine::watch::{Phase, Slot};
use crate::engine::worker::{Drain, Worker};
use crate::options::Options;
use crate::tuning::{H2_SEND_BUFFER, H2_STREAMS, H2_TURN_READS, H2_WINDOW, LINGER_BYTES};

/// Serves a connection of which `read` was read already.
pub(in crate::engine) async fn serve(
    worker: Rc<Worker>,
    slot: Rc<Slot>,
    stream: Stream,
    place: Place,
    read: Bytes,
    origin: Origin,
) {
    slot.renew(Phase::Head);
    let engine = Engine::new(&config(&worker.settings.options), Instant::now());
    let mut conn = Conn {
        shared: Rc::new(Shared::new(engine)),
        pulse: worker.watch.slot(),
        laters: Laters::new(&worker),
        arrivals: Arrivals::default(),
        rests: Vec::new(),
        unread: read.into(),
        is_left: false,
        is_ending: false,
        worker,
        slot,
        stream,
        origin,
    };
    let ended = poll_fn(|cx| conn.poll(cx)).await;
    conn.shared.end();
    let Conn { mut stream, worker, .. } = conn;
    match ended {
        Ended::Lost => {}
        Ended::Whole => {
            let _ = tokio::time::timeout(worker.settings.options.timeouts.linger, stream.shutdown()).await;
        }
        Ended::Broken => {
            let _ = tokio::time::timeout(worker.settings.options.timeouts.linger, linger(&mut stream)).await;
        }
    }
    drop(place);
}

fn config(options: &Options) -> Config {
    Config {
        max_streams: H2_STREAMS,
        stream_window: H2_WINDOW.0,
        connection_window: H2_WINDOW.1,
        max_headers: u32::try_from(options.limits.head).unwrap_or(u32::MAX),
        max_output: H2_SEND_BUFFER,
        max_control_frames: options.limits.control_frames,
        ..Config::default()
    }
}

/// What a client has sent that nobody reads would be answered by a reset, which may overtake the reason that it was told.
async fn linger(stream: &mut Stream) -> io::Result<()> {
    stream.shutdown().await?;
    let (mut bytes, mut left) = ([0; 4096], LINGER_BYTES);
    while left > 0 {
        match stream.read(&mut bytes).await? {
            0 => break,
            count => left = left.saturating_sub(count),
        }
    }
    Ok(())
}

/// How a connection has ended.
enum Ended {
    /// The client is gone, or was too slow.
    Lost,
    /// All is said.
    Whole,
    /// The client has broken the protocol, and was told.
    Broken,
}

struct Conn {
    shared: Rc<Shared>,
    stream: Stream,
    /// What was read and not used, between turns.
    unread: Vec<u8>,
    /// The requests of one batch; between turns none.
    arrivals: Arrivals,
    laters: Laters,
    /// What has found no room of short answers; between turns none.
    rests: Vec<(StreamId, Bytes)>,
    /// Whether the client makes no more requests.
    is_left: bool,
    /// Whether it was told that we take no more.
    is_ending: bool,
    worker: Rc<Worker>,
    slot: Rc<Slot>,
    /// Since when nothing was heard of a client that waits for something.
    pulse: Rc<Slot>,
    origin: Origin,
}

impl Conn {
    /// Ready at the end of the connection.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        self.slot.wake_by(cx.waker());
        self.pulse.wake_by(cx.waker());
        let worker = Rc::clone(&self.worker);
        let mut input = worker.h2.input.borrow_mut();
        let shared = Rc::clone(&self.shared);
        shared.turn(cx, &worker.h2.output, |cx| self.turn(cx, &mut input))
    }

    fn turn(&mut self, cx: &mut Context<'_>, input: &mut Vec<u8>) -> Poll<Ended> {
        if self.is_too_slow() {
            return Poll::Ready(Ended::Lost);
        }
        let mut filled = self.unread.len();
        if input.len() < filled {
            // The HTTP/1.1 loop may have read more than is read here at once.
            input.resize(filled, 0);
        }
        input[..filled].copy_from_slice(&self.unread);
        self.unread = Vec::new();
        let ended = self.exchange(cx, input, &mut filled);
        self.unread.extend_from_slice(&input[..filled]);
        ended
    }

    /// Looks at the clock; whether the client was too slow.
    fn is_too_slow(&mut self) -> bool {
        let is_idle = self.slot.phase() == Phase::Idle;
        if self.slot.is_expired() && !is_idle {
            self.worker.stats().timeouts.add(1);
            return true;
        }
        if self.slot.is_expired() || self.worker.drain.get() != Drain::No {
            self.end();
        }
        let is_waiting = self.shared.engine().open_streams() > 0;
        match (self.pulse.is_expired(), self.pulse.phase()) {
            (true, Phase::Idle) if is_waiting => {
                self.shared.engine().ping(*b"are you?");
                self.pulse.renew(Phase::Writing);
            }
            (true, Phase::Writing) if is_waiting => {
                self.worker.stats().timeouts.add(1);
                return true;
            }
            (true, _) => self.pulse.renew(Phase::Idle),
            (false, _) => {}
        }
        false
    }

    /// Takes no more requests. The client gets as long to finish as it would to take an answer.
    fn end(&mut self) {
        if !self.is_ending {
            self.is_ending = true;
            self.shared.engine().shutdown();
            self.slot.renew(Phase::Writing);
        }
    }

    /// Reads, answers and writes until there is nothing more to do.
    fn exchange(&mut self, cx: &mut Context<'_>, input: &mut [u8], filled: &mut usize) -> Poll<Ended> {
        for _ in 0..H2_TURN_READS {
            self.shared.release();
            let result = self.take(input, filled);
            let is_held = *filled > 0 && self.is_full();
            self.answer(cx);
            let Ok(is_written) = self.write(cx) else { return Poll::Ready(Ended::Lost) };
            match result {
                // Who floods would go on doing so.
                Err(error) if is_written && error.reason == Reason::ENHANCE_YOUR_CALM => {
                    return Poll::Ready(Ended::Whole);
                }
                Err(_) if is_written => return Poll::Ready(Ended::Broken),
                Err(_) => return Poll::Pending,
                Ok(()) if is_written && self.shared.is_over(self.is_left) => return Poll::Ready(Ended::Whole),
                Ok(()) => {}
            }
            if self.is_full() {
                return Poll::Pending;
            }
            if is_held {
                // What had to wait for room comes before what is read.
                continue;
            }
            let mut room = ReadBuf::new(&mut input[*filled..]);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut room)) {
                Ok(()) if !room.filled().is_empty() => {
                    *filled += room.filled().len();
                    self.pulse.renew(Phase::Idle);
                }
                Ok(()) | Err(_) => return Poll::Ready(Ended::Lost),
            }
        }
        // Others have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_full(&self) -> bool {
        self.shared.engine().output().len() >= H2_SEND_BUFFER
    }

    /// Takes what has come.
    fn take(&mut self, input: &mut [u8], filled: &mut usize) -> Result<(), http2::Error> {
        let mut unused = &input[..*filled];
        let result = if unused.is_empty() { Ok(()) } else { self.take_events(&mut unused) };
        let left = unused.len();
        input.copy_within(*filled - left..*filled, 0);
        *filled = left;
        if let Err(error) = result {
            tracing::debug!(peer = %self.origin.peer, "HTTP/2: {error}");
            // What a client that floods has asked for is not worth an answer.
            self.arrivals.clear();
            self.rests.clear();
            if error.reason == Reason::ENHANCE_YOUR_CALM {
                self.worker.stats().floods.add(1);
            }
        }
        result
    }

    fn take_events(&mut self, input: &mut &[u8]) -> Result<(), http2::Error> {
        let shared = Rc::clone(&self.shared);
        let mut engine = shared.engine();
        let now = Instant::now();
        while let Some(event) = engine.next(input, now)? {
            match event {
                Event::Request { stream, head, end } => {
                    let short = plain::find(&self.worker, head, end);
                    if !self.begin(stream, head, end, short) {
                        engine.reset(stream, Reason::PROTOCOL_ERROR);
                    } else if let Some(Short::Instant(kind)) = short {
                        self.rests.extend(plain::answer(&self.worker, &mut engine, stream, kind));
                    }
                }
                Event::Data { stream, data, end } => {
                    let (length, piece) = (data.len(), self.worker.h2.pieces.borrow_mut().copy(data));
                    if self.arrivals.data(&shared, stream, piece, end) {
                        engine.release(stream, length);
                    }
                }
                Event::Trailers { stream, fields } => self.arrivals.trailers(&shared, stream, fields),
                Event::Reset { stream, reason, .. } => {
                    self.laters.forget(stream);
                    self.arrivals.reset(&shared, stream, reason);
                }
                Event::GoAway { .. } => self.is_left = true,
                Event::Pong(_) => {}
            }
        }
        Ok(())
    }

    /// A request has begun; whether it is one that can be answered.
    fn begin(&mut self, stream: StreamId, head: &RequestHead, end: bool, short: Option<Short>) -> bool {
        self.worker.stats().h2_requests.add(1);
        self.slot.enter(Phase::Idle);
        match short {
            Some(Short::Instant(_)) => true,
            Some(Short::Later(id, encoding)) => {
                self.laters.push(stream, id, encoding);
                true
            }
            None => self.arrivals.request(stream, head, end),
        }
    }

    fn answer(&mut self, cx: &Context<'_>) {
        while let Some((stream, request)) = self.arrivals.pop(&self.shared) {
            stream::begin(&self.worker, &self.shared, &self.origin, stream, request);
        }
        self.laters.answer(cx, &self.shared, &mut self.rests);
        for (stream, rest) in self.rests.drain(..) {
            stream::send_rest(&self.worker, &self.shared, stream, rest);
        }
    }

    /// Writes what there is; whether that is all.
    fn write(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut sent = 0;
        let is_written = loop {
            self.shared.notify_writable();
            let mut engine = self.shared.engine();
            if engine.output().is_empty() {
                break Pin::new(&mut self.stream).poll_flush(cx)?.is_ready();
            }
            match Pin::new(&mut self.stream).poll_write(cx, engine.output())? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(count) => {
                    engine.advance(count);
                    sent += count;
                }
                Poll::Pending => break false,
            }
        };
        self.note(is_written, sent > 0);
        Ok(is_written)
    }

    /// Notes what the connection waits for, and so how long it may.
    fn note(&self, is_written: bool, has_sent: bool) {
        let engine = self.shared.engine();
        match (is_written, engine.open_streams()) {
            (false, _) if has_sent => self.slot.enter(Phase::Writing),
            (false, _) => self.slot.stay(Phase::Writing),
            (true, _) if !engine.is_open() => self.slot.stay(Phase::Head),
            (true, 0) if self.is_ending => self.slot.stay(Phase::Writing),
            (true, 0) => self.slot.stay(Phase::Idle),
            (true, _) => self.slot.stay(Phase::Busy),
        }
    }
}

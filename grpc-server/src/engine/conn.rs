//! A connection: what comes in is accepted as a batch, answered as a batch, and written at once.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use http2::shared::{Arrivals, Shared};
use http2::{Config, Connection as Engine, Event, Reason};
use server_runtime::{Connection, Stream};
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _, ReadBuf};
use tokio::time::Instant;

use super::call;
use super::h1;
use super::origin::{End, Origin};
use super::watch::{Watch, Wish};
use super::wire::Wire;
use super::worker::Worker;
use crate::options::Options;
use crate::tuning;

/// Serves a connection to its end.
pub(super) async fn serve(worker: Rc<Worker>, connection: Connection) {
    let Connection { mut stream, peer, shutdown, place, .. } = connection;
    let end = End::of(&stream);
    let origin = Rc::new(Origin { worker, peer, end, shutdown });
    let options = Rc::clone(&origin.worker.options);
    let mut read = Vec::new();
    if let Some(web) = &options.web {
        let found = tokio::select! {
            found = tokio::time::timeout(options.timeouts.handshake, h1::is_http2(&mut stream, &mut read)) => found,
            () = origin.shutdown.triggered() => return,
        };
        match found {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => {
                let wire = Wire::new(stream, read.into());
                if let Err(error) = h1::serve(&origin, web, wire).await {
                    tracing::debug!(peer = %origin.peer, "HTTP/1.1: {error}");
                }
                return drop(place);
            }
            Ok(Err(_)) => return,
            Err(_) => return origin.worker.figures().timeouts.add(1),
        }
    }
    serve_http2(&origin, stream, read).await;
    drop(place);
}

async fn serve_http2(origin: &Rc<Origin>, stream: Stream, read: Vec<u8>) {
    let mut triggered = pin!(origin.shutdown.triggered());
    let options = &origin.worker.options;
    let shared = Rc::new(Shared::new(Engine::new(&config(options), Instant::now().into_std())));
    let watch = Watch::new(options.timeouts);
    let (arrivals, finished) = (Arrivals::default(), Vec::new());
    let mut conn = Conn { shared, stream, unread: read, arrivals, finished, watch, is_left: false, origin };
    let mut is_ending = false;
    let ended = poll_fn(|cx| {
        if !is_ending && triggered.as_mut().poll(cx).is_ready() {
            is_ending = true;
            if !conn.shared.engine().is_open() {
                return Poll::Ready(Ended::Lost);
            }
            conn.shared.engine().shutdown();
        }
        conn.poll(cx)
    })
    .await;
    conn.shared.end();
    let Conn { mut stream, .. } = conn;
    match ended {
        Ended::Lost => {}
        Ended::Whole => drop(stream.shutdown().await),
        Ended::Broken => linger(&mut stream).await,
    }
}

fn config(options: &Options) -> Config {
    Config {
        max_streams: options.limits.streams,
        stream_window: tuning::STREAM_WINDOW,
        connection_window: tuning::CONNECTION_WINDOW,
        max_frame: tuning::MAX_FRAME,
        max_headers: options.limits.headers,
        max_output: tuning::SEND_BUFFER,
        max_control_frames: options.limits.control_frames,
        ..Config::default()
    }
}

/// What a client has sent that nobody reads would be answered by a reset, which may overtake the reason that it was told.
async fn linger(stream: &mut Stream) {
    let reading = async {
        stream.shutdown().await?;
        let mut bytes = [0; 4096];
        let mut left = tuning::READ_BUFFER;
        while left > 0 {
            match stream.read(&mut bytes).await? {
                0 => break,
                count => left = left.saturating_sub(count),
            }
        }
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(tuning::LINGER, reading).await;
}

/// How a connection has ended.
enum Ended {
    /// The client is gone.
    Lost,
    /// All is said.
    Whole,
    /// The client has broken the protocol, and was told.
    Broken,
}

struct Conn<'a> {
    shared: Rc<Shared>,
    stream: Stream,
    /// What was read and not used, between turns.
    unread: Vec<u8>,
    /// The calls of one batch, between turns none.
    arrivals: Arrivals,
    /// The methods of those calls of the batch that are over; empty in between.
    finished: Vec<usize>,
    watch: Watch,
    /// Whether the client makes no more calls.
    is_left: bool,
    origin: &'a Rc<Origin>,
}

impl Conn<'_> {
    /// Ready at the end of the connection.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        let worker = Rc::clone(&self.origin.worker);
        let mut buffer = worker.buffer.borrow_mut();
        let shared = Rc::clone(&self.shared);
        shared.turn(cx, &worker.output, |cx| self.turn(cx, &mut buffer))
    }

    fn turn(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<Ended> {
        let mut filled = self.unread.len();
        buffer[..filled].copy_from_slice(&self.unread);
        self.unread = Vec::new();
        let ended = self.exchange(cx, buffer, &mut filled);
        self.unread.extend_from_slice(&buffer[..filled]);
        if ended.is_ready() {
            return ended;
        }
        let shared = &self.shared;
        let is_open = shared.engine().is_open();
        match self.watch.poll(cx, || shared.engine().open_streams() > 0, is_open) {
            Poll::Ready(Wish::Leave) => self.shared.engine().shutdown(),
            Poll::Ready(Wish::Ping) => self.shared.engine().ping(*b"are you?"),
            Poll::Ready(Wish::Cut) => {
                self.origin.worker.figures().timeouts.add(1);
                return Poll::Ready(Ended::Lost);
            }
            Poll::Pending => return Poll::Pending,
        }
        // What the watch wants is written in the next turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads, answers and writes until there is nothing more to do.
    fn exchange(&mut self, cx: &mut Context<'_>, buffer: &mut [u8], filled: &mut usize) -> Poll<Ended> {
        for _ in 0..tuning::TURN_READS {
            self.shared.release();
            let result = self.take(buffer, filled);
            let is_held = *filled > 0 && self.shared.engine().output().len() >= tuning::SEND_BUFFER;
            self.answer_all();
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
            if self.shared.engine().output().len() >= tuning::SEND_BUFFER {
                return Poll::Pending;
            }
            if is_held {
                // What had to wait for room comes before what is read.
                continue;
            }
            let mut room = ReadBuf::new(&mut buffer[*filled..]);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut room)) {
                Ok(()) if !room.filled().is_empty() => *filled += room.filled().len(),
                Ok(()) | Err(_) => return Poll::Ready(Ended::Lost),
            }
        }
        // Others have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Takes what has come of calls.
    fn take(&mut self, buffer: &mut [u8], filled: &mut usize) -> Result<(), http2::Error> {
        let mut input = &buffer[..*filled];
        let result = if input.is_empty() { Ok(()) } else { self.take_events(&mut input) };
        let left = input.len();
        buffer.copy_within(*filled - left..*filled, 0);
        *filled = left;
        if let Err(error) = result {
            tracing::debug!(peer = %self.origin.peer, "HTTP/2: {error}");
            // What a client that floods has asked for is not worth an answer.
            self.arrivals.clear();
            if error.reason == Reason::ENHANCE_YOUR_CALM {
                self.origin.worker.figures().floods.add(1);
            }
        }
        result
    }

    fn take_events(&mut self, input: &mut &[u8]) -> Result<(), http2::Error> {
        let shared = Rc::clone(&self.shared);
        let mut engine = shared.engine();
        let now = Instant::now();
        while let Some(event) = engine.next(input, now.into_std())? {
            match event {
                Event::Request { stream, head, end } => {
                    if !self.arrivals.request(stream, head, end) {
                        engine.reset(stream, Reason::PROTOCOL_ERROR);
                    }
                }
                Event::Data { stream, data, end } => {
                    let (length, piece) = (data.len(), self.origin.worker.pieces.borrow_mut().copy(data));
                    if self.arrivals.data(&shared, stream, piece, end) {
                        engine.release(stream, length);
                    }
                }
                Event::Trailers { stream, fields } => self.arrivals.trailers(&shared, stream, fields),
                Event::Reset { stream, reason, .. } => self.arrivals.reset(&shared, stream, reason),
                Event::Pong(_) => self.watch.heard(now),
                Event::GoAway { .. } => self.is_left = true,
            }
        }
        Ok(())
    }

    fn answer_all(&mut self) {
        if self.arrivals.is_empty() {
            return;
        }
        let now = Instant::now();
        self.watch.active = now;
        while let Some((stream, request)) = self.arrivals.pop(&self.shared) {
            self.finished.extend(call::start(self.origin, &self.shared, stream, request.map(Into::into), now));
        }
        if !self.finished.is_empty() {
            // One look at the clock for all: each has waited for those before it.
            self.origin.worker.took_all(&self.finished, now.elapsed());
            self.finished.clear();
        }
    }

    /// Writes what there is; whether that is all.
    fn write(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        loop {
            self.shared.notify_writable();
            let mut engine = self.shared.engine();
            if engine.output().is_empty() {
                break;
            }
            match Pin::new(&mut self.stream).poll_write(cx, engine.output()) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => engine.advance(count),
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(false),
            }
        }
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(Ok(())) => Ok(true),
            Poll::Ready(Err(error)) => Err(error),
            Poll::Pending => Ok(false),
        }
    }
}

//! A connection: what comes in is accepted as a batch, answered as a batch, and written at once.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Request};
use http2::{Config, Connection as Engine, Event, Reason, StreamId};
use server_runtime::{Connection, Stream};
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _, ReadBuf};
use tokio::time::Instant;

use super::call;
use super::h1;
use super::inbound::Inbound;
use super::link::Link;
use super::origin::{End, Origin};
use super::pipe::Pipe;
use super::requests::{self, Requests};
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
    let link = Rc::new(Link::new(Engine::new(&config(options), Instant::now().into_std())));
    let watch = Watch::new(options.timeouts);
    let (batch, finished, requests) = (Vec::new(), Vec::new(), Requests::default());
    let mut conn = Conn { link, stream, unread: read, batch, finished, requests, watch, is_left: false, origin };
    let mut is_ending = false;
    let ended = poll_fn(|cx| {
        if !is_ending && triggered.as_mut().poll(cx).is_ready() {
            is_ending = true;
            if !conn.link.engine.borrow().is_open() {
                return Poll::Ready(Ended::Lost);
            }
            conn.link.engine.borrow_mut().shutdown();
        }
        conn.poll(cx)
    })
    .await;
    conn.link.end();
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

/// A call that has arrived.
struct Arrival {
    stream: StreamId,
    request: Request<()>,
    /// The first piece of its body.
    piece: Option<Bytes>,
    is_complete: bool,
    /// What more there is of its body, the first piece included.
    pipe: Option<Arc<Pipe>>,
}

struct Conn<'a> {
    link: Rc<Link>,
    stream: Stream,
    /// What was read and not used, between turns.
    unread: Vec<u8>,
    /// The calls of one batch; empty in between.
    batch: Vec<Arrival>,
    /// The methods of those calls of the batch that are over; empty in between.
    finished: Vec<usize>,
    requests: Requests,
    watch: Watch,
    /// Whether the client makes no more calls.
    is_left: bool,
    origin: &'a Rc<Origin>,
}

impl Conn<'_> {
    /// Ready at the end of the connection.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        self.link.begin_turn(cx);
        let worker = Rc::clone(&self.origin.worker);
        let mut buffer = worker.buffer.borrow_mut();
        // What is written in this turn goes through the worker's buffer, unless calls have begun one of the connection's own.
        let mut lent = self.link.engine.borrow().output().is_empty().then(|| worker.output.take());
        if let Some(buffer) = &mut lent {
            self.link.engine.borrow_mut().swap_buffer(buffer);
        }
        let polled = self.turn(cx, &mut buffer);
        let mut engine = self.link.engine.borrow_mut();
        if let Some(mut buffer) = lent {
            engine.swap_buffer(&mut buffer);
            worker.output.set(buffer);
        } else if engine.open_streams() == 0 {
            // An idle connection needs none.
            engine.swap_buffer(&mut Vec::new());
        }
        drop(engine);
        self.link.end_turn();
        polled
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
        let link = &self.link;
        let is_open = link.engine.borrow().is_open();
        match self.watch.poll(cx, || link.engine.borrow().open_streams() > 0, is_open) {
            Poll::Ready(Wish::Leave) => self.link.engine.borrow_mut().shutdown(),
            Poll::Ready(Wish::Ping) => self.link.engine.borrow_mut().ping(*b"are you?"),
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
            self.link.release();
            let result = self.take(buffer, filled);
            let is_held = *filled > 0 && self.link.engine.borrow().output().len() >= tuning::SEND_BUFFER;
            self.answer_all();
            let Ok(is_written) = self.write(cx) else { return Poll::Ready(Ended::Lost) };
            match result {
                // Who floods would go on doing so.
                Err(error) if is_written && error.reason == Reason::ENHANCE_YOUR_CALM => {
                    return Poll::Ready(Ended::Whole);
                }
                Err(_) if is_written => return Poll::Ready(Ended::Broken),
                Err(_) => return Poll::Pending,
                Ok(()) if is_written && self.is_over() => return Poll::Ready(Ended::Whole),
                Ok(()) => {}
            }
            if self.link.engine.borrow().output().len() >= tuning::SEND_BUFFER {
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

    fn is_over(&self) -> bool {
        let engine = self.link.engine.borrow();
        engine.is_over() || self.is_left && engine.open_streams() == 0
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
            self.batch.clear();
            if error.reason == Reason::ENHANCE_YOUR_CALM {
                self.origin.worker.figures().floods.add(1);
            }
        }
        result
    }

    fn take_events(&mut self, input: &mut &[u8]) -> Result<(), http2::Error> {
        let link = Rc::clone(&self.link);
        let mut engine = link.engine.borrow_mut();
        let now = Instant::now();
        while let Some(event) = engine.next(input, now.into_std())? {
            match event {
                Event::Request { stream, head, end } => match self.requests.make(head) {
                    Some(request) => {
                        self.batch.push(Arrival { stream, request, piece: None, is_complete: end, pipe: None });
                    }
                    None => engine.reset(stream, Reason::PROTOCOL_ERROR),
                },
                Event::Data { stream, data, end } => {
                    let (length, piece) = (data.len(), self.origin.worker.piece(data));
                    if self.take_data(stream, piece, end) {
                        engine.release(stream, length);
                    }
                }
                Event::Trailers { stream, fields } => {
                    let trailers = requests::trailers(fields);
                    self.take_end(stream, Some(trailers));
                }
                Event::Reset { stream, reason, .. } => {
                    self.batch.retain(|arrival| arrival.stream != stream);
                    if let Some(pipe) = self.link.pipe(stream) {
                        pipe.reset(reason);
                    }
                    self.link.notify(stream);
                }
                Event::Pong(_) => self.watch.heard(now),
                Event::GoAway { .. } => self.is_left = true,
            }
        }
        Ok(())
    }

    /// Takes a piece of a body; whether it is nobody's to release.
    fn take_data(&mut self, stream: StreamId, piece: Bytes, end: bool) -> bool {
        let Some(arrival) = self.batch.iter_mut().rev().find(|arrival| arrival.stream == stream) else {
            if let Some(pipe) = self.link.pipe(stream) {
                if !piece.is_empty() {
                    pipe.push(piece);
                }
                if end {
                    pipe.finish(None);
                    self.link.notify(stream);
                }
                return false;
            }
            return true;
        };
        arrival.is_complete = end;
        if arrival.pipe.is_none() && arrival.piece.is_none() && end {
            arrival.piece = Some(piece).filter(|piece| !piece.is_empty());
            return true;
        }
        let pipe = arrival.pipe(&self.link);
        if !piece.is_empty() {
            pipe.push(piece);
        }
        if end {
            pipe.finish(None);
        }
        false
    }

    /// The trailers end a body.
    fn take_end(&mut self, stream: StreamId, trailers: Option<HeaderMap>) {
        match self.batch.iter_mut().find(|arrival| arrival.stream == stream) {
            Some(arrival) => {
                arrival.is_complete = true;
                arrival.pipe(&self.link).finish(trailers);
            }
            None => {
                if let Some(pipe) = self.link.pipe(stream) {
                    pipe.finish(trailers);
                    self.link.notify(stream);
                }
            }
        }
    }

    fn answer_all(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let now = Instant::now();
        self.watch.active = now;
        let link = &self.link;
        for mut arrival in self.batch.drain(..) {
            let body = match (&arrival.pipe, arrival.is_complete) {
                (None, true) => Inbound::whole(arrival.piece.take()),
                (None, false) | (Some(_), _) => {
                    let pipe = arrival.pipe(link);
                    link.attach(arrival.stream, Arc::clone(&pipe));
                    pipe.reader().into()
                }
            };
            let request = arrival.request.map(|()| body);
            self.finished.extend(call::start(self.origin, link, arrival.stream, request, now));
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
            let mut engine = self.link.engine.borrow_mut();
            // There may be room for those that wait for it: in windows, by what was read, or in the output.
            while let Some(stream) = engine.next_writable() {
                self.link.notify(stream);
            }
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

impl Arrival {
    /// The pipe of the body, which has the first piece in it.
    fn pipe(&mut self, link: &Link) -> Arc<Pipe> {
        let first = self.piece.take();
        let pipe = self.pipe.get_or_insert_with(|| Pipe::new(&link.releases));
        first.into_iter().for_each(|piece| pipe.push(piece));
        Arc::clone(pipe)
    }
}

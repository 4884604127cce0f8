//! A connection: calls are accepted as a batch, answered as a batch, and written at once.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use http2::shared::{Answers, Ended, Link, Requests, Shared, TURN_TASKS};
use http2::{Config, Connection as Engine, Error, Event, Reason};
use server_runtime::{Connection, Pace, Stream};
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
    let Connection { mut stream, peer, local, shutdown, place, .. } = connection;
    let end = End::of(&stream, &local, &peer);
    let origin = Rc::new(Origin { worker, peer, end, shutdown });
    let options = Rc::clone(&origin.worker.options);
    let mut read = Vec::new();
    if options.speaks_http1() {
        let found = tokio::select! {
            found = tokio::time::timeout(options.timeouts.handshake, h1::is_http2(&mut stream, &mut read)) => found,
            () = origin.shutdown.triggered() => return,
        };
        match found {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => {
                let wire = Wire::new(stream, read.into());
                // Apart, so that connections of HTTP/2 need no room for it.
                Box::pin(h1::serve(&origin, wire)).await;
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
    let mut link = Link::new(Engine::new(&config(options), Instant::now().into_std()), stream, read);
    let watch = Watch::new(options.timeouts, origin.worker.chance());
    let shared = Rc::clone(link.shared());
    let mut conn = Conn { shared, requests: Requests::default(), finished: Vec::new(), watch, origin };
    let mut is_ending = false;
    let ended = poll_fn(|cx| {
        if !is_ending && triggered.as_mut().poll(cx).is_ready() {
            is_ending = true;
            if !conn.shared.engine().is_open() {
                return Poll::Ready(Ended::Lost);
            }
            conn.shared.engine().shutdown();
        }
        match link.poll(cx, &origin.worker.buffers, &mut conn) {
            Poll::Ready(ended) => Poll::Ready(ended),
            Poll::Pending => {
                conn.watch.note_head(link.is_within_head());
                conn.look_at_the_clock(cx, &link)
            }
        }
    });
    let ended = ended.await;
    drop(conn);
    close(link, ended).await;
}

/// Ends the connection, and waits for the client to close for as long as it takes the bytes on their way to it.
async fn close(mut link: Link<Stream>, ended: Ended) {
    let mut pace = Pace::default();
    let progress = |link: &Link<Stream>| link.socket().progress(link.written());
    pace.begin(progress(&link), tuning::least(tuning::REST_TIME));
    loop {
        let is_taking = progress(&link).under_way > 0;
        let time = if is_taking { tuning::REST_TIME } else { tuning::LINGER };
        let closed = link.close(ended, tuning::READ_BUFFER, server_runtime::end_turn);
        let is_closed = tokio::time::timeout(time, closed).await.is_ok();
        if is_closed || !is_taking || !pace.has_moved(progress(&link).received, tuning::least(time)) {
            return;
        }
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

struct Conn<'a> {
    shared: Rc<Shared>,
    requests: Requests,
    /// The methods of those calls of the batch that are over; empty in between.
    finished: Vec<usize>,
    watch: Watch,
    origin: &'a Rc<Origin>,
}

impl Conn<'_> {
    /// Ready if the client is not there any more.
    fn look_at_the_clock(&mut self, cx: &mut Context<'_>, link: &Link<Stream>) -> Poll<Ended> {
        let shared = &self.shared;
        let is_open = shared.engine().is_open();
        // A client that sends is there, too, and its answer is behind what it sends.
        let moved = || link.socket().progress(link.written() + link.read_bytes());
        match self.watch.poll(cx, || shared.engine().open_streams() > 0, is_open, moved) {
            Poll::Ready(Wish::Leave) => shared.engine().shutdown(),
            Poll::Ready(Wish::Ping) => shared.engine().ping(*b"are you?"),
            Poll::Ready(Wish::Cut) => {
                self.origin.worker.figures().timeouts.add(1);
                return Poll::Ready(Ended::Lost);
            }
            Poll::Pending => return Poll::Pending,
        }
        // The next turn writes the frames for the watch.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Answers for Conn<'_> {
    fn take(&mut self, input: &mut &[u8]) -> Result<(), Error> {
        let shared = Rc::clone(&self.shared);
        let (mut engine, buffers) = (shared.engine(), &self.origin.worker.buffers);
        let now = Instant::now();
        while let Some(event) = engine.next(input, now.into_std())? {
            match event {
                Event::Request { stream, head, end } => {
                    if !buffers.arrivals().request(&mut self.requests, stream, head, end) {
                        engine.reset(stream, Reason::PROTOCOL_ERROR);
                    }
                }
                Event::Data { stream, data, end } => {
                    let (length, piece) = (data.len(), buffers.pieces().copy(data));
                    if buffers.arrivals().data(&shared, stream, piece, end) {
                        engine.release(stream, length);
                    }
                }
                Event::Trailers { stream, fields } => buffers.arrivals().trailers(&shared, stream, fields),
                Event::TooLarge { stream, head, end } => {
                    if !buffers.arrivals().too_large(&shared, stream, head, end) {
                        engine.refuse_large(stream);
                    }
                }
                Event::Reset { stream, reason, .. } => buffers.arrivals().reset(&shared, stream, reason),
                Event::Pong(_) => self.watch.heard(now),
                Event::GoAway { .. } => {}
            }
        }
        Ok(())
    }

    fn end_turn(&mut self, cx: &mut Context<'_>) {
        server_runtime::end_turn(cx);
    }

    fn forget(&mut self, error: Error) {
        tracing::debug!(peer = %self.origin.peer, "HTTP/2: {error}");
        self.origin.worker.buffers.arrivals().clear();
        if error.reason == Reason::ENHANCE_YOUR_CALM {
            self.origin.worker.figures().floods.add(1);
        }
    }

    fn answer(&mut self, _cx: &mut Context<'_>) {
        let buffers = &self.origin.worker.buffers;
        if buffers.arrivals().is_empty() {
            return;
        }
        let now = Instant::now();
        self.watch.active = now;
        self.watch.took_head();
        let mut tasks = 0;
        // The arrivals are not borrowed while one is answered.
        let next = || buffers.arrivals().pop(&self.shared);
        while tasks < TURN_TASKS
            && let Some((stream, request)) = next()
        {
            match call::start(self.origin, &self.shared, stream, request.map(Into::into), now) {
                Some(method) => self.finished.push(method),
                None => tasks += 1,
            }
        }
        if !self.finished.is_empty() {
            // One look at the clock for all: each has waited for those before it.
            self.origin.worker.took_all(&self.finished, now.elapsed());
            self.finished.clear();
        }
    }
}

//! A connection: what comes in is accepted as a batch, answered as a batch, and written at once.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use server_runtime::{Connection, Meter};
use tokio::time::Instant;

use super::call;
use super::h1;
use super::origin::{End, Origin};
use super::watch::{Watch, Wish};
use super::wire::Wire;
use super::worker::Worker;
use crate::tuning;

/// A call that has arrived.
type Arrival = (Request<RecvStream>, SendResponse<Bytes>);

/// Serves a connection to its end.
pub(super) async fn serve(worker: Rc<Worker>, connection: Connection) {
    let Connection { mut stream, peer, shutdown, place, .. } = connection;
    let end = End::of(&stream);
    let origin = Rc::new(Origin { worker, peer, end, shutdown });
    let options = Rc::clone(&origin.worker.options);
    let is_flooded = Rc::<Cell<bool>>::default();
    let mut read = Vec::new();
    if let Some(web) = &options.web {
        let found = tokio::select! {
            found = tokio::time::timeout(options.timeouts.handshake, h1::is_http2(&mut stream, &mut read)) => found,
            () = origin.shutdown.triggered() => return,
        };
        match found {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => {
                let wire = Wire::new(stream, read.into(), None, is_flooded);
                if let Err(error) = h1::serve(&origin, web, wire).await {
                    tracing::debug!(peer = %origin.peer, "HTTP/1.1: {error}");
                }
                return drop(place);
            }
            Ok(Err(_)) => return,
            Err(_) => return origin.worker.figures().timeouts.add(1),
        }
    }
    let most = options.limits.control_frames;
    let meter = (most > 0).then(|| Meter::new(most));
    let wire = Wire::new(stream, read.into(), meter, Rc::clone(&is_flooded));
    if let Err(error) = serve_http2(&origin, wire, is_flooded).await {
        tracing::debug!(peer = %origin.peer, "HTTP/2: {error}");
    }
    drop(place);
}

async fn serve_http2(origin: &Rc<Origin>, wire: Wire, is_flooded: Rc<Cell<bool>>) -> Result<(), h2::Error> {
    let timeouts = origin.worker.options.timeouts;
    let mut triggered = pin!(origin.shutdown.triggered());
    let handshake = tokio::select! {
        handshake = tokio::time::timeout(timeouts.handshake, handshake(origin, wire)) => handshake,
        () = &mut triggered => return Ok(()),
    };
    let Ok(handshake) = handshake else {
        origin.worker.figures().timeouts.add(1);
        return Ok(());
    };
    let mut http2 = handshake?;
    let watch = Watch::new(http2.ping_pong(), timeouts);
    let (batch, finished) = (Vec::new(), Vec::new());
    let mut conn = Conn { http2, batch, finished, watch, is_flooded, origin };
    let mut is_ending = false;
    poll_fn(|cx| {
        if !is_ending && triggered.as_mut().poll(cx).is_ready() {
            is_ending = true;
            conn.http2.graceful_shutdown();
        }
        conn.poll(cx)
    })
    .await
}

fn handshake(origin: &Origin, wire: Wire) -> server::Handshake<Wire, Bytes> {
    let limits = &origin.worker.options.limits;
    server::Builder::new()
        .initial_window_size(tuning::STREAM_WINDOW)
        .initial_connection_window_size(tuning::CONNECTION_WINDOW)
        .max_frame_size(tuning::MAX_FRAME)
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(limits.headers)
        .max_send_buffer_size(tuning::SEND_BUFFER)
        .max_pending_accept_reset_streams(tuning::MAX_PENDING_RESETS)
        .max_local_error_reset_streams(Some(tuning::MAX_ERROR_RESETS))
        .handshake(wire)
}

struct Conn<'a> {
    http2: server::Connection<Wire, Bytes>,
    /// The calls of one batch; empty in between.
    batch: Vec<Arrival>,
    /// The methods of those calls of the batch that are over; empty in between.
    finished: Vec<usize>,
    watch: Watch,
    is_flooded: Rc<Cell<bool>>,
    origin: &'a Rc<Origin>,
}

impl Conn<'_> {
    /// Ready at the end of the connection.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        loop {
            // Accepting writes what waits to be written, so all calls are accepted before the first is answered: their
            // answers leave together.
            let is_over = loop {
                match self.http2.poll_accept(cx) {
                    Poll::Ready(Some(arrival)) => self.batch.push(arrival?),
                    Poll::Ready(None) => break true,
                    Poll::Pending => break false,
                }
            };
            if is_over {
                return Poll::Ready(Ok(()));
            }
            if self.is_flooded.take() {
                // What a client that floods has asked for is not worth an answer.
                self.origin.worker.figures().floods.add(1);
                self.http2.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                self.batch.clear();
                continue;
            }
            if self.batch.is_empty() {
                break;
            }
            self.answer_all();
        }
        let http2 = &mut self.http2;
        match self.watch.poll(cx, || http2.has_streams()) {
            Poll::Ready(Wish::Leave) => http2.graceful_shutdown(),
            Poll::Ready(Wish::Cut) => {
                self.origin.worker.figures().timeouts.add(1);
                return Poll::Ready(Ok(()));
            }
            Poll::Pending => {}
        }
        Poll::Pending
    }

    fn answer_all(&mut self) {
        let now = Instant::now();
        self.watch.active = now;
        for (request, respond) in self.batch.drain(..) {
            self.finished.extend(call::start(self.origin, request, respond, now));
        }
        if !self.finished.is_empty() {
            // One look at the clock for all: each has waited for those before it.
            self.origin.worker.took_all(&self.finished, now.elapsed());
            self.finished.clear();
        }
    }
}

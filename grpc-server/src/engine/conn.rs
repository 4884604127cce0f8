//! A connection: what comes in is accepted as a batch, answered as a batch, and written at once.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::{self, SendResponse};
use http::Request;
use server_runtime::{Connection, Stream};

use super::call;
use super::worker::Worker;
use crate::tuning;

/// A call that has arrived.
type Arrival = (Request<RecvStream>, SendResponse<Bytes>);

/// Serves a connection to its end.
pub(super) async fn serve(worker: Rc<Worker>, connection: Connection) {
    let Connection { stream, peer, shutdown, place, .. } = connection;
    let handshake = tokio::time::timeout(worker.options.timeouts.handshake, handshake(&worker, stream));
    let handshake = tokio::select! {
        handshake = handshake => handshake,
        () = shutdown.triggered() => return,
    };
    let mut conn = match handshake {
        Ok(Ok(conn)) => Conn { conn, arrivals: Vec::new(), worker },
        Ok(Err(error)) => return tracing::debug!(%peer, "HTTP/2: {error}"),
        Err(_) => return tracing::debug!(%peer, "HTTP/2: the client did not begin"),
    };
    let mut triggered = pin!(shutdown.triggered());
    let mut is_ending = false;
    let ended = poll_fn(|cx| {
        if !is_ending && triggered.as_mut().poll(cx).is_ready() {
            is_ending = true;
            conn.conn.graceful_shutdown();
        }
        conn.poll(cx)
    });
    if let Err(error) = ended.await {
        tracing::debug!(%peer, "HTTP/2: {error}");
    }
    drop(place);
}

fn handshake(worker: &Worker, stream: Stream) -> server::Handshake<Stream, Bytes> {
    let limits = &worker.options.limits;
    server::Builder::new()
        .initial_window_size(tuning::STREAM_WINDOW)
        .initial_connection_window_size(tuning::CONNECTION_WINDOW)
        .max_frame_size(tuning::MAX_FRAME)
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(limits.headers)
        .max_send_buffer_size(tuning::SEND_BUFFER)
        .max_pending_accept_reset_streams(tuning::MAX_PENDING_RESETS)
        .max_local_error_reset_streams(Some(tuning::MAX_ERROR_RESETS))
        .handshake(stream)
}

struct Conn {
    conn: server::Connection<Stream, Bytes>,
    /// The calls of one batch; empty in between.
    arrivals: Vec<Arrival>,
    worker: Rc<Worker>,
}

impl Conn {
    /// Ready at the end of the connection.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        loop {
            // Accepting writes what waits to be written, so all calls are accepted before the first is answered: their
            // answers leave together.
            let ended = loop {
                match self.conn.poll_accept(cx) {
                    Poll::Ready(Some(arrival)) => self.arrivals.push(arrival?),
                    Poll::Ready(None) => break true,
                    Poll::Pending => break false,
                }
            };
            if ended {
                return Poll::Ready(Ok(()));
            }
            if self.arrivals.is_empty() {
                return Poll::Pending;
            }
            for (request, respond) in self.arrivals.drain(..) {
                call::start(&self.worker, request, respond);
            }
        }
    }
}

//! HTTP/2 by hyper, for who asks for it.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use server_runtime::{Meter, Place, Stream};

use super::exchange::Origin;
use super::guard::guarded;
use super::watch::{Phase, Slot};
use super::wire::{Frames, Wire};
use super::worker::{Drain, Worker};
use crate::tuning::{H2_PIECE, H2_SEND_BUFFER, H2_STREAMS, H2_WINDOW};

/// Runs what a connection starts, its streams, on the connection's own worker.
#[derive(Clone)]
struct Here {
    worker: Rc<Worker>,
    /// The stream that the service was called for. hyper runs it next.
    begun: Rc<Cell<Option<Rc<Pace>>>>,
}

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for Here {
    fn execute(&self, future: F) {
        let Some(pace) = self.begun.take() else {
            tokio::task::spawn_local(future);
            return;
        };
        let worker = Rc::clone(&self.worker);
        tokio::task::spawn_local(async move {
            let (mut future, mut slot) = (pin!(future), None);
            poll_fn(|cx| {
                let polled = future.as_mut().poll(cx);
                if polled.is_pending() && is_stuck(&worker, &pace, &mut slot, cx) {
                    worker.stats().timeouts.add(1);
                    // Its end without an end of the body resets the stream.
                    return Poll::Ready(());
                }
                polled
            })
            .await;
        });
    }
}

/// Whether a stream waits for its client's window, and has for too long. Only what waits has a place in the table of
/// time-outs.
fn is_stuck(worker: &Worker, pace: &Pace, slot: &mut Option<Rc<Slot>>, cx: &Context<'_>) -> bool {
    match (pace.0.replace(Given::Known), &slot) {
        (Given::Nothing, None) => pace.0.set(Given::Nothing),
        (Given::Nothing, Some(slot)) => {
            pace.0.set(Given::Nothing);
            slot.renew(Phase::Busy);
        }
        (Given::New, Some(slot)) => slot.renew(Phase::Writing),
        (Given::Known, Some(slot)) => return slot.is_expired(),
        (Given::New | Given::Known, None) => {
            let waiting = worker.watch.slot();
            waiting.enter(Phase::Writing);
            waiting.wake_by(cx.waker());
            *slot = Some(waiting);
        }
    }
    false
}

/// How a stream's body comes along.
#[derive(Default)]
struct Pace(Cell<Given>);

/// What a body last had for the client.
#[derive(Clone, Copy, Default)]
enum Given {
    /// Nothing: its handler is working.
    #[default]
    Nothing,
    /// A piece, since the stream was last looked at.
    New,
    /// A piece, which has waited since then.
    Known,
}

/// Serves a connection of which `read` was read already.
pub(super) async fn serve(
    worker: Rc<Worker>,
    slot: Rc<Slot>,
    stream: Stream,
    place: Place,
    read: Bytes,
    origin: Origin,
) {
    slot.renew(Phase::Idle);
    let active = Rc::new(Cell::new(0_usize));
    let peer = origin.peer.clone();
    let here = Here { worker: Rc::clone(&worker), begun: Rc::default() };
    let service = {
        let (worker, slot, active) = (Rc::clone(&worker), Rc::clone(&slot), Rc::clone(&active));
        let begun = Rc::clone(&here.begun);
        service_fn(move |request: Request<Incoming>| {
            worker.stats().h2_requests.add(1);
            let (running, pace) = (Running::new(&slot, &active), Rc::<Pace>::default());
            begun.set(Some(Rc::clone(&pace)));
            let (worker, origin) = (Rc::clone(&worker), origin.clone());
            async move {
                let response = guarded(worker, request, origin).await;
                Ok::<_, Infallible>(response.map(|body| Counted { body, rest: Bytes::new(), pace, _running: running }))
            }
        })
    };
    let limits = &worker.settings.options.limits;
    let is_flooded = Arc::<AtomicBool>::default();
    let wire = Wire::new(read, stream, place, worker.settings.options.timeouts.write).metered(
        (limits.control_frames > 0)
            .then(|| Frames { meter: Meter::new(limits.control_frames), is_flooded: Arc::clone(&is_flooded) }),
    );
    let conn = http2::Builder::new(here)
        .timer(TokioTimer::new())
        .max_concurrent_streams(H2_STREAMS)
        .initial_stream_window_size(H2_WINDOW.0)
        .initial_connection_window_size(H2_WINDOW.1)
        .max_send_buf_size(H2_SEND_BUFFER)
        .max_header_list_size(u32::try_from(limits.head).unwrap_or(u32::MAX))
        // A peer that is gone without a word is noticed.
        .keep_alive_interval(worker.settings.options.timeouts.idle)
        .keep_alive_timeout(worker.settings.options.timeouts.write)
        .serve_connection(TokioIo::new(wire), service);
    let mut conn = pin!(conn);
    let mut is_ending = false;
    let ended = poll_fn(|cx| {
        slot.wake_by(cx.waker());
        let polled = conn.as_mut().poll(cx);
        let is_over = slot.is_expired() || (worker.drain.get() != Drain::No);
        if polled.is_pending() && is_over && !is_ending {
            is_ending = true;
            conn.as_mut().graceful_shutdown();
            // The client gets as long to finish as it would to take an answer.
            slot.renew(if active.get() == 0 { Phase::Writing } else { Phase::Busy });
            return conn.as_mut().poll(cx);
        }
        if polled.is_pending() && is_ending && slot.is_expired() { Poll::Ready(Ok(())) } else { polled }
    });
    if let Err(error) = ended.await {
        worker.stats().floods.add(is_flooded.load(Relaxed).into());
        tracing::debug!(%peer, "HTTP/2: {error}");
    }
}

/// A request that is under way.
struct Running {
    slot: Rc<Slot>,
    active: Rc<Cell<usize>>,
}

impl Running {
    fn new(slot: &Rc<Slot>, active: &Rc<Cell<usize>>) -> Self {
        active.set(active.get() + 1);
        slot.enter(Phase::Busy);
        Self { slot: Rc::clone(slot), active: Rc::clone(active) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.active.set(self.active.get() - 1);
        if self.active.get() == 0 {
            self.slot.enter(Phase::Idle);
        }
    }
}

/// A response's body that counts as under way until it is sent, in pieces that are not too large to be kept.
struct Counted {
    body: Body,
    /// What is left of a large piece.
    rest: Bytes,
    pace: Rc<Pace>,
    _running: Running,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, axum::Error>>> {
        self.pace.0.set(Given::Nothing);
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)?).map(http_body::Frame::into_data) {
                None => return Poll::Ready(None),
                Some(Err(trailers)) => return Poll::Ready(Some(Ok(trailers))),
                Some(Ok(data)) => self.rest = data,
            }
        }
        self.pace.0.set(Given::New);
        let piece = self.rest.len().min(H2_PIECE);
        Poll::Ready(Some(Ok(http_body::Frame::data(self.rest.split_to(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        let (of_body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = http_body::SizeHint::new();
        if let Some(upper) = of_body.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(of_body.lower() + rest);
        hint
    }
}

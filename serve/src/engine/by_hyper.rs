//! HTTP/1.1 by hyper instead of the loop in [`conn`](super::conn): with trailers and CONNECT, and with hyper's answers to malformed requests.
//! Limits, time-outs, figures and the end of the server are those of the loop.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use http::header::CONNECTION;
use http::{HeaderValue, Request, StatusCode};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use server_runtime::{Place, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::app::{App, Origin};
use super::guard::guarded;
use super::request_line::RequestLine;
use super::watch::{Phase, Slot};
use super::websocket::{self, Accepted, Offered, Taken};
use super::wire::Wire;
use super::worker::{Drain, Worker};
use crate::tuning::LINGER_BYTES;

/// Serves one connection to its end.
pub(super) async fn serve<A: App>(
    app: Rc<A>,
    worker: Rc<Worker>,
    slot: Rc<Slot>,
    stream: Stream,
    place: Place,
    origin: Origin<A::State>,
) {
    let options = &worker.settings.options;
    let counts = Arc::<Counts>::default();
    let wire = Wire::new(Bytes::new(), stream, place, options.timeouts.write);
    let line = Counted { wire, counts: Arc::clone(&counts) };
    let course = Rc::new(Course {
        worker: Rc::clone(&worker),
        slot: Rc::clone(&slot),
        counts,
        requests: Cell::new(0),
        is_busy: Cell::new(false),
        received: Cell::new(0),
        accepted: RefCell::default(),
    });
    let service = {
        let course = Rc::clone(&course);
        service_fn(move |request| answer(Rc::clone(&app), Rc::clone(&course), request, origin.clone()))
    };
    let mut conn = http1::Builder::new()
        .half_close(worker.settings.rules.half_close)
        .max_headers(options.limits.headers)
        .max_header_size(options.limits.head)
        // A head has its time from its first byte, and a connection another one between requests.
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(line), service)
        .with_upgrades();
    let mut look = Look { received: 0, sent: 0, requests: 0, is_told: false };
    let ended = poll_fn(|cx| {
        slot.wake_by(cx.waker());
        if slot.is_expired() {
            if slot.phase() != Phase::Idle {
                worker.stats().timeouts.add(1);
            }
            return Poll::Ready(None);
        }
        if worker.drain.get() == Drain::Closing && !look.is_told {
            look.is_told = true;
            Pin::new(&mut conn).graceful_shutdown();
        }
        let polled = Pin::new(&mut conn).poll(cx);
        look.note(&course);
        polled.map(Some)
    });
    match ended.await {
        None => return,
        // A body that has failed: the client has to see that something is missing.
        Some(Err(error)) if error.is_user() => return,
        // An error of the socket or of the client ends the connection like its orderly end.
        Some(_) => {}
    }
    if let Some(parts) = conn.into_parts() {
        return linger(&slot, parts.io.into_inner(), !parts.read_buf.is_empty()).await;
    }
    let Some((promise, accepted)) = course.accepted.take() else { return };
    let Ok(upgraded) = promise.await else { return };
    if let Ok(parts) = upgraded.downcast::<TokioIo<Counted>>() {
        let (stream, place) = parts.io.into_inner().wire.into_parts();
        let input = BytesMut::from(&parts.read_buf[..]);
        Box::pin(websocket::serve(worker, slot, stream, place, input, *accepted)).await;
    }
}

/// Reads what the client has sent beyond the last answer, if it has sent something. A socket that is closed with something unread sends a reset,
/// and takes the answer with it.
async fn linger(slot: &Slot, mut line: Counted, mut has_heard: bool) {
    slot.renew(Phase::Lingering);
    let (mut left, mut is_shut) = (LINGER_BYTES, false);
    poll_fn(|cx| {
        slot.wake_by(cx.waker());
        // An error comes again at the read.
        is_shut = is_shut || Pin::new(&mut line).poll_shutdown(cx).is_ready();
        let mut room = [0; 4096];
        while !slot.is_expired() {
            let mut room = ReadBuf::new(&mut room);
            match Pin::new(&mut line).poll_read(cx, &mut room) {
                Poll::Pending if is_shut && !has_heard => break,
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) if (1..left).contains(&room.filled().len()) => left -= room.filled().len(),
                Poll::Ready(_) => break,
            }
            has_heard = true;
        }
        Poll::Ready(())
    })
    .await;
}

/// The course of a connection, as its requests change it.
struct Course {
    worker: Rc<Worker>,
    slot: Rc<Slot>,
    counts: Arc<Counts>,
    requests: Cell<u64>,
    /// A request is being answered.
    is_busy: Cell<bool>,
    /// Bytes received when the last response was over: those behind it are of the next head.
    received: Cell<u64>,
    /// The promise of the stream, and the WebSocket that the application has accepted on it.
    accepted: RefCell<Option<(OnUpgrade, Box<Accepted>)>>,
}

/// The response to a request. It says so if it is the last one.
async fn answer<A: App>(
    app: Rc<A>,
    course: Rc<Course>,
    mut request: Request<Incoming>,
    origin: Origin<A::State>,
) -> Result<Response<Answer>, Infallible> {
    course.is_busy.set(true);
    course.requests.set(course.requests.get() + 1);
    let line = RequestLine::of(&request);
    let promise = request.extensions().get::<OnUpgrade>().cloned();
    if promise.is_some() {
        request.extensions_mut().insert(Offered);
    }
    let worker = Rc::clone(&course.worker);
    let mut response = guarded(app, Rc::clone(&worker), request, origin, Rc::clone(&line)).await;
    let limit = worker.settings.options.limits.requests;
    if response.status() == StatusCode::SWITCHING_PROTOCOLS && promise.is_some() {
        worker.stats().upgrades.add(1);
        let accepted = response.extensions_mut().remove::<Taken>().and_then(Taken::take);
        course.accepted.replace(promise.zip(accepted.map(Box::new)));
    } else if response.status().is_informational() {
        tracing::error!(status = response.status().as_u16(), "a handler answered what is no final answer");
        response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
    } else if worker.is_draining() || course.requests.get() == limit {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| Answer { body, line, course }))
}

/// The body of a response. The response is over when hyper drops it.
struct Answer {
    body: Body,
    line: Rc<RequestLine>,
    course: Rc<Course>,
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Err(error)) = &frame {
            self.line.body_failed(error);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.course.is_busy.set(false);
        self.course.received.set(self.course.counts.received.load(Relaxed));
    }
}

/// The state of a connection when it was last polled.
struct Look {
    received: u64,
    sent: u64,
    requests: u64,
    /// hyper was told that the server ends.
    is_told: bool,
}

impl Look {
    /// Notes what has happened since, and which of its times the connection spends now. Bodies and writes have time-outs of their own.
    fn note(&mut self, course: &Course) {
        let Course { worker, slot, counts, .. } = course;
        let (received, sent) = (counts.received.load(Relaxed), counts.sent.load(Relaxed));
        worker.stats().received.add(received - self.received);
        worker.stats().sent.add(sent - self.sent);
        let has_begun = course.requests.get() > self.requests;
        *self = Self { received, sent, requests: course.requests.get(), ..*self };
        let phase = if course.is_busy.get() || counts.is_blocked.load(Relaxed) {
            Phase::Busy
        } else if received > course.received.get() {
            Phase::Head
        } else {
            Phase::Idle
        };
        if has_begun {
            slot.enter(phase);
        } else {
            slot.stay(phase);
        }
    }
}

/// The bytes of a connection. Atomic, because hyper hands over only streams that are `Send`; one thread uses them.
#[derive(Default)]
struct Counts {
    received: AtomicU64,
    sent: AtomicU64,
    /// The client was waited for to take something.
    is_blocked: AtomicBool,
}

impl Counts {
    fn wrote<T>(&self, written: Poll<T>) -> Poll<T> {
        self.is_blocked.store(written.is_pending(), Relaxed);
        written
    }

    fn wrote_bytes(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(count)) = written {
            self.sent.fetch_add(count as u64, Relaxed);
        }
        self.wrote(written)
    }
}

/// A stream whose bytes are counted.
struct Counted {
    wire: Wire,
    counts: Arc<Counts>,
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.wire).poll_read(cx, buf);
        self.counts.received.fetch_add((buf.filled().len() - before) as u64, Relaxed);
        read
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.wire).poll_write(cx, bytes);
        self.counts.wrote_bytes(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.wire).poll_write_vectored(cx, slices);
        self.counts.wrote_bytes(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.wire).poll_flush(cx);
        self.counts.wrote(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.wire).poll_shutdown(cx);
        self.counts.wrote(shut)
    }
}

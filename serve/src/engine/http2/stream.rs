//! A request and its answer.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use axum::body::Body;
use axum::response::Response;
use bytes::{Buf as _, Bytes};
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderMap, HeaderName, SERVER, VARY,
};
use http::{Method, Request, StatusCode};
use http_body::Body as _;
use http2::hpack::Field;
use http2::shared::fields;
use http2::{Reason, SendError, StreamId};
use server_runtime::Pace;

use super::session::{Report, Session};
use crate::engine::app::{App, Origin};
use crate::engine::guard::guarded;
use crate::engine::request_line::RequestLine;
use crate::engine::sending::{LONGER, SHORTER, on_stream};
use crate::engine::watch::{Phase, Slot};
use crate::engine::worker::Worker;

/// Begins to answer a request. An answer that is ready at once is sent when this returns; the rest goes on as a task.
/// Returns whether there is one.
pub(in crate::engine) fn begin<A: App, B>(
    app: &Rc<A>,
    session: &Rc<Session>,
    origin: &Origin<A::State>,
    stream: StreamId,
    request: Request<B>,
) -> bool
where
    B: http_body::Body<Data = Bytes, Error: Into<axum::BoxError>> + Send + Unpin + 'static,
{
    let is_head = request.method() == Method::HEAD;
    let line = RequestLine::of(&request);
    let response = guarded(Rc::clone(app), Rc::clone(&session.worker), request, origin.clone(), Rc::clone(&line));
    run(&session.worker, Open::new(session, stream, Some(line)).answer(response, is_head))
}

/// Sends an answer that needs no router, when it is ready.
pub(super) fn answer(session: &Rc<Session>, stream: StreamId, response: impl Future<Output = Response> + 'static) {
    run(&session.worker, Open::new(session, stream, None).answer(response, false));
}

/// Sends what is left of a short answer.
pub(super) fn send_rest(session: &Rc<Session>, stream: StreamId, rest: Bytes) {
    run(&session.worker, Open::new(session, stream, None).finish(rest));
}

/// Polls this once; whether it goes on as a task.
fn run(worker: &Worker, work: impl Future<Output = ()> + 'static) -> bool {
    let mut work = Box::pin(work);
    // The waker that this poll registers is not needed: its task polls again if it is not ready.
    let mut cx = Context::from_waker(Waker::noop());
    // A body that panics ends its stream and nothing else.
    match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut cx))) {
        Ok(Poll::Pending) => {
            drop(tokio::task::spawn_local(work));
            return true;
        }
        Ok(Poll::Ready(())) => {}
        Err(_) => worker.stats().panics.add(1),
    }
    false
}

/// A stream that is being answered. When it is dropped before that is done, it is reset.
struct Open {
    session: Rc<Session>,
    stream: StreamId,
    /// Whether all of the answer is on its way.
    is_answered: bool,
    /// Whether some of the body was sent.
    has_begun: bool,
    /// For a client that takes nothing; made when it does not for the first time.
    slot: Option<Rc<Slot>>,
    /// Bytes that it has taken since its time to do so began.
    taken: u64,
    /// Bytes of the whole connection, likewise.
    pace: Pace,
    /// The report that was there when the connection was asked for another one.
    asked: Option<Report>,
    /// The request, if it was the router's.
    line: Option<Rc<RequestLine>>,
}

/// Why an answer is not sent.
enum Unsent {
    /// The answer is wanted no more.
    Gone,
    /// The client has taken nothing of it for too long.
    TooSlow,
    /// It is not what it promised to be.
    Broken(axum::BoxError),
}

impl From<SendError> for Unsent {
    fn from(_: SendError) -> Self {
        Self::Gone
    }
}

impl Open {
    fn new(session: &Rc<Session>, stream: StreamId, line: Option<Rc<RequestLine>>) -> Self {
        Self {
            session: Rc::clone(session),
            stream,
            is_answered: false,
            has_begun: false,
            slot: None,
            taken: 0,
            pace: Pace::default(),
            asked: None,
            line,
        }
    }

    async fn answer(mut self, response: impl Future<Output = Response>, is_head: bool) {
        let mut response = pin!(response);
        let response = poll_fn(|cx| match response.as_mut().poll(cx) {
            Poll::Ready(response) => Poll::Ready(Some(response)),
            // When the client has given up, the handler's answer is wanted no more.
            Poll::Pending => self.session.shared.poll_gone(self.stream, cx).map(|()| None),
        });
        let Some(response) = response.await else { return };
        let sent = self.send(response, is_head).await;
        self.end(sent);
    }

    /// Sends the last piece of an answer.
    async fn finish(mut self, piece: Bytes) {
        let sent = self.send_piece(piece, true).await;
        self.end(sent);
    }

    fn end(mut self, sent: Result<(), Unsent>) {
        match sent {
            Ok(()) => self.is_answered = true,
            Err(Unsent::Gone) => {}
            Err(Unsent::TooSlow) => self.session.worker.stats().timeouts.add(1),
            // The body has failed, or differs from its announced length; the client has to see that.
            Err(Unsent::Broken(error)) => {
                if let Some(line) = &self.line {
                    line.body_failed(&*error);
                }
                self.session.shared.sending().reset(self.stream, Reason::INTERNAL_ERROR);
            }
        }
    }

    async fn send(&mut self, mut response: Response, is_head: bool) -> Result<(), Unsent> {
        let (length, is_bodyless) = on_stream(&mut response, is_head);
        let (mut parts, body) = response.into_parts();
        parts.headers.remove(CONTENT_LENGTH);
        self.send_head(parts.status, &parts.headers, length, is_bodyless)?;
        if is_bodyless { Ok(()) } else { self.send_body(body, length).await }
    }

    fn send_head(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        length: Option<u64>,
        is_all: bool,
    ) -> Result<(), SendError> {
        let (clock, mut digits) = (self.session.worker.clock.borrow(), itoa::Buffer::new());
        let date = (!headers.contains_key(DATE)).then(|| Field::new(b"date", clock.date()));
        let length = length.map(|length| Field::once(b"content-length", digits.format(length).as_bytes()));
        let fields = fields(headers, is_repeated).chain(date).chain(length);
        self.session.shared.sending().send_head(self.stream, status.as_u16(), fields, is_all)
    }

    async fn send_body(&mut self, mut body: Body, length: Option<u64>) -> Result<(), Unsent> {
        let mut left = length;
        loop {
            poll_fn(|cx| self.poll_turn(cx)).await?;
            let frame = poll_fn(|cx| match Pin::new(&mut body).poll_frame(cx) {
                Poll::Ready(frame) => Poll::Ready(Ok(frame)),
                Poll::Pending => self.session.shared.poll_gone(self.stream, cx).map(|()| Err(Unsent::Gone)),
            });
            let piece = match frame.await? {
                Some(Ok(frame)) => frame.into_data(),
                Some(Err(error)) => return Err(Unsent::Broken(error.into())),
                None if left.is_some_and(|left| left > 0) => return Err(Unsent::Broken(SHORTER.into())),
                None => return self.send_piece(Bytes::new(), true).await,
            };
            let piece = match piece {
                Ok(piece) => piece,
                Err(frame) => {
                    let Ok(trailers) = frame.into_trailers() else { continue };
                    let mut sending = self.session.shared.sending();
                    return Ok(sending.send_trailers(self.stream, fields(&trailers, is_repeated))?);
                }
            };
            if let Some(left) = &mut left {
                *left = left.checked_sub(piece.len() as u64).ok_or_else(|| Unsent::Broken(LONGER.into()))?;
            }
            let is_last = left == Some(0) || body.is_end_stream();
            self.send_piece(piece, is_last).await?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Sends a piece of the body as there is room for it.
    async fn send_piece(&mut self, mut piece: Bytes, is_last: bool) -> Result<(), Unsent> {
        poll_fn(|cx| self.poll_send(cx, &mut piece, is_last)).await
    }

    /// Ready when it is of use to ask the body for more.
    fn poll_turn(&mut self, cx: &Context<'_>) -> Poll<Result<(), Unsent>> {
        if self.session.shared.engine().must_wait(self.stream, self.has_begun) {
            return self.poll_taken(cx, 0);
        }
        self.go_on();
        Poll::Ready(Ok(()))
    }

    fn poll_send(&mut self, cx: &Context<'_>, piece: &mut Bytes, is_last: bool) -> Poll<Result<(), Unsent>> {
        if piece.is_empty() && !is_last {
            return Poll::Ready(Ok(()));
        }
        let sent = self.session.shared.sending().send_data(self.stream, piece, is_last)?;
        piece.advance(sent);
        self.has_begun |= sent > 0;
        if piece.is_empty() {
            self.go_on();
            return Poll::Ready(Ok(()));
        }
        self.poll_taken(cx, sent)
    }

    /// The client has taken what there was.
    fn go_on(&self) {
        if let Some(slot) = &self.slot {
            slot.renew(Phase::Busy);
        }
    }

    /// Waits for the client to take something, of which it has just taken so much.
    fn poll_taken(&mut self, cx: &Context<'_>, sent: usize) -> Poll<Result<(), Unsent>> {
        // Only what waits has a place in the table of time-outs.
        let (session, watch) = (&self.session, &self.session.worker.watch);
        let (slot, least) = (self.slot.get_or_insert_with(|| watch.slot()), watch.least(Phase::Writing));
        self.taken += sent as u64;
        // A byte now and then does not set the time back.
        if slot.phase() != Phase::Writing || self.taken >= least {
            self.taken = 0;
            self.pace = Pace::new(session.last_report().progress.received);
            slot.renew(Phase::Writing);
            self.asked = None;
        } else if slot.is_expired() {
            // Bytes on their way go before those of this stream, and before the client's word that it takes more.
            let asked = *self.asked.get_or_insert_with(|| session.last_report());
            if let Poll::Ready(report) = session.poll_report(asked, cx) {
                let now = report.progress;
                if now.under_way == 0 || !self.pace.has_moved(now.received, least) {
                    return Poll::Ready(Err(Unsent::TooSlow));
                }
                self.asked = None;
                slot.renew(Phase::Writing);
            }
        }
        slot.wake_by(cx.waker());
        ready!(self.session.shared.poll_gone(self.stream, cx));
        Poll::Ready(Err(Unsent::Gone))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.session.shared.leave(self.stream, self.is_answered);
    }
}

/// Whether answers have this field again and again.
fn is_repeated(name: &HeaderName) -> bool {
    [CONTENT_TYPE, CONTENT_ENCODING, CACHE_CONTROL, SERVER, VARY].contains(name)
}

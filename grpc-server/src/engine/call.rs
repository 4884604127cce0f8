//! A call: from its request to the last byte of its answer.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use http::{HeaderMap, Request, Response};
use http_body::Body as _;
use http2::shared::Shared;
use http2::{Reason, StreamId};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tonic::body::Body;
use tonic::{Code, Status};

use super::admit::admit;
use super::answers::{send_head, send_trailers};
use super::inbound::Inbound;
use super::origin::Origin;
use super::stats::name_of;
use super::web::Outcome;
use crate::routes::Answer;
use crate::tuning;

/// Begins a call. One that is ready at once is over when this returns, and the place of its method is given, so that
/// its time can be counted with that of its batch; another one goes on as a task.
pub(super) fn start(
    origin: &Rc<Origin>,
    shared: &Rc<Shared>,
    stream: StreamId,
    request: Request<Inbound>,
    now: Instant,
) -> Option<usize> {
    let (admitted, outcome) = admit(origin, request);
    let mut call = Call {
        origin: Rc::clone(origin),
        shared: Rc::clone(shared),
        stream,
        is_answered: false,
        stage: admitted.stage,
        method: admitted.method,
        code: Code::Unknown,
        trace: admitted.trace,
        outcome,
    };
    // The waker that this poll registers is not needed: a call that is not ready is polled again, by its task.
    if call.step(&mut Context::from_waker(Waker::noop())).is_ready() {
        return Some(call.end(now));
    }
    let mut timer = admitted.timeout.and_then(|timeout| now.checked_add(timeout)).map(|end| Box::pin(sleep_until(end)));
    // Such a call would outlast any shutdown; its client hears of it first, and then the call ends.
    let mut leave = admitted.is_endless.then(|| {
        let shutdown = origin.shutdown.clone();
        Box::pin(async move {
            shutdown.triggered().await;
            sleep(tuning::FAREWELL).await;
        })
    });
    let waiting = Waiting::new(origin);
    tokio::task::spawn_local(async move {
        let _waiting = waiting;
        poll_fn(|cx| call.poll(cx, &mut timer, &mut leave)).await;
        let method = call.end(now);
        call.origin.worker.took(method, now.elapsed());
    });
    None
}

/// A call that waits for something.
struct Waiting(Rc<Origin>);

impl Waiting {
    fn new(origin: &Rc<Origin>) -> Self {
        origin.worker.figures().waiting.add(1);
        Self(Rc::clone(origin))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // One less.
        self.0.worker.figures().waiting.add(u64::MAX);
    }
}

struct Call {
    origin: Rc<Origin>,
    shared: Rc<Shared>,
    stream: StreamId,
    /// Whether all of an answer is on its way.
    is_answered: bool,
    stage: Stage,
    method: Method,
    /// How it ended.
    code: Code,
    trace: Option<Box<Trace>>,
    /// Where the code is if it was translated for gRPC-Web.
    outcome: Option<Outcome>,
}

/// The method that a call is counted for.
pub(super) enum Method {
    /// By its place in the worker's list.
    Known(usize),
    /// One that becomes known when the service has it.
    New(Box<str>),
}

impl Method {
    /// The body of an answer has failed behind its head: the client sees that something is missing, and only the log can say why.
    pub(super) fn body_failed(&self, origin: &Origin, status: &Status) {
        let path = match self {
            Self::Known(method) => origin.worker.path_of(*method),
            Self::New(path) => path.clone(),
        };
        tracing::warn!(peer = %origin.peer, path = path.escape_default().to_string(), "a response broke off: {status}");
    }
}

/// The parts of a call that its log line needs.
pub(super) struct Trace {
    pub(super) path: Box<str>,
    pub(super) timeout: Option<Duration>,
}

/// The next step of a call.
pub(super) enum Stage {
    /// The handler works.
    Handling(Answer),
    /// It is no call: that is said when the request is complete, or has had time enough.
    Refusing(Box<Response<Body>>),
    /// Its answer is sent.
    Answering(Box<Response<Body>>),
    /// The answer's body is sent.
    Sending(Sending),
    /// Nothing.
    Over,
}

impl Stage {
    /// A call that ends before its handler has it.
    pub(super) fn refused(status: Status) -> Self {
        Self::Answering(Box::new(status.into_http()))
    }
}

/// Polls what a service made, which may panic.
fn guarded<T>(poll: impl FnOnce() -> Poll<T>) -> Poll<Result<T, Status>> {
    match unpanicked(poll) {
        Ok(polled) => polled.map(Ok),
        Err(status) => Poll::Ready(Err(status)),
    }
}

/// Runs what a service made, which may panic.
pub(super) fn unpanicked<T>(run: impl FnOnce() -> T) -> Result<T, Status> {
    // A service that panicked is dropped and never used again.
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| Status::internal("the handler panicked"))
}

impl Call {
    /// Ready at the end of the call.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        timer: &mut Option<Pin<Box<Sleep>>>,
        leave: &mut Option<Pin<Box<impl Future<Output = ()>>>>,
    ) -> Poll<()> {
        if self.step(cx).is_ready() {
            return Poll::Ready(());
        }
        if timer.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready()) {
            *timer = None;
            self.stop(&Status::deadline_exceeded("the deadline of the call has passed"));
            return self.step(cx);
        }
        if leave.as_mut().is_some_and(|leave| leave.as_mut().poll(cx).is_ready()) {
            *leave = None;
            self.stop(&Status::unavailable("the server ends"));
            return self.step(cx);
        }
        Poll::Pending
    }

    /// Goes as far as it can without waiting.
    fn step(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.stage {
                Stage::Handling(answer) => match guarded(|| answer.as_mut().poll(cx)) {
                    Poll::Ready(Ok(Ok(response))) => self.send_head(response),
                    Poll::Ready(Err(status)) => {
                        self.origin.worker.figures().panics.add(1);
                        self.send_head(status.into_http());
                    }
                    Poll::Pending => {
                        // Ready when the client has given up, or is gone: then nobody waits for the handler.
                        ready!(self.shared.poll_gone(self.stream, cx));
                        self.give_up();
                    }
                },
                Stage::Refusing(_) if self.shared.engine().is_receiving(self.stream) => {
                    ready!(self.shared.poll_gone(self.stream, cx));
                    self.give_up();
                }
                Stage::Refusing(_) | Stage::Answering(_) => {
                    if let Stage::Refusing(response) | Stage::Answering(response) =
                        std::mem::replace(&mut self.stage, Stage::Over)
                    {
                        self.send_head(*response);
                    }
                }
                Stage::Sending(sending) => {
                    match ready!(sending.poll(&self.shared, self.stream, cx)) {
                        Sent::All(code) => (self.code, self.is_answered) = (code, true),
                        Sent::Broken(status) => {
                            self.method.body_failed(&self.origin, &status);
                            self.code = status.code();
                        }
                        Sent::Panicked(status) => {
                            self.origin.worker.figures().panics.add(1);
                            self.is_answered = sending.stop(&self.shared, self.stream, &status);
                            self.code = status.code();
                        }
                        Sent::Gone => {
                            self.give_up();
                            continue;
                        }
                    }
                    self.stage = Stage::Over;
                }
                Stage::Over => return Poll::Ready(()),
            }
        }
    }

    fn give_up(&mut self) {
        self.origin.worker.figures().given_up.add(1);
        self.code = Code::Cancelled;
        self.stage = Stage::Over;
    }

    fn send_head(&mut self, response: Response<Body>) {
        let (head, body) = response.into_parts();
        let is_all = body.is_end_stream();
        if is_all {
            self.code = code_of(&head.headers);
        }
        match send_head(&self.shared, self.stream, &head, is_all) {
            Ok(()) if is_all => (self.stage, self.is_answered) = (Stage::Over, true),
            Ok(()) => self.stage = Stage::Sending(Sending { body, waiting: Bytes::new() }),
            // The client has given up, or is gone.
            Err(_) => self.give_up(),
        }
    }

    /// Ends the call with a status of our own, at any stage.
    fn stop(&mut self, status: &Status) {
        self.code = status.code();
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Refusing(response) => self.stage = Stage::Answering(response),
            Stage::Handling(_) | Stage::Answering(_) => {
                let response = Box::new(status.clone().into_http());
                self.stage = Stage::Answering(response);
            }
            Stage::Sending(sending) => self.is_answered = sending.stop(&self.shared, self.stream, status),
            Stage::Over => {}
        }
    }

    /// Counts the call; gives the place of its method.
    fn end(&mut self, began: Instant) -> usize {
        if let Some(outcome) = &self.outcome {
            self.code = outcome.code();
        }
        end(&self.origin, &self.method, self.code, self.trace.take(), began)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.shared.leave(self.stream, self.is_answered);
    }
}

/// Counts a call; gives the place of its method.
fn end(origin: &Origin, method: &Method, code: Code, trace: Option<Box<Trace>>, began: Instant) -> usize {
    let method = match method {
        Method::Known(method) => *method,
        Method::New(path) => origin.worker.learn(path, code),
    };
    origin.worker.ended(method, code);
    if let Some(trace) = trace {
        let (peer, code, elapsed) = (&origin.peer, name_of(code), began.elapsed());
        let Trace { path, timeout } = *trace;
        tracing::info!(target: "grpc_server::access", %peer, path, code, ?elapsed, ?timeout, "call");
    }
    method
}

/// A call over HTTP/1.1: counted when this is dropped.
pub(super) struct Ended {
    pub(super) origin: Rc<Origin>,
    pub(super) method: Method,
    pub(super) trace: Option<Box<Trace>>,
    pub(super) outcome: Outcome,
    pub(super) began: Instant,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let Self { origin, method, trace, outcome, began } = self;
        let method = end(origin, method, outcome.code(), trace.take(), *began);
        origin.worker.took(method, began.elapsed());
    }
}

/// The code that headers or trailers tell.
pub(super) fn code_of(headers: &HeaderMap) -> Code {
    headers.get(Status::GRPC_STATUS).map_or(Code::Unknown, |code| Code::from_bytes(code.as_bytes()))
}

/// The body of an answer on its way.
pub(super) struct Sending {
    body: Body,
    /// Bytes of the body that there is no room for yet.
    waiting: Bytes,
}

/// How the sending of an answer has ended.
enum Sent {
    All(Code),
    /// The body broke off.
    Broken(Status),
    Panicked(Status),
    /// The answer is wanted no more.
    Gone,
}

impl Sending {
    /// Ready when all is on its way.
    fn poll(&mut self, shared: &Shared, stream: StreamId, cx: &mut Context<'_>) -> Poll<Sent> {
        loop {
            if !self.waiting.is_empty() {
                let Ok(sent) = shared.sending().send_data(stream, &self.waiting, false) else {
                    return Poll::Ready(Sent::Gone);
                };
                self.waiting.advance(sent);
                if !self.waiting.is_empty() {
                    ready!(shared.poll_gone(stream, cx));
                    return Poll::Ready(Sent::Gone);
                }
            }
            let frame = match guarded(|| Pin::new(&mut self.body).poll_frame(cx)) {
                Poll::Ready(Ok(frame)) => frame,
                Poll::Ready(Err(status)) => return Poll::Ready(Sent::Panicked(status)),
                Poll::Pending => {
                    ready!(shared.poll_gone(stream, cx));
                    return Poll::Ready(Sent::Gone);
                }
            };
            let Some(frame) = frame else {
                // A body that says nothing of a status; tonic's own always do, gRPC-Web's have it in their last piece.
                let sent = shared.sending().send_data(stream, &[], true);
                return Poll::Ready(sent.map_or(Sent::Gone, |_| Sent::All(Code::Unknown)));
            };
            match frame.map(http_body::Frame::into_data) {
                Ok(Ok(piece)) => self.waiting = piece,
                Ok(Err(frame)) => {
                    let Ok(trailers) = frame.into_trailers() else { continue };
                    let sent = send_trailers(shared, stream, &trailers);
                    return Poll::Ready(sent.map_or(Sent::Gone, |()| Sent::All(code_of(&trailers))));
                }
                Err(status) => {
                    shared.sending().reset(stream, Reason::INTERNAL_ERROR);
                    return Poll::Ready(Sent::Broken(status));
                }
            }
        }
    }

    /// Ends the body with a status of our own; whether the client is told by trailers.
    fn stop(&self, shared: &Shared, stream: StreamId, status: &Status) -> bool {
        let trailers = only_status(status.clone().into_http::<()>().into_parts().0.headers);
        // Behind what waits for a window, trailers would wait too: such a client is told by a reset.
        let is_told = self.waiting.is_empty() && send_trailers(shared, stream, &trailers).is_ok();
        if !is_told {
            shared.sending().reset(stream, Reason::CANCEL);
        }
        is_told
    }
}

/// Trailers have no content type.
fn only_status(mut headers: HeaderMap) -> HeaderMap {
    headers.remove(http::header::CONTENT_TYPE);
    headers
}

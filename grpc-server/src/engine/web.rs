//! gRPC-Web: calls of browsers, over HTTP/1.1 and HTTP/2, translated by [tonic_web].

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Frame;
use tokio::time::{Instant, Sleep, sleep_until};
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_web::GrpcWebLayer;
use tower_layer::Layer as _;
use tower_service::Service;

use super::admit::{Admitted, admit_call};
use super::call::{Stage, code_of, unpanicked};
use super::inbound::Inbound;
use super::origin::Origin;
use crate::options::Web;
use crate::routes::Answer;

/// How long a browser may remember what it was told: ten minutes.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// The headers of an answer that a page may read beside its body.
const EXPOSED: HeaderValue = HeaderValue::from_static("grpc-status, grpc-message, grpc-status-details-bin");

/// The code with which a translated call ends: its trailers are in the body, where only the translation sees them.
#[derive(Clone, Debug)]
pub(super) struct Outcome(Arc<AtomicI32>);

impl Outcome {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicI32::new(Code::Cancelled as i32)))
    }

    /// CANCELLED as long as it has not ended.
    pub(super) fn code(&self) -> Code {
        Code::from_i32(self.0.load(Relaxed))
    }

    pub(super) fn set(&self, code: Code) {
        self.0.store(code as i32, Relaxed);
    }
}

/// Whether a request is one of gRPC-Web, or of a browser that asks before it sends one.
pub(super) fn is_web<B>(request: &Request<B>) -> bool {
    let kind = request.headers().get(http::header::CONTENT_TYPE);
    let is_call = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc-web"));
    is_call || request.method() == Method::OPTIONS
}

/// Looks at a request and gives it, translated, to its service. Its answer keeps its deadline by itself.
pub(super) fn admit(origin: &Rc<Origin>, web: &Web, request: Request<Inbound>) -> (Admitted, Option<Outcome>) {
    let Ok(page) = web.allows(request.headers()) else {
        return (Admitted::answered(plain(StatusCode::FORBIDDEN)), None);
    };
    if request.method() == Method::OPTIONS {
        let mut response = plain(StatusCode::NO_CONTENT);
        allow_more(page, request.headers(), response.headers_mut());
        return (Admitted::answered(response), None);
    }
    origin.worker.figures().web.add(1);
    let outcome = Outcome::new();
    let mut inner = Inner { origin, admitted: None, outcome: outcome.clone() };
    // tonic-web clones nothing and calls its inner service at once.
    let mut service = GrpcWebLayer::new().layer(&mut inner);
    let translated = service.call(request);
    let answer: Answer = Box::pin(async move {
        let mut response = translated.await?;
        allow(page, response.headers_mut());
        Ok(response)
    });
    match inner.admitted.take() {
        Some(admitted) => (Admitted { stage: Stage::Handling(answer), timeout: None, ..admitted }, Some(outcome)),
        // No POST.
        None => {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, OPTIONS"));
            (Admitted::answered(response), None)
        }
    }
}

fn plain(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

impl Web {
    /// The value that lets the page that sent this read the answer; none where no page did.
    pub(super) fn allows(&self, headers: &HeaderMap) -> Result<Option<HeaderValue>, ()> {
        let Some(sent) = headers.get(ORIGIN) else { return Ok(None) };
        let is_listed = self.origins.iter().any(|origin| origin == "*" || origin.as_bytes() == sent.as_bytes());
        if is_listed { Ok(Some(sent.clone())) } else { Err(()) }
    }
}

pub(super) fn allow(page: Option<HeaderValue>, headers: &mut HeaderMap) {
    headers.append(VARY, HeaderValue::from_static("origin"));
    if let Some(page) = page {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, page);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}

/// The answer to a browser that asks what a page may send: all fields that it asks for, because metadata has any name.
fn allow_more(page: Option<HeaderValue>, asked: &HeaderMap, headers: &mut HeaderMap) {
    allow(page, headers);
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    if let Some(wanted) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
}

/// The call below the translation.
struct Inner<'a> {
    origin: &'a Rc<Origin>,
    /// The call's bookkeeping, once it was made.
    admitted: Option<Admitted>,
    outcome: Outcome,
}

impl Service<Request<Body>> for &mut Inner<'_> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        let mut admitted = admit_call(self.origin, request.map(Inbound::from));
        let outcome = self.outcome.clone();
        let end = admitted.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let stage = std::mem::replace(&mut admitted.stage, Stage::Over);
        self.admitted = Some(admitted);
        Box::pin(async move {
            let mut timer = end.map(|end| Box::pin(sleep_until(end)));
            let response = match stage {
                Stage::Handling(answer) => bounded(answer, &mut timer).await,
                Stage::Refusing(response) | Stage::Answering(response) => *response,
                Stage::Sending(_) | Stage::Over => plain(StatusCode::INTERNAL_SERVER_ERROR),
            };
            // An answer without a body has its code in its head, where gRPC-Web has it too.
            if let Some(code) = response.headers().get(Status::GRPC_STATUS) {
                outcome.set(Code::from_bytes(code.as_bytes()));
            }
            Ok(response.map(|body| Body::new(Bounded::new(body, timer, outcome))))
        })
    }
}

/// The handler's answer, or that of the deadline or the panic that came before it.
pub(super) async fn bounded(mut answer: Answer, timer: &mut Option<Pin<Box<Sleep>>>) -> Response<Body> {
    std::future::poll_fn(|cx| {
        match unpanicked(|| answer.as_mut().poll(cx)) {
            Ok(Poll::Ready(Ok(response))) => return Poll::Ready(response),
            Ok(Poll::Pending) => {}
            Err(status) => return Poll::Ready(status.into_http()),
        }
        let is_late = timer.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready());
        if is_late { Poll::Ready(exceeded().into_http()) } else { Poll::Pending }
    })
    .await
}

fn exceeded() -> Status {
    Status::deadline_exceeded("the deadline of the call has passed")
}

/// A body that ends at its deadline, and notes its code.
pub(super) struct Bounded {
    body: Body,
    timer: Option<Pin<Box<Sleep>>>,
    outcome: Outcome,
    is_over: bool,
}

impl Bounded {
    pub(super) fn new(body: Body, timer: Option<Pin<Box<Sleep>>>, outcome: Outcome) -> Self {
        Self { body, timer, outcome, is_over: false }
    }

    fn end(&mut self, trailers: HeaderMap) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.is_over = true;
        self.outcome.set(code_of(&trailers));
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn stop(&mut self, status: &Status) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let mut trailers = HeaderMap::new();
        match status.add_header(&mut trailers) {
            Ok(()) => self.end(trailers),
            Err(status) => Poll::Ready(Some(Err(status))),
        }
    }
}

impl http_body::Body for Bounded {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        if this.is_over {
            return Poll::Ready(None);
        }
        match unpanicked(|| Pin::new(&mut this.body).poll_frame(cx)) {
            Err(status) => this.stop(&status),
            Ok(Poll::Pending) => {
                let is_late = this.timer.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready());
                if is_late { this.stop(&exceeded()) } else { Poll::Pending }
            }
            Ok(Poll::Ready(Some(Ok(frame)))) => match frame.into_trailers() {
                Ok(trailers) => this.end(trailers),
                Err(frame) => Poll::Ready(Some(Ok(frame))),
            },
            Ok(Poll::Ready(other)) => Poll::Ready(other),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }
}

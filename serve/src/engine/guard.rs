//! Requests of HTTP/2, HTTP/3 and hyper, within the limits that our own loop keeps for HTTP/1.1: bodies are limited in size, and not slower than allowed.

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Request, StatusCode};
use http_body::{Frame, SizeHint};
use http2::shared::TooLarge;
use tokio::time::{Instant, Sleep};

use super::app::{App, Origin};
use super::request_line::RequestLine;
use super::upload::{Allowance, BodyError};
use super::worker::Worker;
use crate::options::Timeouts;

/// [`App::respond`], within the limits.
pub(super) async fn guarded<A: App, B>(
    app: Rc<A>,
    worker: Rc<Worker>,
    request: Request<B>,
    origin: Origin<A::State>,
    line: Rc<RequestLine>,
) -> Response
where
    B: http_body::Body<Data = Bytes, Error: Into<axum::BoxError>> + Send + Unpin + 'static,
{
    let options = &worker.settings.options;
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if request.uri().path_and_query().is_some_and(|target| target.as_str().len() > options.limits.target) {
        return refused(&worker, StatusCode::URI_TOO_LONG);
    }
    let is_large = request.extensions().get::<TooLarge>().is_some();
    if is_large || request.headers().len() > options.limits.headers {
        return refused(&worker, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    if length.is_some_and(|length| length > options.limits.body) {
        return refused(&worker, StatusCode::PAYLOAD_TOO_LARGE);
    }
    let allowance = Allowance { bytes: options.limits.body, window: Timeouts::least(options.timeouts.body) };
    let timeout = options.timeouts.body;
    let request = request
        .map(|body| if body.is_end_stream() { Body::empty() } else { Body::new(Guard::new(body, allowance, timeout)) });
    app.respond(request, origin, line).await
}

fn refused(worker: &Worker, status: StatusCode) -> Response {
    worker.stats().refused.add(1);
    worker.stats().response(status);
    status.into_response()
}

/// Why the body of a request has failed.
#[derive(Debug)]
pub(super) struct OfClient(pub(super) axum::BoxError);

impl fmt::Display for OfClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for OfClient {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

/// A body with limits.
struct Guard<B> {
    body: B,
    allowance: Allowance,
    received: u64,
    window: u64,
    timeout: Duration,
    /// Made when the body is first waited for.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<B> Guard<B> {
    fn new(body: B, allowance: Allowance, timeout: Duration) -> Self {
        Self { body, allowance, received: 0, window: 0, timeout, timer: None }
    }

    /// Whether the client is too slow; its time starts again if it was not.
    fn is_too_slow(&mut self, cx: &mut Context<'_>) -> bool {
        let timeout = self.timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        while timer.as_mut().poll(cx).is_ready() {
            if self.window < self.allowance.window {
                return true;
            }
            self.window = 0;
            timer.as_mut().reset(Instant::now() + timeout);
        }
        false
    }
}

impl<B> http_body::Body for Guard<B>
where
    B: http_body::Body<Data = Bytes, Error: Into<axum::BoxError>> + Unpin,
{
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx).map_err(|error| OfClient(error.into()))?;
        if polled.is_pending() && self.is_too_slow(cx) {
            return Poll::Ready(Some(Err(BodyError::TooSlow.into())));
        }
        let Some(frame) = ready!(polled) else { return Poll::Ready(None) };
        let count = frame.data_ref().map_or(0, Bytes::len) as u64;
        self.received += count;
        self.window += count;
        if self.received > self.allowance.bytes {
            return Poll::Ready(Some(Err(BodyError::TooLarge.into())));
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

//! A request and its answer.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use h3::error::{Code, StreamError};
use h3::server::{RequestResolver, RequestStream};
use http::header::{
    CONNECTION, CONTENT_LENGTH, DATE, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::{Method, Request, StatusCode, Uri};
use http_body::Body as _;
use http2::shared::join_cookies;
use server_runtime::{Pace, Peer};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::conn::Running;
use super::incoming::Incoming;
use super::wire::{Gone, Sending, Shared, Wire};
use crate::engine::app::{App, Origin};
use crate::engine::guard::guarded;
use crate::engine::request_line::RequestLine;
use crate::engine::sending::{LONGER, SHORTER, on_stream};
use crate::engine::watch::Phase;
use crate::engine::worker::Worker;
use crate::tuning::H3_PIECE;

/// Fields that concern a connection of HTTP/1.1, and have no place here (RFC 9114 section 4.2).
const OF_CONNECTIONS: [HeaderName; 5] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Answers a request to its end.
pub(super) async fn answer<A: App>(
    (app, origin): (Rc<A>, Origin<A::State>),
    worker: Rc<Worker>,
    quic: quinn::Connection,
    shared: Arc<Shared>,
    resolver: RequestResolver<Wire, Bytes>,
    gone: Option<Gone>,
    running: Running,
) {
    let Some(mut gone) = gone else { return };
    let began = Instant::now();
    shared.begin();
    let resolved = timeout(worker.settings.options.timeouts.head, resolver.resolve_request()).await;
    let (request, stream) = match resolved {
        Ok(Ok(resolved)) => resolved,
        Ok(Err(error)) => {
            if let StreamError::HeaderTooBig { .. } = error {
                // The client has been told.
                worker.stats().refused.add(1);
                worker.stats().response(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
            } else {
                shared.give_up(began.elapsed());
                running.abandon();
            }
            return tracing::debug!(peer = %quic.remote_address(), "HTTP/3: {error}");
        }
        Err(_) => {
            running.abandon();
            return worker.stats().timeouts.add(1);
        }
    };
    worker.stats().h3_requests.add(1);
    let (send, mut receive) = stream.split();
    let mut request: Request<()> = request;
    let mut open = Open { worker, running, send, is_done: false, line: RequestLine::of(&request) };
    if !is_well_formed(request.headers()) || !is_target(request.method(), request.uri()) {
        receive.stop_sending(Code::H3_MESSAGE_ERROR);
        return open.send.stop_stream(Code::H3_MESSAGE_ERROR);
    }
    join_cookies(request.headers_mut());
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let mut body = Incoming::new(receive, length);
    let is_head = request.method() == Method::HEAD;
    let expects =
        request.headers().get(EXPECT).is_some_and(|what| what.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    let mut expectation = (expects && !body.is_end_stream()).then(|| body.expect());
    // Each request has the address that the client has by then.
    let origin = Origin { peer: Peer::Tcp(canonical(quic.remote_address())), ..origin };
    let mut response =
        pin!(guarded(app, Rc::clone(&open.worker), request.map(|()| body), origin, Rc::clone(&open.line)));
    let response = loop {
        let turn = poll_fn(|cx| match response.as_mut().poll(cx) {
            Poll::Ready(response) => Poll::Ready(Turn::Answered(response)),
            Poll::Pending if asks(&mut expectation, cx) => Poll::Ready(Turn::Asked),
            // When the client has given up, the handler's answer is wanted no more.
            Poll::Pending => gone.as_mut().poll(cx).map(|_| Turn::Gone),
        });
        match turn.await {
            Turn::Answered(response) => break Some(response),
            Turn::Gone => break None,
            Turn::Asked if open.go_on().await.is_err() => return,
            Turn::Asked => {}
        }
    };
    let sent = match response {
        Some(response) => open.send(response, is_head, &mut gone).await,
        None => Err(Unsent::Gone),
    };
    if let Err(Unsent::Gone) = sent {
        shared.give_up(began.elapsed());
    }
    let is_sent = sent.is_ok();
    open.end(sent);
    if is_sent {
        arrived(&open.worker, &quic, gone).await;
    }
}

/// Waits until an answer has arrived: the end of a connection takes with it what is on its way. Until nothing moves any more, at most.
async fn arrived(worker: &Worker, quic: &quinn::Connection, mut gone: Gone) {
    let sent = || quic.stats().udp_tx.bytes;
    let mut pace = Pace::new(sent());
    while timeout(worker.settings.options.timeouts.write, gone.as_mut()).await.is_err()
        && pace.has_moved(sent(), worker.watch.least(Phase::Writing))
    {}
}

/// Within the time that a client has to take some of an answer. The client's line has no room for
/// this one and for answers to other requests at once: those give it more time.
async fn in_time(
    worker: &Worker,
    running: &Running,
    sent: impl Future<Output = Result<(), StreamError>>,
) -> Result<(), Unsent> {
    let (mut sent, mut pace) = (pin!(sent), Pace::new(running.given()));
    loop {
        match timeout(worker.settings.options.timeouts.write, sent.as_mut()).await {
            Ok(sent) => return Ok(sent?),
            Err(_) if pace.has_moved(running.given(), worker.watch.least(Phase::Writing)) => {}
            Err(_) => return Err(Unsent::TooSlow),
        }
    }
}

/// An address as people know it: IPv4 that came through an IPv6 socket is IPv4.
fn canonical(addr: SocketAddr) -> SocketAddr {
    SocketAddr::new(addr.ip().to_canonical(), addr.port())
}

fn is_well_formed(headers: &HeaderMap) -> bool {
    let is_single = |name| headers.get_all(name).iter().nth(1).is_none();
    let is_length = |length: &HeaderValue| !length.is_empty() && length.as_bytes().iter().all(u8::is_ascii_digit);
    !OF_CONNECTIONS.iter().any(|name| headers.contains_key(name))
        && headers.get(TE).is_none_or(|te| te == "trailers")
        && is_single(HOST)
        && is_single(CONTENT_LENGTH)
        && headers.get(CONTENT_LENGTH).is_none_or(is_length)
}

/// Whether a request has the target that RFC 9114 sections 4.3.1 and 4.4 demand beyond h3's own checks: a host without
/// user information, a path that is one, and of a tunnel nothing but the host.
fn is_target(method: &Method, uri: &Uri) -> bool {
    let is_host = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    let is_path = match uri.path_and_query() {
        None => method == Method::CONNECT,
        Some(_) if method == Method::CONNECT => false,
        Some(target) => target.as_str().starts_with('/') || (target == "*" && method == Method::OPTIONS),
    };
    is_host && is_path
}

/// The next event while a request is handled.
enum Turn {
    Answered(Response),
    /// The handler asks for a body that the client holds back.
    Asked,
    /// The client has given up.
    Gone,
}

/// Whether the client is to be told to go on; once.
fn asks(expectation: &mut Option<oneshot::Receiver<()>>, cx: &mut Context<'_>) -> bool {
    let Some(asked) = expectation else { return false };
    let Poll::Ready(asked) = Pin::new(asked).poll(cx) else { return false };
    *expectation = None;
    asked.is_ok()
}

/// Why an answer is not sent.
enum Unsent {
    /// The answer is wanted no more.
    Gone,
    /// The client has taken nothing of it for too long.
    TooSlow,
    /// It is not what it promised to be. Why, if that is not in the log yet.
    Broken(Option<axum::BoxError>),
}

impl From<StreamError> for Unsent {
    fn from(error: StreamError) -> Self {
        if let StreamError::HeaderTooBig { .. } = error { Self::Broken(Some(error.into())) } else { Self::Gone }
    }
}

/// A stream that is being answered. When it is dropped before that is done, it is reset.
struct Open {
    worker: Rc<Worker>,
    running: Running,
    send: RequestStream<Sending, Bytes>,
    is_done: bool,
    line: Rc<RequestLine>,
}

impl Open {
    fn end(&mut self, sent: Result<(), Unsent>) {
        match sent {
            Ok(()) => self.is_done = true,
            Err(Unsent::Gone) => {}
            Err(Unsent::TooSlow) => self.worker.stats().timeouts.add(1),
            // The body has failed, or differs from its announced length; the client has to see that.
            Err(Unsent::Broken(error)) => {
                self.is_done = true;
                if let Some(error) = error {
                    self.line.body_failed(&*error);
                }
                self.send.stop_stream(Code::H3_INTERNAL_ERROR);
            }
        }
    }

    /// Tells a client that waits for a word before it sends the body (RFC 9110 section 10.1.1).
    async fn go_on(&mut self) -> Result<(), StreamError> {
        let mut head = Response::new(());
        *head.status_mut() = StatusCode::CONTINUE;
        self.send.send_response(head).await
    }

    async fn send(&mut self, mut response: Response, is_head: bool, gone: &mut Gone) -> Result<(), Unsent> {
        let (length, is_bodyless) = on_stream(&mut response, is_head);
        let (mut parts, body) = response.into_parts();
        self.complete(&mut parts.headers, length);
        in_time(&self.worker, &self.running, self.send.send_response(Response::from_parts(parts, ()))).await?;
        if !is_bodyless {
            self.send_body(body, length, gone).await?;
        }
        in_time(&self.worker, &self.running, self.send.finish()).await
    }

    /// Sets the fields of every answer, and removes those that have no place here.
    fn complete(&self, headers: &mut HeaderMap, length: Option<u64>) {
        for name in OF_CONNECTIONS {
            headers.remove(name);
        }
        headers.remove(CONTENT_LENGTH);
        headers.extend(length.map(|length| (CONTENT_LENGTH, HeaderValue::from(length))));
        if !headers.contains_key(DATE) {
            let date = HeaderValue::from_bytes(self.worker.clock.borrow().date());
            headers.insert(DATE, date.expect("a date is a header value"));
        }
    }

    async fn send_body(&mut self, mut body: Body, length: Option<u64>, gone: &mut Gone) -> Result<(), Unsent> {
        let mut left = length;
        loop {
            let polled = poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| Pin::new(&mut body).poll_frame(cx))) {
                Ok(Poll::Ready(frame)) => Poll::Ready(Ok(frame)),
                Ok(Poll::Pending) => gone.as_mut().poll(cx).map(|_| Err(Unsent::Gone)),
                Err(_) => {
                    self.worker.stats().panics.add(1);
                    Poll::Ready(Err(Unsent::Broken(None)))
                }
            });
            let mut piece = match polled.await? {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => piece,
                    Err(frame) => {
                        let Ok(trailers) = frame.into_trailers() else { continue };
                        return in_time(&self.worker, &self.running, self.send.send_trailers(trailers)).await;
                    }
                },
                Some(Err(error)) => return Err(Unsent::Broken(Some(error.into()))),
                None if left.is_some_and(|left| left > 0) => return Err(Unsent::Broken(Some(SHORTER.into()))),
                None => return Ok(()),
            };
            if let Some(left) = &mut left {
                *left = left.checked_sub(piece.len() as u64).ok_or_else(|| Unsent::Broken(Some(LONGER.into())))?;
            }
            // QUIC takes as much as the client's window has room for, so that a part is given when the client has taken most of it.
            let most = self.worker.watch.least(Phase::Writing).min(H3_PIECE as u64) as usize;
            while !piece.is_empty() {
                let part = piece.split_to(piece.len().min(most));
                let length = part.len();
                in_time(&self.worker, &self.running, self.send.send_data(part)).await?;
                self.running.gave(length);
            }
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.is_done {
            self.send.stop_stream(Code::H3_REQUEST_CANCELLED);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::header::COOKIE;

    use super::*;

    fn fields(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let mut headers = HeaderMap::new();
        for (name, value) in fields.iter().map(field) {
            headers.append(name, value);
        }
        headers
    }

    #[test]
    fn malformed_heads() {
        let check = |of: &[(&'static str, &'static str)], is_fine| {
            assert_eq!(is_well_formed(&fields(of)), is_fine, "{of:?}");
        };
        check(&[("accept", "*/*"), ("te", "trailers"), ("content-length", "0")], true);
        check(&[("connection", "close")], false);
        check(&[("transfer-encoding", "chunked")], false);
        check(&[("upgrade", "websocket")], false);
        check(&[("te", "gzip")], false);
        check(&[("content-length", "+1")], false);
        check(&[("content-length", "")], false);
        check(&[("content-length", "1"), ("content-length", "1")], false);
        check(&[("host", "a"), ("host", "a")], false);
    }

    #[test]
    fn cookies_are_one_field() {
        let mut headers = fields(&[("cookie", "a=1"), ("accept", "*/*"), ("cookie", "b=2")]);
        join_cookies(&mut headers);
        assert_eq!(headers.get_all(COOKIE).iter().collect::<Vec<_>>(), ["a=1; b=2"]);
    }
}

//! HTTP/1.1, by hyper, for gRPC-Web and Connect: browsers speak HTTP/2 over TLS alone.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, request};
use http_body::{Frame, SizeHint};
use http2::hpack::OVERHEAD;
use http2::shared::TooLarge;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use server_runtime::Stream;
use tokio::io::{AsyncReadExt as _, AsyncWrite as _};
use tokio::time::Instant;
use tonic::Status;
use tonic::body::Body;

use super::admit::{Admitted, admit_translated};
use super::call::{Ended, Stage};
use super::origin::Origin;
use super::rest::Rest;
use super::wire::Wire;
use crate::tuning::{READ_BUFFER, REST_BYTES, REST_TIME};

/// Bytes of a head that hyper reads on to answer it, at any limit: its own default.
const MIN_BUFFER: usize = 400 * 1024;

/// The connection preface of HTTP/2 (RFC 9113 section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Reads as much as it takes to know whether this is HTTP/2, and tells it.
pub(super) async fn is_http2(stream: &mut Stream, read: &mut Vec<u8>) -> io::Result<bool> {
    match stream.alpn_protocol() {
        Some(b"h2") => return Ok(true),
        Some(_) => return Ok(false),
        None => {}
    }
    while read.len() < PREFACE.len() && PREFACE.starts_with(read) {
        if stream.take((PREFACE.len() - read.len()) as u64).read_buf(read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(PREFACE.starts_with(read))
}

/// Serves a connection to its end.
pub(super) async fn serve(origin: &Rc<Origin>, mut wire: Wire) {
    if let Err(error) = serve_requests(origin, &mut wire).await {
        tracing::debug!(peer = %origin.peer, "HTTP/1.1: {error}");
    }
    let _ = tokio::time::timeout(REST_TIME, linger(wire)).await;
}

/// Ends our half of a connection, and reads what its client has sent beyond the last request: unread input becomes a
/// reset when a socket closes, and a reset takes the answer with it.
async fn linger(mut wire: Wire) -> io::Result<()> {
    poll_fn(|cx| Pin::new(&mut wire).poll_shutdown(cx)).await?;
    wire.let_go();
    let (mut left, mut bytes) = (REST_BYTES, [0; 4096]);
    while left > 0 {
        let count = wire.read(&mut bytes).await?;
        left = if count == 0 { 0 } else { left.saturating_sub(count) };
    }
    Ok(())
}

async fn serve_requests(origin: &Rc<Origin>, wire: &mut Wire) -> Result<(), hyper::Error> {
    let rest = Rest::default();
    let service = service_fn(|request: Request<Incoming>| answer(origin, &rest, request));
    let conn = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(origin.worker.options.timeouts.handshake)
        .max_buf_size(MIN_BUFFER.max(origin.worker.options.limits.headers as usize + READ_BUFFER))
        .serve_connection(TokioIo::new(wire), service);
    let (mut conn, mut triggered) = (pin!(conn), pin!(origin.shutdown.triggered()));
    let mut is_ending = false;
    poll_fn(|cx| {
        if !is_ending && triggered.as_mut().poll(cx).is_ready() {
            is_ending = true;
            conn.as_mut().graceful_shutdown();
        }
        let polled = conn.as_mut().poll(cx);
        rest.poll(cx);
        polled
    })
    .await
}

/// A head's size as HTTP/2 measures it (RFC 9113 section 6.5.2), so that one limit holds for both.
fn size(head: &request::Parts) -> usize {
    let fields = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + OVERHEAD);
    let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    fields.sum::<usize>() + head.method.as_str().len() + target
}

async fn answer(
    origin: &Rc<Origin>,
    rest: &Rest,
    request: Request<Incoming>,
) -> Result<http::Response<Counted>, Infallible> {
    let began = Instant::now();
    let (mut head, body) = request.into_parts();
    if size(&head) > origin.worker.options.limits.headers as usize {
        head.extensions.insert(TooLarge);
    }
    let body = Body::new(rest.lend(&head.headers, body));
    let (admitted, outcome) = admit_translated(origin, Request::from_parts(head, body.into()));
    let Admitted { stage, method, trace, .. } = admitted;
    let response = match stage {
        Stage::Handling(answer) => answer.await?,
        Stage::Refusing(response) | Stage::Answering(response) => *response,
        Stage::Sending(_) | Stage::Over => Status::internal("there is no answer").into_http(),
    };
    let ended = outcome.map(|outcome| Ended { origin: Rc::clone(origin), method, trace, outcome, began });
    Ok(response.map(|body| Counted { body, ended }))
}

/// A body whose call is counted when it is over.
struct Counted {
    body: Body,
    ended: Option<Ended>,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let (Poll::Ready(Some(Err(status))), Some(ended)) = (&polled, &self.ended) {
            ended.method.body_failed(&ended.origin, status);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

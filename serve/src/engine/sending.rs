//! A response's body on its way out.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use http::header::CONTENT_LENGTH;
use http_body::Body as _;

use super::output::Output;
use super::request_line::RequestLine;
use crate::h1::{self, Framed};

/// In the [extensions](http::Response::extensions_mut) of a response: its body goes on until the client leaves, as a
/// stream of events does. A client that ends its half of the connection counts as gone then; others may still wait for
/// their answer.
#[derive(Clone, Copy, Debug)]
pub struct Endless;

/// How a body differs from its announced length.
pub(super) const LONGER: &str = "it is longer than the announced length";
pub(super) const SHORTER: &str = "it is shorter than the announced length";

/// A body that is being sent.
pub(super) struct Sending {
    body: Body,
    is_endless: bool,
    framed: Framed,
    /// The rest of the announced length.
    left: u64,
    /// By which request, if the router has answered it.
    line: Option<Rc<RequestLine>>,
}

/// How the end of a response is told, and whether no body follows its head.
pub(super) fn framing(response: &Response, is_head: bool, is_http10: bool) -> (Framed, bool) {
    let status = response.status();
    if status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED {
        return (Framed::Nothing, true);
    }
    let announced = response.headers().get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse().ok());
    let exact = response.body().size_hint().exact();
    let framed = match (announced, exact) {
        // The body's own length goes first, except for HEAD, whose body is not the one that the head announces.
        (Some(length), _) if is_head => Framed::Length(length),
        (_, Some(length)) if !is_head || length > 0 => Framed::Length(length),
        (Some(length), None) => Framed::Length(length),
        _ if is_head => Framed::Nothing,
        _ if is_http10 => Framed::Close,
        _ => Framed::Chunked,
    };
    (framed, is_head || framed == Framed::Length(0))
}

/// The length that an answer on a stream of HTTP/2 or HTTP/3 announces, and whether no body follows its head. They have no upgrades, and
/// nothing else has an informational status as its final answer: such a one becomes a 500.
pub(super) fn on_stream(response: &mut Response, is_head: bool) -> (Option<u64>, bool) {
    if response.status().is_informational() {
        tracing::error!(status = response.status().as_u16(), "a handler answered what is no final answer");
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    }
    let (framed, is_bodyless) = framing(response, is_head, false);
    let length = match framed {
        Framed::Length(length) => Some(length),
        Framed::Nothing | Framed::Chunked | Framed::Close => None,
    };
    (length, is_bodyless)
}

impl Sending {
    pub(super) fn new(body: Body, framed: Framed, is_endless: bool, line: Option<Rc<RequestLine>>) -> Self {
        let left = if let Framed::Length(length) = framed { length } else { 0 };
        Self { body, is_endless, framed, left, line }
    }

    /// The body has failed, or differs from its announced length.
    pub(super) fn failed(&self, error: &axum::BoxError) {
        if let Some(line) = &self.line {
            line.body_failed(&**error);
        }
    }

    /// Whether the body is of use only to a client that has not ended its half of the connection.
    pub(super) fn is_endless(&self) -> bool {
        self.is_endless
    }

    /// Takes the next piece of the body to the output. `None` at its end.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        output: &mut Output,
        fresh: &mut Vec<u8>,
    ) -> Poll<Option<Result<(), axum::BoxError>>> {
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(cx)?) else {
            return Poll::Ready(self.end(fresh));
        };
        // Trailers have no place in the answers that HTTP/1.1 clients expect; they are dropped.
        let Ok(data) = frame.into_data() else { return Poll::Ready(Some(Ok(()))) };
        if data.is_empty() {
            return Poll::Ready(Some(Ok(())));
        }
        match self.framed {
            Framed::Length(_) => {
                let Some(left) = self.left.checked_sub(data.len() as u64) else {
                    return Poll::Ready(Some(Err(LONGER.into())));
                };
                self.left = left;
                output.add(data, fresh);
                if left == 0 {
                    return Poll::Ready(None);
                }
            }
            Framed::Chunked => {
                h1::chunk_start(data.len(), fresh);
                output.add(data, fresh);
                h1::chunk_end(fresh);
            }
            Framed::Close | Framed::Nothing => output.add(data, fresh),
        }
        Poll::Ready(Some(Ok(())))
    }

    fn end(&self, fresh: &mut Vec<u8>) -> Option<Result<(), axum::BoxError>> {
        match self.framed {
            Framed::Length(_) if self.left > 0 => Some(Err(SHORTER.into())),
            Framed::Chunked => {
                fresh.extend_from_slice(b"0\r\n\r\n");
                None
            }
            Framed::Length(_) | Framed::Close | Framed::Nothing => None,
        }
    }
}

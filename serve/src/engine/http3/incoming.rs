//! The body of a request as it comes in.

use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes, BytesMut};
use h3::server::RequestStream;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;

use super::wire::Receiving;

/// Bytes of a piece up to which it is gathered with others, and of all that are gathered: a piece of one byte takes
/// many times its byte of memory.
const SMALL: usize = 256;
const TOGETHER: usize = 8 * 1024;

/// The client's end of a request.
type Requests = RequestStream<Receiving, Bytes>;

/// The body of a request.
pub(super) struct Incoming {
    stream: Requests,
    /// A piece that has come and is the next one.
    next: Option<Bytes>,
    trailers: Option<HeaderMap>,
    /// Bytes that are to come, if the head says how many.
    left: Option<u64>,
    stage: Stage,
    /// Tells the client to go on when the body is looked at, if the client waits for that (`Expect: 100-continue`).
    expectation: Option<oneshot::Sender<()>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Data,
    Trailers,
    Over,
}

impl Incoming {
    pub(super) fn new(stream: Requests, length: Option<u64>) -> Self {
        let mut body = Self { stream, next: None, trailers: None, left: length, stage: Stage::Data, expectation: None };
        // Most requests are over with their head. A frame that comes later wakes the next poll's task, and an error
        // comes again.
        let cx = &mut Context::from_waker(Waker::noop());
        match poll_piece(&mut body.stream, cx) {
            Poll::Ready(Ok(None)) => body.stage = Stage::Trailers,
            Poll::Ready(Ok(first)) => body.next = first,
            Poll::Ready(Err(_)) | Poll::Pending => {}
        }
        if body.stage == Stage::Trailers && length.unwrap_or(0) == 0 {
            match body.stream.poll_recv_trailers(cx) {
                Poll::Ready(Ok(None)) => body.stage = Stage::Over,
                Poll::Ready(Ok(trailers)) => body.trailers = trailers,
                Poll::Ready(Err(_)) | Poll::Pending => {}
            }
        }
        body
    }

    /// The client waits to be told to go on. Ready when the handler asks for the body; an error if the handler has
    /// dropped it.
    pub(super) fn expect(&mut self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.expectation = Some(sender);
        receiver
    }

    /// The next piece of the body; small ones that are there together make one.
    fn poll_gathered(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, axum::BoxError>> {
        let first = match self.next.take() {
            Some(piece) => piece,
            None => match ready!(poll_piece(&mut self.stream, cx))? {
                Some(piece) => piece,
                None => return Poll::Ready(Ok(None)),
            },
        };
        if first.len() > SMALL {
            return Poll::Ready(Ok(Some(first)));
        }
        let mut gathered = BytesMut::from(first);
        while gathered.len() < TOGETHER {
            match poll_piece(&mut self.stream, cx) {
                Poll::Ready(Ok(Some(next))) if next.len() <= SMALL => gathered.extend_from_slice(&next),
                Poll::Ready(Ok(None)) => {
                    self.stage = Stage::Trailers;
                    break;
                }
                Poll::Ready(Ok(next)) => {
                    self.next = next;
                    break;
                }
                // An error comes again.
                Poll::Ready(Err(_)) | Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(Some(gathered.freeze())))
    }

    /// Notes a piece of the body; whether it is more than the head has promised.
    fn is_too_much(&mut self, piece: &Bytes) -> bool {
        let Some(left) = &mut self.left else { return false };
        let rest = left.checked_sub(piece.len() as u64);
        *left = rest.unwrap_or(0);
        rest.is_none()
    }
}

fn poll_piece(stream: &mut Requests, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, axum::BoxError>> {
    let piece = ready!(stream.poll_recv_data(cx))?;
    Poll::Ready(Ok(piece.map(|mut piece| piece.copy_to_bytes(piece.remaining()))))
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let this = self.get_mut();
        if this.stage == Stage::Data {
            let polled = this.poll_gathered(cx);
            if polled.is_pending()
                && let Some(expectation) = this.expectation.take()
            {
                // Where nobody waits to tell the client, it is answered already.
                let _ = expectation.send(());
            }
            match ready!(polled)? {
                Some(piece) if this.is_too_much(&piece) => {
                    this.stage = Stage::Over;
                    return Poll::Ready(Some(Err("the body is longer than its content-length".into())));
                }
                Some(piece) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                None => this.stage = Stage::Trailers,
            }
        }
        if this.stage == Stage::Over {
            return Poll::Ready(None);
        }
        if this.left.is_some_and(|left| left > 0) {
            this.stage = Stage::Over;
            return Poll::Ready(Some(Err("the body is shorter than its content-length".into())));
        }
        let trailers = match this.trailers.take() {
            Some(trailers) => Some(trailers),
            None => ready!(this.stream.poll_recv_trailers(cx))?,
        };
        this.stage = Stage::Over;
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.stage == Stage::Over
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

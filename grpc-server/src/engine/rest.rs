//! The rest of a request's body that no handler reads, over HTTP/1.1. Were it left there, its connection would have to
//! be closed under a client that sends it: to that the answer is lost, and so is the next request of one that has sent
//! all by then.

use std::cell::RefCell;
use std::error::Error as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http::header::EXPECT;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::oneshot::{self, Receiver, Sender};
use tokio::time::{Sleep, sleep};
use tonic::Status;

use crate::tuning::{REST_BYTES, REST_TIME};

/// Reads the rest of a connection's request.
#[derive(Default)]
pub(super) struct Rest(RefCell<State>);

#[derive(Default)]
enum State {
    /// There is none.
    #[default]
    Nothing,
    /// A handler has the body.
    Taken(Receiver<Incoming>),
    /// The handler has dropped the body, and so many bytes may come.
    Left { body: Incoming, bytes: usize, timer: Pin<Box<Sleep>> },
}

impl Rest {
    /// The body for the handler of this request. The part that is unread when it is dropped is read here.
    pub(super) fn lend(&self, headers: &HeaderMap, body: Incoming) -> Lent {
        let (sender, receiver) = oneshot::channel();
        self.0.replace(State::Taken(receiver));
        Lent { body: Some(body), owner: Some(sender), is_asked_for: !headers.contains_key(EXPECT) }
    }

    /// Reads what there is to be read. To be called when the connection has had its turn.
    pub(super) fn poll(&self, cx: &mut Context<'_>) {
        let mut state = self.0.borrow_mut();
        if state.poll(cx).is_ready() {
            *state = State::Nothing;
        }
    }
}

impl State {
    /// Ready when there is no more, or too much.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Self::Taken(receiver) = self {
            let Ok(body) = ready!(Pin::new(receiver).poll(cx)) else { return Poll::Ready(()) };
            *self = Self::Left { body, bytes: REST_BYTES, timer: Box::pin(sleep(REST_TIME)) };
        }
        let Self::Left { body, bytes, timer } = self else { return Poll::Ready(()) };
        while let Poll::Ready(next) = Pin::new(&mut *body).poll_frame(cx) {
            let Some(Ok(frame)) = next else { return Poll::Ready(()) };
            let length = frame.data_ref().map_or(0, Bytes::len);
            let Some(left) = bytes.checked_sub(length) else { return Poll::Ready(()) };
            *bytes = left;
        }
        timer.as_mut().poll(cx)
    }
}

/// A body that goes back when it is dropped before its end.
pub(super) struct Lent {
    /// None behind its end.
    body: Option<Incoming>,
    owner: Option<Sender<Incoming>>,
    /// Whether the client sends it. One that waits to be told (`Expect: 100-continue`) would be by the first look at the body.
    is_asked_for: bool,
}

impl Body for Lent {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        this.is_asked_for = true;
        let next = ready!(Pin::new(body).poll_frame(cx));
        if !matches!(next, Some(Ok(_))) {
            this.body = None;
        }
        Poll::Ready(next.map(|next| next.map_err(|error| status_of(&error))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

/// A body that is no HTTP is the client's fault; one that breaks off is a call that is given up.
fn status_of(error: &hyper::Error) -> Status {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    match cause {
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
            Status::invalid_argument("the request's body is malformed")
        }
        _ => Status::cancelled(format!("the request's body broke off: {error}")),
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(body), Some(owner), true) = (self.body.take(), self.owner.take(), self.is_asked_for) {
            // Without a connection there is no rest.
            let _ = owner.send(body);
        }
    }
}

//! A request's body as handlers have it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};

use super::pipe::{End, Pipe, SMALL, TOGETHER, Taken};
use crate::reason::Reason;

/// Why a body ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The client has given up, or has broken the protocol.
    Reset(Reason),
    /// The stream was answered, or the connection is gone.
    Gone,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reset(reason) => write!(f, "the client has ended its request: {reason}"),
            Self::Gone => f.write_str("the request is over"),
        }
    }
}

impl std::error::Error for BodyError {}

/// The body of a request. It may be read on any thread.
#[derive(Debug)]
pub struct Incoming(Source);

#[derive(Debug)]
enum Source {
    /// It has come with its head, in one piece.
    Whole(Option<Bytes>),
    /// It comes piece by piece.
    Pieces(Reader),
}

impl Incoming {
    pub(super) fn whole(piece: Option<Bytes>) -> Self {
        Self(Source::Whole(piece))
    }

    pub(super) fn of(pipe: &Arc<Pipe>) -> Self {
        Self(Source::Pieces(Reader(Arc::clone(pipe))))
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.get_mut().0 {
            Source::Whole(piece) => Poll::Ready(piece.take().map(|piece| Ok(Frame::data(piece)))),
            Source::Pieces(reader) => reader.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Whole(piece) => piece.is_none(),
            Source::Pieces(reader) => reader.0.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Whole(piece) => SizeHint::with_exact(piece.as_ref().map_or(0, |piece| piece.len() as u64)),
            Source::Pieces(reader) => reader.0.expected().map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

/// The handler's end of a body.
#[derive(Debug)]
struct Reader(Arc<Pipe>);

impl Reader {
    fn poll(&self, cx: &Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Poll::Ready(match ready!(self.0.poll_take(cx)) {
            Taken::Piece(piece) => Some(Ok(Frame::data(piece))),
            Taken::Trailers(trailers) => Some(Ok(Frame::trailers(trailers))),
            // A client that wants no answer any more ends its request with NO_ERROR.
            Taken::End(End::Whole | End::Reset(Reason::NO_ERROR)) => None,
            Taken::End(End::Reset(reason)) => Some(Err(BodyError::Reset(reason))),
            Taken::End(End::Gone) => Some(Err(BodyError::Gone)),
        })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Where small pieces of bodies are kept, one behind the other: an allocation for many of them.
#[derive(Debug, Default)]
pub struct Pieces(BytesMut);

impl Pieces {
    /// A copy of what was read.
    pub fn copy(&mut self, bytes: &[u8]) -> Bytes {
        if bytes.len() > SMALL {
            return Bytes::copy_from_slice(bytes);
        }
        if self.0.capacity() < bytes.len() {
            self.0 = BytesMut::with_capacity(TOGETHER);
        }
        self.0.extend_from_slice(bytes);
        self.0.split().freeze()
    }
}

//! The body of a request as it comes in.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tonic::Status;

use super::pipe::Reader;

/// The body of a request.
#[derive(Debug)]
pub struct Inbound(Source);

#[derive(Debug)]
enum Source {
    /// It has come with its head, in one piece.
    Whole(Option<Bytes>),
    /// It comes piece by piece.
    Pieces(Reader),
    /// Anything else: what was translated.
    Other(tonic::body::Body),
}

impl Inbound {
    pub(super) fn whole(piece: Option<Bytes>) -> Self {
        Self(Source::Whole(piece))
    }
}

impl From<Reader> for Inbound {
    fn from(reader: Reader) -> Self {
        Self(Source::Pieces(reader))
    }
}

impl From<tonic::body::Body> for Inbound {
    fn from(body: tonic::body::Body) -> Self {
        Self(Source::Other(body))
    }
}

impl Body for Inbound {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match &mut self.get_mut().0 {
            Source::Whole(piece) => Poll::Ready(piece.take().map(|piece| Ok(Frame::data(piece)))),
            Source::Pieces(reader) => reader.poll(cx),
            Source::Other(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Whole(piece) => piece.is_none(),
            Source::Pieces(reader) => reader.is_over(),
            Source::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Whole(piece) => SizeHint::with_exact(piece.as_ref().map_or(0, |piece| piece.len() as u64)),
            Source::Pieces(_) => SizeHint::default(),
            Source::Other(body) => body.size_hint(),
        }
    }
}

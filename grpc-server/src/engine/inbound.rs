//! The body of a request as it comes in.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http_body::{Body, Frame, SizeHint};
use tonic::Status;

/// The body of a request.
#[derive(Debug)]
pub struct Inbound(Source);

#[derive(Debug)]
enum Source {
    /// What h2 receives. Nothing is boxed.
    Http2 { stream: RecvStream, is_data_over: bool },
    /// Anything else: what was translated.
    Other(tonic::body::Body),
}

impl Inbound {
    pub(super) fn new(stream: RecvStream) -> Self {
        Self(Source::Http2 { stream, is_data_over: false })
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
            Source::Http2 { stream, is_data_over } => {
                poll_http2(stream, is_data_over, cx).map_err(|error| Status::from_error(error.into()))
            }
            Source::Other(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Http2 { stream, .. } => stream.is_end_stream(),
            Source::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Http2 { .. } => SizeHint::default(),
            Source::Other(body) => body.size_hint(),
        }
    }
}

fn poll_http2(
    stream: &mut RecvStream,
    is_data_over: &mut bool,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
    if !*is_data_over {
        match ready!(stream.poll_data(cx)) {
            Some(Ok(bytes)) => {
                // The client may send as much again: what tonic holds of a call is one message, whose size it limits.
                let released = stream.flow_control().release_capacity(bytes.len());
                return Poll::Ready(Some(released.map(|()| Frame::data(bytes))));
            }
            // A client that wants no answer any more ends its request this way.
            Some(Err(error)) if error.is_remote() && error.reason() == Some(Reason::NO_ERROR) => {
                return Poll::Ready(None);
            }
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => *is_data_over = true,
        }
    }
    let trailers = ready!(stream.poll_trailers(cx)).transpose();
    Poll::Ready(trailers.map(|trailers| trailers.map(Frame::trailers)))
}

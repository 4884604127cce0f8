//! The body of a request as it comes in.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http2::Reason;
use http2::shared::{BodyError, Incoming};
use tonic::{Code, Status};

/// The body of a request.
#[derive(Debug)]
pub struct Inbound(Source);

#[derive(Debug)]
enum Source {
    /// As it comes.
    Http2(Incoming),
    /// As it comes over HTTP/1.1.
    Http1(serve::Body),
    /// Any other body: a translated one.
    Other(tonic::body::Body),
}

impl From<Incoming> for Inbound {
    fn from(body: Incoming) -> Self {
        Self(Source::Http2(body))
    }
}

impl From<serve::Body> for Inbound {
    fn from(body: serve::Body) -> Self {
        Self(Source::Http1(body))
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
            Source::Http2(body) => Pin::new(body).poll_frame(cx).map_err(status_of),
            Source::Http1(body) => Pin::new(body).poll_frame(cx).map_err(|error| status_of_http1(&error)),
            Source::Other(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Http2(body) => body.is_end_stream(),
            Source::Http1(body) => body.is_end_stream(),
            Source::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Http2(body) => body.size_hint(),
            Source::Http1(body) => body.size_hint(),
            Source::Other(body) => body.size_hint(),
        }
    }
}

/// How gRPC reads HTTP/2's codes (gRPC over HTTP/2, "Errors").
fn status_of(error: BodyError) -> Status {
    let code = match error {
        BodyError::Gone | BodyError::Reset(Reason::CANCEL) => Code::Cancelled,
        BodyError::Reset(Reason::REFUSED_STREAM) => Code::Unavailable,
        BodyError::Reset(Reason::ENHANCE_YOUR_CALM) => Code::ResourceExhausted,
        BodyError::Reset(Reason::INADEQUATE_SECURITY) => Code::PermissionDenied,
        BodyError::Reset(_) => Code::Internal,
    };
    Status::new(code, error.to_string())
}

/// A body that is no HTTP is the client's fault; one that breaks off is a call that is given up.
fn status_of_http1(error: &impl Error) -> Status {
    let is_malformed =
        matches!(error.source().and_then(|cause| cause.downcast_ref()), Some(serve::BodyError::Malformed));
    let code = if is_malformed { Code::InvalidArgument } else { Code::Cancelled };
    Status::new(code, error.to_string())
}

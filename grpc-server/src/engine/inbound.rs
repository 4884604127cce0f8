//! The body of a request as it comes in.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http_body::{Body, Frame, SizeHint};

/// The body of a request.
#[derive(Debug)]
pub struct Inbound {
    stream: RecvStream,
    is_data_over: bool,
}

impl Inbound {
    pub(super) fn new(stream: RecvStream) -> Self {
        Self { stream, is_data_over: false }
    }
}

impl Body for Inbound {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let this = self.get_mut();
        if !this.is_data_over {
            match ready!(this.stream.poll_data(cx)) {
                Some(Ok(bytes)) => {
                    // The client may send as much again: what tonic holds of a call is one message, whose size it limits.
                    let released = this.stream.flow_control().release_capacity(bytes.len());
                    return Poll::Ready(Some(released.map(|()| Frame::data(bytes))));
                }
                // A client that wants no answer any more ends its request this way.
                Some(Err(error)) if error.is_remote() && error.reason() == Some(Reason::NO_ERROR) => {
                    return Poll::Ready(None);
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => this.is_data_over = true,
            }
        }
        let trailers = ready!(this.stream.poll_trailers(cx)).transpose();
        Poll::Ready(trailers.map(|trailers| trailers.map(Frame::trailers)))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

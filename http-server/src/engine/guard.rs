//! The body of a request that hyper reads: limited in size, and not slower than allowed.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

use super::upload::{Allowance, BodyError};

/// A body with limits.
pub(super) struct Guard {
    body: Incoming,
    allowance: Allowance,
    received: u64,
    window: u64,
    timeout: Duration,
    /// Made when the body is first waited for.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Guard {
    pub(super) fn new(body: Incoming, allowance: Allowance, timeout: Duration) -> Self {
        Self { body, allowance, received: 0, window: 0, timeout, timer: None }
    }

    /// Whether the client is too slow; its time starts again if it was not.
    fn is_too_slow(&mut self, cx: &mut Context<'_>) -> bool {
        let timeout = self.timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        while timer.as_mut().poll(cx).is_ready() {
            if self.window < self.allowance.window {
                return true;
            }
            self.window = 0;
            timer.as_mut().reset(Instant::now() + timeout);
        }
        false
    }
}

impl Body for Guard {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx)?;
        if polled.is_pending() && self.is_too_slow(cx) {
            return Poll::Ready(Some(Err(BodyError::TooSlow.into())));
        }
        let Some(frame) = ready!(polled) else { return Poll::Ready(None) };
        let count = frame.data_ref().map_or(0, Bytes::len) as u64;
        self.received += count;
        self.window += count;
        if self.received > self.allowance.bytes {
            return Poll::Ready(Some(Err(BodyError::TooLarge.into())));
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

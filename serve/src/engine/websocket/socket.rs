//! The application's end of a WebSocket.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Error;
use axum::extract::ws::Message;
use futures_core::{FusedStream, Stream};
use futures_sink::Sink;
use http::HeaderValue;

use super::line::{Shared, lock};

/// A stream of WebSocket messages, with the calls of axum's.
///
/// Pings are answered, and so is a close frame. Messages that are sent go out when the application receives again or waits for anything,
/// so answers to messages that came together leave together. Dropping it ends the connection.
pub struct WebSocket {
    line: Shared,
    protocol: Option<HeaderValue>,
}

impl WebSocket {
    pub(super) fn new(line: Shared, protocol: Option<HeaderValue>) -> Self {
        Self { line, protocol }
    }

    /// Receives the next message. `None` if the connection has ended.
    pub async fn recv(&mut self) -> Option<Result<Message, Error>> {
        poll_fn(|cx| lock(&self.line).poll_next(cx)).await
    }

    /// Sends a message. Waits while the client does not take what was sent before.
    ///
    /// # Errors
    /// When the connection has ended, a close frame was sent, or the message is none that RFC 6455 allows.
    pub async fn send(&mut self, message: Message) -> Result<(), Error> {
        let mut message = Some(message);
        poll_fn(|cx| {
            let mut line = lock(&self.line);
            if message.is_some() {
                std::task::ready!(line.poll_ready(cx))?;
            }
            if let Some(message) = message.take() {
                line.send(message)?;
            }
            line.poll_flush(cx)
        })
        .await
    }

    /// The subprotocol that was agreed on.
    pub fn protocol(&self) -> Option<&HeaderValue> {
        self.protocol.as_ref()
    }
}

impl Stream for WebSocket {
    type Item = Result<Message, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        lock(&self.line).poll_next(cx)
    }
}

impl FusedStream for WebSocket {
    fn is_terminated(&self) -> bool {
        lock(&self.line).has_ended()
    }
}

impl Sink<Message> for WebSocket {
    type Error = Error;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        lock(&self.line).poll_ready(cx)
    }

    fn start_send(self: Pin<&mut Self>, message: Message) -> Result<(), Error> {
        lock(&self.line).send(message)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        lock(&self.line).poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let mut line = lock(&self.line);
        line.close(1000, "");
        line.poll_flush(cx)
    }
}

impl Drop for WebSocket {
    fn drop(&mut self) {
        let mut line = lock(&self.line);
        line.is_dropped = true;
        if !line.is_driven {
            line.driver.wake_by_ref();
        }
    }
}

impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocket").field("protocol", &self.protocol).finish_non_exhaustive()
    }
}

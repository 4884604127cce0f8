//! From a request to a WebSocket, with the calls of axum's extractor.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Error;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::response::Response;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::request::Parts;
use http::{HeaderValue, StatusCode};

use super::WebSocket;
use super::handshake::{Rejection, accept};
use crate::tuning::{WS_MAX_FRAME, WS_MAX_MESSAGE};
use crate::websocket::codec::Limits;
use crate::websocket::codec::deflate::{Agreed, Compression};

/// The extension of requests whose connection may become a WebSocket.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Offered;

/// The extension of the answer that makes it one.
#[derive(Clone)]
pub(in crate::engine) struct Taken(Arc<Mutex<Option<Accepted>>>);

impl Taken {
    pub(in crate::engine) fn take(self) -> Option<Accepted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

type Application = Pin<Box<dyn Future<Output = ()> + Send>>;

type OnFailure = Box<dyn FnOnce(Error) + Send>;

/// An accepted WebSocket whose answer is under way.
pub(in crate::engine) struct Accepted {
    pub(super) callback: Box<dyn FnOnce(WebSocket) -> Application + Send>,
    pub(super) limits: Limits,
    pub(super) agreed: Option<Agreed>,
    pub(super) protocol: Option<HeaderValue>,
    pub(super) on_failure: Failing,
}

/// Tells the application of a connection that ended before it was a WebSocket.
pub(super) struct Failing(Option<OnFailure>);

impl Failing {
    /// The WebSocket has begun.
    pub(super) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        if let Some(callback) = self.0.take() {
            callback(Error::new("the connection ended before it was a WebSocket"));
        }
    }
}

/// Extractor for WebSockets: axum's calls, served within the connection's own loop.
///
/// It takes the place of `axum::extract::ws::WebSocketUpgrade` in routers that this server serves over HTTP/1.1.
#[must_use]
pub struct WebSocketUpgrade {
    accept: HeaderValue,
    requested: Vec<HeaderValue>,
    protocol: Option<HeaderValue>,
    /// The extensions that the client offers.
    extensions: Vec<HeaderValue>,
    limits: Limits,
    compression: Option<Compression>,
    on_failure: Failing,
}

impl WebSocketUpgrade {
    /// Sets the bytes that a message may have (default: 64 MiB). A longer one ends the connection with code 1009.
    pub fn max_message_size(mut self, max: usize) -> Self {
        self.limits.message = max;
        self
    }

    /// Sets the bytes that a frame may have (default: 16 MiB).
    pub fn max_frame_size(mut self, max: usize) -> Self {
        self.limits.frame = max;
        self
    }

    /// Accepts frames without a mask, which RFC 6455 forbids (default: false).
    pub fn accept_unmasked_frames(mut self, accept: bool) -> Self {
        self.limits.accepts_unmasked = accept;
        self
    }

    /// Without effect: buffers belong to the worker.
    pub fn read_buffer_size(self, _size: usize) -> Self {
        self
    }

    /// Without effect: messages of one turn go out together.
    pub fn write_buffer_size(self, _size: usize) -> Self {
        self
    }

    /// Without effect: beyond 64 KiB that the client has not taken, sending waits.
    pub fn max_write_buffer_size(self, _max: usize) -> Self {
        self
    }

    /// Agrees on permessage-deflate (RFC 7692) with clients that offer it (default: no compression).
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// Chooses the first of these subprotocols that the client offers.
    pub fn protocols<I>(mut self, protocols: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<Cow<'static, str>>,
    {
        self.protocol = protocols.into_iter().find_map(|protocol| {
            let protocol = protocol.into();
            self.requested.iter().find(|requested| requested.as_bytes() == protocol.as_bytes()).cloned()
        });
        self
    }

    /// The subprotocols that the client offers.
    pub fn requested_protocols(&self) -> impl Iterator<Item = &HeaderValue> {
        self.requested.iter()
    }

    /// Chooses this subprotocol.
    pub fn set_selected_protocol(&mut self, protocol: HeaderValue) {
        self.protocol = Some(protocol);
    }

    /// The subprotocol that was chosen.
    pub fn selected_protocol(&self) -> Option<&HeaderValue> {
        self.protocol.as_ref()
    }

    /// Calls this if the connection ends before it is a WebSocket.
    pub fn on_failed_upgrade(mut self, callback: impl FnOnce(Error) + Send + 'static) -> Self {
        self.on_failure.0 = Some(Box::new(callback));
        self
    }

    /// The answer that makes the connection a WebSocket, for which `callback` is called.
    #[must_use = "the connection becomes a WebSocket if this response is returned"]
    pub fn on_upgrade<C, Fut>(self, callback: C) -> Response
    where
        C: FnOnce(WebSocket) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let Self { accept, protocol, extensions, limits, compression, on_failure, .. } = self;
        let offers = extensions.iter().filter_map(|line| line.to_str().ok());
        let agreed = compression.and_then(|own| Agreed::on(offers, own));
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        if let Some(protocol) = &protocol {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol.clone());
        }
        if let Some(agreed) = agreed {
            let value = HeaderValue::from_str(&agreed.header()).expect("names and numbers are a header value");
            headers.insert(SEC_WEBSOCKET_EXTENSIONS, value);
        }
        let callback = Box::new(move |socket| -> Application { Box::pin(callback(socket)) });
        let accepted = Accepted { callback, limits, agreed, protocol, on_failure };
        response.extensions_mut().insert(Taken(Arc::new(Mutex::new(Some(accepted)))));
        response
    }
}

impl<S: Send + Sync> FromRequestParts<S> for WebSocketUpgrade {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Rejection> {
        let accept = accept(parts)?;
        if parts.extensions.get::<Offered>().is_none() {
            return Err(Rejection::bad("this connection cannot become a WebSocket"));
        }
        let all = |name| parts.headers.get_all(name).iter();
        let requested = all(SEC_WEBSOCKET_PROTOCOL).flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
        let limits = Limits { message: WS_MAX_MESSAGE, frame: WS_MAX_FRAME, accepts_unmasked: false };
        Ok(Self {
            accept,
            requested: requested.filter_map(|name| HeaderValue::from_bytes(name.trim_ascii()).ok()).collect(),
            protocol: None,
            extensions: all(SEC_WEBSOCKET_EXTENSIONS).cloned().collect(),
            limits,
            compression: None,
            on_failure: Failing(None),
        })
    }
}

impl fmt::Debug for WebSocketUpgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketUpgrade")
            .field("requested", &self.requested)
            .field("protocol", &self.protocol)
            .field("limits", &self.limits)
            .field("compression", &self.compression)
            .finish_non_exhaustive()
    }
}

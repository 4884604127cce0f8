//! The answer to a request without a result, and its status.

use axum::body::Body;
use axum::response::Response;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, StatusCode};

use super::Api;
use super::access::Denied;
use super::format::Format;
use super::request::Malformed;
use crate::redis::Failure;

/// All methods of the routes below `/v1`.
pub(super) const METHODS: &str = "GET, HEAD, POST, PUT, DELETE, OPTIONS";

/// Why a request has no result, for its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) message: String,
    cause: Cause,
    /// The methods by which the same could be asked, where this one is none.
    allowed: Option<&'static str>,
}

/// The cause of a refusal, which decides its count and headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Caller,
    Denied,
    NoToken,
    Away,
    Slow,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), cause: Cause::Caller, allowed: None }
    }

    /// A method that what was asked for does not have, beside those that it has.
    pub(super) fn method(allowed: &'static str, message: impl Into<String>) -> Self {
        Self { allowed: Some(allowed), ..Self::new(StatusCode::METHOD_NOT_ALLOWED, message) }
    }

    /// A call that is not for this caller.
    pub(super) fn denied(message: impl Into<String>) -> Self {
        Self { status: StatusCode::FORBIDDEN, message: message.into(), cause: Cause::Denied, allowed: None }
    }

    /// An error that Redis answered.
    pub(super) fn of_redis(error: &[u8]) -> Self {
        Self::new(status_of(error), String::from_utf8_lossy(error))
    }

    /// Counts it where it tells something about the server.
    pub(super) fn count(self, api: &Api) -> Self {
        let counts = &api.shared.counts;
        match self.cause {
            Cause::Caller => {}
            Cause::Denied | Cause::NoToken => counts.denied.add(1),
            Cause::Away => counts.away.add(1),
            Cause::Slow => counts.slow.add(1),
        }
        self
    }

    pub(super) fn into_plain(self) -> Response {
        let message =
            format!("{}\n", self.message.escape_default().to_string().replace("\\'", "'").replace("\\\"", "\""));
        self.with_headers(plain(self.status, message))
    }

    pub(super) fn into_format(self, format: Format) -> Response {
        let mut response = Response::new(Body::from(format.error(&self.message)));
        *response.status_mut() = self.status;
        set_type(&mut response, format.media_type());
        self.with_headers(response)
    }

    fn with_headers(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.extend(self.allowed.map(|allowed| (ALLOW, HeaderValue::from_static(allowed))));
        match self.cause {
            Cause::NoToken => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Cause::Away | Cause::Slow => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Cause::Caller | Cause::Denied => {}
        }
        response
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        let (status, cause) = match denied {
            Denied::Token(_) => (StatusCode::UNAUTHORIZED, Cause::NoToken),
            Denied::Command(_) | Denied::Connection(_) | Denied::Key | Denied::Unlimited(_) | Denied::Channel => {
                (StatusCode::FORBIDDEN, Cause::Denied)
            }
        };
        Self { status, message: denied.to_string(), cause, allowed: None }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let (status, cause) = match &failure {
            Failure::NotConfigured => (StatusCode::NOT_IMPLEMENTED, Cause::Caller),
            Failure::Away(_) | Failure::Lost(_) => (StatusCode::BAD_GATEWAY, Cause::Away),
            Failure::Slow(_) => (StatusCode::GATEWAY_TIMEOUT, Cause::Slow),
            Failure::Busy | Failure::Full => (StatusCode::SERVICE_UNAVAILABLE, Cause::Away),
            Failure::TooLarge(_) => (StatusCode::BAD_GATEWAY, Cause::Caller),
        };
        // The address of Redis, and its errors, are for the log.
        let message = match failure {
            Failure::Away(_) => "Redis is away; the request was not sent".to_owned(),
            Failure::Lost(_) => {
                "the connection to Redis ended before its answer came; the request may have run".to_owned()
            }
            told => told.to_string(),
        };
        Self { status, message, cause, allowed: None }
    }
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        Self::new(StatusCode::BAD_REQUEST, malformed.to_string())
    }
}

/// The status for an error of Redis, by its code.
pub(super) fn status_of(error: &[u8]) -> StatusCode {
    let code = error.split(|byte| *byte == b' ').next().unwrap_or_default();
    match code {
        // Its own rules refuse what ours allow.
        b"NOPERM" => StatusCode::FORBIDDEN,
        b"NOAUTH" | b"WRONGPASS" => StatusCode::BAD_GATEWAY,
        b"LOADING" | b"BUSY" | b"MASTERDOWN" | b"READONLY" | b"MISCONF" | b"OOM" | b"TRYAGAIN" | b"CLUSTERDOWN" => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        _ => StatusCode::BAD_REQUEST,
    }
}

/// A text.
pub(super) fn plain(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    set_type(&mut response, "text/plain; charset=utf-8");
    response
}

pub(super) fn set_type(response: &mut Response, media_type: &'static str) {
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

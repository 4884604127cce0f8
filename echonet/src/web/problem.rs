//! Errors as the Web API has them: a type and a sentence.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use echonet_lite::controller::{Failure, RequestError};
use echonet_lite::net::Error;
use serde_json::{Value, json};

/// An answer of JSON.
pub(super) type Answer = Result<Json<Value>, Problem>;
/// The answer to a request that creates an entry.
pub(super) type Created = Result<(StatusCode, Json<Value>), Problem>;

/// Why a request came to nothing.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    kind: Kind,
    message: String,
    /// The methods that there are, where the one that was used is not.
    allowed: Option<&'static str>,
}

/// The types of errors that the guideline has.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Range,
    Reference,
    Type,
    Timeout,
    Device,
}

impl Problem {
    /// A value that the property cannot have, or a number that a limit forbids.
    pub(super) fn range(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Kind::Range, message)
    }

    /// JSON of another form than the one that is wanted.
    pub(super) fn mistyped(message: impl Into<String>) -> Self {
        Self::malformed(StatusCode::BAD_REQUEST, message)
    }

    /// A body that is not read, with the status that says why.
    pub(super) fn malformed(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(status, Kind::Type, message)
    }

    /// Nothing is there.
    pub(super) fn unknown(message: impl Into<String>) -> Self {
        Self::reference(StatusCode::NOT_FOUND, message)
    }

    /// Something is there, but not for this request.
    pub(super) fn reference(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(status, Kind::Reference, message)
    }

    /// A resource that has no such method.
    pub(super) fn not_allowed(allowed: &'static str, message: impl Into<String>) -> Self {
        let problem = Self::reference(StatusCode::METHOD_NOT_ALLOWED, message);
        Self { allowed: Some(allowed), ..problem }
    }

    /// The device refused, or its answer makes no sense.
    pub(super) fn device(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Kind::Device, message)
    }

    /// Too much is under way.
    pub(super) fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Kind::Timeout, message)
    }

    fn new(status: StatusCode, kind: Kind, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into(), allowed: None }
    }

    pub(super) fn json(&self) -> Value {
        let kind = match self.kind {
            Kind::Range => "rangeError",
            Kind::Reference => "referenceError",
            Kind::Type => "typeError",
            Kind::Timeout => "timeoutError",
            Kind::Device => "deviceError",
        };
        json!({ "type": kind, "message": self.message })
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Refused(RequestError::Full | RequestError::NodeFull | RequestError::TooManyNodes) => {
                return Self::busy(error.to_string());
            }
            Error::Failed(Failure::TimedOut { .. } | Failure::NodeSilent { .. } | Failure::OtherNode) => Kind::Timeout,
            _ => Kind::Device,
        };
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, kind, error.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.json())).into_response();
        if let Some(allowed) = self.allowed {
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
        }
        response
    }
}

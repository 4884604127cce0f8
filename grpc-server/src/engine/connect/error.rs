//! Errors, as Connect writes them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response, StatusCode};
use prost::Message as _;
use serde_json::{Map, Value, json};
use tonic::body::Body;
use tonic::{Code, Status};

use super::JSON;
use super::body::first;

/// Where gRPC tells a status.
pub(super) const NAMES: [&str; 3] = ["grpc-status", "grpc-message", "grpc-status-details-bin"];

/// `google.rpc.Status`, as far as it is looked at.
#[derive(Clone, PartialEq, prost::Message)]
struct Detailed {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Detail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, prost::Message)]
struct Detail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

/// The answer to a unary call that has failed.
pub(super) fn response(status: &Status) -> Response<Body> {
    let mut response = Response::new(Body::new(first(value(status).to_string().into())));
    *response.status_mut() = names(status.code()).1;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// The last message of a stream: how it has ended, and its trailers.
pub(super) fn end(status: Option<&Status>, trailers: &HeaderMap) -> Bytes {
    let mut end = Map::new();
    if let Some(status) = status.filter(|status| status.code() != Code::Ok) {
        end.insert("error".to_owned(), value(status));
    }
    let mut metadata = Map::new();
    for name in trailers.keys().filter(|name| !NAMES.contains(&name.as_str())) {
        let values = trailers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into());
        metadata.insert(name.as_str().to_owned(), Value::Array(values.collect()));
    }
    if !metadata.is_empty() {
        end.insert("metadata".to_owned(), metadata.into());
    }
    Value::Object(end).to_string().into()
}

fn value(status: &Status) -> Value {
    let mut error = json!({ "code": names(status.code()).0 });
    if !status.message().is_empty() {
        error["message"] = status.message().into();
    }
    let details = Detailed::decode(status.details()).unwrap_or_default().details;
    if !details.is_empty() {
        let detail = |detail: Detail| {
            let name = detail.type_url.rsplit('/').next().unwrap_or_default();
            json!({ "type": name, "value": BASE64_STANDARD_NO_PAD.encode(&detail.value) })
        };
        error["details"] = details.into_iter().map(detail).collect();
    }
    error
}

/// A code's name, and the status of HTTP that goes with it.
fn names(code: Code) -> (&'static str, StatusCode) {
    // 499 is what servers say to those that have gone.
    let cancelled = || StatusCode::from_u16(499).expect("three digits");
    match code {
        Code::Ok => ("ok", StatusCode::OK),
        Code::Cancelled => ("canceled", cancelled()),
        Code::Unknown => ("unknown", StatusCode::INTERNAL_SERVER_ERROR),
        Code::InvalidArgument => ("invalid_argument", StatusCode::BAD_REQUEST),
        Code::DeadlineExceeded => ("deadline_exceeded", StatusCode::GATEWAY_TIMEOUT),
        Code::NotFound => ("not_found", StatusCode::NOT_FOUND),
        Code::AlreadyExists => ("already_exists", StatusCode::CONFLICT),
        Code::PermissionDenied => ("permission_denied", StatusCode::FORBIDDEN),
        Code::ResourceExhausted => ("resource_exhausted", StatusCode::TOO_MANY_REQUESTS),
        Code::FailedPrecondition => ("failed_precondition", StatusCode::BAD_REQUEST),
        Code::Aborted => ("aborted", StatusCode::CONFLICT),
        Code::OutOfRange => ("out_of_range", StatusCode::BAD_REQUEST),
        Code::Unimplemented => ("unimplemented", StatusCode::NOT_IMPLEMENTED),
        Code::Internal => ("internal", StatusCode::INTERNAL_SERVER_ERROR),
        Code::Unavailable => ("unavailable", StatusCode::SERVICE_UNAVAILABLE),
        Code::DataLoss => ("data_loss", StatusCode::INTERNAL_SERVER_ERROR),
        Code::Unauthenticated => ("unauthenticated", StatusCode::UNAUTHORIZED),
    }
}

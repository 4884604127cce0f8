//! The opening handshake (RFC 6455 section 4.2).

use std::fmt;

use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// The text that is hashed behind the client's key (section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The version of the protocol.
const VERSION: &str = "13";

/// The reason why a request is answered by no WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    status: StatusCode,
    reason: &'static str,
}

impl Rejection {
    pub(super) const fn bad(reason: &'static str) -> Self {
        Self { status: StatusCode::BAD_REQUEST, reason }
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Its text.
    pub fn body_text(&self) -> String {
        self.reason.to_owned()
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)
    }
}

impl std::error::Error for Rejection {}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.reason).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UPGRADE_REQUIRED {
            headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static(VERSION));
            headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        }
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            headers.insert(http::header::ALLOW, HeaderValue::from_static("GET"));
        }
        response
    }
}

/// The answer's `Sec-WebSocket-Accept`.
pub(super) fn accept(parts: &Parts) -> Result<HeaderValue, Rejection> {
    let headers = &parts.headers;
    if parts.method != Method::GET {
        let reason = "the method of a WebSocket's handshake is GET";
        return Err(Rejection { status: StatusCode::METHOD_NOT_ALLOWED, reason });
    }
    if !has_token(headers, &CONNECTION, "upgrade") || !has_token(headers, &UPGRADE, "websocket") {
        return Err(Rejection::bad("expected the fields `Connection: Upgrade` and `Upgrade: websocket`"));
    }
    let mut versions = headers.get_all(SEC_WEBSOCKET_VERSION).iter();
    if versions.next().is_none_or(|version| version != VERSION) || versions.next().is_some() {
        let reason = "expected the field `Sec-WebSocket-Version: 13`";
        return Err(Rejection { status: StatusCode::UPGRADE_REQUIRED, reason });
    }
    let mut keys = headers.get_all(SEC_WEBSOCKET_KEY).iter();
    let key = keys.next().filter(|key| STANDARD.decode(key.as_bytes()).is_ok_and(|key| key.len() == 16));
    match (key, keys.next()) {
        (Some(key), None) => Ok(answer(key.as_bytes())),
        _ => Err(Rejection::bad("expected one field `Sec-WebSocket-Key` with 16 bytes as base64")),
    }
}

fn answer(key: &[u8]) -> HeaderValue {
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, GUID].concat());
    HeaderValue::from_str(&STANDARD.encode(hash)).expect("base64 is a header value")
}

/// The list of tokens has this one.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|found| found.trim().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn handshakes() {
        const GOOD: [(&str, &str); 4] = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        fn check(method: &str, leave_out: &str, further: &[(&str, &str)], expected: Result<&str, u16>) {
            let mut request = Request::builder().method(method);
            for (name, value) in GOOD.iter().filter(|(name, _)| *name != leave_out).chain(further) {
                request = request.header(*name, *value);
            }
            let (parts, ()) = request.body(()).unwrap().into_parts();
            let found = accept(&parts);
            let found = found.as_ref().map(|value| value.to_str().unwrap()).map_err(|error| error.status().as_u16());
            assert_eq!(found, expected, "{method} without {leave_out}, with {further:?}");
        }
        check("GET", "", &[], Ok("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        check("POST", "", &[], Err(405));
        check("GET", "connection", &[], Err(400));
        check("GET", "upgrade", &[], Err(400));
        check("GET", "upgrade", &[("upgrade", "other, websocket")], Ok("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        check("GET", "sec-websocket-version", &[], Err(426));
        check("GET", "sec-websocket-version", &[("sec-websocket-version", "8")], Err(426));
        check("GET", "", &[("sec-websocket-version", "8")], Err(426));
        check("GET", "sec-websocket-key", &[], Err(400));
        check("GET", "sec-websocket-key", &[("sec-websocket-key", "dGhlIHNhbXBsZQ==")], Err(400));
        check("GET", "", &[("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")], Err(400));
    }

    #[test]
    fn a_wrong_version_is_told_the_right_one() {
        let rejection = Rejection { status: StatusCode::UPGRADE_REQUIRED, reason: "" };
        let response = rejection.into_response();
        assert_eq!(response.headers().get("sec-websocket-version").unwrap(), "13");
    }
}

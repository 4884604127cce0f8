//! Answers that come a little later, without the router: many requests of a worker ask one connection for them.

use std::fmt;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use http::{HeaderName, HeaderValue, StatusCode};
use http_body::Body as _;

use crate::h1;

/// A path whose `GET` is answered by something that all requests of a worker share, such as a connection to a database.
/// No future, no header map and no task are made for such a request, and those of a pipeline wait together.
///
/// A router should have the same route: it is asked for what [`Later::ask`] leaves to it, other methods, HTTP/1.0,
/// and requests with a body, an id, credentials, conditions, or another origin.
pub trait Later: fmt::Debug + Send + Sync {
    /// The path, without a query.
    fn path(&self) -> &str;

    /// Whether requests to this host are answered; others are left to the router.
    fn serves(&self, host: &[u8]) -> bool {
        let _ = host;
        true
    }

    /// Asks what a request with this query wants to know; `None` leaves it to the router. The number is taken back by
    /// either [`Later::answer`] or [`Later::forget`], on the same thread.
    fn ask(&self, query: &str) -> Option<u64>;

    /// Shows the answer to the question, once it is there; until then registers the task to wake.
    fn answer(&self, id: u64, cx: &Context<'_>, take: &mut dyn FnMut(Reply<'_>)) -> Poll<()>;

    /// The answer to this is wanted no more.
    fn forget(&self, id: u64);
}

/// An answer to a request.
#[derive(Debug)]
pub enum Reply<'a> {
    /// A small body, which is copied.
    Body {
        /// The status.
        status: StatusCode,
        /// Lines of the head, `name: value` and CRLF, names in small letters; neither length nor date.
        fields: &'static str,
        /// The body.
        body: &'a [u8],
    },
    /// Any other.
    Response(Response),
}

impl Reply<'_> {
    /// Bytes of the body, as far as they are known.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Body { body, .. } => body.len() as u64,
            Self::Response(response) => response.body().size_hint().lower(),
        }
    }

    /// The same, with a copy of the body.
    pub(crate) fn into_response(self) -> Response {
        let (status, fields, body) = match self {
            Self::Body { status, fields, body } => (status, fields, body),
            Self::Response(response) => return response,
        };
        let mut response = Response::new(Body::from(body.to_vec()));
        *response.status_mut() = status;
        for (name, value) in fields.lines().filter_map(|line| line.split_once(": ")) {
            response.headers_mut().append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        response
    }
}

/// Header fields that send a request to the router: the router knows their meaning.
const FOR_ROUTER: [&str; 10] = [
    "x-request-id",
    "authorization",
    "cookie",
    "origin",
    "range",
    "if-none-match",
    "if-modified-since",
    "if-match",
    "if-unmodified-since",
    "sec-websocket-protocol",
];

/// Whether the router need not see this header field.
#[inline]
pub(crate) fn is_plain(name: &[u8]) -> bool {
    !FOR_ROUTER.iter().any(|field| field.len() == name.len() && field.as_bytes().eq_ignore_ascii_case(name))
}

/// The query of a target, if it is for this path.
#[inline]
pub(crate) fn query<'a>(target: &'a str, path: &str) -> Option<&'a str> {
    let rest = target.strip_prefix(path)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('?') }
}

/// Appends a whole response of HTTP/1.1.
pub(crate) fn write(status: StatusCode, fields: &str, body: &[u8], date: &[u8; 29], ends: bool, out: &mut Vec<u8>) {
    h1::status_line(status, out);
    out.extend_from_slice(fields.as_bytes());
    out.extend_from_slice(b"date: ");
    out.extend_from_slice(date);
    out.extend_from_slice(b"\r\ncontent-length: ");
    out.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
    out.extend_from_slice(if ends { b"\r\nconnection: close\r\n\r\n" } else { b"\r\n\r\n" });
    out.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        fn check(target: &str, expected: Option<&str>) {
            assert_eq!(query(target, "/get"), expected, "{target}");
        }
        check("/get?key=a?b", Some("key=a?b"));
        check("/get?", Some(""));
        check("/get", Some(""));
        check("/get/", None);
        check("/gets?key=a", None);
        check("http://h/get?key=a", None);
    }
}

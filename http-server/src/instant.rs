//! Answers that are made on the spot: no router, no header map, no allocation.

use std::fmt;

/// Makes a body. Runs on the connection's thread while others wait: microseconds, no locks.
pub type Answer = fn(&mut Vec<u8>);

/// Paths whose `GET` is answered by a plain function. Everything else goes to the router, so a router should have the
/// same routes: it is asked for other methods, HTTP/1.0, requests with a body or an id.
///
/// ```
/// use http_server::{Instants, Kind};
///
/// let instants = Instants::default().with("/version", Kind::Text, |body| body.extend_from_slice(b"1.0"));
/// ```
#[derive(Clone, Default)]
pub struct Instants(Vec<Instant>);

#[derive(Clone)]
struct Instant {
    path: &'static str,
    kind: Kind,
    answer: Answer,
}

/// The media type of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `text/plain; charset=utf-8`
    Text,
    /// `application/json`
    Json,
}

impl Kind {
    /// The value of `Content-Type`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Json => "application/json",
        }
    }

    /// The head up to the length.
    fn head(self) -> &'static [u8] {
        match self {
            Self::Text => b"HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ndate: ",
            Self::Json => b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ndate: ",
        }
    }
}

impl Instants {
    /// With one more path. The first of equal ones counts.
    #[must_use]
    pub fn with(mut self, path: &'static str, kind: Kind, answer: Answer) -> Self {
        self.0.push(Instant { path, kind, answer });
        self
    }

    /// The answer to `GET` for a target, as media type and function.
    #[inline]
    pub(crate) fn find(&self, target: &str) -> Option<(Kind, Answer)> {
        let found = self.0.iter().find(|instant| instant.path == target)?;
        Some((found.kind, found.answer))
    }
}

impl fmt::Debug for Instants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|instant| instant.path)).finish()
    }
}

/// Appends a whole response of HTTP/1.1. `body` is emptied first.
pub(crate) fn write(kind: Kind, answer: Answer, date: &[u8; 29], ends: bool, body: &mut Vec<u8>, out: &mut Vec<u8>) {
    body.clear();
    answer(body);
    out.extend_from_slice(kind.head());
    out.extend_from_slice(date);
    out.extend_from_slice(b"\r\ncontent-length: ");
    out.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
    out.extend_from_slice(if ends { b"\r\nconnection: close\r\n\r\n" } else { b"\r\n\r\n" });
    out.extend_from_slice(body);
}

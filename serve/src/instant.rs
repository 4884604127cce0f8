//! Answers that are made on the spot: no router, no header map, no allocation.

use std::fmt;

use crate::h1;

/// Makes a body. Runs on the connection's thread while others wait: microseconds, no locks.
pub type Answer = fn(&mut Vec<u8>);

/// The same for a name that the path consists of.
pub type NameAnswer = fn(&str, &mut Vec<u8>);

/// Bytes of the longest name that is answered on the spot.
const NAME_MAX: usize = 128;

/// Paths whose `GET` is answered by a plain function. Everything else goes to the router, so a router should have the
/// same routes: it is asked for other methods, HTTP/1.0, requests with a body or an id.
///
/// ```
/// use serve::{Instants, Kind};
///
/// let instants = Instants::default()
///     .with("/version", Kind::Text, |body| body.extend_from_slice(b"1.0"))
///     .with_names(&["login"], Kind::Text, |name, body| body.extend_from_slice(name.as_bytes()));
/// ```
#[derive(Clone, Default)]
pub struct Instants {
    paths: Vec<Instant>,
    names: Option<Names>,
}

#[derive(Clone)]
struct Instant {
    path: &'static str,
    kind: Kind,
    answer: Answer,
}

#[derive(Clone)]
struct Names {
    others: &'static [&'static str],
    kind: Kind,
    answer: NameAnswer,
}

/// The answer to one target.
#[derive(Clone, Copy)]
pub(crate) struct Found<'t> {
    pub(crate) kind: Kind,
    body: Body<'t>,
}

#[derive(Clone, Copy)]
enum Body<'t> {
    OfPath(Answer),
    OfName(NameAnswer, &'t str),
}

impl Found<'_> {
    /// Appends the body.
    #[inline]
    pub(crate) fn put_body(&self, out: &mut Vec<u8>) {
        match self.body {
            Body::OfPath(answer) => answer(out),
            Body::OfName(answer, name) => answer(name, out),
        }
    }
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
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.names.is_none()
    }

    /// With one more path. The first of equal ones counts.
    #[must_use]
    pub fn with(mut self, path: &'static str, kind: Kind, answer: Answer) -> Self {
        self.paths.push(Instant { path, kind, answer });
        self
    }

    /// With all paths of one segment, `/{name}`, that are not among the others: `others` are the names for which the router
    /// has routes of its own. Names that are long or have to be decoded go to the router.
    #[must_use]
    pub fn with_names(mut self, others: &'static [&'static str], kind: Kind, answer: NameAnswer) -> Self {
        self.names = Some(Names { others, kind, answer });
        self
    }

    /// The answer to `GET` for a target.
    #[inline]
    pub(crate) fn find<'t>(&self, target: &'t str) -> Option<Found<'t>> {
        if let Some(found) = self.paths.iter().find(|instant| instant.path == target) {
            return Some(Found { kind: found.kind, body: Body::OfPath(found.answer) });
        }
        let names = self.names.as_ref()?;
        let name = target.strip_prefix('/').filter(|name| is_plain_name(name) && !names.others.contains(name))?;
        Some(Found { kind: names.kind, body: Body::OfName(names.answer, name) })
    }
}

impl fmt::Debug for Instants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names.iter().map(|_| "/{name}");
        f.debug_set().entries(self.paths.iter().map(|instant| instant.path).chain(names)).finish()
    }
}

/// The characters of a segment that stands for itself (RFC 3986 section 3.3): nothing percent-encoded.
const OF_NAME: [bool; 256] = h1::alphanumerics_and(b"-._~!$&'()*+,;=:@");

/// Whether a name stands for itself, and is not long.
#[inline]
fn is_plain_name(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(|byte| OF_NAME[usize::from(byte)])
}

/// Appends a whole response of HTTP/1.1. `body` is emptied first.
pub(crate) fn write(found: Found<'_>, date: &[u8; 29], ends: bool, body: &mut Vec<u8>, out: &mut Vec<u8>) {
    body.clear();
    found.put_body(body);
    out.extend_from_slice(found.kind.head());
    out.extend_from_slice(date);
    out.extend_from_slice(b"\r\ncontent-length: ");
    out.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
    out.extend_from_slice(if ends { b"\r\nconnection: close\r\n\r\n" } else { b"\r\n\r\n" });
    out.extend_from_slice(body);
}

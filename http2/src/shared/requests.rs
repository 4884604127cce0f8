//! Requests as `http` has them, made of what the engine decoded.

use http::header::{CONNECTION, COOKIE, TRANSFER_ENCODING, UPGRADE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};

use crate::RequestHead;
use crate::hpack::Field;

/// As many as the engine remembers itself.
const REMEMBERED: usize = 4;

/// Requests made of the heads that a client sends again and again.
#[derive(Debug, Default)]
pub struct Requests {
    /// At most [`REMEMBERED`].
    known: Vec<Known>,
    next: usize,
}

#[derive(Debug)]
struct Known {
    id: u64,
    /// Made when the head has come for the second time: many heads come once.
    parts: Option<Parts>,
}

#[derive(Clone, Debug)]
struct Parts {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

impl Requests {
    /// The request of a head; none, if it has no target that `http` knows.
    pub(super) fn make(&mut self, head: &RequestHead) -> Option<Request<()>> {
        let Some(known) = self.known.iter_mut().find(|known| known.id == head.id()) else {
            self.remember(Known { id: head.id(), parts: None });
            return parts(head).map(request);
        };
        if known.parts.is_none() {
            known.parts = parts(head);
        }
        known.parts.clone().map(request)
    }

    fn remember(&mut self, known: Known) {
        if self.known.len() < REMEMBERED {
            // Most clients have one.
            self.known.reserve_exact(1);
            self.known.push(known);
        } else {
            self.known[self.next] = known;
            self.next = (self.next + 1) % REMEMBERED;
        }
    }
}

/// The request of a head that is not remembered.
pub(super) fn once(head: &RequestHead) -> Option<Request<()>> {
    parts(head).map(request)
}

fn request(Parts { method, uri, headers }: Parts) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    *request.version_mut() = Version::HTTP_2;
    request
}

fn parts(head: &RequestHead) -> Option<Parts> {
    let mut uri = http::uri::Parts::default();
    uri.scheme = head.scheme().map(Scheme::try_from).transpose().ok()?;
    uri.authority = head.authority().map(Authority::try_from).transpose().ok()?;
    uri.path_and_query = head.path().map(PathAndQuery::try_from).transpose().ok()?;
    if uri.authority.is_none() {
        uri.scheme = None;
    }
    let mut headers = headers(head.fields());
    join_cookies(&mut headers);
    Some(Parts { method: Method::from_bytes(head.method()).ok()?, uri: Uri::from_parts(uri).ok()?, headers })
}

/// Makes one field of a request's cookies. They come one by one, so that header tables can have them; those who handle requests
/// know them in one field (RFC 9113 section 8.2.3, RFC 9114 section 4.2.1).
pub fn join_cookies(headers: &mut HeaderMap) {
    let mut all = headers.get_all(COOKIE).iter();
    let (Some(first), Some(second)) = (all.next(), all.next()) else { return };
    let parts: Vec<&[u8]> = [first, second].into_iter().chain(all).map(HeaderValue::as_bytes).collect();
    let mut joined = HeaderValue::from_bytes(&parts.join(&b"; "[..])).expect("parts of such values and a separator");
    // Values of which one may not be compressed may not be as a whole.
    joined.set_sensitive(headers.get_all(COOKIE).iter().any(HeaderValue::is_sensitive));
    headers.insert(COOKIE, joined);
}

pub(super) fn headers<'a>(fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        // The engine has checked both.
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            headers.append(name, value);
        }
    }
    headers
}

/// An answer's fields as HTTP/2 has them: without those of a connection (RFC 9113 section 8.2.2). Those that are usual are kept in
/// the header table, out of which all others would push them.
pub fn fields(headers: &HeaderMap, is_usual: impl Fn(&HeaderName) -> bool) -> impl Iterator<Item = Field<'_>> {
    headers.iter().filter(|(name, _)| !is_of_connection(name)).map(move |(name, value)| {
        let (text, value_text) = (name.as_str().as_bytes(), value.as_bytes());
        match name {
            _ if value.is_sensitive() => Field::secret(text, value_text),
            name if is_usual(name) => Field::new(text, value_text),
            _ => Field::once(text, value_text),
        }
    })
}

fn is_of_connection(name: &HeaderName) -> bool {
    [CONNECTION, TRANSFER_ENCODING, UPGRADE].contains(name)
        || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

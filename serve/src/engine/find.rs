//! Finds the request at the beginning of a connection's input.

use std::ops::Range;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};

use super::later::Entry;
use super::worker::Worker;
use crate::h1::{self, Framing, Head, Reject};
use crate::instant;

/// The connection preface of HTTP/2, where no TLS has agreed on it.
const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The beginning of the input.
pub(super) enum Found<'i> {
    /// No complete head.
    Incomplete,
    /// A request that is answered on the spot.
    Instant { answer: instant::Found<'i>, ends: bool, len: usize },
    /// A request that is under way to its answer.
    Later { entry: Entry, len: usize },
    /// A request that has to wait for others' answers. It stays in the input.
    Behind,
    /// A request for the router, without its body.
    Routed { request: Box<Request<()>>, terms: Terms, len: usize },
    /// The beginning of HTTP/2. It stays in the input.
    H2,
    /// No request.
    Refused(Reject),
}

/// How a request is to be read and answered.
pub(super) struct Terms {
    pub(super) framing: Framing,
    pub(super) is_http10: bool,
    pub(super) expects_continue: bool,
    /// Whether the answer ends the connection.
    pub(super) ends: bool,
    /// Whether the answer may be another protocol.
    pub(super) offers: bool,
    /// The client's settings, if the answer may be HTTP/2's.
    pub(super) h2c: Option<Bytes>,
}

/// Looks at input of which `searched` bytes are known to hold no complete head, after `requests` on this connection, of
/// which some still wait for their answers if `is_behind`.
#[inline]
pub(super) fn find<'i>(
    input: &'i [u8],
    searched: usize,
    worker: &Worker,
    requests: u64,
    is_behind: bool,
    is_secure: bool,
) -> Found<'i> {
    let limits = &worker.settings.options.limits;
    let of_head = limits.of_head();
    if input.is_empty() || (searched > 0 && !h1::is_complete(input, searched) && input.len() <= limits.head) {
        return Found::Incomplete;
    }
    let mut room = h1::Room::new();
    let head = match h1::parse(input, &mut room, &of_head) {
        Ok(Some(head)) => head,
        Ok(None) => return Found::Incomplete,
        Err(_) if is_behind => return Found::Behind,
        Err(reject) => return not_http1(input, requests, reject),
    };
    let ends = !head.keep_alive || worker.is_draining() || requests + 1 == limits.requests;
    let is_plain = head.method == "GET"
        && head.minor == 1
        && head.framing == Framing::None
        && !head.upgrade
        && head.h2c.is_none()
        && !worker.tells_of_http3(is_secure, requests > 0);
    let has_id = || head.headers.iter().any(|header| header.name.eq_ignore_ascii_case("x-request-id"));
    if is_plain
        && !is_behind
        && let Some(answer) = worker.instant(head.target, has_id)
    {
        return Found::Instant { answer, ends, len: head.len };
    }
    let fields = || head.headers.iter().map(|header| (header.name.as_bytes(), header.value));
    if is_plain && let Some((id, encoding)) = worker.later(head.target, fields) {
        return Found::Later { entry: Entry { id, encoding, ends }, len: head.len };
    }
    if is_behind {
        return Found::Behind;
    }
    let may_change = worker.settings.rules.upgrades;
    let offers = may_change && head.upgrade && head.framing == Framing::None;
    let h2c = head.h2c.filter(|_| may_change && !ends).map(Bytes::copy_from_slice);
    let Head { framing, expects_continue, minor, len, .. } = head;
    match request(&head, input) {
        Ok(request) => {
            let terms = Terms { framing, is_http10: minor == 0, expects_continue, ends, offers, h2c };
            Found::Routed { request: Box::new(request), terms, len }
        }
        Err(reject) => Found::Refused(reject),
    }
}

/// HTTP/2's preface is no request of HTTP/1.1, on purpose.
fn not_http1(input: &[u8], requests: u64, reject: Reject) -> Found<'static> {
    if requests > 0 || !H2_PREFACE.starts_with(&input[..input.len().min(H2_PREFACE.len())]) {
        return Found::Refused(reject);
    }
    if input.len() < H2_PREFACE.len() { Found::Incomplete } else { Found::H2 }
}

/// The request as the router takes it. One copy of the head, which target and values share.
fn request(head: &Head<'_, '_>, input: &[u8]) -> Result<Request<()>, Reject> {
    let shared = Bytes::copy_from_slice(&input[..head.len]);
    let share = |part: &[u8]| shared.slice(range_in(input, part));
    let target = share(head.target.as_bytes());
    let uri = Uri::from_maybe_shared(target).map_err(|_| Reject::Malformed("the request target is invalid"))?;
    let mut headers = HeaderMap::with_capacity(head.headers.len());
    for header in head.headers {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let name = name.map_err(|_| Reject::Malformed("a header name is invalid"))?;
        let value = HeaderValue::from_maybe_shared(share(header.value));
        headers.append(name, value.map_err(|_| Reject::Malformed("a header value is invalid"))?);
    }
    if let Some(authority) = uri.authority() {
        // An absolute target names the host that counts (RFC 9112 section 3.2.2).
        let host = authority.as_str().rsplit('@').next().unwrap_or_default();
        headers.insert(HOST, HeaderValue::from_str(host).map_err(|_| Reject::Host)?);
    }
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(head.method.as_bytes()).map_err(|_| Reject::Malformed("no method"))?;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    *request.version_mut() = if head.minor == 0 { Version::HTTP_10 } else { Version::HTTP_11 };
    Ok(request)
}

/// Where `part`, which is a part of `whole`, is in it.
fn range_in(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr() - whole.as_ptr().addr();
    start..start + part.len()
}

//! `GET /get?key=…`: a value as it is. The router's way, and a shorter one for requests that are plain.

use std::borrow::Cow;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::{Buf, Bytes};
use http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use percent_encoding::percent_decode;

use super::answer::{Refusal, plain};
use super::{Api, cors};
use crate::redis::reply::{Element, Elements};
use crate::redis::wire::put_command;
use crate::redis::{Come, Failure, Redis, Ticket};
use serve::tuning::LARGE_PIECE;
use serve::{Later, Reply};

/// Where it is.
pub(super) const PATH: &str = "/get";

/// The body of the answer to a key that is not there.
const MISSING: &str = "there is no such key\n";

/// `GET /get?key=foo`: the key's value; 404 if there is none.
///
/// The request is taken as it is: extractors would copy its headers.
pub(super) async fn get(State(api): State<Api>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let mut response = match value(&api, &head).await {
        Ok(response) => response,
        Err(refusal) => refusal.count(&api).into_plain(),
    };
    cors::allow(&api, cors::origin_header(&api, &head.headers), &mut response);
    response
}

async fn value(api: &Api, head: &Parts) -> Result<Response, Refusal> {
    let Some(key) = key(head.uri.query().unwrap_or_default().as_bytes()) else {
        return Ok(plain(StatusCode::BAD_REQUEST, "a key is expected: /get?key=NAME\n"));
    };
    api.check_host(head)?;
    api.shared.access.rules(&head.headers)?.check_get(&key)?;
    let reply = api.redis()?.command(&[b"GET".as_slice(), &key]).await?;
    match Elements::new(&reply).next() {
        Some(Element::Bytes(value)) => {
            let len = value.len();
            Ok(value_response(reply, len))
        }
        Some(Element::Error(error)) => Err(Refusal::of_redis(error)),
        _ => Ok(plain(StatusCode::NOT_FOUND, MISSING)),
    }
}

/// The value out of `$3\r\nfoo\r\n`, without a copy.
fn value_response(mut reply: Bytes, len: usize) -> Response {
    reply.advance(reply.len() - len - 2);
    reply.truncate(len);
    let media_type = media_type(&reply);
    let mut response = Response::new(Body::from(reply));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Told as text only where it is: a browser is never to guess, and take a value for a page.
fn media_type(value: &[u8]) -> &'static str {
    if std::str::from_utf8(value).is_ok() { TEXT } else { BYTES }
}

const TEXT: &str = "text/plain; charset=utf-8";
const BYTES: &str = "application/octet-stream";

/// The short way, for requests without a token.
#[derive(Debug)]
pub(super) struct Getter {
    api: Api,
    redis: Redis,
}

impl Getter {
    /// There is none where nothing can be read, or where answers depend on a page's origin.
    pub(super) fn of(api: &Api) -> Option<Self> {
        let shared = &api.shared;
        shared.access.anonymous().filter(|_| shared.origins.is_empty())?;
        Some(Self { api: api.clone(), redis: shared.redis.clone()? })
    }

    fn reply<'a>(&self, answer: Result<Come<'a>, Failure>) -> Reply<'a> {
        let refused = |refusal: Refusal| Reply::Response(refusal.count(&self.api).into_plain());
        let come = match answer {
            Ok(come) => come,
            Err(failure) => return refused(failure.into()),
        };
        let reply = come.peek();
        let range = match Elements::new(reply).next() {
            Some(Element::Bytes(value)) => reply.len() - value.len() - 2..reply.len() - 2,
            Some(Element::Error(error)) => return refused(Refusal::of_redis(error)),
            _ => return Reply::Body { status: StatusCode::NOT_FOUND, fields: TEXT_FIELDS, body: MISSING.as_bytes() },
        };
        if range.len() >= LARGE_PIECE {
            return Reply::Response(value_response(come.take(), range.len()));
        }
        let body = &come.bytes()[range];
        let fields = if media_type(body) == TEXT { TEXT_FIELDS } else { BYTES_FIELDS };
        Reply::Body { status: StatusCode::OK, fields, body }
    }
}

const TEXT_FIELDS: &str = "content-type: text/plain; charset=utf-8\r\nx-content-type-options: nosniff\r\n";
const BYTES_FIELDS: &str = "content-type: application/octet-stream\r\nx-content-type-options: nosniff\r\n";

impl Later for Getter {
    fn path(&self) -> &str {
        PATH
    }

    fn serves(&self, host: &[u8]) -> bool {
        self.api.shared.hosts.have(host)
    }

    fn ask(&self, query: &str) -> Option<u64> {
        let key = key(query.as_bytes())?;
        self.api.shared.access.anonymous()?.check_get(&key).ok()?;
        let ticket = self.redis.ticket(1, |out| put_command(out, &[b"GET".as_slice(), &key]));
        ticket.ok().map(Ticket::to_bits)
    }

    fn answer(&self, id: u64, cx: &Context<'_>, take: &mut dyn FnMut(Reply<'_>)) -> Poll<()> {
        self.redis.take(Ticket::from_bits(id), cx, |answer| take(self.reply(answer)))
    }

    fn forget(&self, id: u64) {
        self.redis.forget(Ticket::from_bits(id));
    }
}

/// The first `key` of a query, decoded as forms are: `+` is a blank.
fn key(query: &[u8]) -> Option<Cow<'_, [u8]>> {
    let value = query.split(|byte| *byte == b'&').find_map(|pair| pair.strip_prefix(b"key="))?;
    if !value.iter().any(|byte| matches!(byte, b'+' | b'%')) {
        return Some(Cow::Borrowed(value));
    }
    let blanks: Vec<u8> = value.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    Some(percent_decode(&blanks).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        fn check(query: &str, expected: Option<&[u8]>) {
            assert_eq!(key(query.as_bytes()).as_deref(), expected, "{query}");
        }
        check("key=foo", Some(b"foo"));
        check("a=b&key=foo&key=bar", Some(b"foo"));
        check("key=a+b%2Bc%00%FF", Some(b"a b+c\0\xff"));
        check("key=", Some(b""));
        check("mykey=a", None);
        check("key", None);
        check("", None);
    }
}

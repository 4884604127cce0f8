//! `GET /get?key=…`: a value as it is.

use std::borrow::Cow;

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
    api.shared.access.rules(&head.headers)?.check_get(&key)?;
    let reply = api.redis()?.command(&[b"GET".as_slice(), &key]).await?;
    match Elements::new(&reply).next() {
        Some(Element::Bytes(value)) => {
            let len = value.len();
            Ok(value_response(reply, len))
        }
        Some(Element::Error(error)) => Err(Refusal::of_redis(error)),
        _ => Ok(plain(StatusCode::NOT_FOUND, "there is no such key\n")),
    }
}

/// The value out of `$3\r\nfoo\r\n`, without a copy.
fn value_response(mut reply: Bytes, len: usize) -> Response {
    reply.advance(reply.len() - len - 2);
    reply.truncate(len);
    // Told as text only where it is: a browser is never to guess, and take a value for a page.
    let text = std::str::from_utf8(&reply).is_ok();
    let media_type = if text { "text/plain; charset=utf-8" } else { "application/octet-stream" };
    let mut response = Response::new(Body::from(reply));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
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

//! Conditional requests (RFC 9110 section 13).

use axum::body::Body;
use axum::response::Response;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};

/// Among the extensions of a 304: the head of the 200 in whose place it is, which says whether that would be compressed.
#[derive(Clone, Debug)]
pub struct Unmodified(pub HeaderMap);

/// A line of `If-None-Match` is `*` or has this strong tag, compared weakly (section 8.8.3.2). A comma may be part of a tag.
pub fn names(line: &HeaderValue, tag: &[u8]) -> bool {
    let mut is_within = false;
    let mut tags = line.as_bytes().split(|byte| {
        is_within ^= *byte == b'"';
        *byte == b',' && !is_within
    });
    line == "*"
        || tags.any(|other| {
            let other = other.trim_ascii();
            other.strip_prefix(b"W/").unwrap_or(other) == tag
        })
}

/// The 200 of this hash and length with its `ETag`, or a 304 if the request has that tag.
pub fn tagged(mut response: Response, hash: u128, length: usize, request: &HeaderMap) -> Response {
    let tag = format!("\"{hash:032x}\"");
    if request.get_all(IF_NONE_MATCH).iter().any(|line| names(line, tag.as_bytes())) {
        let mut whole = response.headers().clone();
        whole.insert(CONTENT_LENGTH, length.into());
        response.extensions_mut().insert(Unmodified(whole));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(CONTENT_TYPE);
    }
    let tag = HeaderValue::from_str(&tag).expect("hexadecimal digits in quotes");
    response.headers_mut().insert(ETAG, tag);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_tags() {
        let check = |line: &'static str, expected| {
            assert_eq!(names(&HeaderValue::from_static(line), b"\"a,b\""), expected, "{line}");
        };
        for line in ["*", "\"a,b\"", "W/\"a,b\"", "\"x\" , \"a,b\"", "\"x,\",W/\"a,b\",\"y\""] {
            check(line, true);
        }
        for line in ["", "\"a", "a,b", "\"x,\"a,b\"", "\"a\", \"b\"", "w/\"a,b\""] {
            check(line, false);
        }
    }
}

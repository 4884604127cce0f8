//! Web pages of other origins: which may read answers, and that none may write through a visitor's browser unasked.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, AUTHORIZATION, CONTENT_TYPE, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};

use super::answer::METHODS;
use super::{Api, hosts};

/// How long a browser may remember what it was told: ten minutes.
const MAX_AGE: &str = "600";

/// Answers `OPTIONS`. Whether the origin is allowed says the header that [`origin_header`] gives, or its absence.
pub(super) async fn preflight(State(api): State<Api>, request: Request<Body>) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(http::header::ALLOW, HeaderValue::from_static(METHODS));
    if let Some(origin) = origin_header(&api, request.headers()) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE"));
        let allowed = "authorization, content-type, accept, if-none-match";
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    }
    headers.append(VARY, HeaderValue::from_static("origin"));
    response
}

/// Lets pages of allowed origins read an answer.
pub(super) fn allow(api: &Api, origin: Option<HeaderValue>, response: &mut Response) {
    if api.shared.origins.is_empty() {
        return;
    }
    let headers = response.headers_mut();
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("etag, retry-after"));
    }
    headers.append(VARY, HeaderValue::from_static("origin"));
}

/// The value that allows the sender's origin: the configured text, never the text that was sent.
pub(super) fn origin_header(api: &Api, headers: &HeaderMap) -> Option<HeaderValue> {
    let sent = headers.get(ORIGIN)?;
    api.shared.origins.iter().find(|origin| *origin == "*" || *origin == sent).cloned()
}

/// Whether a browser sent this for a page of another origin that is not allowed. Such a page cannot read the answer, but
/// a command that writes would have run by then.
pub(super) fn is_foreign(api: &Api, head: &Parts) -> bool {
    let headers = &head.headers;
    if origin_header(api, headers).is_some() {
        return false;
    }
    if let Some(origin) = headers.get(ORIGIN) {
        let host = hosts::of(head);
        let sent = origin.as_bytes();
        let at = sent.windows(3).position(|three| three == b"://").map_or(0, |at| at + 3);
        return !sent[at..].eq_ignore_ascii_case(host);
    }
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    matches!(site, Some(b"cross-site" | b"same-site"))
}

/// Media types that forms have, and so what any page can have a browser send without asking first
/// (<https://fetch.spec.whatwg.org/#cors-safelisted-request-header>).
const OF_FORMS: [&str; 3] = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];

/// Whether any page can have a visitor's browser send this without asking us first: then it may be nobody's wish, and
/// browsers that are told nothing but an address over plain HTTP do not say where it comes from.
pub(super) fn is_simple(head: &Parts) -> bool {
    let is_of_form = |value: &HeaderValue| {
        let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        OF_FORMS.iter().any(|form| essence.eq_ignore_ascii_case(form.as_bytes()))
    };
    match head.method {
        Method::GET | Method::HEAD => true,
        Method::POST => {
            let mut types = head.headers.get_all(CONTENT_TYPE).iter().peekable();
            let is_typed = types.peek().is_some() && types.all(|value| !is_of_form(value));
            !is_typed && !head.headers.contains_key(AUTHORIZATION)
        }
        _ => false,
    }
}

/// Whether a request can have an effect only through what it asks, never by being repeated.
pub(super) fn is_safe(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

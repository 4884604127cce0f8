//! Access to the server: the requested name must be ours, and the client must have the token if there is one. Pages of
//! other sites can change nothing.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::problem::Problem;
use crate::commands::Web as Args;
use crate::failure::Failure;

/// The variable of the environment that has the token, where there is no file.
const VARIABLE: &str = "ECHONET_WEB_TOKEN";
/// Fewer letters can be tried out.
const SHORTEST: usize = 16;

/// The rules of access.
#[derive(Debug)]
pub(super) struct Guard {
    /// Names of the server, besides addresses and those of this machine, for which no DNS is asked: a page of another
    /// name could become one of ours, by the address that its owner's DNS gives for it (DNS rebinding).
    hosts: Vec<String>,
    token: Option<String>,
}

impl Guard {
    /// # Errors
    /// Others could reach it, and there is no token; or something in the settings is none of what it should be.
    pub(super) fn new(args: &Args) -> Result<Self, Failure> {
        let token = match &args.token_file {
            Some(file) => {
                let text = std::fs::read_to_string(file);
                Some(text.map_err(|error| Failure::Input(format!("{}: {error}", file.display())))?)
            }
            None => std::env::var(VARIABLE).ok(),
        };
        let token = token.map(|text| text.trim().to_owned());
        if let Some(token) = &token
            && (token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            let wrong = format!(
                "a token has {SHORTEST} or more letters, digits and signs, and no blanks: head -c 24 /dev/urandom | base64"
            );
            return Err(Failure::Input(wrong));
        }
        if token.is_none() && !args.listen.ip().is_loopback() {
            let open = format!(
                "--listen {}: whoever reaches it could switch the home, so --token-file is needed",
                args.listen
            );
            return Err(Failure::Input(open));
        }
        let is_name = |name: &&String| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
        };
        if let Some(wrong) = args.host.iter().find(|name| !is_name(name)) {
            return Err(Failure::Input(format!("--host `{wrong}`: a name without a port is wanted, home.example")));
        }
        Ok(Self { hosts: args.host.iter().map(|name| name.to_ascii_lowercase()).collect(), token })
    }

    /// Why a request is not served; nothing if it is.
    fn refusal(&self, request: &Request) -> Option<Problem> {
        let (method, path, headers) = (request.method(), request.uri().path(), request.headers());
        let host = request.uri().authority().map(|authority| authority.as_str().as_bytes());
        let host = host.or_else(|| headers.get(HOST).map(HeaderValue::as_bytes)).unwrap_or_default();
        if !self.has(host) {
            let wrong = "this server is not called so; --host NAME allows a name";
            return Some(Problem::reference(StatusCode::MISDIRECTED_REQUEST, wrong));
        }
        let is_write = ![Method::GET, Method::HEAD, Method::OPTIONS].contains(method);
        if is_write && is_foreign(headers, host) {
            let wrong = "a page of another site cannot change anything here";
            return Some(Problem::reference(StatusCode::FORBIDDEN, wrong));
        }
        let is_static = !path.starts_with("/elapi") && !["/events", "/metrics"].contains(&path);
        if !is_static && !self.is_allowed(headers) {
            let wrong = "the token is missing or wrong: Authorization: Bearer TOKEN, or X-Elapi-key: TOKEN";
            return Some(Problem::reference(StatusCode::UNAUTHORIZED, wrong));
        }
        // Any page can have a browser send what forms send, and old browsers do not say for which page.
        if [Method::POST, Method::PUT].contains(method) && !is_json(headers) {
            let wrong = "Content-Type: application/json is wanted";
            return Some(Problem::malformed(StatusCode::UNSUPPORTED_MEDIA_TYPE, wrong));
        }
        None
    }

    /// True for a name of this server, with a port or without. A request without a name comes from no browser.
    fn has(&self, host: &[u8]) -> bool {
        // A name that ends in a number is an address to every browser, or nothing (WHATWG URL, section 3.5).
        let is_address = host.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b':'));
        if host.starts_with(b"[") || is_address {
            return true;
        }
        let name = host.split(|byte| *byte == b':').next().unwrap_or_default();
        let name = name.strip_suffix(b".").unwrap_or(name).to_ascii_lowercase();
        // No server has names below localhost to give (RFC 6761 section 6.3).
        name == b"localhost" || name.ends_with(b".localhost") || self.hosts.iter().any(|known| known.as_bytes() == name)
    }

    fn is_allowed(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let key = headers.get("x-elapi-key").and_then(|value| value.to_str().ok());
        bearer.or(key).is_some_and(|shown| is_same(shown.as_bytes(), token.as_bytes()))
    }
}

/// Compares in a time that tells nothing but lengths.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && std::hint::black_box(one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b))) == 0
}

/// Whether a browser sends this for a page of another site.
fn is_foreign(headers: &HeaderMap, host: &[u8]) -> bool {
    if let Some(origin) = headers.get(ORIGIN) {
        let sent = origin.as_bytes();
        let at = sent.windows(3).position(|three| three == b"://").map_or(0, |at| at + 3);
        return !sent[at..].eq_ignore_ascii_case(host);
    }
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    matches!(site, Some(b"cross-site" | b"same-site"))
}

fn is_json(headers: &HeaderMap) -> bool {
    let essence = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes).split(|byte| *byte == b';').next();
    essence.unwrap_or_default().trim_ascii().eq_ignore_ascii_case(b"application/json")
}

/// Serves the requests that the guard lets in, and gives every refusal the form that the API has.
pub(super) async fn guard(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    if let Some(problem) = guard.refusal(&request) {
        let mut response = problem.into_response();
        if response.status() == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        return sealed(response);
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let mut response = next.run(request).await;
    let is_ours = response.headers().get(CONTENT_TYPE).is_some_and(|of| of == "application/json");
    if response.status().is_client_error() && !is_ours {
        let allowed = response.headers().get(ALLOW).cloned();
        let problem = match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => {
                Problem::reference(StatusCode::METHOD_NOT_ALLOWED, format!("{path:.200} has no method {method:.20}"))
            }
            status => Problem::reference(status, format!("there is nothing at {path:.200}")),
        };
        response = problem.into_response();
        allowed.map(|allowed| response.headers_mut().insert(ALLOW, allowed));
    }
    sealed(response)
}

/// Adds headers so that clients neither guess the type of an answer nor keep it.
fn sealed(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    #[test]
    fn only_allowed_hosts_origins_and_tokens_are_served() {
        let check = |token: Option<&str>, method: &str, path: &str, headers: &[(&str, &str)], expected: u16| {
            let guard = Guard { hosts: vec!["home.example".to_owned()], token: token.map(str::to_owned) };
            let mut request = axum::http::Request::builder().method(method).uri(path);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let refusal = guard.refusal(&request.body(Body::empty()).unwrap());
            let status = refusal.map_or(200, |problem| problem.status.as_u16());
            assert_eq!(status, expected, "{token:?} {method} {path} {headers:?}");
        };
        let json = ("content-type", "application/json; charset=utf-8");
        for host in
            ["127.0.0.1:8610", "[::1]:8610", "localhost", "a.localhost:1", "HOME.example.", "home.example:8610", ""]
        {
            check(None, "GET", "/elapi", &[("host", host)], 200);
        }
        for host in [
            "evil.example",
            "home.example.evil.example",
            "localhost.evil.example",
            "xlocalhost",
            "127.0.0.1.evil.example",
        ] {
            check(None, "GET", "/elapi", &[("host", host)], 421);
        }
        let local = ("host", "localhost:8610");
        check(None, "PUT", "/elapi", &[local, json], 200);
        check(None, "PUT", "/elapi", &[local, json, ("origin", "http://localhost:8610")], 200);
        check(None, "PUT", "/elapi", &[local, json, ("origin", "http://localhost:8611")], 403);
        check(None, "PUT", "/elapi", &[local, json, ("origin", "null")], 403);
        check(None, "DELETE", "/elapi", &[local, ("sec-fetch-site", "cross-site")], 403);
        check(None, "DELETE", "/elapi", &[local, ("sec-fetch-site", "same-origin")], 200);
        check(None, "GET", "/elapi", &[local, ("origin", "http://evil.example")], 200);
        check(None, "POST", "/elapi", &[local, ("content-type", "text/plain")], 415);
        check(None, "POST", "/elapi", &[local], 415);
        let token = Some("0123456789abcdef");
        check(token, "GET", "/", &[local], 200);
        check(token, "GET", "/openapi.json", &[local], 200);
        check(token, "GET", "/events", &[local], 401);
        check(token, "GET", "/elapi/v1", &[local], 401);
        check(token, "GET", "/elapi/v1", &[local, ("authorization", "Bearer 0123456789abcdeg")], 401);
        check(token, "GET", "/elapi/v1", &[local, ("authorization", "Basic 0123456789abcdef")], 401);
        check(token, "GET", "/elapi/v1", &[local, ("authorization", "bearer 0123456789abcdef")], 200);
        check(token, "GET", "/elapi/v1", &[local, ("x-elapi-key", "0123456789abcdef")], 200);
    }
}

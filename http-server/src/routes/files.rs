//! The files of a directory, by tower-http's `ServeDir`, which is asked only for what a stranger may have.

mod disk;

use std::io::{self, ErrorKind};
use std::path::Path;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{
    ETAG, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use percent_encoding::percent_decode_str;
use tower_http::services::ServeDir;
use tower_http::services::fs::DefaultServeDirFallback;

use disk::Disk;

/// Bytes of the longest name of a file on Linux.
const NAME_MAX: usize = 255;

/// The one name with a dot in front that is meant for everybody (RFC 8615).
const WELL_KNOWN: &[u8] = b".well-known";

/// A directory whose files are served.
#[derive(Clone, Debug)]
pub(super) struct Files(ServeDir<DefaultServeDirFallback, Disk>);

impl Files {
    /// # Errors
    /// When there is no such directory.
    pub(super) fn of(root: &Path) -> io::Result<Self> {
        let files = ServeDir::with_backend(root, Disk::of(root)?);
        Ok(Self(files.precompressed_br().precompressed_zstd().precompressed_gzip()))
    }

    pub(super) async fn answer(self, mut request: Request<Body>) -> Response {
        if !is_name(request.uri().path()) {
            return StatusCode::NOT_FOUND.into_response();
        }
        if !one_range(request.method(), request.headers()) {
            request.headers_mut().remove(RANGE);
        }
        let validator = request.headers_mut().remove(IF_RANGE);
        if let Some(validator) = validator.filter(|_| request.headers().contains_key(RANGE))
            && !self.is_current(whole(&request), &validator).await
        {
            request.headers_mut().remove(RANGE);
        }
        self.ask(request).await
    }

    /// Whether a client that has a part of a file may get another one (RFC 9110 section 13.1.5): the file is the one that
    /// this validator is of. Weak ones tell too little.
    async fn is_current(&self, whole: Request<Body>, validator: &HeaderValue) -> bool {
        let answer = self.ask(whole).await;
        let current = if validator.as_bytes().starts_with(b"\"") { ETAG } else { LAST_MODIFIED };
        answer.headers().get(current) == Some(validator)
    }

    async fn ask(&self, request: Request<Body>) -> Response {
        match self.0.clone().try_call(request).await {
            Ok(response) => response.map(Body::new),
            Err(error) => refused(&error).into_response(),
        }
    }
}

/// What is said of a file that cannot be opened.
fn refused(error: &io::Error) -> StatusCode {
    match error.kind() {
        // A name that no file can have is none of ours; so is one beside it with the suffix of a packed file.
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename => StatusCode::NOT_FOUND,
        ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
        _ => {
            tracing::warn!("a file could not be served: {error}");
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}

/// What asks about the file that a request asks for a part of.
fn whole(request: &Request<Body>) -> Request<Body> {
    let mut whole = Request::new(Body::empty());
    *whole.method_mut() = Method::HEAD;
    *whole.uri_mut() = request.uri().clone();
    *whole.headers_mut() = request.headers().clone();
    for name in [RANGE, IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE] {
        whole.headers_mut().remove(name);
    }
    whole
}

/// Whether a request's path is one that a file or directory below the root may have. Nothing of it begins with a dot, and nothing
/// is empty: `//host` would be another server where a redirect repeats it.
fn is_name(path: &str) -> bool {
    let Some(path) = path.strip_prefix('/') else { return false };
    let Ok(decoded) = percent_decode_str(path).decode_utf8() else { return false };
    let mut names = decoded.split('/').peekable();
    while let Some(name) = names.next() {
        // Behind the last slash there is the directory itself.
        let is_fine = !name.is_empty() || names.peek().is_none();
        let is_seen = !name.starts_with('.') || name.as_bytes() == WELL_KNOWN;
        if !is_fine || !is_seen || name.len() > NAME_MAX || name.contains('\0') {
            return false;
        }
    }
    // A slash within a name was no separator in the request.
    decoded.matches('/').count() == path.matches('/').count()
}

/// Whether exactly one range of bytes is asked for. Several would be answered in one message each; a server may send the
/// whole instead, as it does for what is no range (RFC 9110 section 14.2).
fn one_range(method: &Method, headers: &HeaderMap) -> bool {
    let mut ranges = headers.get_all(RANGE).iter();
    let (Some(range), None) = (ranges.next(), ranges.next()) else { return false };
    let bounds = || range.to_str().ok()?.strip_prefix("bytes=")?.trim().split_once('-');
    let number =
        |text: &str| (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse::<u64>());
    match bounds().map(|(first, last)| (number(first), number(last), first.is_empty(), last.is_empty())) {
        Some((Some(Ok(first)), Some(Ok(last)), ..)) => *method == Method::GET && first <= last,
        Some((Some(Ok(_)), None, _, true) | (None, Some(Ok(_)), true, _)) => *method == Method::GET,
        _ => false,
    }
}

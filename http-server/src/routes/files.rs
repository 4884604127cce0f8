//! The files of a directory, by tower-http's `ServeDir`, which is asked only for what a stranger may have.

mod disk;

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_MATCH, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use httpdate::HttpDate;
use percent_encoding::percent_decode_str;
use tower_http::services::ServeDir;
use tower_http::services::fs::DefaultServeDirFallback;

use disk::Disk;

use serve::conditional::{Unmodified, names};
use serve::file_part::FilePart;
use serve::tuning::FILE_MIN;

/// Bytes of the longest name of a file on Linux.
const NAME_MAX: usize = 255;

/// The one name with a dot in front that is meant for all clients (RFC 8615).
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
        let range = Range::of(request.method(), request.headers());
        let conditions = Conditions::take(request.headers_mut());
        set_range(request.headers_mut(), range);
        let validator = request.headers_mut().remove(IF_RANGE);
        if let Some(validator) = validator.filter(|_| range.is_some())
            && !self.is_current(whole(&request), &validator).await
        {
            request.headers_mut().remove(RANGE);
        }
        let ranged = request.headers().contains_key(RANGE).then(|| copy(&request));
        let mut response = self.ask(request).await;
        if let (Some(asked), Some(range)) = (&ranged, range)
            && let Some(size) = size_of_ranged(&response)
            && let Some(other) = range.otherwise(size)
        {
            let mut request = copy(asked);
            set_range(request.headers_mut(), other);
            response = self.ask(request).await;
        }
        if !conditions.is_unmodified(&response) {
            return response;
        }
        // Conditions are about the whole, even if a part of it is asked for.
        match ranged {
            Some(asked) => unmodified(self.ask(whole(&asked)).await),
            None => unmodified(response),
        }
    }

    /// Whether a client that has a part of a file may get another one (RFC 9110 section 13.1.5): the file is the one that
    /// this validator is of. Weak ones tell too little.
    async fn is_current(&self, whole: Request<Body>, validator: &HeaderValue) -> bool {
        let answer = self.ask(whole).await;
        let current = if validator.as_bytes().starts_with(b"\"") { ETAG } else { LAST_MODIFIED };
        answer.headers().get(current) == Some(validator)
    }

    async fn ask(&self, request: Request<Body>) -> Response {
        let mut files = self.0.clone();
        let has_body = request.method() == Method::GET;
        let (answer, opened) = disk::noting_file(files.try_call(request)).await;
        let response = match answer {
            Ok(response) => response,
            Err(error) => return refused(&error).into_response(),
        };
        let Some(part) = opened.filter(|_| has_body).and_then(|file| part_of(file, &response)) else {
            return response.map(Body::new);
        };
        if part.left >= FILE_MIN {
            let mut response = response.map(Body::new);
            response.extensions_mut().insert(part);
            return response;
        }
        match part.cached() {
            Some(bytes) => response.map(|_| Body::from(bytes)),
            None => response.map(Body::new),
        }
    }
}

/// The part of a file that is the body of an answer.
fn part_of<B>(file: Arc<File>, response: &Response<B>) -> Option<FilePart> {
    let number = |text: &str| text.parse().ok();
    let left = number(response.headers().get(CONTENT_LENGTH)?.to_str().ok()?)?;
    let at = match response.status() {
        StatusCode::OK => 0,
        StatusCode::PARTIAL_CONTENT => {
            let range = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
            number(range.strip_prefix("bytes ")?.split_once('-')?.0)?
        }
        _ => return None,
    };
    Some(FilePart { file, at, left })
}

/// The status for a file that cannot be opened.
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

/// A request about the whole file of which a request asks for a part.
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

/// The same request once more, without its body, which files do not look at.
fn copy(request: &Request<Body>) -> Request<Body> {
    let mut copy = Request::new(Body::empty());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}

/// One range of bytes (RFC 9110 section 14.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    /// From this byte on, to that one or the end.
    From(u64, Option<u64>),
    /// So many at the end.
    Last(u64),
}

impl Range {
    /// The range that is asked for, if it is exactly one. Several would be answered in one message each; a server may send the whole
    /// instead, as it does for what is no range (RFC 9110 section 14.2).
    fn of(method: &Method, headers: &HeaderMap) -> Option<Self> {
        let mut ranges = headers.get_all(RANGE).iter().filter(|_| *method == Method::GET);
        let (Some(range), None) = (ranges.next(), ranges.next()) else { return None };
        let (unit, bounds) = range.to_str().ok()?.split_once('=')?;
        let (first, last) = bounds.trim().split_once('-').filter(|_| unit.eq_ignore_ascii_case("bytes"))?;
        match (position(first), position(last)) {
            (Some(first), Some(last)) if first <= last => Some(Self::From(first, Some(last))),
            (Some(first), None) if last.is_empty() => Some(Self::From(first, None)),
            (None, Some(count)) if first.is_empty() => Some(Self::Last(count)),
            _ => None,
        }
    }

    /// The range to ask for instead of a file of so many bytes, if tower-http does not know how to answer this one:
    /// another range, or the whole.
    fn otherwise(self, size: u64) -> Option<Option<Self>> {
        match self {
            // Content-Range cannot name a part of nothing.
            _ if size == 0 => Some(None),
            Self::Last(count) if count > size => Some(Some(Self::From(0, None))),
            Self::From(..) | Self::Last(_) => None,
        }
    }
}

/// A number of any length: no file has more bytes than the largest of ours.
fn position(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Asks for this range, written as tower-http reads it, or for the whole.
fn set_range(headers: &mut HeaderMap, range: Option<Range>) {
    let text = match range {
        None => return drop(headers.remove(RANGE)),
        Some(Range::From(first, None)) => format!("bytes={first}-"),
        Some(Range::From(first, Some(last))) => format!("bytes={first}-{last}"),
        Some(Range::Last(count)) => format!("bytes=-{count}"),
    };
    headers.insert(RANGE, HeaderValue::try_from(text).expect("digits"));
}

/// How many bytes a file has, if a part of it was asked for.
fn size_of_ranged(response: &Response) -> Option<u64> {
    response.headers().get(CONTENT_RANGE)?.to_str().ok()?.rsplit('/').next()?.parse().ok()
}

/// Conditions of a client that may already have the file. tower-http reads only the first line of a list. Its 304 does not say what the
/// answer depends on. It judges the conditions that come before these.
#[derive(Debug)]
struct Conditions {
    tags: Vec<HeaderValue>,
    since: Option<HttpDate>,
}

impl Conditions {
    /// Takes them from a request, and joins the lines of `If-Match`.
    fn take(headers: &mut HeaderMap) -> Self {
        let lines: Vec<_> = headers.get_all(IF_MATCH).iter().map(HeaderValue::as_bytes).collect();
        if lines.len() > 1
            && let Ok(joined) = HeaderValue::from_bytes(&lines.join(&b", "[..]))
        {
            headers.insert(IF_MATCH, joined);
        }
        let tags = headers.get_all(IF_NONE_MATCH).iter().cloned().collect();
        headers.remove(IF_NONE_MATCH);
        let since = headers.remove(IF_MODIFIED_SINCE);
        Self { tags, since: since.and_then(|since| since.to_str().ok()?.parse().ok()) }
    }

    /// Whether the client has what this answer would send (RFC 9110 section 13.2.2).
    fn is_unmodified(&self, response: &Response) -> bool {
        let is_found = matches!(
            response.status(),
            StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE
        );
        let headers = response.headers();
        if !is_found {
            return false;
        }
        if self.tags.is_empty() {
            let modified = || headers.get(LAST_MODIFIED)?.to_str().ok()?.parse::<HttpDate>().ok();
            return self.since.is_some_and(|since| modified().is_some_and(|modified| modified <= since));
        }
        let tag = headers.get(ETAG).map(HeaderValue::as_bytes);
        let is_it = |line: &HeaderValue| names(line, tag.unwrap_or_default());
        self.tags.iter().any(is_it)
    }
}

/// The 304 in the place of an answer, with that answer's fields about the representation and its dependencies (RFC 9110
/// section 15.4.5).
fn unmodified(response: Response) -> Response {
    let (mut head, _) = response.into_parts();
    head.extensions.insert(Unmodified(head.headers.clone()));
    for name in [ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE] {
        head.headers.remove(name);
    }
    head.status = StatusCode::NOT_MODIFIED;
    Response::from_parts(head, Body::empty())
}

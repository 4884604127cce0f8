//! Compression of responses: large ones on threads that serve no connections.

use std::cell::RefCell;
use std::sync::LazyLock;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG,
    VARY,
};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::BodyExt as _;
use tokio::sync::Semaphore;

use crate::conditional::Unmodified;
use crate::engine::RequestLine;
use crate::file_part::FilePart;
use crate::tuning::{BROTLI_QUALITY, COMPRESS_HERE, COMPRESS_MAX, COMPRESS_MIN, GZIP_LEVEL, ZSTD_LEVEL};

/// A coding of content, the preferred first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Brotli,
    Zstd,
    Gzip,
}

const PREFERENCE: [(Encoding, &str); 3] =
    [(Encoding::Brotli, "br"), (Encoding::Zstd, "zstd"), (Encoding::Gzip, "gzip")];

impl Encoding {
    pub(crate) fn name(self) -> &'static str {
        PREFERENCE.iter().find(|(encoding, _)| *encoding == self).map_or("", |(_, name)| name)
    }

    fn encode(self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Brotli => {
                let params = brotli::enc::BrotliEncoderParams { quality: BROTLI_QUALITY, ..Default::default() };
                let mut out = Vec::with_capacity(bytes.len() / 3);
                brotli::BrotliCompress(&mut &bytes[..], &mut out, &params)?;
                Ok(out)
            }
            Self::Zstd => ZSTD.with_borrow_mut(|zstd| match zstd {
                Some(zstd) => zstd.compress(bytes),
                none => none.insert(zstd::bulk::Compressor::new(ZSTD_LEVEL)?).compress(bytes),
            }),
            Self::Gzip => DEFLATE.with_borrow_mut(|deflate| gzip(deflate, bytes)),
        }
    }
}

thread_local! {
    /// A deflate stream's state is a third of a megabyte. Making it anew for each response costs more than the
    /// compressing.
    static DEFLATE: RefCell<Compress> = RefCell::new(Compress::new(Compression::new(GZIP_LEVEL), false));
    static ZSTD: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
}

/// In gzip's format (RFC 1952): ten bytes without name and time, the stream, its checksum and length.
fn gzip(deflate: &mut Compress, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    deflate.reset();
    let mut out = Vec::with_capacity(HEAD.len() + bytes.len() / 3);
    out.extend_from_slice(&HEAD);
    loop {
        out.reserve(64);
        let rest = &bytes[deflate.total_in() as usize..];
        match deflate.compress_vec(rest, &mut out, FlushCompress::Finish)? {
            Status::StreamEnd => break,
            Status::Ok | Status::BufError => out.reserve(out.len()),
        }
    }
    let mut sum = Crc::new();
    sum.update(bytes);
    out.extend_from_slice(&sum.sum().to_le_bytes());
    out.extend_from_slice(&sum.amount().to_le_bytes());
    Ok(out)
}

/// Responses that are compressed at one time. It is work for processors: more threads than there are of these would not be done
/// sooner, but each would have its place in memory.
static TURNS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)));

/// The coding that the client likes best; among equals the one that we do.
pub(crate) fn accepted<B>(request: &Request<B>) -> Option<Encoding> {
    let lines = || request.headers().get_all(ACCEPT_ENCODING).iter();
    best(|| lines().filter_map(|value| value.to_str().ok()))
}

/// The same for the lines of `Accept-Encoding`.
pub(crate) fn best<'a, I: Iterator<Item = &'a str>>(lines: impl Fn() -> I) -> Option<Encoding> {
    let mut best = None;
    for (encoding, name) in PREFERENCE {
        let weight = weight(lines(), name);
        if weight > 0 && best.is_none_or(|(most, _)| weight > most) {
            best = Some((weight, encoding));
        }
    }
    best.map(|(_, encoding)| encoding)
}

/// The weight that `Accept-Encoding` gives to a coding, in thousandths (RFC 9110 section 12.5.3).
fn weight<'a>(lines: impl Iterator<Item = &'a str>, name: &str) -> u16 {
    let mut any = 0;
    for item in lines.flat_map(|line| line.split(',')) {
        let (coding, parameter) = item.split_once(';').unwrap_or((item, "q=1"));
        let weight = parameter.trim().strip_prefix("q=").and_then(|q| q.parse::<f32>().ok()).unwrap_or(0.0);
        let weight = (weight.clamp(0.0, 1.0) * 1000.0) as u16;
        match coding.trim() {
            coding if coding.eq_ignore_ascii_case(name) => return weight,
            "*" => any = weight,
            _ => {}
        }
    }
    any
}

/// The response in this encoding, if that is worth it. A body of unknown length is left alone: it may be a stream whose
/// reader waits for every piece.
pub(crate) async fn apply(
    mut response: Response,
    encoding: Encoding,
    is_head: bool,
    line: Option<&RequestLine>,
) -> Response {
    if let Some(Unmodified(headers)) = response.extensions_mut().remove() {
        // The client has the representation that it would be sent now, or one that is as good.
        if is_worth(StatusCode::OK, &headers, length_of(&headers)) {
            say_varies(response.headers_mut());
            weaken(response.headers_mut());
        }
        return response;
    }
    if !is_worth_it(&response) {
        return response;
    }
    response.extensions_mut().remove::<FilePart>();
    let (mut parts, body) = response.into_parts();
    // HEAD's answer says what GET's would; its length is not known without doing the work.
    let body = if is_head {
        parts.headers.remove(CONTENT_LENGTH);
        Body::empty()
    } else {
        // Before the body is read: a response that waits here holds no more than its beginning. It is never closed.
        let _turn = TURNS.acquire().await;
        let plain = match body.collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(error) => {
                if let Some(line) = line {
                    line.body_failed(&error);
                }
                return failed();
            }
        };
        match compressed(plain.clone(), encoding).await {
            Some(smaller) => {
                parts.headers.remove(CONTENT_LENGTH);
                Body::from(smaller)
            }
            None => return Response::from_parts(parts, Body::from(plain)),
        }
    };
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
    say_varies(&mut parts.headers);
    // Parts of the compressed bytes are no parts of what the ranges mean.
    parts.headers.remove(ACCEPT_RANGES);
    weaken(&mut parts.headers);
    Response::from_parts(parts, body)
}

async fn compressed(plain: Bytes, encoding: Encoding) -> Option<Vec<u8>> {
    let len = plain.len();
    let result = if len <= COMPRESS_HERE {
        Ok(encoding.encode(&plain))
    } else {
        tokio::task::spawn_blocking(move || encoding.encode(&plain)).await
    };
    match result {
        Ok(Ok(bytes)) if bytes.len() < len => Some(bytes),
        Ok(Ok(_)) => None,
        Ok(Err(error)) => {
            tracing::warn!("cannot compress: {error}");
            None
        }
        // Only when the runtime ends.
        Err(_) => None,
    }
}

fn failed() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

fn is_worth_it(response: &Response) -> bool {
    let headers = response.headers();
    // HEAD's body is empty, its length says what GET's would be.
    let size = match http_body::Body::size_hint(response.body()).exact() {
        None | Some(0) => length_of(headers),
        size => size,
    };
    is_worth(response.status(), headers, size)
}

fn length_of(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn is_worth(status: StatusCode, headers: &HeaderMap, size: Option<u64>) -> bool {
    let no_transform = headers
        .get(CACHE_CONTROL)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.to_ascii_lowercase().contains("no-transform"));
    status != StatusCode::PARTIAL_CONTENT
        && size.is_some_and(|size| (COMPRESS_MIN..=COMPRESS_MAX).contains(&size))
        && !headers.contains_key(CONTENT_ENCODING)
        && !headers.contains_key(CONTENT_RANGE)
        && !no_transform
        && headers.get(CONTENT_TYPE).is_some_and(is_compressible)
}

fn is_compressible(media_type: &HeaderValue) -> bool {
    let Ok(media_type) = media_type.to_str() else { return false };
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "text/event-stream" {
        return false;
    }
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || matches!(
            essence.as_str(),
            "application/json"
                | "application/javascript"
                | "application/xml"
                | "application/wasm"
                | "application/msgpack"
                | "application/vnd.msgpack"
                | "image/svg+xml"
        )
}

/// Says that the answer depends on what the client accepts; once.
fn say_varies(headers: &mut HeaderMap) {
    let names = |value: &HeaderValue| {
        let mut names = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        names.any(|name| name == b"*" || name.eq_ignore_ascii_case(b"accept-encoding"))
    };
    if !headers.get_all(VARY).iter().any(names) {
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    }
}

/// The same content in other bytes: a strong validator would promise too much (RFC 9110 section 8.8.3).
fn weaken(headers: &mut HeaderMap) {
    let Some(tag) = headers.get(ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/")) else { return };
    let weak = [b"W/", tag.as_bytes()].concat();
    if let Ok(weak) = HeaderValue::from_bytes(&weak) {
        headers.insert(ETAG, weak);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coding_that_the_client_likes_best() {
        let check = |header: &str, expected| {
            let request = Request::builder().header(ACCEPT_ENCODING, header).body(()).unwrap();
            assert_eq!(accepted(&request), expected, "{header}");
        };
        check("gzip", Some(Encoding::Gzip));
        check("gzip, deflate, br, zstd", Some(Encoding::Brotli));
        check("br;q=0.5, gzip;q=0.8", Some(Encoding::Gzip));
        check("br;q=0, *", Some(Encoding::Zstd));
        check("identity", None);
        check("*;q=0", None);
        check("", None);
        check("br;q=nonsense", None);
    }

    #[test]
    fn every_coding_can_be_read_again() {
        // A body that shrinks, one that does not, and an empty one, in turn through the same encoders.
        let mut noise = vec![1_u8; 100_000];
        let mut random = 1_u32;
        for byte in &mut noise {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (random >> 24) as u8;
        }
        for plain in [&b"abcdefgh".repeat(1000)[..], &noise, b"", &b"z".repeat(3_000_000), b"short"] {
            let encode = |encoding: Encoding| encoding.encode(plain).unwrap();
            let mut out = Vec::new();
            brotli::BrotliDecompress(&mut &encode(Encoding::Brotli)[..], &mut out).unwrap();
            assert_eq!(out, plain);
            assert_eq!(zstd::bulk::decompress(&encode(Encoding::Zstd), plain.len()).unwrap(), plain);
            out.clear();
            let zipped = encode(Encoding::Gzip);
            let mut unzips = flate2::read::GzDecoder::new(&zipped[..]);
            std::io::Read::read_to_end(&mut unzips, &mut out).unwrap();
            assert_eq!(out, plain);
            assert!(unzips.into_inner().is_empty(), "nothing stands behind the length");
        }
    }
}

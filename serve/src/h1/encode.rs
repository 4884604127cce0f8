//! The head of a response.

use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};

/// How the end of a response's body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framed {
    /// There is no body and none is announced: 1xx, 204, 304.
    Nothing,
    /// `Content-Length`.
    Length(u64),
    /// In chunks.
    Chunked,
    /// By the end of the connection (HTTP/1.0).
    Close,
}

/// Whether the connection goes on after the response, and the head's word about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It goes on, as HTTP/1.1 assumes.
    Silent,
    /// It goes on, which HTTP/1.0 has to be told.
    KeepAlive,
    /// It ends.
    Close,
    /// It goes on in another protocol.
    Upgrade,
}

/// Appends a head. `framed` and `ending` replace the headers about framing and connection.
pub fn head(
    status: StatusCode,
    headers: &HeaderMap,
    framed: Framed,
    ending: Ending,
    date: &[u8; 29],
    out: &mut Vec<u8>,
) {
    status_line(status, out);
    for (name, value) in headers {
        if name == CONTENT_LENGTH || name == TRANSFER_ENCODING || name == CONNECTION {
            continue;
        }
        field(name.as_str(), value.as_bytes(), out);
    }
    if !headers.contains_key(DATE) {
        field("date", date, out);
    }
    match framed {
        Framed::Length(length) => field("content-length", itoa::Buffer::new().format(length).as_bytes(), out),
        Framed::Chunked => field("transfer-encoding", b"chunked", out),
        Framed::Nothing | Framed::Close => {}
    }
    match ending {
        Ending::Silent => {}
        Ending::KeepAlive => field("connection", b"keep-alive", out),
        Ending::Close => field("connection", b"close", out),
        Ending::Upgrade => field("connection", b"upgrade", out),
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends a whole response that ends the connection.
pub fn refusal(status: StatusCode, reason: &str, date: &[u8; 29], out: &mut Vec<u8>) {
    status_line(status, out);
    field("content-type", b"text/plain; charset=utf-8", out);
    field("date", date, out);
    field("content-length", itoa::Buffer::new().format(reason.len() + 1).as_bytes(), out);
    field("connection", b"close", out);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(reason.as_bytes());
    out.push(b'\n');
}

/// Appends the first line.
pub(crate) fn status_line(status: StatusCode, out: &mut Vec<u8>) {
    if status == StatusCode::OK {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn field(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

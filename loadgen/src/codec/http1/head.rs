//! The head of a response.

use std::borrow::Cow;

/// The part of a head that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) framing: Framing,
    /// Whether the server closes the connection behind the response.
    pub(super) closes: bool,
}

/// How a body ends (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// After so many bytes.
    Length(u64),
    /// After its last chunk.
    Chunked,
    /// With the connection.
    UntilEnd,
}

/// How long the head is at the beginning of `input`, with the empty line at its end; nothing if it is not complete.
///
/// A line may end with LF alone (RFC 9112, 2.2).
pub(in crate::codec) fn length(input: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'\n', input).find_map(|end| match input[end + 1..] {
        [b'\n', ..] => Some(end + 2),
        [b'\r', b'\n', ..] => Some(end + 3),
        _ => None,
    })
}

/// The head with the lines that continue a field (obs-fold) joined to it: a user agent must take them so (RFC 9112, 5.2).
pub(crate) fn unfolded(head: &[u8]) -> Cow<'_, [u8]> {
    let is_fold = |end: usize| matches!(head.get(end + 1), Some(b' ' | b'\t'));
    if !memchr::memchr_iter(b'\n', head).any(is_fold) {
        return Cow::Borrowed(head);
    }
    let mut joined = Vec::with_capacity(head.len());
    for (number, line) in head.split_inclusive(|byte| *byte == b'\n').enumerate() {
        // A line between the status line and the first field is no fold.
        if number > 1 && matches!(line.first(), Some(b' ' | b'\t')) {
            joined.truncate(joined.trim_ascii_end().len());
            joined.push(b' ');
            joined.extend_from_slice(line.trim_ascii_start());
            if line.trim_ascii().is_empty() {
                joined.extend_from_slice(b"\r\n");
            }
        } else {
            joined.extend_from_slice(line);
        }
    }
    Cow::Owned(joined)
}

impl Head {
    /// Reads a head, with the empty line at its end. The error says what was expected.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let bytes = unfolded(bytes);
        let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let status_line = lines.next().unwrap_or_default();
        let (minor, status) = status_line
            .strip_prefix(b"HTTP/1.")
            .and_then(|rest| Some((*rest.first()?, rest.get(2..5)?)))
            .ok_or("a response of HTTP/1.1")?;
        let status = number(status, 10).filter(|status| *status >= 100).ok_or("a status")? as u16;
        let mut length = None;
        let mut is_chunked = false;
        // HTTP/1.0 closes unless it says otherwise.
        let mut closes = minor == b'0';
        for line in lines {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                if line.is_empty() {
                    continue;
                }
                return Err("a header");
            };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                let said = number(value, 10).ok_or("a content-length")?;
                if length.replace(said).is_some_and(|before| before != said) {
                    return Err("one content-length");
                }
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                is_chunked = has_token(value, b"chunked");
            } else if name.eq_ignore_ascii_case(b"connection") {
                closes = has_token(value, b"close") || (closes && !has_token(value, b"keep-alive"));
            }
        }
        let framing = match (is_chunked, length) {
            (true, _) => Framing::Chunked,
            (false, Some(length)) => Framing::Length(length),
            (false, None) => Framing::UntilEnd,
        };
        Ok(Self { status, framing, closes })
    }
}

/// The size of a chunk, from its line; extensions are passed over.
pub(super) fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next()?;
    number(digits.trim_ascii(), 16)
}

fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u64::from_str_radix(text, radix).ok()
}

fn has_token(value: &[u8], token: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
}

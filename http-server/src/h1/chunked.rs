//! Bodies: of known length, or in chunks.

use bytes::{Buf, Bytes, BytesMut};

use super::head::Framing;

/// Digits of a chunk's size: 16 hexadecimal ones are more than any body that is allowed.
const MAX_SIZE_DIGITS: u8 = 16;

/// Bytes of all trailer fields, which are read and dropped.
const MAX_TRAILERS: usize = 8 * 1024;

/// A chunked body that does not keep to RFC 9112 section 7.1, or that has chunk extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadChunk;

impl std::fmt::Display for BadChunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the chunked coding of the body is invalid")
    }
}

impl std::error::Error for BadChunk {}

/// Takes a body out of the bytes of a connection.
///
/// ```text
///            ┌────────────── Size ◄──────── AfterData
/// Length     │ 0               │ n             ▲
///            ▼                 ▼               │
///   Done ◄─ Trailers          Data ────────────┘
/// ```
#[derive(Debug)]
pub struct Decoder(State);

#[derive(Debug)]
enum State {
    /// So many bytes are left.
    Length(u64),
    /// In the line with a chunk's size, after so many digits.
    Size {
        size: u64,
        digits: u8,
    },
    /// So many bytes of the chunk are left.
    Data(u64),
    /// In the CRLF after a chunk.
    AfterData,
    /// In the trailer fields, of which so many bytes were read.
    Trailers(usize),
    Done,
}

impl Decoder {
    /// For a body that is framed like this.
    pub fn new(framing: Framing) -> Self {
        Self(match framing {
            Framing::None | Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Size { size: 0, digits: 0 },
        })
    }

    /// Whether the whole body was taken.
    pub fn is_done(&self) -> bool {
        matches!(self.0, State::Done)
    }

    /// The next piece of the body; `None` if there is none in `input` or the body is over ([`Decoder::is_done`]).
    ///
    /// # Errors
    /// When the chunks are not well formed; where the body ends is not known then.
    pub fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Bytes>, BadChunk> {
        loop {
            match &mut self.0 {
                State::Done => return Ok(None),
                State::Length(left) | State::Data(left) => {
                    if input.is_empty() {
                        return Ok(None);
                    }
                    let count = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                    *left -= count as u64;
                    if *left == 0 {
                        self.0 = if matches!(self.0, State::Data(_)) { State::AfterData } else { State::Done };
                    }
                    return Ok(Some(input.split_to(count).freeze()));
                }
                State::Size { .. } | State::AfterData | State::Trailers(_) => {
                    if !self.line(input)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Passes what is between the data; false if more bytes are needed.
    fn line(&mut self, input: &mut BytesMut) -> Result<bool, BadChunk> {
        match &mut self.0 {
            State::Size { size, digits } => loop {
                let Some(&byte) = input.first() else { return Ok(false) };
                let Some(digit) = char::from(byte).to_digit(16) else {
                    if *digits == 0 || !take_line_end(input)? {
                        // No digit at all, or half of the CRLF.
                        return if *digits == 0 { Err(BadChunk) } else { Ok(false) };
                    }
                    self.0 = if *size == 0 { State::Trailers(0) } else { State::Data(*size) };
                    return Ok(true);
                };
                input.advance(1);
                *digits += 1;
                if *digits > MAX_SIZE_DIGITS {
                    return Err(BadChunk);
                }
                *size = *size << 4 | u64::from(digit);
            },
            State::AfterData => {
                let passed = take_line_end(input)?;
                if passed {
                    self.0 = State::Size { size: 0, digits: 0 };
                }
                Ok(passed)
            }
            State::Trailers(read) => {
                let Some(end) = memchr::memchr(b'\n', input) else {
                    return if *read + input.len() > MAX_TRAILERS { Err(BadChunk) } else { Ok(false) };
                };
                *read += end + 1;
                let line = input.split_to(end + 1);
                if line.as_ref() == b"\r\n" {
                    self.0 = State::Done;
                } else if *read > MAX_TRAILERS || !is_trailer(&line) {
                    return Err(BadChunk);
                }
                Ok(true)
            }
            State::Length(_) | State::Data(_) | State::Done => Ok(true),
        }
    }
}

/// Takes a CRLF; false if there is only a part of it. A chunk extension is no CRLF.
fn take_line_end(input: &mut BytesMut) -> Result<bool, BadChunk> {
    match input.as_ref() {
        [b'\r', b'\n', ..] => {
            input.advance(2);
            Ok(true)
        }
        [] | [b'\r'] => Ok(false),
        _ => Err(BadChunk),
    }
}

/// Whether a line is `name: value` and ends in CRLF.
fn is_trailer(line: &[u8]) -> bool {
    let Some(line) = line.strip_suffix(b"\r\n") else { return false };
    let Some(colon) = memchr::memchr(b':', line) else { return false };
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let is_value = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
    colon > 0 && line[..colon].iter().all(is_token) && line[colon + 1..].iter().all(is_value)
}

/// Appends what precedes `len` bytes of a chunk of a response.
pub fn chunk_start(len: usize, out: &mut Vec<u8>) {
    use std::io::Write as _;
    write!(out, "{len:x}\r\n").expect("a Vec takes everything");
}

/// Appends what follows a chunk's data.
pub fn chunk_end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(framing: Framing, input: &str, step: usize) -> Result<(String, bool, usize), BadChunk> {
        let (mut decoder, mut buffer, mut body) = (Decoder::new(framing), BytesMut::new(), Vec::new());
        let mut unread = 0;
        for piece in input.as_bytes().chunks(step) {
            if decoder.is_done() {
                unread += piece.len();
                continue;
            }
            buffer.extend_from_slice(piece);
            while let Some(bytes) = decoder.decode(&mut buffer)? {
                body.extend_from_slice(&bytes);
            }
        }
        Ok((String::from_utf8(body).unwrap(), decoder.is_done(), unread + buffer.len()))
    }

    #[test]
    fn bodies_in_any_pieces() {
        let check = |framing, input: &str, expected: Result<(&str, bool, usize), BadChunk>| {
            for step in [1, 2, 3, 1000] {
                let decoded = decode(framing, input, step);
                let decoded = decoded.as_ref().map(|(body, done, rest)| (body.as_str(), *done, *rest));
                assert_eq!(decoded, expected.as_ref().copied(), "{input:?} by {step}");
            }
        };
        let chunked = |input, expected| check(Framing::Chunked, input, expected);
        check(Framing::None, "GET", Ok(("", true, 3)));
        check(Framing::Length(3), "abcGET", Ok(("abc", true, 3)));
        check(Framing::Length(4), "abc", Ok(("abc", false, 0)));
        chunked("3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\nGET", Ok(("abc0123456789", true, 3)));
        chunked("0\r\nx: y\r\n\r\n", Ok(("", true, 0)));
        chunked("3\r\nab", Ok(("ab", false, 0)));
        for bad in [
            "3;x=y\r\nabc\r\n0\r\n\r\n",
            "3\nabc\n0\n\n",
            "3 \r\nabc\r\n0\r\n\r\n",
            " 3\r\nabc\r\n0\r\n\r\n",
            "+3\r\nabc\r\n0\r\n\r\n",
            "0x3\r\nabc\r\n0\r\n\r\n",
            "3\r\nabcd\r\n0\r\n\r\n",
            "\r\nabc",
            "11111111111111111\r\n",
            "0\r\nx y\r\n\r\n",
            "0\r\n: y\r\n\r\n",
            "0\r\nx: y\n\r\n",
            "3\rXabc",
        ] {
            check(Framing::Chunked, bad, Err(BadChunk));
        }
        let endless = format!("0\r\n{}", "x: y\r\n".repeat(2000));
        assert_eq!(decode(Framing::Chunked, &endless, 100), Err(BadChunk));
    }

    #[test]
    fn trailers_may_be_as_long_as_their_limit() {
        let trailers =
            |length: usize| format!("0\r\nx: y\r\nx: {}\r\n\r\n", "y".repeat(length - "x: y\r\nx: \r\n".len()));
        for step in [100, 1_000_000] {
            assert_eq!(decode(Framing::Chunked, &trailers(MAX_TRAILERS), step), Ok((String::new(), true, 0)));
            assert_eq!(decode(Framing::Chunked, &trailers(MAX_TRAILERS + 1), step), Err(BadChunk));
        }
    }
}

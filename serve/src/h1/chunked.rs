//! Bodies: of known length, or in chunks.

use bytes::{Buf, Bytes, BytesMut};
use server_runtime::are_chunk_extensions;

use super::head::Framing;

/// Digits of a chunk's size: 16 hexadecimal ones are more than any body that is allowed.
const MAX_SIZE_DIGITS: u8 = 16;

/// Bytes of all trailer fields, which are read and dropped.
const MAX_TRAILERS: usize = 8 * 1024;

/// Bytes of extensions in the line of a chunk, and of all chunks beyond as many as there are bytes of data. They are read and dropped.
const MAX_EXTENSIONS: usize = 1024;
const MAX_ALL_EXTENSIONS: u64 = 16 * 1024;

/// Bytes of a chunk up to which it is copied behind the chunk before it, and not a piece of its own, which costs about as much.
const GATHERED: usize = 4 * 1024;

/// Bytes between the data of a piece, from which on it gets no longer: those of some 500 of the smallest chunks.
const MOST_BETWEEN: usize = 2560;

/// A chunked body that does not keep to RFC 9112 section 7.1, or whose chunk extensions are beyond their limits.
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
pub struct Decoder {
    state: State,
    /// Bytes that chunk extensions may still have.
    room: u64,
}

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
        let state = match framing {
            Framing::None | Framing::Length(0) => State::Done,
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Size { size: 0, digits: 0 },
        };
        Self { state, room: MAX_ALL_EXTENSIONS }
    }

    /// Whether the whole body was taken.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// The next piece of the body; `None` if there is none in `input` or the body is over ([`Decoder::is_done`]).
    ///
    /// Data of small chunks that are in `input` together make one piece: a reader pays for pieces, not for bytes.
    ///
    /// # Errors
    /// When the chunks are not well formed; where the body ends is not known then. The data before the fault comes
    /// first.
    pub fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Bytes>, BadChunk> {
        // Where the piece is in `input`, and up to where that was read.
        let (mut start, mut end, mut at) = (0, 0, 0);
        let passed = loop {
            let available = input.len() - at;
            match &mut self.state {
                State::Done => break Ok(()),
                State::Length(_) | State::Data(_) if available == 0 => break Ok(()),
                State::Length(left) | State::Data(left) => {
                    let count = usize::try_from(*left).map_or(available, |left| left.min(available));
                    if start == end {
                        (start, end) = (at, at);
                    } else if count > GATHERED || at - end > MOST_BETWEEN {
                        break Ok(());
                    } else {
                        input.copy_within(at..at + count, end);
                    }
                    (end, at) = (end + count, at + count);
                    *left -= count as u64;
                    if *left == 0 {
                        self.state = if matches!(self.state, State::Data(_)) { State::AfterData } else { State::Done };
                    }
                }
                State::Size { .. } | State::AfterData | State::Trailers(_) => match self.line(&input[at..]) {
                    Ok((count, is_complete)) => {
                        at += count;
                        if !is_complete {
                            break Ok(());
                        }
                    }
                    Err(error) => break Err(error),
                },
            }
        };
        if start == end {
            input.advance(at);
            return passed.map(|()| None);
        }
        input.advance(start);
        let piece = input.split_to(end - start).freeze();
        input.advance(at - end);
        Ok(Some(piece))
    }

    /// Passes what is between the data: how many bytes, and whether that was all of it.
    fn line(&mut self, input: &[u8]) -> Result<(usize, bool), BadChunk> {
        match &mut self.state {
            State::Size { size, digits } => {
                for (at, byte) in input.iter().enumerate() {
                    let Some(digit) = char::from(*byte).to_digit(16) else {
                        if *digits == 0 {
                            return Err(BadChunk);
                        }
                        let Some(length) = rest_of_size_line(&input[at..])? else { return Ok((at, false)) };
                        let extensions = (length - 2) as u64;
                        self.room = self.room.checked_sub(extensions).ok_or(BadChunk)?;
                        self.room = self.room.saturating_add(*size).min(MAX_ALL_EXTENSIONS);
                        self.state = if *size == 0 { State::Trailers(0) } else { State::Data(*size) };
                        return Ok((at + length, true));
                    };
                    *digits += 1;
                    if *digits > MAX_SIZE_DIGITS {
                        return Err(BadChunk);
                    }
                    *size = *size << 4 | u64::from(digit);
                }
                Ok((input.len(), false))
            }
            State::AfterData => {
                if !is_line_end(input)? {
                    return Ok((0, false));
                }
                self.state = State::Size { size: 0, digits: 0 };
                Ok((2, true))
            }
            State::Trailers(read) => {
                let Some(end) = memchr::memchr(b'\n', input) else {
                    return if *read + input.len() > MAX_TRAILERS { Err(BadChunk) } else { Ok((0, false)) };
                };
                let line = &input[..=end];
                if line == b"\r\n" {
                    self.state = State::Done;
                } else if *read + line.len() > MAX_TRAILERS || !is_trailer(line) {
                    return Err(BadChunk);
                } else {
                    *read += line.len();
                }
                Ok((line.len(), true))
            }
            State::Length(_) | State::Data(_) | State::Done => Ok((0, true)),
        }
    }
}

/// The length of what follows a chunk's size in its line, with the CRLF; `None` if there is only a part of it.
fn rest_of_size_line(input: &[u8]) -> Result<Option<usize>, BadChunk> {
    if !matches!(input[0], b';' | b' ' | b'\t') {
        return Ok(is_line_end(input)?.then_some(2));
    }
    let Some(end) = memchr::memchr(b'\n', input) else {
        return if input.len() > MAX_EXTENSIONS + 1 { Err(BadChunk) } else { Ok(None) };
    };
    let extensions = input[..end].strip_suffix(b"\r").ok_or(BadChunk)?;
    if extensions.len() > MAX_EXTENSIONS || !are_chunk_extensions(extensions) {
        return Err(BadChunk);
    }
    Ok(Some(end + 1))
}

/// True if `input` begins with a CRLF; false if it has only a part of one.
fn is_line_end(input: &[u8]) -> Result<bool, BadChunk> {
    match input {
        [b'\r', b'\n', ..] => Ok(true),
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
        chunked("3;x=y\r\nabc\r\n0;z ; q=\"a;\\\"\"\r\n\r\nGET", Ok(("abc", true, 3)));
        for bad in [
            "3;\r\nabc\r\n0\r\n\r\n",
            "3;x\nabc\r\n0\r\n\r\n",
            "3;x=\0\r\nabc\r\n0\r\n\r\n",
            "0;x\rX\r\n\r\n",
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
    fn small_chunks_that_come_together_make_one_piece() {
        fn pieces(input: &str) -> Vec<Result<String, BadChunk>> {
            let (mut decoder, mut input) = (Decoder::new(Framing::Chunked), BytesMut::from(input));
            let mut next = move || decoder.decode(&mut input).transpose();
            let text = |piece: Bytes| String::from_utf8(piece.to_vec()).unwrap();
            std::iter::from_fn(|| next().map(|piece| piece.map(text))).take(4).collect()
        }
        let chunk = |size: usize| (format!("{size:x}\r\n{}\r\n", "x".repeat(size)), Ok("x".repeat(size)));
        let (small, small_piece) = chunk(GATHERED);
        let (large, large_piece) = chunk(GATHERED + 1);
        assert_eq!(pieces("1\r\na\r\n2\r\nbc\r\n3\r\nde"), [Ok("abcde".to_owned())]);
        assert_eq!(pieces(&format!("1\r\nx\r\n{small}0\r\n\r\n")), [chunk(GATHERED + 1).1]);
        assert_eq!(pieces(&format!("{small}{large}1\r\na\r\n")), [small_piece, large_piece.map(|piece| piece + "a")]);
        let most = 2 + MOST_BETWEEN / "\r\n1\r\n".len() - 1;
        assert_eq!(pieces(&"1\r\nx\r\n".repeat(most + 2)), [Ok("x".repeat(most)), Ok("xx".to_owned())]);
        // The fault comes behind the data before it, and again.
        let bad = Err(BadChunk);
        assert_eq!(pieces("1\r\na\r\n2\r\nbc\r\n3:"), [Ok("abc".to_owned()), bad.clone(), bad.clone(), bad]);
    }

    /// A signature of each chunk, as clients of object stores send it, is less than its data. Extensions alone end.
    #[test]
    fn extensions_may_be_as_long_as_their_limits() {
        let chunks = |extension: usize, size: usize, count: usize| {
            let chunk = format!("{size:x};{}\r\n{}\r\n", "e".repeat(extension - 1), "x".repeat(size));
            (chunk.repeat(count) + "0\r\n\r\n", Ok(("x".repeat(size * count), true, 0)))
        };
        let check = |(input, expected): (String, Result<(String, bool, usize), BadChunk>)| {
            for step in [100, 1_000_000] {
                assert_eq!(decode(Framing::Chunked, &input, step), expected, "{} by {step}", &input[..20]);
            }
        };
        check(chunks(MAX_EXTENSIONS, 1, 1));
        check((chunks(MAX_EXTENSIONS + 1, 1, 1).0, Err(BadChunk)));
        check(chunks(80, 80, 10_000));
        let most = MAX_ALL_EXTENSIONS as usize / 99;
        check(chunks(100, 1, most - 1));
        check((chunks(100, 1, most + 1).0, Err(BadChunk)));
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

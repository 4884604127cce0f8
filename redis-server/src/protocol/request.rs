//! Requests: bytes in, argument positions out, incrementally.

use std::fmt;

use arrayvec::ArrayVec;

/// Longest inline command, and longest count line (`*3\r\n`, `$5\r\n`), in bytes (Redis: `PROTO_INLINE_MAX_SIZE`).
const MAX_LINE: usize = 64 * 1024;
/// Most arguments of one command (Redis: `INT_MAX`).
const MAX_ARGS: i64 = i32::MAX as i64;
/// Most arguments, and longest argument in bytes, before the client has authenticated.
const MAX_ARGS_UNAUTHENTICATED: i64 = 10;
const MAX_BULK_UNAUTHENTICATED: i64 = 16 * 1024;

/// The largest count that [`parse_whole_commands`] reads.
const MAX_SHORT: usize = 999;

/// Most bytes of a request: a [`Span`] has 32 bits.
pub const MAX_REQUEST: usize = u32::MAX as usize;

/// Where one argument stands in the input, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Length in bytes.
    pub len: u32,
}

/// The limits of a request, by the configuration and the client's state.
#[derive(Clone, Copy, Debug)]
pub struct RequestLimits {
    /// `proto-max-bulk-len`, in bytes.
    pub max_bulk_len: u64,
    /// Whether the client has authenticated (or need not).
    pub authenticated: bool,
}

impl RequestLimits {
    /// Of what a server has written, a primary or this one.
    pub(crate) const OF_SERVERS: Self = Self { max_bulk_len: 1 << 31, authenticated: true };
}

/// A violation of the protocol; the connection is closed after the error is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// `*` line longer than 64 KiB.
    MultibulkLineTooLong,
    /// The number after `*` is not one, or out of range.
    MultibulkLength,
    /// More than ten arguments before authentication.
    UnauthenticatedMultibulk,
    /// `$` line longer than 64 KiB.
    BulkLineTooLong,
    /// Another byte than `$` where a bulk string must begin.
    ExpectedDollar(u8),
    /// The number after `$` is not one, or out of range.
    BulkLength,
    /// A longer argument than 16 KiB before authentication.
    UnauthenticatedBulk,
    /// More than 64 KiB without the end of an inline command.
    InlineTooLong,
    /// A quote in an inline command is not closed.
    UnbalancedQuotes,
    /// More than [`MAX_REQUEST`] bytes.
    RequestTooLong,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match self {
            Self::MultibulkLineTooLong => f.write_str("too big mbulk count string"),
            Self::MultibulkLength => f.write_str("invalid multibulk length"),
            Self::UnauthenticatedMultibulk => f.write_str("unauthenticated multibulk length"),
            Self::BulkLineTooLong => f.write_str("too big bulk count string"),
            Self::ExpectedDollar(got) => {
                let got = if matches!(got, b'\r' | b'\n') { ' ' } else { char::from(*got) };
                write!(f, "expected '$', got '{got}'")
            }
            Self::BulkLength => f.write_str("invalid bulk length"),
            Self::UnauthenticatedBulk => f.write_str("unauthenticated bulk length"),
            Self::InlineTooLong => f.write_str("too big inline request"),
            Self::UnbalancedQuotes => f.write_str("unbalanced quotes in request"),
            Self::RequestTooLong => write!(f, "too big request, which may have {MAX_REQUEST} bytes"),
        }
    }
}

/// The state of one command that may arrive in any number of pieces.
///
/// Every byte is looked at once however the command is cut: on incomplete input the parser remembers how far it came,
/// relative to the command's first byte.
#[derive(Debug, Default)]
pub struct Parser {
    /// Offset behind what is parsed, from the command's first byte.
    cursor: usize,
    /// Arguments still to come; `None` before the `*` line.
    args_left: Option<u32>,
    /// Length of the argument whose `$` line has been read.
    bulk: Option<u32>,
}

impl Parser {
    /// Parses one multibulk command that begins at `input[start]` (a `*`), appending its arguments to `spans`.
    ///
    /// Returns the offset behind the command, or `None` when more input is needed: call again with the same command
    /// (its first byte may stand elsewhere by then, see [`Parser::relocate`]) and more bytes.
    ///
    /// # Errors
    /// [`ProtocolError`], with the texts of the genuine server.
    #[inline]
    pub fn parse(
        &mut self,
        input: &[u8],
        start: usize,
        spans: &mut Vec<Span>,
        limits: &RequestLimits,
    ) -> Result<Option<usize>, ProtocolError> {
        self.parse_within::<MAX_REQUEST>(input, start, spans, limits)
    }

    /// [`Parser::parse`], where spans reach `MOST` bytes far. A command that ends behind that in the input, and is not too long itself, needs
    /// that what stands in front of it goes.
    #[inline]
    fn parse_within<const MOST: usize>(
        &mut self,
        input: &[u8],
        start: usize,
        spans: &mut Vec<Span>,
        limits: &RequestLimits,
    ) -> Result<Option<usize>, ProtocolError> {
        let reach = input.len().min(MOST);
        let mut at = start + self.cursor;
        let mut left = match self.args_left {
            Some(left) => left,
            None => {
                let Some((count, next)) = count_line(input, at, ProtocolError::MultibulkLineTooLong)? else {
                    return Ok(None);
                };
                at = next;
                multibulk_count(count, limits)?
            }
        };
        while left > 0 {
            let len = match self.bulk {
                Some(len) => len,
                None => {
                    if at < input.len() && input[at] != b'$' {
                        return Err(ProtocolError::ExpectedDollar(input[at]));
                    }
                    let Some((count, next)) = count_line(input, at, ProtocolError::BulkLineTooLong)? else {
                        return Ok(self.pause(at - start, left, None));
                    };
                    at = next;
                    bulk_length(count, limits)?
                }
            };
            let end = at + len as usize + 2;
            if end > reach {
                if end - start > MOST {
                    return Err(ProtocolError::RequestTooLong);
                }
                return Ok(self.pause(at - start, left, Some(len)));
            }
            spans.push(Span { start: at as u32, len });
            at = end;
            self.bulk = None;
            left -= 1;
        }
        *self = Self::default();
        Ok(Some(at))
    }

    #[cold]
    fn pause(&mut self, cursor: usize, args_left: u32, bulk: Option<u32>) -> Option<usize> {
        *self = Self { cursor, args_left: Some(args_left), bulk };
        None
    }

    /// Bytes of the command, counted from its first, that must have arrived before parsing can go on.
    pub fn needed(&self) -> usize {
        self.cursor + self.bulk.map_or(1, |len| len as usize + 2)
    }

    /// Length of the argument that is being received, if its length is known, in bytes.
    pub fn pending_bulk(&self) -> Option<usize> {
        self.bulk.map(|len| len as usize)
    }

    /// Whether a command has begun and is not complete.
    pub fn in_command(&self) -> bool {
        self.args_left.is_some()
    }

    /// Adjusts the arguments of an unfinished command whose first byte moves from offset `from` to offset 0.
    pub fn relocate(spans: &mut [Span], from: usize) {
        for span in spans {
            span.start -= from as u32;
        }
    }
}

/// Parses commands from offset `at` on as long as there is room in `ends`, and each is there as a whole, with counts of up to
/// three digits: nearly every one is. The others are a [`Parser`]'s. Returns the offset behind the last.
///
/// Of each, `ends` gets the number of `spans` with its arguments, and the offset behind it.
// Not inlined into its caller, so that its few variables stay in registers.
#[inline(never)]
pub fn parse_whole_commands<const N: usize>(
    input: &[u8],
    mut at: usize,
    limits: &RequestLimits,
    spans: &mut Vec<Span>,
    ends: &mut ArrayVec<(usize, usize), N>,
) -> usize {
    // The input behind that waits until the requests in front of it are gone.
    let input = &input[..input.len().min(MAX_REQUEST)];
    let most = if limits.authenticated { MAX_SHORT } else { MAX_ARGS_UNAUTHENTICATED as usize };
    if limits.max_bulk_len < MAX_SHORT as u64 {
        return at;
    }
    while !ends.is_full()
        && let Some(end) = parse_whole(input, at, spans, most)
    {
        at = end;
        ends.push((spans.len(), end));
    }
    at
}

/// One command of [`parse_whole_commands`]; of any other, nothing is in `spans` when this is over.
#[inline]
fn parse_whole(input: &[u8], start: usize, spans: &mut Vec<Span>, most: usize) -> Option<usize> {
    let (count, mut at) = short_count(input, start, b'*')?;
    if count > most {
        return None;
    }
    let before = spans.len();
    for _ in 0..count {
        let argument = short_count(input, at, b'$').filter(|(len, start)| start + len + 2 <= input.len());
        let Some((len, start)) = argument else {
            spans.truncate(before);
            return None;
        };
        spans.push(Span { start: start as u32, len: len as u32 });
        at = start + len + 2;
    }
    Some(at)
}

/// Reads `<kind><up to three digits>\r\n` at `at`, if that is what stands there: the number, and the offset behind the line.
#[inline]
fn short_count(input: &[u8], at: usize, kind: u8) -> Option<(usize, usize)> {
    const LINE_END: u64 = 0x0a0d;
    let line = match input.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => last_bytes(input, at),
    };
    let digit = |index: u32| (line >> (8 * index) & 0xff).wrapping_sub(b'0'.into()) as usize;
    // Whether the line has so many digits: the kind stands in front of them, and the line end behind.
    let has_digits = |count: u32| {
        let end = 8 * (1 + count);
        line & (0xffff << end | 0xff) == LINE_END << end | u64::from(kind)
    };
    if has_digits(1) {
        return (digit(1) <= 9).then(|| (digit(1), at + 4));
    }
    let is_first = matches!(digit(1), 1..=9);
    if has_digits(2) {
        return (is_first && digit(2) <= 9).then(|| (digit(1) * 10 + digit(2), at + 5));
    }
    let is_number = has_digits(3) && is_first && digit(2) <= 9 && digit(3) <= 9;
    is_number.then(|| (digit(1) * 100 + digit(2) * 10 + digit(3), at + 6))
}

/// The bytes from `at` on, fewer than eight, and zeros.
#[cold]
fn last_bytes(input: &[u8], at: usize) -> u64 {
    let rest = &input[at.min(input.len())..];
    rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

fn multibulk_count(count: Option<i64>, limits: &RequestLimits) -> Result<u32, ProtocolError> {
    match count {
        Some(count) if count > MAX_ARGS => Err(ProtocolError::MultibulkLength),
        Some(count) if count > MAX_ARGS_UNAUTHENTICATED && !limits.authenticated => {
            Err(ProtocolError::UnauthenticatedMultibulk)
        }
        Some(count) => Ok(u32::try_from(count).unwrap_or(0)),
        None => Err(ProtocolError::MultibulkLength),
    }
}

fn bulk_length(count: Option<i64>, limits: &RequestLimits) -> Result<u32, ProtocolError> {
    match count {
        Some(len) if len < 0 || len as u64 > limits.max_bulk_len => Err(ProtocolError::BulkLength),
        Some(len) if len > MAX_BULK_UNAUTHENTICATED && !limits.authenticated => Err(ProtocolError::UnauthenticatedBulk),
        // Spans are 32 bits wide, so nothing longer fits, whatever the configuration says.
        Some(len) => u32::try_from(len).map_err(|_| ProtocolError::BulkLength),
        None => Err(ProtocolError::BulkLength),
    }
}

/// Reads `<any byte><number>\r\n` at `at`: the number (`None` if it is not one) and the offset behind the line.
fn count_line(input: &[u8], at: usize, too_long: ProtocolError) -> Result<Option<(Option<i64>, usize)>, ProtocolError> {
    let rest = &input[at.min(input.len())..];
    let Some(end) = memchr::memchr(b'\r', &rest[..rest.len().min(MAX_LINE + 1)]) else {
        return if rest.len() > MAX_LINE { Err(too_long) } else { Ok(None) };
    };
    // The genuine server does not look at the byte behind '\r' either.
    if rest.len() < end + 2 {
        return Ok(None);
    }
    Ok(Some((crate::protocol::number::parse_i64(&rest[1.min(end)..end]), at + end + 2)))
}

/// One inline command, unquoted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Inline {
    /// The arguments' bytes, one behind the other.
    pub bytes: Vec<u8>,
    /// Where each argument stands in `bytes`.
    pub spans: Vec<Span>,
}

/// Takes one inline command from the head of `input`: the command and its length with the line end.
///
/// `None` when the line is not complete.
///
/// # Errors
/// There is no end of the line in 64 KiB, or a quote is not closed. A longer line that is there is taken, as in the genuine
/// server, where the command has its say.
pub fn split_inline(input: &[u8]) -> Result<Option<(Inline, usize)>, ProtocolError> {
    let Some(end) = memchr::memchr(b'\n', input) else {
        return if input.len() > MAX_LINE { Err(ProtocolError::InlineTooLong) } else { Ok(None) };
    };
    let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
    let inline = unquote(line).ok_or(ProtocolError::UnbalancedQuotes)?;
    Ok(Some((inline, end + 1)))
}

/// The words of a line, with the quoting rules of inline commands; `None` if a quote is not closed.
pub fn split_words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let Inline { bytes, spans } = unquote(line)?;
    Some(spans.iter().map(|span| bytes[span.start as usize..][..span.len as usize].to_vec()).collect())
}

/// Splits a line into words with the quoting rules of `redis-cli`: `"…"` with escapes, `'…'` with `\'` only.
fn unquote(line: &[u8]) -> Option<Inline> {
    let mut inline = Inline::default();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Some(inline);
        }
        let start = inline.bytes.len();
        rest = word(rest, &mut inline.bytes)?;
        let len = inline.bytes.len() - start;
        inline.spans.push(Span { start: start as u32, len: len as u32 });
    }
}

/// Appends one word to `out`; returns what follows it.
fn word<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] => return Some(rest),
            [b, tail @ ..] if b.is_ascii_whitespace() || *b == 0 => return Some(tail),
            [b'"', tail @ ..] => return after_quote(double_quoted(tail, out)?),
            [b'\'', tail @ ..] => return after_quote(single_quoted(tail, out)?),
            [b, tail @ ..] => {
                out.push(*b);
                rest = tail;
            }
        }
    }
}

/// A closing quote must be followed by a space or nothing at all.
fn after_quote(rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [b, ..] if !b.is_ascii_whitespace() => None,
        _ => Some(rest),
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'"', tail @ ..] => return Some(tail),
            [b'\\', b'x', hi, lo, tail @ ..] if hi.is_ascii_hexdigit() && lo.is_ascii_hexdigit() => {
                out.push(hex(*hi) << 4 | hex(*lo));
                rest = tail;
            }
            [b'\\', escaped, tail @ ..] => {
                out.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                rest = tail;
            }
            [b, tail @ ..] => {
                out.push(*b);
                rest = tail;
            }
            [] => return None,
        }
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'\'', tail @ ..] => return Some(tail),
            [b'\\', b'\'', tail @ ..] => {
                out.push(b'\'');
                rest = tail;
            }
            [b, tail @ ..] => {
                out.push(*b);
                rest = tail;
            }
            [] => return None,
        }
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RequestLimits = RequestLimits { max_bulk_len: 512 << 20, authenticated: true };

    fn words(input: &[u8]) -> Result<Option<Vec<Vec<u8>>>, ProtocolError> {
        let mut spans = Vec::new();
        let end = Parser::default().parse(input, 0, &mut spans, &LIMITS)?;
        Ok(end.map(|_| spans.iter().map(|s| input[s.start as usize..][..s.len as usize].to_vec()).collect()))
    }

    #[test]
    fn complete_commands() {
        let check = |input: &[u8], expected: &[&[u8]]| {
            let expected: Vec<Vec<u8>> = expected.iter().map(|w| w.to_vec()).collect();
            assert_eq!(words(input), Ok(Some(expected)), "{}", input.escape_ascii());
        };
        check(b"*1\r\n$4\r\nPING\r\n", &[b"PING"]);
        check(b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n", &[b"GET", b""]);
        check(b"*2\r\n$4\r\nECHO\r\n$12\r\nhello\r\nworld\r\n", &[b"ECHO", b"hello\r\nworld"]);
        check(b"*0\r\n", &[]);
        check(b"*-1\r\n", &[]);
    }

    /// Spans that reach 100 bytes far stand for those of 4 GiB.
    #[test]
    fn no_span_is_cut_off() {
        const MOST: usize = 100;
        let command = |len: usize| format!("*2\r\n$1\r\nk\r\n${len}\r\n{}\r\n", "x".repeat(len)).into_bytes();
        let overhead = command(10).len() - 10;
        let (longest, longer) = (command(MOST - overhead), command(MOST - overhead + 1));
        let parse = |parser: &mut Parser, input: &[u8], start, spans: &mut Vec<Span>| {
            parser.parse_within::<MOST>(input, start, spans, &LIMITS)
        };
        assert_eq!(parse(&mut Parser::default(), &longest, 0, &mut Vec::new()), Ok(Some(MOST)));
        // As soon as the length is known, and not when so much has come.
        for input in [&longer[..], &longer[..20]] {
            let refused = parse(&mut Parser::default(), input, 0, &mut Vec::new());
            assert_eq!(refused, Err(ProtocolError::RequestTooLong));
        }
        // Where it only stands too far behind, it waits until what is in front of it is gone.
        let (mut parser, mut spans) = (Parser::default(), Vec::new());
        let input = [&command(10)[..], &longest].concat();
        let start = input.len() - MOST;
        assert_eq!(parse(&mut parser, &input, start, &mut spans), Ok(None));
        assert!(parser.in_command());
        Parser::relocate(&mut spans, start);
        assert_eq!(parse(&mut parser, &input[start..], 0, &mut spans), Ok(Some(MOST)));
        let words: Vec<_> =
            spans.iter().map(|span| &input[start..][span.start as usize..][..span.len as usize]).collect();
        assert_eq!(words, [&b"k"[..], "x".repeat(MOST - overhead).as_bytes()]);
    }

    #[test]
    fn protocol_errors() {
        let check = |input: &[u8], text: &str| {
            let error = words(input).expect_err(text);
            assert_eq!(error.to_string(), format!("Protocol error: {text}"));
        };
        check(b"*x\r\n", "invalid multibulk length");
        check(b"*2147483648\r\n", "invalid multibulk length");
        check(b"*1\r\n!3\r\nGET\r\n", "expected '$', got '!'");
        check(b"*1\r\n$-1\r\n", "invalid bulk length");
        check(b"*1\r\n$536870913\r\n", "invalid bulk length");
        check(&[b'*'; 70_000], "too big mbulk count string");
    }

    /// For any input, the fast path parses the same request as the general parser, or leaves the input untouched.
    #[test]
    fn the_short_way_reads_what_the_general_one_does() {
        let mut seed = 1u64;
        let mut random = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed as usize % below
        };
        let mut whole = 0;
        for limits in [LIMITS, RequestLimits { authenticated: false, ..LIMITS }] {
            for _ in 0..100_000 {
                let args: Vec<usize> = (0..random(14)).map(|_| [0, 1, 9, 10, 99, 100, 999, 1000][random(8)]).collect();
                let mut input = format!("*{}\r\n", args.len()).into_bytes();
                for len in &args {
                    input.extend_from_slice(format!("${len}\r\n{}\r\n", "x".repeat(*len)).as_bytes());
                }
                for _ in 0..random(3) {
                    let at = random(input.len());
                    input[at] = [b'0', b'1', b'-', b' ', b'\r', b'\n', b'$', b'*', b':', b'/'][random(10)];
                }
                input.truncate(input.len() - [0, random(input.len())][random(2)]);
                let (mut spans, mut expected, mut ends) = (Vec::new(), Vec::new(), ArrayVec::<_, 1>::new());
                let end = parse_whole_commands(&input, 0, &limits, &mut spans, &mut ends);
                let parsed = Parser::default().parse(&input, 0, &mut expected, &limits);
                if ends.is_empty() {
                    assert_eq!((end, spans.len()), (0, 0), "{}", input.escape_ascii());
                } else {
                    assert_eq!(parsed, Ok(Some(end)), "{}", input.escape_ascii());
                    assert_eq!((spans, ends[0]), (expected.clone(), (expected.len(), end)), "{}", input.escape_ascii());
                    whole += 1;
                }
            }
        }
        assert!(whole > 20_000, "{whole}: the short way is hardly ever taken");
    }

    #[test]
    fn cut_at_every_byte() {
        let input: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$10\r\n0123456789\r\n";
        for cut in 0..input.len() {
            let mut parser = Parser::default();
            let mut spans = Vec::new();
            assert_eq!(parser.parse(&input[..cut], 0, &mut spans, &LIMITS), Ok(None), "cut at {cut}");
            assert_eq!(parser.parse(input, 0, &mut spans, &LIMITS), Ok(Some(input.len())), "cut at {cut}");
            assert_eq!(spans.len(), 3);
        }
    }

    #[test]
    fn inline_commands() {
        let check = |input: &[u8], expected: Result<&[&[u8]], ProtocolError>| {
            let got = split_inline(input).map(|found| {
                let (inline, _) = found.expect("a complete line");
                let word = |s: &Span| inline.bytes[s.start as usize..][..s.len as usize].to_vec();
                inline.spans.iter().map(word).collect::<Vec<_>>()
            });
            assert_eq!(got, expected.map(|words| words.iter().map(|w| w.to_vec()).collect()));
        };
        check(b"PING\r\n", Ok(&[b"PING"]));
        check(b"  SET  a   b \n", Ok(&[b"SET", b"a", b"b"]));
        check(b"SET a \"x\\x41\\n\\\"\"\r\n", Ok(&[b"SET", b"a", b"xA\n\""]));
        check(b"SET a 'it\\'s'\r\n", Ok(&[b"SET", b"a", b"it's"]));
        check(b"\r\n", Ok(&[]));
        check(b"SET a \"x\r\n", Err(ProtocolError::UnbalancedQuotes));
        check(b"SET a \"x\"y\r\n", Err(ProtocolError::UnbalancedQuotes));
        assert_eq!(split_inline(b"PING"), Ok(None));
        let long = "x".repeat(70_000);
        check(format!("GET {long}\r\n").as_bytes(), Ok(&[b"GET", long.as_bytes()]));
        assert_eq!(split_inline(format!("GET {long}").as_bytes()), Err(ProtocolError::InlineTooLong));
    }
}

//! Reading replies as they come: only values that are checked must be there as a whole.

use crate::codec::{Broken, shown};
use crate::record::Failure;

/// The longest line: far above any status or error.
const LONGEST_LINE: usize = 64 << 10;

/// The longest bulk string, as Redis' own limit (`proto-max-bulk-len`).
pub(super) const LONGEST_BULK: i64 = 512 << 20;

/// The most elements of an aggregate.
const MOST_ELEMENTS: i64 = 1 << 31;

/// A complete reply, as far as it is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply<'a> {
    /// A status, number, boolean, double or big number: its line without the type.
    Line(u8, &'a [u8]),
    /// An error.
    Error(&'a [u8]),
    /// A bulk string that was read as a whole.
    Bulk(&'a [u8]),
    /// No value.
    Nil,
    /// An aggregate, or a bulk string that was read in pieces.
    Other,
}

/// The deepest nesting of streamed aggregates.
const DEEPEST: usize = 64;

/// Elements of a streamed aggregate: they end with its end, not with a count.
const STREAMED: u64 = 1 << 62;

/// The state between reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    /// Elements that are still to come behind each streamed aggregate that is open, from the outermost.
    streamed: Vec<u64>,
    /// Whether the chunks of a streamed string are read.
    is_chunked: bool,
    /// Bytes of a bulk string, with its line end, that are still to come.
    skip: u64,
    /// Elements of the reply that are still to come, nested ones included.
    elements: u64,
    /// Whether the reply under way is a push message, which answers nothing.
    is_push: bool,
}

impl Reader {
    /// Reads up to the end of one reply. Gives the bytes consumed and the reply, if it is complete.
    ///
    /// With `whole`, a reply that is a bulk string is left unread until it is complete.
    #[inline]
    pub(super) fn read<'a>(&mut self, input: &'a [u8], whole: bool) -> Result<(usize, Option<Reply<'a>>), Broken> {
        let mut at = 0;
        loop {
            if self.skip > 0 {
                let skipped = self.skip.min((input.len() - at) as u64);
                at += skipped as usize;
                self.skip -= skipped;
                if self.skip > 0 {
                    return Ok((at, None));
                }
                // A chunk is no element: the string ends with an empty one.
                if !self.is_chunked
                    && let Some(reply) = self.element(Reply::Other)
                {
                    return Ok((at, Some(reply)));
                }
            }
            let Some((line, length)) = line(&input[at..])? else {
                return Ok((at, None));
            };
            let begins = self.elements == 0;
            let rest = at + length;
            if self.is_chunked && line[0] != b';' {
                return Err(unexpected("a chunk of a string", line));
            }
            let reply = match line[0] {
                b'+' | b':' | b',' | b'#' | b'(' => Reply::Line(line[0], &line[1..]),
                b'-' => Reply::Error(&line[1..]),
                b'_' => Reply::Nil,
                b'$' | b'=' | b'!' => match self.bulk(line, &input[rest..], begins && (whole || line[0] == b'!'))? {
                    Bulk::Streamed => {
                        self.streamed(line)?;
                        at = rest;
                        continue;
                    }
                    Bulk::Nil => Reply::Nil,
                    Bulk::Whole(bytes) => {
                        at += bytes.len() + 2;
                        if line[0] == b'!' { Reply::Error(bytes) } else { Reply::Bulk(bytes) }
                    }
                    Bulk::Incomplete => return Ok((at, None)),
                    Bulk::Skipped => {
                        at = rest;
                        continue;
                    }
                },
                b'.' | b';' => {
                    at = rest;
                    match self.streamed(line)? {
                        Some(reply) => return Ok((at, Some(reply))),
                        None => continue,
                    }
                }
                b'*' | b'~' | b'%' | b'|' | b'>' => match self.aggregate(line)? {
                    Some(reply) => reply,
                    None => {
                        at = rest;
                        continue;
                    }
                },
                _ => return Err(unexpected("a reply of RESP", line)),
            };
            at += length;
            // An element of an aggregate is judged with it.
            let reply = if begins { reply } else { Reply::Other };
            if let Some(reply) = self.element(reply) {
                return Ok((at, Some(reply)));
            }
        }
    }

    /// Reads what begins, continues or ends a string or an aggregate of unknown length (RESP3: streamed data types). Gives
    /// the reply if it is complete.
    #[cold]
    fn streamed<'a>(&mut self, line: &[u8]) -> Result<Option<Reply<'a>>, Broken> {
        match line {
            b"$?" => self.is_chunked = true,
            [b';', ..] if self.is_chunked => match length(line, LONGEST_BULK)? {
                Some(0) => {
                    self.is_chunked = false;
                    return Ok(self.element(Reply::Other));
                }
                Some(chunk) => self.skip = chunk + 2,
                None => return Err(unexpected("a chunk's length", line)),
            },
            b"." => {
                let Some(outer) = self.streamed.pop() else {
                    return Err(unexpected("a reply of RESP", line));
                };
                self.elements = outer;
                return Ok(self.element(Reply::Other));
            }
            [kind, b'?'] if *kind != b'|' && self.streamed.len() < DEEPEST => {
                if self.elements == 0 {
                    self.is_push = *kind == b'>';
                    self.elements = 1;
                }
                self.streamed.push(self.elements);
                self.elements = STREAMED;
            }
            _ => return Err(unexpected("a reply of RESP", line)),
        }
        Ok(None)
    }

    /// An element is complete. Gives the reply if it was the last, and an answer.
    #[inline]
    fn element<'a>(&mut self, reply: Reply<'a>) -> Option<Reply<'a>> {
        self.elements = self.elements.saturating_sub(1);
        if self.elements > 0 || std::mem::take(&mut self.is_push) { None } else { Some(reply) }
    }

    fn bulk<'a>(&mut self, line: &[u8], rest: &'a [u8], whole: bool) -> Result<Bulk<'a>, Broken> {
        let length = match length(line, LONGEST_BULK) {
            Ok(Some(length)) => length,
            Ok(None) => return Ok(Bulk::Nil),
            Err(_) if line == b"$?" => return Ok(Bulk::Streamed),
            Err(broken) => return Err(broken),
        };
        let Some(end) = rest.get(length as usize..length as usize + 2) else {
            if whole {
                return Ok(Bulk::Incomplete);
            }
            self.skip = length + 2;
            return Ok(Bulk::Skipped);
        };
        if end != b"\r\n" {
            return Err(unexpected("the end of a bulk string", end));
        }
        Ok(Bulk::Whole(&rest[..length as usize]))
    }

    /// Counts an aggregate's elements in. Gives the reply if it has none.
    fn aggregate(&mut self, line: &[u8]) -> Result<Option<Reply<'static>>, Broken> {
        let length = match length(line, MOST_ELEMENTS) {
            Ok(Some(length)) => length,
            Ok(None) => return Ok(Some(Reply::Nil)),
            Err(_) if line[1..] == *b"?" => return self.streamed(line).map(|_| None),
            Err(broken) => return Err(broken),
        };
        // An attribute stands before the reply that it describes, a push message stands for itself.
        let is_attribute = line[0] == b'|';
        let elements = if is_attribute || line[0] == b'%' { 2 * length } else { length };
        if self.elements == 0 {
            self.is_push = line[0] == b'>';
            self.elements = 1;
        }
        if elements == 0 {
            return Ok(if is_attribute { None } else { Some(Reply::Other) });
        }
        self.elements = self.elements.saturating_add(elements);
        if !is_attribute {
            self.elements -= 1;
        }
        Ok(None)
    }
}

/// The outcome of a bulk string.
enum Bulk<'a> {
    Nil,
    /// Its length is not known: chunks follow.
    Streamed,
    Whole(&'a [u8]),
    /// It is not there as a whole, and must be.
    Incomplete,
    /// It will be skipped as it comes.
    Skipped,
}

/// The first line without its end, and its length with it.
#[inline]
pub(super) fn line(input: &[u8]) -> Result<Option<(&[u8], usize)>, Broken> {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
        return if input.len() > LONGEST_LINE { Err(unexpected("a line of RESP", input)) } else { Ok(None) };
    };
    match input[..end].strip_suffix(b"\r") {
        Some(line) if !line.is_empty() => Ok(Some((line, end + 1))),
        _ => Err(unexpected("a reply of RESP", &input[..end])),
    }
}

/// The number after a type; nothing for -1.
#[inline]
pub(super) fn length(line: &[u8], most: i64) -> Result<Option<u64>, Broken> {
    let digits = &line[1..];
    if digits == b"-1" {
        return Ok(None);
    }
    let mut number = 0i64;
    for digit in digits {
        if !digit.is_ascii_digit() || number > most {
            return Err(unexpected("a length", line));
        }
        number = number * 10 + i64::from(digit - b'0');
    }
    if digits.is_empty() || number > most {
        return Err(unexpected("a length", line));
    }
    Ok(Some(number.unsigned_abs()))
}

pub(super) fn unexpected(expected: &str, read: &[u8]) -> Broken {
    Broken { failure: Failure::Protocol, example: format!("expected {expected}, read `{}`", shown(read)) }
}

/// The server refuses what a client says first.
pub(super) fn login_refused(error: &[u8]) -> Broken {
    Broken { failure: Failure::Rejected, example: format!("login: {}", shown(error)) }
}

impl Reply<'_> {
    /// The reply to a part of a login.
    pub(super) fn check_login(&self) -> Result<(), Broken> {
        match self {
            Self::Error(text) => Err(login_refused(text)),
            _ => Ok(()),
        }
    }

    /// It answers nothing.
    pub(super) fn unasked(&self) -> Broken {
        let example = format!("a reply that nobody asked for: {}", self.describe());
        Broken { failure: Failure::Protocol, example }
    }

    /// The reply for people.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Line(_, bytes) | Self::Error(bytes) | Self::Bulk(bytes) => format!("`{}`", shown(bytes)),
            Self::Nil => "nil".to_owned(),
            Self::Other => "an aggregate or a long string".to_owned(),
        }
    }
}

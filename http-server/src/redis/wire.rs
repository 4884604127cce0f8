//! The Redis protocol as a client sees it: commands to bytes, and where a reply ends.

use std::fmt;

use smallvec::SmallVec;

/// Arrays within arrays that a reply may have; Redis' deepest own reply (COMMAND) has 9.
const MAX_DEPTH: usize = 32;

/// Longest line: a number, a simple string, an error. Redis' own errors are below 1 KiB.
const MAX_LINE: usize = 64 * 1024;

/// Longest string that a length may announce, 512 MiB as in Redis.
const MAX_BULK: u64 = 512 * 1024 * 1024;

/// Most elements that an array may announce. It costs nothing before they come.
const MAX_ELEMENTS: u64 = u32::MAX as u64;

/// Appends a command. Lengths go before bytes, so that no argument can be taken for anything else.
pub(crate) fn put_command<A: AsRef<[u8]>>(out: &mut Vec<u8>, args: &[A]) {
    put_head(out, b'*', args.len());
    for arg in args {
        let arg = arg.as_ref();
        put_head(out, b'$', arg.len());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}

fn put_head(out: &mut Vec<u8>, kind: u8, len: usize) {
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// An error of the protocol: the bytes are no reply. The connection that it came from is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireError {
    /// The first byte of an element is none of the protocol's.
    Kind(u8),
    /// A length or number is none, or a limit's.
    Length,
    /// A line has no end.
    LongLine,
    /// Arrays lie too deep in each other.
    Depth,
    /// A string does not end where its length says.
    NoEnd,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(byte) => write!(f, "an element begins with byte {byte:#04x}"),
            Self::Length => f.write_str("a length is out of range"),
            Self::LongLine => f.write_str("a line is too long"),
            Self::Depth => f.write_str("arrays are nested too deep"),
            Self::NoEnd => f.write_str("a string does not end where its length says"),
        }
    }
}

/// How far a [`Scanner`] came. The bytes before belong to the reply and need not be shown again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// The reply ends after this many bytes.
    Whole(usize),
    /// This many bytes belong to the reply, and it goes on.
    Part(usize),
}

/// Finds the end of replies that come in pieces, without a second look at what it has seen.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    /// Elements still to come, by depth.
    open: SmallVec<[u64; 8]>,
    /// Bytes still to come of the string that is being read; its CRLF comes after.
    text: u64,
    /// Whether that string's CRLF is due.
    tail: bool,
    begun: bool,
}

impl Scanner {
    /// Looks at what came after the bytes that were taken before.
    pub(crate) fn scan(&mut self, input: &[u8]) -> Result<Scan, WireError> {
        let mut at = 0;
        loop {
            if self.text > 0 {
                let taken = self.text.min((input.len() - at) as u64);
                self.text -= taken;
                at += taken as usize;
                if self.text > 0 {
                    return Ok(Scan::Part(at));
                }
            }
            if self.tail {
                let Some(end) = input.get(at..at + 2) else { return Ok(Scan::Part(at)) };
                if end != b"\r\n" {
                    return Err(WireError::NoEnd);
                }
                at += 2;
                self.tail = false;
                self.element_ended();
            }
            if self.begun && self.open.is_empty() {
                self.begun = false;
                return Ok(Scan::Whole(at));
            }
            let Some(line) = line(&input[at..])? else { return Ok(Scan::Part(at)) };
            at += line.len() + 2;
            self.header(line)?;
        }
    }

    /// Takes the line that begins an element.
    fn header(&mut self, line: &[u8]) -> Result<(), WireError> {
        if !self.begun {
            self.begun = true;
            self.open.push(1);
        }
        let Some((&kind, rest)) = line.split_first() else { return Err(WireError::Kind(b'\r')) };
        match kind {
            b'+' | b'-' | b':' | b',' | b'#' | b'_' | b'(' => self.element_ended(),
            b'$' | b'=' | b'!' => match length(rest, MAX_BULK)? {
                None => self.element_ended(),
                Some(len) => (self.text, self.tail) = (len, true),
            },
            b'*' | b'~' | b'>' => self.aggregate(length(rest, MAX_ELEMENTS)?)?,
            b'%' => self.aggregate(length(rest, MAX_ELEMENTS)?.map(|pairs| pairs * 2))?,
            // Attributes come before the element that they are about and do not count as one.
            b'|' => {
                let pairs = length(rest, MAX_ELEMENTS)?.ok_or(WireError::Length)?;
                *self.open.last_mut().expect("opened above") += 1;
                self.aggregate(Some(pairs * 2))?;
            }
            other => return Err(WireError::Kind(other)),
        }
        Ok(())
    }

    fn aggregate(&mut self, elements: Option<u64>) -> Result<(), WireError> {
        match elements {
            None | Some(0) => self.element_ended(),
            Some(elements) => {
                if self.open.len() > MAX_DEPTH {
                    return Err(WireError::Depth);
                }
                self.open.push(elements);
            }
        }
        Ok(())
    }

    fn element_ended(&mut self) {
        while let Some(left) = self.open.last_mut() {
            *left -= 1;
            if *left > 0 {
                break;
            }
            self.open.pop();
        }
    }
}

/// The line at the head of `input`, without its end; `None` if its end has not come.
pub(crate) fn line(input: &[u8]) -> Result<Option<&[u8]>, WireError> {
    match memchr::memchr(b'\n', input) {
        Some(end) if end > 0 && input[end - 1] == b'\r' => Ok(Some(&input[..end - 1])),
        Some(_) => Err(WireError::NoEnd),
        None if input.len() > MAX_LINE => Err(WireError::LongLine),
        None => Ok(None),
    }
}

/// A length; `None` for -1, which RESP2 writes for null.
pub(crate) fn length(digits: &[u8], max: u64) -> Result<Option<u64>, WireError> {
    if digits == b"-1" {
        return Ok(None);
    }
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(WireError::Length);
    }
    let value = digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
    if value > max { Err(WireError::Length) } else { Ok(Some(value)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let mut out = Vec::new();
        put_command(&mut out, &[b"SET".as_slice(), b"k\r\n$1\r\nx", b""]);
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$8\r\nk\r\n$1\r\nx\r\n$0\r\n\r\n");
    }

    /// Fed whole and cut at every byte, a reply ends at the same place, and the bytes behind it are left alone.
    #[test]
    fn ends_of_replies() {
        fn check(reply: &str) {
            let mut input = reply.as_bytes().to_vec();
            input.extend_from_slice(b"+next\r\n");
            assert_eq!(Scanner::default().scan(&input), Ok(Scan::Whole(reply.len())), "{reply:?}");
            let mut scanner = Scanner::default();
            let (mut taken, mut shown) = (0, 0);
            loop {
                shown += 1;
                match scanner.scan(&input[taken..shown]).unwrap() {
                    Scan::Part(more) => taken += more,
                    Scan::Whole(more) => break assert_eq!(taken + more, reply.len(), "{reply:?} in pieces"),
                }
            }
            assert_eq!(scanner.scan(b"+next\r\n"), Ok(Scan::Whole(7)), "{reply:?}: fit for the next");
        }
        check("+OK\r\n");
        check("-ERR no\r\n");
        check(":1\r\n");
        check("$-1\r\n");
        check("$0\r\n\r\n");
        check("$3\r\nfoo\r\n");
        check("$4\r\n\r\n\r\n\r\n");
        check("*-1\r\n");
        check("*0\r\n");
        check("*2\r\n$1\r\na\r\n*2\r\n:1\r\n*0\r\n");
        check("%1\r\n+k\r\n*1\r\n_\r\n");
        check("~2\r\n#t\r\n,1.5\r\n");
        check(">3\r\n+message\r\n+c\r\n$1\r\nm\r\n");
        check("|1\r\n+ttl\r\n:3\r\n$1\r\nx\r\n");
        check("*2\r\n|1\r\n+ttl\r\n:3\r\n$1\r\nx\r\n:2\r\n");
        check("=7\r\ntxt:abc\r\n");
        check("(123456789012345678901234567890\r\n");
        check("!3\r\nERR\r\n");
    }

    #[test]
    fn malformed_replies_are_rejected() {
        fn check(input: &[u8], error: WireError) {
            assert_eq!(Scanner::default().scan(input), Err(error), "{}", input.escape_ascii());
        }
        check(b"HTTP/1.1 400\r\n", WireError::Kind(b'H'));
        check(b"\r\n", WireError::Kind(b'\r'));
        check(b"$x\r\n", WireError::Length);
        check(b"$-2\r\n", WireError::Length);
        check(b"$536870913\r\n", WireError::Length);
        check(b"*99999999999\r\n", WireError::Length);
        check(b"*18446744073709551617\r\n", WireError::Length);
        check(b"$?\r\n", WireError::Length);
        check(b"$1\r\nab\r\n", WireError::NoEnd);
        check(b"+a\n", WireError::NoEnd);
        check(&b"*1\r\n".repeat(40), WireError::Depth);
        check(&[b'+'; MAX_LINE + 2], WireError::LongLine);
    }
}

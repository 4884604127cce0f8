//! A file, cut into commands.

use std::fmt;
use std::io::{self, Read};

use super::writer::Mark;
use crate::protocol::{Parser, RequestLimits, Span, parse_whole_commands};

/// Bytes that are read at once.
const WINDOW: usize = 1024 * 1024;
/// Commands that are cut together.
const COMMANDS: usize = 32;
/// Longest line that says something about the file, its end included.
const NOTE_MAX: usize = 1024;
/// Zeros are looked for behind so many bytes of a fault at most.
const TAIL_MAX: usize = 64 * 1024 * 1024;

/// Why a file is not read to its end.
#[derive(Debug)]
pub enum ReadFault {
    /// The system cannot read it.
    Io(io::Error),
    /// It ends in the command that begins at this offset.
    Short(u64),
    /// The bytes at this offset are no command.
    Format(u64, String),
}

impl fmt::Display for ReadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Short(offset) => write!(f, "offset {offset}: the file ends in this command"),
            Self::Format(offset, what) => write!(f, "offset {offset}: {what}"),
        }
    }
}

/// Commands that stand one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The bytes that hold the commands.
    pub bytes: &'a [u8],
    /// All arguments.
    pub spans: &'a [Span],
    /// Of each command, how many of the arguments stand before its end, and where it ends in `bytes`.
    pub ends: &'a [(usize, usize)],
    /// Where `bytes` stand in the file.
    pub offset: u64,
    /// Where in `bytes` the first command begins.
    pub begin: usize,
}

/// A file that is read.
pub struct Reader<R> {
    source: R,
    buffer: Vec<u8>,
    /// Where in `buffer` that begins which was not cut, and where `buffer` begins in the file.
    at: usize,
    offset: u64,
    is_at_end: bool,
    /// How far the command at `at` is parsed.
    parser: Parser,
    spans: Vec<Span>,
    ends: arrayvec::ArrayVec<(usize, usize), COMMANDS>,
    /// The last mark, and the offset behind it.
    mark: Option<(Mark, u64)>,
}

impl<R: Read> Reader<R> {
    /// A reader of `source`, whose first byte has the offset `offset` in the file.
    pub fn new(source: R, offset: u64) -> Self {
        let (parser, ends) = (Parser::default(), arrayvec::ArrayVec::new());
        Self {
            source,
            buffer: Vec::new(),
            at: 0,
            offset,
            is_at_end: false,
            parser,
            spans: Vec::new(),
            ends,
            mark: None,
        }
    }

    /// The place in a stream of changes that what was cut so far has reached, if nothing stands behind what says so.
    pub fn mark(&self) -> Option<&Mark> {
        self.mark.as_ref().filter(|(_, end)| *end == self.offset()).map(|(mark, _)| mark)
    }

    /// Bytes that were cut so far, counted from the beginning of the file.
    pub fn offset(&self) -> u64 {
        self.offset + self.at as u64
    }

    /// The next commands; `None` at the end.
    ///
    /// # Errors
    /// [`ReadFault`]. Earlier calls have returned the commands in front of the fault.
    pub fn next_batch(&mut self) -> Result<Option<Batch<'_>>, ReadFault> {
        self.spans.clear();
        self.ends.clear();
        let mut begin = self.at;
        while self.ends.is_empty() {
            begin = self.at;
            match self.cut() {
                Ok(true) => {}
                Ok(false) if self.is_at_end && self.at == self.buffer.len() => return Ok(None),
                Ok(false) if self.is_at_end => return Err(ReadFault::Short(self.offset())),
                Ok(false) => self.read(WINDOW).map_err(ReadFault::Io)?,
                Err(what) => return Err(self.fault(what)),
            }
        }
        let (bytes, offset) = (&self.buffer[..], self.offset);
        Ok(Some(Batch { bytes, spans: &self.spans, ends: &self.ends, offset, begin }))
    }

    /// Cuts what is complete. False: more must be read.
    fn cut(&mut self) -> Result<bool, String> {
        let limits = RequestLimits::OF_SERVERS;
        let Some(&first) = self.buffer.get(self.at) else { return Ok(false) };
        if first == b'#' {
            let rest = &self.buffer[self.at..];
            let end = rest.iter().position(|&byte| byte == b'\n');
            return match end {
                Some(end) if end < NOTE_MAX => {
                    let mark = Mark::parse(&rest[..end]);
                    self.at += end + 1;
                    self.mark = mark.map(|mark| (mark, self.offset())).or_else(|| self.mark.take());
                    Ok(true)
                }
                None if rest.len() < NOTE_MAX => Ok(false),
                Some(_) | None => Err("a line that is too long".to_owned()),
            };
        }
        if first != b'*' {
            return Err(format!("expected '*', got '{}'", first.escape_ascii()));
        }
        let begin = self.at;
        if !self.parser.in_command() {
            self.at = parse_whole_commands(&self.buffer, begin, &limits, &mut self.spans, &mut self.ends);
        }
        if self.ends.is_empty() {
            // Long ones, and the last of what was read.
            let parsed = self.parser.parse(&self.buffer, begin, &mut self.spans, &limits);
            let Some(end) = parsed.map_err(|error| error.to_string())? else { return Ok(false) };
            self.at = end;
            self.ends.push((self.spans.len(), end));
        }
        self.check(begin)
    }

    /// Checks the cut commands, and takes back those from the first invalid one on.
    fn check(&mut self, begin: usize) -> Result<bool, String> {
        let (mut first, mut start) = (0, begin);
        for (number, &(last, end)) in self.ends.iter().enumerate() {
            let spans = &self.spans[first..last];
            let is_ended = |span: &Span| {
                let end = span.start as usize + span.len as usize;
                self.buffer.get(end..end + 2) == Some(b"\r\n")
            };
            if spans.is_empty() || !spans.iter().all(is_ended) {
                let what =
                    if spans.is_empty() { "a command without words" } else { "expected CR LF behind an argument" };
                self.at = start;
                self.spans.truncate(first);
                self.ends.truncate(number);
                // The commands in front are valid; the next call meets the fault first.
                return if number > 0 { Ok(true) } else { Err(what.to_owned()) };
            }
            (first, start) = (last, end);
        }
        Ok(true)
    }

    /// Reads so many bytes more, if there are.
    fn read(&mut self, wanted: usize) -> io::Result<()> {
        if self.at > 0 {
            Parser::relocate(&mut self.spans, self.at);
            self.buffer.drain(..self.at);
            self.offset += self.at as u64;
            self.at = 0;
        }
        // A command that is longer has as much read as there is of it.
        let wanted = wanted.max(self.buffer.len());
        let read = (&mut self.source).take(wanted as u64).read_to_end(&mut self.buffer)?;
        self.is_at_end = read < wanted;
        if self.buffer.len() > u32::MAX as usize {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a command of more than 4 GB"));
        }
        Ok(())
    }

    /// The fault at `at`. A file whose length has outlived a crash that its last bytes have not ends in zeros.
    fn fault(&mut self, what: String) -> ReadFault {
        self.parser = Parser::default();
        self.spans.clear();
        while !self.is_at_end && self.buffer.len() - self.at < TAIL_MAX {
            if let Err(error) = self.read(WINDOW) {
                return ReadFault::Io(error);
            }
        }
        let rest = &self.buffer[self.at..];
        let written = rest.len() - rest.iter().rev().take_while(|&&byte| byte == 0).count();
        if self.is_at_end && written < rest.len() && is_begun(&rest[..written]) {
            return ReadFault::Short(self.offset());
        }
        ReadFault::Format(self.offset(), what)
    }
}

/// Whether this is the beginning of a command, or nothing.
fn is_begun(bytes: &[u8]) -> bool {
    let limits = RequestLimits::OF_SERVERS;
    match bytes.first() {
        None => true,
        Some(b'*') => matches!(Parser::default().parse(bytes, 0, &mut Vec::new(), &limits), Ok(None)),
        Some(b'#') => !bytes.contains(&b'\n'),
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands in words, and how the file ends.
    fn read(bytes: &[u8], piece: usize) -> (Vec<String>, String) {
        struct Pieces<'a>(&'a [u8], usize);
        impl Read for Pieces<'_> {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                let count = self.0.len().min(self.1).min(into.len());
                into[..count].copy_from_slice(&self.0[..count]);
                self.0 = &self.0[count..];
                Ok(count)
            }
        }
        let mut reader = Reader::new(Pieces(bytes, piece), 0);
        let mut commands = Vec::new();
        loop {
            match reader.next_batch() {
                Ok(None) => return (commands, "whole".to_owned()),
                Err(fault) => return (commands, fault.to_string()),
                Ok(Some(batch)) => {
                    let mut first = 0;
                    for &(last, _) in batch.ends {
                        let word = |span: &Span| {
                            let start = span.start as usize;
                            String::from_utf8_lossy(&batch.bytes[start..start + span.len as usize]).into_owned()
                        };
                        commands.push(batch.spans[first..last].iter().map(word).collect::<Vec<_>>().join(" "));
                        first = last;
                    }
                }
            }
        }
    }

    fn check(bytes: &[u8], commands: &[&str], end: &str) {
        for piece in [1, 7, usize::MAX] {
            let (found, ended) = read(bytes, piece);
            assert_eq!(found, commands, "{}", bytes.escape_ascii());
            assert!(ended.contains(end), "{}: {ended}", bytes.escape_ascii());
        }
    }

    #[test]
    fn commands_notes_and_ends() {
        const GET: &[u8] = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
        check(b"", &[], "whole");
        check(GET, &["GET k"], "whole");
        check(&[GET, b"#TS:1\r\n", GET, b"# more\n"].concat(), &["GET k", "GET k"], "whole");
        check(&[GET, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r"].concat(), &["GET k"], "offset 20: the file ends");
        check(&[GET, b"#TS:1"].concat(), &["GET k"], "offset 20: the file ends");
        check(&[GET, b"*"].concat(), &["GET k"], "offset 20: the file ends");
        check(&[GET, b"!hello"].concat(), &["GET k"], "offset 20: expected '*', got '!'");
        check(&[GET, b"*0\r\n", GET].concat(), &["GET k"], "offset 20: a command without words");
        check(&[GET, b"*x\r\n", GET].concat(), &["GET k"], "offset 20: Protocol error: invalid multibulk length");
        check(&[GET, b"*1\r\n:1\r\n"].concat(), &["GET k"], "offset 20: Protocol error: expected '$', got ':'");
        check(&[GET, b"*1\r\n$4\r\nPINGxx", GET].concat(), &["GET k"], "offset 20: expected CR LF");
        check(&[GET, &[b'#'; 2000][..], b"\n"].concat(), &["GET k"], "offset 20: a line that is too long");
        let long = format!("*2\r\n$3\r\nGET\r\n$3000000\r\n{}\r\n", "x".repeat(3_000_000));
        let (found, ended) = read(&[long.as_bytes(), GET].concat(), usize::MAX);
        assert_eq!((found[0].len(), found[1].as_str(), ended.as_str()), (3_000_004, "GET k", "whole"));
    }

    #[test]
    fn marks_count_where_nothing_stands_behind_them() {
        const GET: &str = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
        let mark = |offset| Mark { stream: "0123456789abcdef0123456789abcdef01234567".to_owned(), offset };
        for (text, expected) in [
            (format!("{GET}{}", mark(7)), Some(mark(7))),
            (format!("{}{GET}{}{}", mark(7), mark(8), mark(9)), Some(mark(9))),
            (format!("{}{GET}", mark(7)), None),
            (format!("{}#TS:1\r\n", mark(7)), None),
            (format!("{GET}#REPL:short:7\r\n"), None),
            (format!("{GET}#REPL:{}:x\r\n", "0".repeat(40)), None),
            (GET.to_owned(), None),
        ] {
            let mut reader = Reader::new(text.as_bytes(), 0);
            while reader.next_batch().unwrap().is_some() {}
            assert_eq!(reader.mark(), expected.as_ref(), "{text}");
        }
    }

    #[test]
    fn zeros_at_the_end_are_what_a_crash_has_left() {
        const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n";
        for kept in 0..SET.len() {
            let bytes = [SET, &SET[..kept], &[0; 100]].concat();
            check(&bytes, &["SET k value"], "offset 31: the file ends");
        }
        check(&[SET, &[0; 100], SET].concat(), &["SET k value"], "offset 31: expected '*', got '\\x00'");
        check(&[SET, b"junk", &[0; 100]].concat(), &["SET k value"], "offset 31: expected '*', got 'j'");
    }
}

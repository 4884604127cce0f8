//! The frames of one answer, as they come in pieces of any size.

use super::frame::{self, kind};
use super::qpack::Heads;
use crate::codec::h2::{Head, Judge};

/// The longest header block in compressed form.
const MAX_BLOCK: u64 = 64 * 1024;

/// A fault of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It ends its stream alone.
    Message(&'static str),
    /// It ends the connection.
    Connection(String),
}

/// How far an answer has been read.
#[derive(Debug, Default)]
pub(super) struct Answer {
    part: Part,
    /// The beginning of a frame's head, or of a header block, whose rest has not come.
    partial: Vec<u8>,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, Default)]
enum Part {
    /// Between two frames.
    #[default]
    Head,
    /// In a header block of this length.
    Block(usize),
    /// So many bytes of body are missing.
    Data(u64),
    /// So many bytes of an unknown frame are missing.
    Unknown(u64),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    #[default]
    Begun,
    Headed,
    Trailed,
}

impl Answer {
    /// Reads a piece of the answer.
    #[inline]
    pub(super) fn read<J: Judge>(
        &mut self,
        judge: &J,
        exchange: &mut J::Exchange,
        heads: &mut Heads,
        mut input: &[u8],
    ) -> Result<(), Fault> {
        while !input.is_empty() {
            match self.part {
                Part::Head => input = self.frame(input)?,
                Part::Block(length) => {
                    let missing = (length - self.partial.len()).min(input.len());
                    let (piece, rest) = input.split_at(missing);
                    input = rest;
                    if piece.len() == length {
                        self.block(judge, exchange, heads, piece)?;
                        continue;
                    }
                    self.partial.extend_from_slice(piece);
                    if self.partial.len() == length {
                        let block = std::mem::take(&mut self.partial);
                        self.block(judge, exchange, heads, &block)?;
                    }
                }
                Part::Data(missing) => {
                    let (piece, rest) = input
                        .split_at(usize::try_from(missing).map_or(input.len(), |missing| missing.min(input.len())));
                    judge.data(exchange, piece);
                    self.part = after(missing - piece.len() as u64, Part::Data);
                    input = rest;
                }
                Part::Unknown(missing) => {
                    let skipped = usize::try_from(missing).map_or(input.len(), |missing| missing.min(input.len()));
                    self.part = after(missing - skipped as u64, Part::Unknown);
                    input = &input[skipped..];
                }
            }
        }
        Ok(())
    }

    /// Reads a frame's head, and gives what is behind it.
    fn frame<'a>(&mut self, input: &'a [u8]) -> Result<&'a [u8], Fault> {
        if self.partial.is_empty()
            && let Some((kind, length, behind)) = frame::read_head(input)
        {
            self.begin(kind, length)?;
            return Ok(&input[behind..]);
        }
        let earlier = self.partial.len();
        self.partial.extend_from_slice(&input[..input.len().min(frame::LONGEST_HEAD)]);
        let Some((kind, length, behind)) = frame::read_head(&self.partial) else {
            return Ok(&[]);
        };
        self.partial.clear();
        self.begin(kind, length)?;
        Ok(&input[behind - earlier..])
    }

    fn begin(&mut self, kind: u64, length: u64) -> Result<(), Fault> {
        let unexpected = |frame: &str| Err(Fault::Connection(format!("{frame} on the stream of a request")));
        self.part = match (kind, self.progress) {
            (kind::HEADERS | kind::DATA, Progress::Trailed) => return unexpected("a frame behind the trailers"),
            (kind::DATA, Progress::Begun) => {
                return Err(Fault::Connection("DATA before HEADERS of an answer".to_owned()));
            }
            (kind::HEADERS, _) if length > MAX_BLOCK => {
                return Err(Fault::Connection(format!("a header block of more than {MAX_BLOCK} bytes")));
            }
            (kind::HEADERS, _) if length < 2 => {
                return Err(Fault::Connection("a header block that is cut off".to_owned()));
            }
            (kind::HEADERS, _) => Part::Block(length as usize),
            (kind::DATA, _) => after(length, Part::Data),
            (kind::SETTINGS, _) => return unexpected("SETTINGS"),
            (kind::GOAWAY, _) => return unexpected("GOAWAY"),
            (kind::CANCEL_PUSH | kind::MAX_PUSH_ID | kind::PUSH_PROMISE, _) => return unexpected("a frame of pushes"),
            (kind, _) if frame::is_reserved(kind) => return unexpected("a frame of HTTP/2"),
            // Unknown types are ignored (RFC 9114, 9).
            _ => after(length, Part::Unknown),
        };
        Ok(())
    }

    /// A whole header block: the answer's head, an interim one, or trailers.
    fn block<J: Judge>(
        &mut self,
        judge: &J,
        exchange: &mut J::Exchange,
        heads: &mut Heads,
        block: &[u8],
    ) -> Result<(), Fault> {
        self.part = Part::Head;
        let head = heads.read(block).map_err(|invalid| Fault::Connection(invalid.to_string()))?;
        if let Some(problem) = problem(head, self.progress) {
            return Err(Fault::Message(problem));
        }
        if self.progress == Progress::Headed {
            self.progress = Progress::Trailed;
            judge.trailers(exchange, head);
        } else if head.status >= 200 {
            self.progress = Progress::Headed;
            judge.head(exchange, head);
        }
        Ok(())
    }

    /// The fault of an answer that ends here.
    pub(super) fn end(&self) -> Result<(), Fault> {
        match (self.part, self.progress) {
            (Part::Head, _) if !self.partial.is_empty() => Err(Fault::Connection("a frame that is cut off".to_owned())),
            (Part::Block(_) | Part::Data(_) | Part::Unknown(_), _) => {
                Err(Fault::Connection("an answer that ends within a frame".to_owned()))
            }
            (Part::Head, Progress::Begun) => Err(Fault::Message("an answer that ends before its final status")),
            (Part::Head, Progress::Headed | Progress::Trailed) => Ok(()),
        }
    }
}

/// The part that has so many bytes left.
fn after(missing: u64, part: impl FnOnce(u64) -> Part) -> Part {
    if missing == 0 { Part::Head } else { part(missing) }
}

/// The fault of a header block at its place.
fn problem(head: &Head, progress: Progress) -> Option<&'static str> {
    if head.malformed.is_some() {
        return head.malformed;
    }
    match (progress, head.status) {
        (Progress::Begun, 0) => Some("a head without a status"),
        (Progress::Begun, 101) => Some("status 101, which HTTP/3 does not have"),
        (Progress::Headed, 1..) => Some("a status in the trailers"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Nanos;
    use crate::record::Tally;

    /// Writes down what it is shown.
    struct Scribe;

    impl Judge for Scribe {
        type Exchange = String;

        fn head(&self, exchange: &mut String, head: &Head) {
            exchange.push_str(&format!("[{}]", head.status));
        }

        fn data(&self, exchange: &mut String, data: &[u8]) {
            exchange.push_str(&String::from_utf8_lossy(data));
        }

        fn trailers(&self, exchange: &mut String, _: &Head) {
            exchange.push_str("[trailers]");
        }

        fn complete(&self, _: &mut String, _: Nanos, _: &mut Tally) {}
    }

    const OK: &[u8] = &[1, 3, 0, 0, 0xd9];
    const HINTS: &[u8] = &[1, 3, 0, 0, 0xd8];
    const TRAILERS: &[u8] = &[1, 6, 0, 0, 0x21, b'a', 1, b'b'];

    /// Reads an answer in pieces of every size.
    #[track_caller]
    fn check(frames: &[&[u8]], expected: Result<&str, Fault>) {
        let bytes = frames.concat();
        for size in 1..=bytes.len() {
            let (mut answer, mut exchange, mut heads) = (Answer::default(), String::new(), Heads::default());
            let read = bytes.chunks(size).try_for_each(|piece| answer.read(&Scribe, &mut exchange, &mut heads, piece));
            let ended = read.and_then(|()| answer.end()).map(|()| exchange.as_str());
            assert_eq!(ended, expected, "in pieces of {size} bytes");
        }
    }

    #[test]
    fn answers_are_read_in_pieces() {
        check(&[OK], Ok("[200]"));
        check(&[OK, &[0, 2], b"hi"], Ok("[200]hi"));
        check(&[HINTS, OK, &[0, 0], &[0, 1, b'h'], &[0x21, 2, 9, 9], &[0, 1, b'i'], TRAILERS], Ok("[200]hi[trailers]"));
        check(&[&[0x40, 0x21, 0], OK, &[0x40, 0, 0x40, 1, b'h']], Ok("[200]h"));
    }

    proptest::proptest! {
        /// Beginnings of real frames lead deeper than noise alone.
        #[test]
        fn no_bytes_panic(frames: Vec<(u8, Vec<u8>)>, size in 1_usize..40) {
            let bytes: Vec<u8> = frames.iter().flat_map(|(kind, rest)| {
                let whole: &[&[u8]] = &[OK, HINTS, TRAILERS, &[0, 3], &[1, 4, 0, 0], &[0x21, 2], &[4, 1], &[]];
                [whole[usize::from(*kind) % whole.len()], &rest[..]].concat()
            }).collect();
            let (mut answer, mut exchange, mut heads) = (Answer::default(), String::new(), Heads::default());
            let _ = bytes.chunks(size).try_for_each(|piece| answer.read(&Scribe, &mut exchange, &mut heads, piece));
            let _ = answer.end();
            let mut control = super::super::control::OneWay::default();
            let _ = bytes.chunks(size).try_for_each(|piece| control.read(piece, |_| ()));
        }
    }

    #[test]
    fn faults_are_found() {
        let connection = |text: &str| Err(Fault::Connection(text.to_owned()));
        check(&[&[0, 1, b'x']], connection("DATA before HEADERS of an answer"));
        check(&[OK, &[4, 0]], connection("SETTINGS on the stream of a request"));
        check(&[OK, &[7, 1, 0]], connection("GOAWAY on the stream of a request"));
        check(&[OK, &[8, 0]], connection("a frame of HTTP/2 on the stream of a request"));
        check(&[OK, &[5, 0]], connection("a frame of pushes on the stream of a request"));
        check(&[OK, TRAILERS, &[0, 1, b'x']], connection("a frame behind the trailers on the stream of a request"));
        check(&[OK, &[0, 3, b'x']], connection("an answer that ends within a frame"));
        check(&[OK, &[0]], connection("a frame that is cut off"));
        check(&[&[1, 1, 0]], connection("a header block that is cut off"));
        check(&[&[1, 0x80, 1, 0, 1]], connection("a header block of more than 65536 bytes"));
        check(&[&[1, 3, 0, 0, 0x80]], connection("a header block names entry 0, which is not in the table"));
        check(&[HINTS], Err(Fault::Message("an answer that ends before its final status")));
        check(&[TRAILERS], Err(Fault::Message("a head without a status")));
        check(&[OK, OK], Err(Fault::Message("a status in the trailers")));
    }
}

//! Responses, piece by piece, as they arrive.

use super::head::{self, Framing, Head};
use crate::codec::{Broken, shown};
use crate::record::Failure;

/// The longest head of a response: far above any server's limit on its own.
const LONGEST_HEAD: usize = 256 << 10;

/// The longest line between chunks.
const LONGEST_CHUNK_LINE: usize = 8 << 10;

/// The longest body that is kept.
const LONGEST_KEPT_BODY: usize = 64 << 20;

/// One connection's responses.
#[derive(Debug, Default)]
pub(in crate::codec) struct Reader {
    state: State,
    status: u16,
    closes: bool,
    /// The body so far, where it is kept.
    body: Vec<u8>,
    /// The last head and what it said: servers send the same one again and again.
    last: Option<Box<(Vec<u8>, Head)>>,
}

/// The properties of a request that decide how its response is read.
#[derive(Clone, Copy, Debug)]
pub(in crate::codec) struct Request {
    /// A response to HEAD has no body.
    pub(in crate::codec) is_head: bool,
    pub(in crate::codec) keeps_body: bool,
}

/// The next part of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    /// So many bytes of body.
    Body(u64),
    /// The line before a chunk.
    ChunkSize,
    /// So many bytes of a chunk.
    Chunk(u64),
    /// The line end behind a chunk.
    ChunkEnd,
    /// The lines behind the last chunk.
    Trailers,
    /// A body that ends with the connection.
    UntilEnd,
}

impl Reader {
    /// Reads the next piece of the response to `request`. Returns its length, and whether the response is complete; nothing
    /// while more bytes must come.
    ///
    /// # Errors
    /// When the bytes are not HTTP/1.1, or no request is in flight.
    #[inline]
    pub(in crate::codec) fn read(
        &mut self,
        input: &[u8],
        request: Option<Request>,
    ) -> Result<Option<(usize, bool)>, Broken> {
        let (length, is_complete) = if self.state == State::Head {
            let Some(length) = (if input.is_empty() { None } else { self.head(input, request)? }) else {
                return Ok(None);
            };
            (length, self.state == State::Body(0))
        } else {
            let keeps_body = request.is_some_and(|request| request.keeps_body);
            let (length, is_complete) = self.piece(input, keeps_body)?;
            if length == 0 && !is_complete {
                return Ok(None);
            }
            (length, is_complete)
        };
        if is_complete {
            self.state = State::Head;
        }
        Ok(Some((length, is_complete)))
    }

    /// The peer has closed. Returns whether that completes a response.
    pub(in crate::codec) fn end(&mut self) -> bool {
        let is_complete = self.state == State::UntilEnd;
        if is_complete {
            self.state = State::Head;
        }
        is_complete
    }

    /// The status of the last response.
    pub(in crate::codec) fn status(&self) -> u16 {
        self.status
    }

    /// Whether the server closes the connection behind the last response.
    pub(in crate::codec) fn closes(&self) -> bool {
        self.closes
    }

    /// The head of the last response, with its status line.
    pub(in crate::codec) fn last_head(&self) -> &[u8] {
        self.last.as_ref().map_or(&[], |last| &last.0)
    }

    /// The body of the last response, if it was kept.
    pub(in crate::codec) fn body(&self) -> &[u8] {
        &self.body
    }

    /// Reads a head, if it is complete, and gives its length.
    fn head(&mut self, input: &[u8], request: Option<Request>) -> Result<Option<usize>, Broken> {
        if let Some(last) = &self.last
            && input.starts_with(&last.0)
        {
            let (length, head) = (last.0.len(), last.1);
            self.enter(head, request)?;
            return Ok(Some(length));
        }
        let Some(length) = head::length(input) else {
            if input.len() > LONGEST_HEAD || !b"HTTP/1.".starts_with(&input[..input.len().min(7)]) {
                return Err(unexpected("a response of HTTP/1.1", input));
            }
            return Ok(None);
        };
        let head = Head::parse(&input[..length]).map_err(|expected| unexpected(expected, &input[..length]))?;
        match &mut self.last {
            Some(last) => {
                last.0.clear();
                last.0.extend_from_slice(&input[..length]);
                last.1 = head;
            }
            None => self.last = Some(Box::new((input[..length].to_vec(), head))),
        }
        self.enter(head, request)?;
        Ok(Some(length))
    }

    /// Goes on behind a head.
    fn enter(&mut self, head: Head, request: Option<Request>) -> Result<(), Broken> {
        if (100..200).contains(&head.status) && head.status != 101 {
            // The final response follows.
            return Ok(());
        }
        let Some(request) = request else {
            let example = format!("a response that nobody asked for: status {}", head.status);
            return Err(Broken { failure: Failure::Protocol, example });
        };
        self.status = head.status;
        self.closes = head.closes;
        self.body.clear();
        let has_no_body = request.is_head || matches!(head.status, 204 | 304);
        self.state = match head.framing {
            _ if has_no_body => State::Body(0),
            Framing::Length(length) => State::Body(length),
            Framing::Chunked => State::ChunkSize,
            Framing::UntilEnd => State::UntilEnd,
        };
        Ok(())
    }

    /// Reads one piece of a body. Gives how much was read and whether the response is complete; nothing read means that
    /// more must come.
    fn piece(&mut self, input: &[u8], keeps: bool) -> Result<(usize, bool), Broken> {
        match self.state {
            State::Head => Ok((0, false)),
            State::Body(left) => {
                let length = self.keep(input, left, keeps)?;
                self.state = State::Body(left - length as u64);
                Ok((length, left == length as u64))
            }
            State::Chunk(left) => {
                let length = self.keep(input, left, keeps)?;
                let left = left - length as u64;
                self.state = if left == 0 { State::ChunkEnd } else { State::Chunk(left) };
                Ok((length, false))
            }
            State::UntilEnd => Ok((self.keep(input, u64::MAX, keeps)?, false)),
            State::ChunkSize | State::ChunkEnd | State::Trailers => self.line(input),
        }
    }

    /// Reads a line between chunks.
    fn line(&mut self, input: &[u8]) -> Result<(usize, bool), Broken> {
        let Some(end) = memchr::memchr(b'\n', input) else {
            return if input.len() > LONGEST_CHUNK_LINE { Err(unexpected("a chunk", input)) } else { Ok((0, false)) };
        };
        let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
        let mut is_complete = false;
        self.state = match self.state {
            State::ChunkSize => match head::chunk_size(line).ok_or_else(|| unexpected("a chunk's size", line))? {
                0 => State::Trailers,
                size => State::Chunk(size),
            },
            State::ChunkEnd if line.is_empty() => State::ChunkSize,
            State::ChunkEnd => return Err(unexpected("the end of a chunk", line)),
            state => {
                is_complete = line.is_empty();
                state
            }
        };
        Ok((end + 1, is_complete))
    }

    /// Takes up to `most` bytes of body, and keeps them if asked to.
    fn keep(&mut self, input: &[u8], most: u64, keeps: bool) -> Result<usize, Broken> {
        let length = most.min(input.len() as u64) as usize;
        if keeps {
            if self.body.len() + length > LONGEST_KEPT_BODY {
                let example = format!("a body longer than {LONGEST_KEPT_BODY} bytes cannot be checked");
                return Err(Broken { failure: Failure::Wrong, example });
            }
            self.body.extend_from_slice(&input[..length]);
        }
        Ok(length)
    }
}

fn unexpected(expected: &str, read: &[u8]) -> Broken {
    Broken { failure: Failure::Protocol, example: format!("expected {expected}, read `{}`", shown(read)) }
}

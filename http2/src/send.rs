//! Answers.

use std::fmt;

use crate::connection::Connection;
use crate::frame::{self, END_HEADERS, END_STREAM, HEAD, Kind};
use crate::hpack::{Block, Encoder, Field};
use crate::reason::Reason;
use crate::streams::{Local, Past, StreamId, Waits};

/// Why nothing could be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The stream is over: it was reset, or the connection has ended.
    Gone,
    /// An answer is a head, data, and trailers, in this order and not beyond its end.
    OutOfOrder,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "the stream is over",
            Self::OutOfOrder => "an answer's parts are out of order",
        })
    }
}

impl std::error::Error for SendError {}

impl Connection {
    /// Sends an answer's head: `:status`, then the other fields. With `end`, it is the whole answer. Heads of a status below 200
    /// are interim ones, such as 100 or 103, and come before the answer's.
    ///
    /// # Errors
    /// When the stream is over, or has a head already.
    pub fn send_head<'f>(
        &mut self,
        stream: StreamId,
        status: u16,
        fields: impl Iterator<Item = Field<'f>>,
        end: bool,
    ) -> Result<(), SendError> {
        self.expect(stream, Local::Head)?;
        let is_interim = status < 200;
        self.put_block(stream.number, end && !is_interim, |encoder, out| {
            encoder.encode(std::iter::once(Field::new(b":status", &digits(status))), out);
            encoder.encode(fields, out);
        });
        if !is_interim {
            self.budget.sent_block();
            self.sent(stream, end);
        }
        Ok(())
    }

    /// The same from a prepared block, which begins with `:status`.
    ///
    /// # Errors
    /// As for [`send_head`](Self::send_head).
    #[inline]
    pub fn send_head_block(&mut self, stream: StreamId, block: &Block, end: bool) -> Result<(), SendError> {
        self.expect(stream, Local::Head)?;
        self.put_block(stream.number, end, |encoder, out| encoder.encode_block(block, out));
        self.budget.sent_block();
        self.sent(stream, end);
        Ok(())
    }

    /// Sends as much of an answer's data as the windows and the output have room for, and tells how much that was. If it is less
    /// than all, the stream waits: [`next_writable`](Self::next_writable) gives it as soon as there is room for more of it. With
    /// `end`, the answer is complete when all of this is sent.
    ///
    /// # Errors
    /// When the stream is over, or its head was not sent, or its end was.
    #[inline]
    pub fn send_data(&mut self, id: StreamId, data: &[u8], end: bool) -> Result<usize, SendError> {
        self.expect(id, Local::Body)?;
        let room = self.config.max_output.saturating_sub(self.out.len());
        let Some(stream) = self.streams.get_mut(id) else { return Err(SendError::Gone) };
        let window = self.send_window.min(stream.send_window).max(0) as usize;
        let count = data.len().min(window).min(room);
        stream.send_window -= count as i64;
        self.send_window -= count as i64;
        let is_all = count == data.len();
        if !is_all && stream.waits == Waits::No {
            if stream.send_window > 0 {
                stream.waits = Waits::Turn;
                self.turns.push(id, stream.priority, count > 0);
            } else {
                stream.waits = Waits::Window;
            }
        }
        let most = self.peer.max_frame as usize;
        let ends = end && is_all;
        let mut rest = &data[..count];
        while rest.len() > most {
            let (piece, later) = rest.split_at(most);
            frame::put(&mut self.out.bytes, Kind::Data, 0, id.number, piece);
            rest = later;
        }
        if !rest.is_empty() || ends {
            self.budget.sent_data(count, !is_all);
            frame::put(&mut self.out.bytes, Kind::Data, if ends { END_STREAM } else { 0 }, id.number, rest);
        }
        if ends {
            self.sent(id, true);
        }
        Ok(count)
    }

    /// Whether an answer's next piece had better not be made yet, because the output is full: of many streams each would hold
    /// one. Then the stream waits for its turn, before those that have not begun if some of it `has_begun` to be sent.
    /// [`next_writable`](Self::next_writable) gives it.
    pub fn must_wait(&mut self, id: StreamId, has_begun: bool) -> bool {
        let is_full = self.is_full();
        // For its window it waits with a piece, so that a driver knows who takes nothing.
        let Some(stream) = self.streams.get_mut(id).filter(|stream| is_full && stream.send_window > 0) else {
            return false;
        };
        if stream.waits == Waits::No {
            stream.waits = Waits::Turn;
            self.turns.push(id, stream.priority, has_begun);
        }
        true
    }

    /// Sends the fields behind an answer's data, which end it.
    ///
    /// # Errors
    /// When the stream is over, or its head was not sent, or its end was.
    pub fn send_trailers<'f>(
        &mut self,
        stream: StreamId,
        fields: impl Iterator<Item = Field<'f>>,
    ) -> Result<(), SendError> {
        self.expect(stream, Local::Body)?;
        self.put_block(stream.number, true, |encoder, out| encoder.encode(fields, out));
        self.budget.sent_block();
        self.sent(stream, true);
        Ok(())
    }

    /// The same from a prepared block.
    ///
    /// # Errors
    /// As for [`send_trailers`](Self::send_trailers).
    #[inline]
    pub fn send_trailers_block(&mut self, stream: StreamId, block: &Block) -> Result<(), SendError> {
        self.expect(stream, Local::Body)?;
        self.put_block(stream.number, true, |encoder, out| encoder.encode_block(block, out));
        self.budget.sent_block();
        self.sent(stream, true);
        Ok(())
    }

    /// The next stream that waits and for which there is room. It is given once: a stream that still has more than fits
    /// waits again.
    pub fn next_writable(&mut self) -> Option<StreamId> {
        if self.turns.is_empty() || self.send_window <= 0 || self.out.len() >= self.config.max_output {
            return None;
        }
        while let Some(id) = self.turns.pop(&self.streams) {
            let Some(stream) = self.streams.get_mut(id) else { continue };
            // Settings may have taken its window away meanwhile.
            stream.waits = if stream.send_window > 0 { Waits::No } else { Waits::Window };
            if stream.waits == Waits::No {
                return Some(id);
            }
        }
        None
    }

    /// Answers a request whose fields are too large with status 431, and ends its stream; if the answer's head was sent already,
    /// the stream is reset.
    pub fn refuse_large(&mut self, stream: StreamId) {
        let sent = self.send_head(stream, 431, std::iter::empty(), true);
        self.reset(stream, if sent.is_ok() { Reason::NO_ERROR } else { Reason::ENHANCE_YOUR_CALM });
    }

    /// Ends a stream in any state; does nothing if it is over. Later frames of the stream are thrown away. An answer
    /// that is made before its request is complete ends so with [`Reason::NO_ERROR`] (RFC 9113 section 8.1).
    pub fn reset(&mut self, stream: StreamId, reason: Reason) {
        if self.streams.get(stream).is_some() {
            self.remove(stream, Past::ResetByUs);
            self.put_reset(stream.number, reason);
        }
    }

    /// Whether the stream is there to be answered.
    pub fn is_alive(&self, stream: StreamId) -> bool {
        self.streams.get(stream).is_some()
    }

    /// Whether more of the request may come.
    pub fn is_receiving(&self, stream: StreamId) -> bool {
        self.streams.get(stream).is_some_and(|stream| stream.remote_open)
    }

    #[inline]
    fn expect(&self, id: StreamId, local: Local) -> Result<(), SendError> {
        match self.streams.get(id) {
            Some(stream) if stream.local == local => Ok(()),
            Some(_) => Err(SendError::OutOfOrder),
            None => Err(SendError::Gone),
        }
    }

    /// A part of an answer was sent.
    fn sent(&mut self, id: StreamId, end: bool) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.local = if end { Local::Closed } else { Local::Body };
        if end && !stream.remote_open {
            self.remove(id, Past::Finished);
        }
    }

    pub(crate) fn put_reset(&mut self, number: u32, reason: Reason) {
        frame::put(&mut self.out.bytes, Kind::RstStream, 0, number, &reason.0.to_be_bytes());
    }

    /// Writes a header block in as many frames as it takes.
    #[inline]
    pub(crate) fn put_block(&mut self, number: u32, end: bool, write: impl FnOnce(&mut Encoder, &mut Vec<u8>)) {
        let out = &mut self.out.bytes;
        let start = out.len();
        out.extend_from_slice(&[0; HEAD]);
        write(&mut self.encoder, out);
        let length = out.len() - start - HEAD;
        let flags = if end { END_STREAM } else { 0 };
        let most = self.peer.max_frame as usize;
        if length <= most {
            out[start..start + HEAD].copy_from_slice(&frame::head(length, Kind::Headers, flags | END_HEADERS, number));
            return;
        }
        let block = out.split_off(start + HEAD);
        out.truncate(start);
        let mut pieces = block.chunks(most).peekable();
        let (mut kind, mut flags) = (Kind::Headers, flags);
        while let Some(piece) = pieces.next() {
            let last = if pieces.peek().is_none() { END_HEADERS } else { 0 };
            frame::put(out, kind, flags | last, number, piece);
            (kind, flags) = (Kind::Continuation, 0);
        }
    }
}

/// The three digits of a status.
fn digits(status: u16) -> [u8; 3] {
    let digit = |value: u16| b'0' + (value % 10) as u8;
    [digit(status / 100), digit(status / 10), digit(status)]
}

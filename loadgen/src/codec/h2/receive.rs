//! One connection: what comes.

use super::connection::{CONNECTION_WINDOW, Connection, Continued, STREAM_WINDOW, Stage};
use super::frame::{self, Head as FrameHead, append_head, append_number, error, flag, kind, setting};
use super::{Head, Judge, hpack};
use crate::codec::{Broken, Received};
use crate::record::{Failure, Tally};

/// The longest header block in compressed form.
const MAX_BLOCK: usize = 64 * 1024;

/// The most that waits to be said: a server that asks for more without reading the answers is not served.
const MAX_CONTROL: usize = 64 * 1024;

/// The largest window there is.
const MAX_WINDOW: i64 = (1 << 31) - 1;

type Outcome = Result<(), Broken>;

fn broken(example: impl Into<String>) -> Broken {
    Broken { failure: Failure::Protocol, example: example.into() }
}

impl<E: Default> Connection<E> {
    /// Reads the frames that are complete, and has the answers judged.
    ///
    /// # Errors
    /// When what comes is not HTTP/2, or the server ends the connection because of an error.
    #[inline]
    pub fn receive<J>(&mut self, judge: &J, input: &[u8], tally: &mut Tally) -> Result<Received, Broken>
    where
        J: Judge<Exchange = E>,
    {
        let mut consumed = 0;
        while let Some(head) = FrameHead::read(&input[consumed..]) {
            self.expect_frame(head, &input[consumed..])?;
            let payload = consumed + frame::HEAD;
            let Some(payload) = input.get(payload..payload + head.length) else {
                break;
            };
            self.frame(judge, head, payload, tally)?;
            consumed += frame::HEAD + head.length;
        }
        Ok(Received { consumed, close: self.is_done() })
    }

    /// The verdict on a frame by its head alone.
    fn expect_frame(&self, head: FrameHead, input: &[u8]) -> Outcome {
        if self.stage == Stage::Opening && (head.kind != kind::SETTINGS || head.has(flag::ACK)) {
            return Err(broken(if input.starts_with(b"HTTP/1.") {
                "the server answers in HTTP/1.1, not HTTP/2"
            } else {
                "the server does not begin with SETTINGS: is it HTTP/2?"
            }));
        }
        if head.length > frame::MAX_PAYLOAD {
            return Err(broken(format!("a frame of {} bytes, expected at most {}", head.length, frame::MAX_PAYLOAD)));
        }
        if let Some(continued) = &self.continued
            && (head.kind != kind::CONTINUATION || head.stream != continued.stream)
        {
            return Err(broken("a header block is interrupted by another frame"));
        }
        Ok(())
    }

    #[inline]
    fn frame<J>(&mut self, judge: &J, head: FrameHead, payload: &[u8], tally: &mut Tally) -> Outcome
    where
        J: Judge<Exchange = E>,
    {
        match head.kind {
            kind::HEADERS => self.headers(judge, head, payload, tally),
            kind::DATA => self.data(judge, head, payload, tally),
            kind::WINDOW_UPDATE => self.window_update(head, payload, tally),
            kind::RST_STREAM => self.reset(head, payload, tally),
            kind::SETTINGS => self.settings(head, payload),
            kind::PING => self.ping(head, payload),
            kind::GOAWAY => self.goaway(payload),
            kind::CONTINUATION => self.continuation(judge, head, payload, tally),
            kind::PUSH_PROMISE => Err(broken("PUSH_PROMISE, which was forbidden")),
            kind::PRIORITY if head.length != 5 => Err(broken("PRIORITY of a wrong length")),
            // Unknown types are ignored (RFC 9113, 4.1).
            _ => Ok(()),
        }
    }

    #[inline]
    fn headers<J>(&mut self, judge: &J, head: FrameHead, payload: &[u8], tally: &mut Tally) -> Outcome
    where
        J: Judge<Exchange = E>,
    {
        if self.streams.is_idle(head.stream) {
            return Err(broken(format!("HEADERS on stream {}, which was never opened", head.stream)));
        }
        let block = unpadded(head, payload)?;
        let skipped = if head.has(flag::PRIORITY) { 5 } else { 0 };
        let block = block.get(skipped..).ok_or_else(|| broken("HEADERS that are cut off"))?;
        let end = head.has(flag::END_STREAM);
        if head.has(flag::END_HEADERS) {
            return self.block(judge, head.stream, end, block, tally);
        }
        self.continued = Some(Box::new(Continued { stream: head.stream, end, block: block.to_vec() }));
        Ok(())
    }

    #[cold]
    fn continuation<J>(&mut self, judge: &J, head: FrameHead, payload: &[u8], tally: &mut Tally) -> Outcome
    where
        J: Judge<Exchange = E>,
    {
        let mut continued = self.continued.take().ok_or_else(|| broken("CONTINUATION without HEADERS"))?;
        if continued.block.len() + payload.len() > MAX_BLOCK {
            return Err(broken(format!("a header block of more than {MAX_BLOCK} bytes")));
        }
        continued.block.extend_from_slice(payload);
        if head.has(flag::END_HEADERS) {
            return self.block(judge, continued.stream, continued.end, &continued.block, tally);
        }
        // Frames without content would go on for ever.
        if payload.is_empty() {
            return Err(broken("CONTINUATION that holds nothing"));
        }
        self.continued = Some(continued);
        Ok(())
    }

    /// A whole header block: an answer's head or trailers.
    #[inline]
    fn block<J>(&mut self, judge: &J, id: u32, end: bool, block: &[u8], tally: &mut Tally) -> Outcome
    where
        J: Judge<Exchange = E>,
    {
        let head = self.heads.read(block).map_err(|invalid| broken(invalid.to_string()))?;
        let Some(stream) = self.streams.find(id) else {
            return Ok(());
        };
        if let Some(problem) = problem(head, stream.headed, end) {
            self.malformed(id, problem, tally);
            return Ok(());
        }
        if stream.headed {
            judge.trailers(&mut stream.exchange, head);
        } else if head.status >= 200 {
            stream.headed = true;
            judge.head(&mut stream.exchange, head);
        }
        if end {
            self.complete(judge, id, tally);
        }
        Ok(())
    }

    #[inline]
    fn data<J>(&mut self, judge: &J, head: FrameHead, payload: &[u8], tally: &mut Tally) -> Outcome
    where
        J: Judge<Exchange = E>,
    {
        if self.streams.is_idle(head.stream) {
            return Err(broken(format!("DATA on stream {}, which was never opened", head.stream)));
        }
        let data = unpadded(head, payload)?;
        // Padding counts, and so does what comes for streams that have ended.
        self.received += payload.len();
        if self.received > CONNECTION_WINDOW / 2 {
            append_number(&mut self.control, kind::WINDOW_UPDATE, 0, self.received as u32);
            self.received = 0;
        }
        let Some(stream) = self.streams.find(head.stream) else {
            return Ok(());
        };
        if !stream.headed {
            self.malformed(head.stream, "a body without a head", tally);
            return Ok(());
        }
        stream.received += payload.len();
        if stream.received > STREAM_WINDOW / 2 && !head.has(flag::END_STREAM) {
            append_number(&mut self.control, kind::WINDOW_UPDATE, head.stream, stream.received as u32);
            stream.received = 0;
        }
        if !data.is_empty() {
            judge.data(&mut stream.exchange, data);
        }
        if head.has(flag::END_STREAM) {
            self.complete(judge, head.stream, tally);
        }
        Ok(())
    }

    /// An answer is complete.
    #[inline]
    fn complete<J>(&mut self, judge: &J, id: u32, tally: &mut Tally)
    where
        J: Judge<Exchange = E>,
    {
        if let Some(stream) = self.streams.find(id) {
            judge.complete(&mut stream.exchange, stream.intended, tally);
            if stream.rest.is_some() {
                // The server does not want the rest of the body.
                append_number(&mut self.control, kind::RST_STREAM, id, error::NO_ERROR);
            }
            self.streams.close(id);
        }
    }

    /// An answer that breaks the rules ends its stream alone.
    #[cold]
    fn malformed(&mut self, id: u32, problem: &str, tally: &mut Tally) {
        self.fail(id, Failure::Protocol, tally, || problem.to_owned());
        append_number(&mut self.control, kind::RST_STREAM, id, error::PROTOCOL_ERROR);
    }

    fn fail(&mut self, id: u32, failure: Failure, tally: &mut Tally, example: impl FnOnce() -> String) {
        if let Some(stream) = self.streams.find(id) {
            tally.failed(stream.intended, failure, example);
            self.streams.close(id);
        }
    }

    fn window_update(&mut self, head: FrameHead, payload: &[u8], tally: &mut Tally) -> Outcome {
        let more = i64::from(number(payload).ok_or_else(|| broken("WINDOW_UPDATE of a wrong length"))? & 0x7fff_ffff);
        if head.stream == 0 {
            self.window += more;
            return if more == 0 || self.window > MAX_WINDOW {
                Err(broken(format!("WINDOW_UPDATE by {more} to {}", self.window)))
            } else {
                Ok(())
            };
        }
        if self.streams.is_idle(head.stream) {
            return Err(broken(format!("WINDOW_UPDATE on stream {}, which was never opened", head.stream)));
        }
        let Some(stream) = self.streams.find(head.stream) else {
            return Ok(());
        };
        stream.window += more;
        if more == 0 || stream.window > MAX_WINDOW {
            self.fail(head.stream, Failure::Protocol, tally, || format!("WINDOW_UPDATE of a stream by {more}"));
            append_number(&mut self.control, kind::RST_STREAM, head.stream, error::FLOW_CONTROL_ERROR);
        }
        Ok(())
    }

    fn reset(&mut self, head: FrameHead, payload: &[u8], tally: &mut Tally) -> Outcome {
        let code = number(payload).ok_or_else(|| broken("RST_STREAM of a wrong length"))?;
        if self.streams.is_idle(head.stream) {
            return Err(broken(format!("RST_STREAM of stream {}, which was never opened", head.stream)));
        }
        self.fail(head.stream, Failure::Reset, tally, || format!("RST_STREAM {}", frame::error_name(code)));
        Ok(())
    }

    fn settings(&mut self, head: FrameHead, payload: &[u8]) -> Outcome {
        if head.stream != 0 || !payload.len().is_multiple_of(6) || (head.has(flag::ACK) && !payload.is_empty()) {
            return Err(broken("SETTINGS of a wrong length or on a stream"));
        }
        if head.has(flag::ACK) {
            return Ok(());
        }
        for entry in payload.chunks_exact(6) {
            let name = u16::from_be_bytes([entry[0], entry[1]]);
            let value = u32::from_be_bytes([entry[2], entry[3], entry[4], entry[5]]);
            self.setting(name, value)?;
        }
        if self.stage == Stage::Opening {
            self.stage = Stage::Open;
        }
        self.answer(kind::SETTINGS, &[])
    }

    fn setting(&mut self, name: u16, value: u32) -> Outcome {
        let server = &mut self.server;
        match name {
            setting::HEADER_TABLE_SIZE => {
                let size = (value as usize).min(hpack::DEFAULT_TABLE_SIZE);
                if size < server.table_size {
                    server.table_size = size;
                    server.table_changed = true;
                }
            }
            setting::MAX_CONCURRENT_STREAMS => server.max_streams = value as usize,
            setting::INITIAL_WINDOW_SIZE if i64::from(value) <= MAX_WINDOW => {
                let change = i64::from(value) - server.stream_window;
                server.stream_window = i64::from(value);
                for stream in self.streams.iter_mut() {
                    stream.window += change;
                    if stream.window > MAX_WINDOW {
                        return Err(broken("SETTINGS that make a stream's window too large"));
                    }
                }
            }
            setting::MAX_FRAME_SIZE if (16_384..1 << 24).contains(&value) => server.max_payload = value as usize,
            setting::INITIAL_WINDOW_SIZE | setting::MAX_FRAME_SIZE => {
                return Err(broken(format!("setting {name} is {value}, which is out of its range")));
            }
            setting::ENABLE_PUSH if value != 0 => return Err(broken("the server wants to be pushed to")),
            _ => (),
        }
        Ok(())
    }

    fn ping(&mut self, head: FrameHead, payload: &[u8]) -> Outcome {
        if head.stream != 0 || payload.len() != 8 {
            return Err(broken("PING of a wrong length or on a stream"));
        }
        if head.has(flag::ACK) { Ok(()) } else { self.answer(kind::PING, payload) }
    }

    fn answer(&mut self, kind: u8, payload: &[u8]) -> Outcome {
        if self.control.len() > MAX_CONTROL {
            return Err(broken("SETTINGS or PING without end"));
        }
        append_head(&mut self.control, payload.len(), kind, flag::ACK, 0);
        self.control.extend_from_slice(payload);
        Ok(())
    }

    /// The server takes no more streams. Those behind the last one that it looks at are sent again elsewhere.
    fn goaway(&mut self, payload: &[u8]) -> Outcome {
        let Some((fixed, text)) = payload.split_at_checked(8) else {
            return Err(broken("GOAWAY that is cut off"));
        };
        let number = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let (last, code) = (number(0) & 0x7fff_ffff, number(4));
        if code != error::NO_ERROR {
            let example = format!("GOAWAY {} {}", frame::error_name(code), String::from_utf8_lossy(text));
            return Err(Broken { failure: Failure::Closed, example });
        }
        self.stage = Stage::Leaving;
        let unprocessed = &mut self.unprocessed;
        self.streams.close_where(|stream| {
            let unseen = stream.id > last;
            if unseen {
                unprocessed.push(stream.intended);
            }
            unseen
        });
        Ok(())
    }
}

/// The fault of a header block at its place.
#[inline]
fn problem(head: &Head, headed: bool, end: bool) -> Option<&'static str> {
    if head.malformed.is_some() {
        return head.malformed;
    }
    match (headed, head.status) {
        (false, 0) => Some("a head without a status"),
        (false, 101) => Some("status 101, which HTTP/2 does not have"),
        (false, 100..200) if end => Some("an answer that ends before its final status"),
        (true, 0) if !end => Some("trailers that do not end the answer"),
        (true, 1..) => Some("a status in the trailers"),
        _ => None,
    }
}

/// The payload without its padding.
#[inline]
fn unpadded(head: FrameHead, payload: &[u8]) -> Result<&[u8], Broken> {
    if !head.has(flag::PADDED) {
        return Ok(payload);
    }
    let cut = payload.split_first().and_then(|(&padding, rest)| {
        let length = rest.len().checked_sub(usize::from(padding))?;
        Some(&rest[..length])
    });
    cut.ok_or_else(|| broken("a frame with more padding than it has room for"))
}

fn number(payload: &[u8]) -> Option<u32> {
    payload.try_into().ok().map(u32::from_be_bytes)
}

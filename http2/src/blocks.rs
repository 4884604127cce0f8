//! Header blocks that come in, and settings.

use crate::connection::{Connection, Unfinished};
use crate::frame::{self, ACK, END_HEADERS, END_STREAM, Head, Kind, LEAST_MAX_FRAME, MOST, MOST_MAX_FRAME};
use crate::head::{self, Trailers};
use crate::hpack::Field;
use crate::reason::{Breach, Reason};
use crate::receive::{Found, Handled};
use crate::streams::{Local, Past, Stream, StreamId, Waits};

/// The cost of a request that is refused for its size: more than HEADERS and DATA of the answer are worth.
const REFUSAL: i64 = 6;

/// Where a header block belongs.
enum Target {
    /// To a request that is to begin.
    New,
    /// Behind a request's body.
    Trailers(StreamId),
    /// To a half of a stream that is closed.
    Closed,
    /// Nowhere: it is decoded only because later ones may refer to it.
    Nothing,
}

impl Connection {
    pub(crate) fn on_headers<'i>(&mut self, head: Head, payload: &[u8]) -> Handled<'i> {
        if head.stream.is_multiple_of(2) {
            return Err(Breach::protocol("clients' streams have odd numbers"));
        }
        let headers = frame::headers(head, payload).map_err(|reason| Breach::connection(reason, "HEADERS"))?;
        let is_self_dependent = headers.dependency == Some(head.stream);
        if head.has(END_HEADERS) {
            return self.on_block(head.stream, head.has(END_STREAM), is_self_dependent, headers.fragment);
        }
        // A connection error comes before the whole block does.
        self.target(head.stream)?;
        self.unfinished = Some(Unfinished {
            stream: head.stream,
            end_stream: head.has(END_STREAM),
            is_self_dependent,
            block: headers.fragment.to_vec(),
        });
        Ok(None)
    }

    pub(crate) fn on_continuation<'i>(&mut self, head: Head, payload: &[u8]) -> Handled<'i> {
        let Some(unfinished) = &mut self.unfinished else {
            return Err(Breach::protocol("CONTINUATION of nothing"));
        };
        if unfinished.block.len() + payload.len() > self.config.most_block() {
            return Err(Breach::connection(Reason::ENHANCE_YOUR_CALM, "a header block is too large"));
        }
        unfinished.block.extend_from_slice(payload);
        if !head.has(END_HEADERS) {
            return Ok(None);
        }
        let Some(Unfinished { stream, end_stream, is_self_dependent, block }) = self.unfinished.take() else {
            return Ok(None);
        };
        self.on_block(stream, end_stream, is_self_dependent, &block)
    }

    fn target(&mut self, number: u32) -> Result<Target, Breach> {
        if let Some(id) = self.streams.find(number) {
            let is_open = self.streams.get(id).is_some_and(|stream| stream.remote_open);
            return Ok(if is_open { Target::Trailers(id) } else { Target::Closed });
        }
        if self.is_beyond_the_end(number) {
            return Ok(Target::Nothing);
        }
        if number > self.last {
            return Ok(Target::New);
        }
        match self.streams.past(number) {
            Past::ResetByUs => Ok(Target::Nothing),
            Past::ResetByPeer => Ok(Target::Closed),
            Past::Finished => Err(Breach::connection(Reason::STREAM_CLOSED, "HEADERS for a stream that is over")),
            // RFC 9113 section 5.1.1: numbers only grow.
            Past::Unknown => Err(Breach::protocol("a stream begins behind a later one")),
        }
    }

    /// A whole header block has come.
    #[inline]
    fn on_block<'i>(&mut self, number: u32, end: bool, is_self_dependent: bool, block: &[u8]) -> Handled<'i> {
        let target = self.target(number)?;
        let limit = self.config.max_headers as usize;
        let malformed = |_| Breach::connection(Reason::COMPRESSION_ERROR, "a header block is malformed");
        let id = match target {
            Target::New => {
                let extended = self.config.extended_connect;
                let found = self.heads.decode(&mut self.decoder, block, limit, extended).map_err(malformed)?;
                return self.begin(number, end, is_self_dependent, found);
            }
            Target::Trailers(id) => id,
            Target::Closed | Target::Nothing => {
                self.heads.decode_trailers(&mut self.decoder, block, limit).map_err(malformed)?;
                self.budget.charge(2);
                return match target {
                    Target::Closed => Err(Breach::Stream(number, Reason::STREAM_CLOSED)),
                    Target::New | Target::Trailers(_) | Target::Nothing => Ok(None),
                };
            }
        };
        let trailers = self.heads.decode_trailers(&mut self.decoder, block, limit).map_err(malformed)?;
        let is_complete = self.streams.get(id).is_some_and(|stream| stream.expected.unwrap_or(0) == 0);
        if !end || trailers == Trailers::Invalid || !is_complete || is_self_dependent {
            return Err(Breach::Stream(number, Reason::PROTOCOL_ERROR));
        }
        self.end_remote(id);
        if trailers == Trailers::TooLarge {
            self.budget.charge(REFUSAL);
            return Ok(Some(Found::TooLarge { stream: id, place: None, end }));
        }
        Ok(Some(Found::Trailers { stream: id }))
    }

    /// A request begins, or is refused.
    fn begin<'i>(&mut self, number: u32, end: bool, is_self_dependent: bool, found: head::Found) -> Handled<'i> {
        self.last = number;
        let early = self.take_early_priority(number);
        let (place, is_cut) = match found {
            _ if is_self_dependent => return Err(Breach::Stream(number, Reason::PROTOCOL_ERROR)),
            head::Found::Invalid => return Err(Breach::Stream(number, Reason::PROTOCOL_ERROR)),
            _ if self.streams.len() >= self.config.max_streams as usize => {
                return Err(Breach::Stream(number, Reason::REFUSED_STREAM));
            }
            head::Found::TooLarge => {
                self.answer_without_head(number, end);
                return Ok(None);
            }
            head::Found::Cut(place) => (place, true),
            head::Found::Request(place) => (place, false),
        };
        let head = self.heads.at(place);
        if end && head.content_length().is_some_and(|length| length > 0) {
            return Err(Breach::Stream(number, Reason::PROTOCOL_ERROR));
        }
        let stream = self.streams.insert(Stream {
            number,
            remote_open: !end,
            local: Local::Head,
            waits: Waits::No,
            priority: early.unwrap_or_else(|| head.priority()),
            send_window: i64::from(self.peer.initial_window),
            receive_window: i64::from(self.config.stream_window),
            unreleased: 0,
            unannounced: 0,
            expected: head.content_length(),
        });
        if is_cut {
            self.budget.charge(REFUSAL);
            return Ok(Some(Found::TooLarge { stream, place: Some(place), end }));
        }
        Ok(Some(Found::Request { stream, place, end }))
    }

    fn take_early_priority(&mut self, number: u32) -> Option<crate::priority::Priority> {
        if self.early.is_empty() {
            return None;
        }
        let place = self.early.iter().position(|(known, _)| *known == number);
        let found = place.map(|place| self.early.remove(place).1);
        // Those of streams that were left out mean nothing any more.
        self.early.retain(|(known, _)| *known > number);
        found
    }

    /// Answers a request whose fields are more than may come, and that has no target before the limit.
    fn answer_without_head(&mut self, number: u32, end: bool) {
        self.budget.charge(2);
        self.put_block(number, true, |encoder, out| {
            encoder.encode([Field::new(b":status", b"431")].into_iter(), out);
        });
        if end {
            self.streams.remember(number, Past::Finished);
        } else {
            self.put_reset(number, Reason::NO_ERROR);
            self.streams.remember(number, Past::ResetByUs);
        }
    }

    pub(crate) fn on_settings<'i>(&mut self, head: Head, payload: &[u8]) -> Handled<'i> {
        if head.has(ACK) {
            let is_right = payload.is_empty();
            return if is_right { Ok(None) } else { Err(Breach::connection(Reason::FRAME_SIZE_ERROR, "SETTINGS")) };
        }
        self.apply_settings(payload)?;
        self.acknowledge(Kind::Settings, &[]);
        Ok(None)
    }

    /// Takes the peer's settings (RFC 9113 section 6.5.2).
    pub(crate) fn apply_settings(&mut self, payload: &[u8]) -> Result<(), Breach> {
        let settings = frame::settings(payload).map_err(|reason| Breach::connection(reason, "SETTINGS"))?;
        let mut window = self.peer.initial_window;
        for (id, value) in settings {
            match (id, value) {
                (1, _) => self.encoder.set_table_size(value as usize),
                (2 | 8 | 9, 0 | 1) => {}
                (2 | 8 | 9, _) => return Err(Breach::protocol("a setting that is neither 0 nor 1")),
                (4, 0..=MOST) => window = value,
                (4, _) => return Err(Breach::connection(Reason::FLOW_CONTROL_ERROR, "a window is too large")),
                (5, LEAST_MAX_FRAME..=MOST_MAX_FRAME) => self.peer.max_frame = value,
                (5, _) => return Err(Breach::protocol("a frame size that nobody may have")),
                _ => {}
            }
        }
        // Once for all values of a frame, so that many of them cost no more than one.
        let more = i64::from(window) - i64::from(self.peer.initial_window);
        self.peer.initial_window = window;
        if more != 0 {
            self.grow_windows(more)?;
        }
        Ok(())
    }

    /// All streams may send more, or less, than before (RFC 9113 section 6.9.2).
    fn grow_windows(&mut self, more: i64) -> Result<(), Breach> {
        let mut awake = Vec::new();
        for (id, stream) in self.streams.iter_mut() {
            stream.send_window += more;
            if stream.send_window > i64::from(MOST) {
                return Err(Breach::connection(Reason::FLOW_CONTROL_ERROR, "a window is too large"));
            }
            if stream.waits == Waits::Window && stream.send_window > 0 {
                awake.push(id);
            }
        }
        awake.into_iter().for_each(|id| self.wake(id));
        Ok(())
    }
}

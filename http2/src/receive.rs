//! Frames that come in, one by one.

use std::time::Instant;

use crate::connection::{Connection, EARLY_PRIORITIES, Ending, Event, FAREWELL, Phase};
use crate::frame::{self, ACK, END_STREAM, HEAD, Head, Kind, MOST};
use crate::priority::Priority;
use crate::reason::{Breach, Error, Reason};
use crate::streams::{Local, Past, StreamId, Waits};
use crate::upgrade::PREFACE;

/// The result of a frame: the events' owned form.
pub(crate) enum Found<'i> {
    Request { stream: StreamId, place: usize, end: bool },
    Data { stream: StreamId, data: &'i [u8], end: bool },
    Trailers { stream: StreamId },
    TooLarge { stream: StreamId, place: Option<usize>, end: bool },
    Reset { stream: StreamId, reason: Reason, by_peer: bool },
    Pong([u8; 8]),
    GoAway { reason: Reason },
}

/// The result of handling a frame.
pub(crate) type Handled<'i> = Result<Option<Found<'i>>, Breach>;

impl Connection {
    /// Reads on until something has happened. Cuts the bytes read off `input`. `None` means that an event needs more
    /// bytes than `input` holds, or, while the output is full, that some output has to be written before. The caller
    /// keeps the rest, at most a frame ([`Config::max_frame`](crate::Config::max_frame) and nine bytes) where the
    /// output is not full, and appends to it.
    ///
    /// # Errors
    /// When the peer has broken the protocol, now or before: then the connection is over.
    #[inline]
    pub fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8], now: Instant) -> Result<Option<Event<'a>>, Error> {
        match self.read(input, now) {
            Ok(found) => Ok(found.map(|found| self.event(found))),
            Err(error) => {
                self.fail(error);
                Err(error)
            }
        }
    }

    fn event<'a>(&'a self, found: Found<'a>) -> Event<'a> {
        match found {
            Found::Request { stream, place, end } => Event::Request { stream, head: self.heads.at(place), end },
            Found::Data { stream, data, end } => Event::Data { stream, data, end },
            Found::Trailers { stream } => Event::Trailers { stream, fields: self.heads.trailers() },
            Found::TooLarge { stream, place, end } => {
                Event::TooLarge { stream, head: place.map(|place| self.heads.at(place)), end }
            }
            Found::Reset { stream, reason, by_peer } => Event::Reset { stream, reason, by_peer },
            Found::Pong(payload) => Event::Pong(payload),
            Found::GoAway { reason } => Event::GoAway { reason },
        }
    }

    fn read<'i>(&mut self, input: &mut &'i [u8], now: Instant) -> Result<Option<Found<'i>>, Error> {
        match self.phase {
            Phase::Open | Phase::Settings => {}
            Phase::Preface(seen) => self.read_preface(seen, input)?,
            Phase::Over(error) => return Err(error),
        }
        // A large head that the last event showed is needed no more.
        self.heads.trim();
        loop {
            // A peer that does not read is not read from, so that answers to PING and the like do not pile up.
            if self.is_full() {
                return Ok(None);
            }
            let Some((head, rest)) = input.split_first_chunk::<HEAD>() else { return Ok(None) };
            let head = Head::parse(head);
            if head.length > self.config.max_frame as usize {
                return Err(Error { reason: Reason::FRAME_SIZE_ERROR, what: "a frame is too large" });
            }
            let Some((payload, rest)) = rest.split_at_checked(head.length) else { return Ok(None) };
            *input = rest;
            self.budget.weigh(head.kind, head.length);
            let handled = match self.handle(head, payload) {
                Err(Breach::Stream(number, reason)) => self.break_stream(number, reason),
                handled => handled,
            };
            match handled {
                Ok(_) if self.budget.is_spent(now) => {
                    return Err(Error {
                        reason: Reason::ENHANCE_YOUR_CALM,
                        what: "too many frames that carry nothing",
                    });
                }
                Ok(None) => {}
                Ok(found) => return Ok(found),
                Err(Breach::Connection(error)) => return Err(error),
                Err(Breach::Stream(..)) => unreachable!("breaking a stream breaks no stream"),
            }
        }
    }

    fn read_preface(&mut self, seen: usize, input: &mut &[u8]) -> Result<(), Error> {
        let wanted = &PREFACE[seen..];
        let count = wanted.len().min(input.len());
        let (found, rest) = input.split_at(count);
        if found != &wanted[..count] {
            return Err(Error { reason: Reason::PROTOCOL_ERROR, what: "this is not HTTP/2" });
        }
        *input = rest;
        self.phase = if count == wanted.len() { Phase::Settings } else { Phase::Preface(seen + count) };
        Ok(())
    }

    fn handle<'i>(&mut self, head: Head, payload: &'i [u8]) -> Handled<'i> {
        if let Some(unfinished) = &self.unfinished
            && (head.kind != Kind::Continuation || head.stream != unfinished.stream)
        {
            return Err(Breach::protocol("a header block is interrupted"));
        }
        if self.phase == Phase::Settings {
            if head.kind != Kind::Settings || head.has(ACK) {
                return Err(Breach::protocol("the first frame is not SETTINGS"));
            }
            self.phase = Phase::Open;
        }
        check_stream(head)?;
        match head.kind {
            Kind::Data => self.on_data(head, payload),
            Kind::Headers => self.on_headers(head, payload),
            Kind::Continuation => self.on_continuation(head, payload),
            Kind::Priority => on_priority(head, payload),
            Kind::RstStream => self.on_reset(head, payload),
            Kind::Settings => self.on_settings(head, payload),
            Kind::Ping => self.on_ping(head, payload),
            Kind::GoAway => self.on_go_away(payload),
            Kind::WindowUpdate => self.on_window_update(head, payload),
            Kind::PriorityUpdate => self.on_priority_update(payload),
            Kind::PushPromise => Err(Breach::protocol("clients push nothing")),
            Kind::Unknown => Ok(None),
        }
    }

    /// Whether the stream is one that we have told the peer not to be answered.
    pub(crate) fn is_beyond_the_end(&self, number: u32) -> bool {
        matches!(self.ending, Ending::Final(last) if number > last)
    }

    /// Whether a request of this number has come, or was left out.
    fn has_begun(&self, number: u32) -> bool {
        number <= self.last && !number.is_multiple_of(2)
    }

    /// A stream ends because the peer broke the protocol.
    pub(crate) fn break_stream<'i>(&mut self, number: u32, reason: Reason) -> Handled<'i> {
        if !self.has_begun(number) {
            // A stream that has not begun cannot be reset.
            return Err(Breach::connection(reason, "a stream that has not begun is broken"));
        }
        self.budget.charge(2);
        let Some(id) = self.streams.find(number) else {
            self.put_reset(number, reason);
            self.streams.remember(number, Past::ResetByUs);
            return Ok(None);
        };
        self.reset(id, reason);
        Ok(Some(Found::Reset { stream: id, reason, by_peer: false }))
    }

    fn on_data<'i>(&mut self, head: Head, payload: &'i [u8]) -> Handled<'i> {
        let length = payload.len() as u32;
        if self.receive_window < i64::from(length) {
            return Err(Breach::connection(Reason::FLOW_CONTROL_ERROR, "more data than the connection's window"));
        }
        let data = frame::unpadded(head, payload).map_err(|reason| Breach::connection(reason, "padding"))?;
        self.receive_window -= i64::from(length);
        let Some(id) = self.streams.find(head.stream) else {
            self.credit(length);
            return self.on_late_data(head.stream, data.is_empty());
        };
        match self.take_data(id, head, payload.len(), data) {
            Ok(()) => {}
            Err(reason) => {
                self.credit(length);
                return Err(Breach::Stream(head.stream, reason));
            }
        }
        // The caller never sees the padding, and so cannot release it.
        let padding = length - data.len() as u32;
        if padding > 0 {
            self.credit(padding);
            self.credit_stream(id, padding);
        }
        let end = head.has(END_STREAM);
        if end {
            self.end_remote(id);
        }
        if data.is_empty() {
            self.budget.charge(if end { 1 } else { 2 });
        }
        Ok((end || !data.is_empty()).then_some(Found::Data { stream: id, data, end }))
    }

    /// Counts data that came for a stream that lives.
    fn take_data(&mut self, id: StreamId, head: Head, length: usize, data: &[u8]) -> Result<(), Reason> {
        let stream = self.streams.get_mut(id).ok_or(Reason::STREAM_CLOSED)?;
        if !stream.remote_open {
            return Err(Reason::STREAM_CLOSED);
        }
        if stream.receive_window < length as i64 {
            return Err(Reason::FLOW_CONTROL_ERROR);
        }
        if let Some(expected) = &mut stream.expected {
            *expected = expected.checked_sub(data.len() as u64).ok_or(Reason::PROTOCOL_ERROR)?;
            if head.has(END_STREAM) && *expected > 0 {
                return Err(Reason::PROTOCOL_ERROR);
            }
        }
        stream.receive_window -= length as i64;
        stream.unreleased += data.len() as u32;
        Ok(())
    }

    /// DATA for a stream that is over. Where we ended it, the peer may have sent a window of small frames before it heard so:
    /// they cost nothing, as DATA on a live stream does not.
    fn on_late_data<'i>(&mut self, number: u32, is_empty: bool) -> Handled<'i> {
        let is_late = self.is_beyond_the_end(number) || self.streams.past(number) == Past::ResetByUs;
        self.budget.charge(if is_late && !is_empty { 1 } else { 2 });
        if is_late {
            return Ok(None);
        }
        if !self.has_begun(number) {
            return Err(Breach::protocol("DATA for a stream that has not begun"));
        }
        Err(Breach::Stream(number, Reason::STREAM_CLOSED))
    }

    /// The request is complete.
    pub(crate) fn end_remote(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.remote_open = false;
        if stream.local == Local::Closed {
            self.remove(id, Past::Finished);
        }
    }

    fn on_reset<'i>(&mut self, head: Head, payload: &[u8]) -> Handled<'i> {
        let reason = frame::number(payload).map_err(|reason| Breach::connection(reason, "RST_STREAM"))?;
        if let Some(id) = self.streams.find(head.stream) {
            // A head that was sent on it has not answered the request: a reset costs as much as before it.
            let has_head = self.streams.get(id).is_some_and(|stream| stream.local != Local::Head);
            self.budget.charge(i64::from(has_head));
            self.remove(id, Past::ResetByPeer);
            return Ok(Some(Found::Reset { stream: id, reason: Reason(reason), by_peer: true }));
        }
        self.check_begun(head.stream)?;
        Ok(None)
    }

    fn check_begun(&self, number: u32) -> Result<(), Breach> {
        if !self.has_begun(number) && !self.is_beyond_the_end(number) {
            return Err(Breach::protocol("a frame for a stream that has not begun"));
        }
        Ok(())
    }

    fn on_ping<'i>(&mut self, head: Head, payload: &[u8]) -> Handled<'i> {
        let Ok(payload) = <[u8; 8]>::try_from(payload) else {
            return Err(Breach::connection(Reason::FRAME_SIZE_ERROR, "PING"));
        };
        if !head.has(ACK) {
            self.acknowledge(Kind::Ping, &payload);
            return Ok(None);
        }
        if payload == FAREWELL {
            self.finish_shutdown();
        }
        Ok(Some(Found::Pong(payload)))
    }

    fn on_go_away<'i>(&mut self, payload: &[u8]) -> Handled<'i> {
        let (_, reason) = frame::go_away(payload).map_err(|reason| Breach::connection(reason, "GOAWAY"))?;
        self.is_left = true;
        Ok(Some(Found::GoAway { reason }))
    }

    fn on_window_update<'i>(&mut self, head: Head, payload: &[u8]) -> Handled<'i> {
        let bytes = frame::number(payload).map_err(|reason| Breach::connection(reason, "WINDOW_UPDATE"))? & MOST;
        let breach = |reason, what| match head.stream {
            0 => Breach::connection(reason, what),
            number => Breach::Stream(number, reason),
        };
        if head.stream != 0 && self.streams.find(head.stream).is_none() {
            self.check_begun(head.stream)?;
            // It was sent before the peer knew that the stream is over.
            return Ok(None);
        }
        if bytes == 0 {
            return Err(breach(Reason::PROTOCOL_ERROR, "a window grows by nothing"));
        }
        let window = match self.streams.find(head.stream).and_then(|id| self.streams.get_mut(id)) {
            Some(stream) => &mut stream.send_window,
            None => &mut self.send_window,
        };
        *window += i64::from(bytes);
        if *window > i64::from(MOST) {
            return Err(breach(Reason::FLOW_CONTROL_ERROR, "a window is too large"));
        }
        if let Some(id) = self.streams.find(head.stream) {
            self.wake(id);
        }
        Ok(None)
    }

    /// A stream whose window was closed may have its turn.
    pub(crate) fn wake(&mut self, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id)
            && stream.waits == Waits::Window
            && stream.send_window > 0
        {
            stream.waits = Waits::Turn;
            self.turns.push(id, stream.priority, false);
        }
    }

    fn on_priority_update<'i>(&mut self, payload: &[u8]) -> Handled<'i> {
        let (number, value) =
            frame::priority_update(payload).map_err(|reason| Breach::connection(reason, "PRIORITY_UPDATE"))?;
        if number % 2 == 0 {
            return Err(Breach::protocol("a priority for what is no request"));
        }
        let priority = Priority::parse(value);
        if let Some(id) = self.streams.find(number) {
            if let Some(stream) = self.streams.get_mut(id) {
                stream.priority = priority;
            }
        } else if number > self.last {
            self.early.retain(|(known, _)| *known != number);
            if self.early.len() == EARLY_PRIORITIES {
                self.early.remove(0);
            }
            self.early.push((number, priority));
        }
        Ok(None)
    }
}

/// Which frames belong to streams, and which to the connection (RFC 9113 section 6).
fn check_stream(head: Head) -> Result<(), Breach> {
    let is_right = match head.kind {
        Kind::Data | Kind::Headers | Kind::Priority | Kind::RstStream | Kind::Continuation | Kind::PushPromise => {
            head.stream != 0
        }
        Kind::Settings | Kind::Ping | Kind::GoAway | Kind::PriorityUpdate => head.stream == 0,
        Kind::WindowUpdate | Kind::Unknown => true,
    };
    if is_right { Ok(()) } else { Err(Breach::protocol("a frame that belongs elsewhere")) }
}

fn on_priority<'i>(head: Head, payload: &[u8]) -> Handled<'i> {
    let dependency = frame::priority(payload).map_err(|reason| Breach::Stream(head.stream, reason))?;
    if dependency == head.stream {
        // RFC 7540 section 5.3.1; RFC 9113 has no use for these frames.
        return Err(Breach::Stream(head.stream, Reason::PROTOCOL_ERROR));
    }
    Ok(None)
}

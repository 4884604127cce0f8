//! A connection: its parts, its beginning and its end.

use std::time::Instant;

use crate::budget::Budget;
use crate::config::Config;
use crate::frame::{self, ACK, Kind, LEAST_MAX_FRAME, MOST};
use crate::head::{Heads, RequestHead};
use crate::hpack::{Decoder, Encoder, Fields};
use crate::output::Output;
use crate::priority::Priority;
use crate::reason::{Error, Reason};
use crate::streams::{Past, StreamId, Streams, Waits};
use crate::turns::Turns;

/// Windows before settings say otherwise (RFC 9113 section 6.9.2).
pub(crate) const DEFAULT_WINDOW: u32 = 65_535;

/// The PING whose answer shows that the peer has seen the first GOAWAY.
pub(crate) const FAREWELL: [u8; 8] = *b"farewell";

/// An action of the peer.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A request has begun.
    Request {
        /// Its stream.
        stream: StreamId,
        /// Its head.
        head: &'a RequestHead,
        /// Whether it is complete: it has no body.
        end: bool,
    },
    /// A piece of a request's body. It counts against the windows until it is [released](Connection::release).
    Data {
        /// The request's stream.
        stream: StreamId,
        /// The piece.
        data: &'a [u8],
        /// Whether the request is complete.
        end: bool,
    },
    /// The fields behind a request's body, which is complete.
    Trailers {
        /// The request's stream.
        stream: StreamId,
        /// The fields.
        fields: &'a Fields,
    },
    /// A request's fields, or its trailers, are larger than [`Config::max_headers`]: the request is to be refused, and no other
    /// is hurt. [`refuse_large`](Connection::refuse_large) does it with status 431 (RFC 6585 section 5), or the caller sends an
    /// answer of its own.
    TooLarge {
        /// The request's stream.
        stream: StreamId,
        /// The part of its head that stands before the limit, for the form of an answer. `None` if the request began
        /// before, and these are its trailers.
        head: Option<&'a RequestHead>,
        /// Whether the request is complete.
        end: bool,
    },
    /// A stream is over before its time; nothing can be sent on it any more.
    Reset {
        /// The stream.
        stream: StreamId,
        /// Why.
        reason: Reason,
        /// Whether the peer wanted it so; otherwise it has broken the protocol.
        by_peer: bool,
    },
    /// The answer to a [ping](Connection::ping).
    Pong([u8; 8]),
    /// The peer will make no more requests.
    GoAway {
        /// Why.
        reason: Reason,
    },
}

/// The server's side of a connection. The crate's documentation shows how to drive one.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(crate) config: Config,
    pub(crate) phase: Phase,
    pub(crate) ending: Ending,
    /// Whether the peer has said that it makes no more requests.
    pub(crate) is_left: bool,
    pub(crate) out: Output,
    pub(crate) budget: Budget,
    pub(crate) decoder: Decoder,
    pub(crate) heads: Heads,
    pub(crate) unfinished: Option<Unfinished>,
    pub(crate) encoder: Encoder,
    pub(crate) streams: Streams,
    pub(crate) turns: Turns,
    /// Priorities of streams that are still to come, at most [`EARLY_PRIORITIES`].
    pub(crate) early: Vec<(u32, Priority)>,
    /// The highest number of a request that has come.
    pub(crate) last: u32,
    pub(crate) peer: PeerSettings,
    /// Bytes that may be sent on all streams together.
    pub(crate) send_window: i64,
    /// Bytes that may come on all streams together.
    pub(crate) receive_window: i64,
    /// Bytes of those that came that were released and not announced.
    pub(crate) unannounced: u32,
}

/// Streams whose priority may be told before their request.
pub(crate) const EARLY_PRIORITIES: usize = 16;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// So many bytes of the preface have come.
    Preface(usize),
    /// The preface has come, which the first SETTINGS belong to.
    Settings,
    Open,
    Over(Error),
}

/// How far a graceful end has come (RFC 9113 section 6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    No,
    /// The peer was told; requests may be on their way.
    Announced,
    /// Requests up to this stream are answered.
    Final(u32),
}

/// A header block whose end is missing.
#[derive(Clone, Debug)]
pub(crate) struct Unfinished {
    pub(crate) stream: u32,
    pub(crate) end_stream: bool,
    pub(crate) is_self_dependent: bool,
    pub(crate) block: Vec<u8>,
}

/// The peer's settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerSettings {
    pub(crate) initial_window: u32,
    pub(crate) max_frame: u32,
}

impl Connection {
    /// A connection that begins with the client's preface: by ALPN, or because both know (RFC 9113 section 3). Our settings are
    /// in the output.
    pub fn new(config: &Config, now: Instant) -> Self {
        let config = config.checked();
        let mut this = Self {
            phase: Phase::Preface(0),
            ending: Ending::No,
            is_left: false,
            out: Output::default(),
            budget: Budget::new(config.max_control_frames, now),
            decoder: Decoder::new(config.header_table as usize),
            heads: Heads::default(),
            unfinished: None,
            encoder: Encoder::new(),
            streams: Streams::default(),
            turns: Turns::default(),
            early: Vec::new(),
            last: 0,
            peer: PeerSettings { initial_window: DEFAULT_WINDOW, max_frame: LEAST_MAX_FRAME },
            send_window: i64::from(DEFAULT_WINDOW),
            receive_window: i64::from(config.connection_window),
            unannounced: 0,
            config,
        };
        this.put_settings();
        this
    }

    fn put_settings(&mut self) {
        let config = &self.config;
        // Identifier, value, and default (RFC 9113 section 6.5.2; RFC 8441 section 3).
        let settings = [
            (1_u16, config.header_table, 4096),
            (3, config.max_streams, u32::MAX),
            (4, config.stream_window, DEFAULT_WINDOW),
            (5, config.max_frame, LEAST_MAX_FRAME),
            (6, config.max_headers, u32::MAX),
            (8, u32::from(config.extended_connect), 0),
            // RFC 7540's priorities are not looked at (RFC 9218 section 2.1).
            (9, 1, 0),
        ];
        let told = settings.iter().filter(|(_, value, default)| value != default);
        let payload: Vec<u8> =
            told.flat_map(|(id, value, _)| id.to_be_bytes().into_iter().chain(value.to_be_bytes())).collect();
        frame::put(&mut self.out.bytes, Kind::Settings, 0, 0, &payload);
        let more = config.connection_window - DEFAULT_WINDOW;
        if more > 0 {
            frame::put(&mut self.out.bytes, Kind::WindowUpdate, 0, 0, &more.to_be_bytes());
        }
    }

    /// The bytes to write. After [`next`](Self::next) has returned `None`, they are complete.
    pub fn output(&self) -> &[u8] {
        self.out.pending()
    }

    /// So many bytes of the output have been written. Then bodies may go on: see [`next_writable`](Self::next_writable).
    ///
    /// # Panics
    /// When it is more than there is.
    pub fn advance(&mut self, count: usize) {
        self.out.advance(count);
    }

    /// Exchanges the output's buffer, if nothing is in it, so that connections that are served in turn can share one.
    pub fn swap_buffer(&mut self, buffer: &mut Vec<u8>) {
        if self.out.len() == 0 {
            std::mem::swap(&mut self.out.bytes, buffer);
            self.out.bytes.clear();
        }
    }

    /// Asks the peer for a sign of life, an [`Event::Pong`] with the same payload.
    pub fn ping(&mut self, payload: [u8; 8]) {
        frame::put(&mut self.out.bytes, Kind::Ping, 0, 0, &payload);
    }

    /// Begins to end the connection: it tells the peer, still answers requests that are on their way, and does not take
    /// later ones. The connection [is over](Self::is_over) when all answers are made.
    pub fn shutdown(&mut self) {
        if self.ending == Ending::No {
            self.ending = Ending::Announced;
            self.put_go_away(MOST, Reason::NO_ERROR);
            self.ping(FAREWELL);
        }
    }

    /// Sends the final GOAWAY: all requests that were on their way when the peer saw the first one have come by now.
    pub(crate) fn finish_shutdown(&mut self) {
        if self.ending == Ending::Announced {
            self.ending = Ending::Final(self.last);
            self.put_go_away(self.last, Reason::NO_ERROR);
        }
    }

    /// Ends the connection at once: nothing more is read, and all streams are over.
    pub fn close(&mut self, reason: Reason) {
        self.fail(Error { reason, what: "closed by us" });
    }

    pub(crate) fn fail(&mut self, error: Error) {
        if !matches!(self.phase, Phase::Over(_)) {
            self.phase = Phase::Over(error);
            (self.streams, self.turns) = (Streams::default(), Turns::default());
            self.put_go_away(self.last, error.reason);
        }
    }

    fn put_go_away(&mut self, last: u32, reason: Reason) {
        let payload = u64::from(last) << 32 | u64::from(reason.0);
        frame::put(&mut self.out.bytes, Kind::GoAway, 0, 0, &payload.to_be_bytes());
    }

    /// Whether the connection is to be closed as soon as the output is written.
    pub fn is_over(&self) -> bool {
        match (self.phase, self.ending) {
            (Phase::Over(_), _) => true,
            (_, Ending::Final(_)) => self.streams.is_empty(),
            (Phase::Preface(_) | Phase::Settings | Phase::Open, Ending::No | Ending::Announced) => {
                self.is_left && self.streams.is_empty()
            }
        }
    }

    /// Whether the peer has sent what every connection begins with.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether a header block has begun and not ended: nothing else may come before its end (RFC 9113 section 4.3).
    #[cfg(feature = "http")]
    pub(crate) fn is_within_block(&self) -> bool {
        self.unfinished.is_some()
    }

    /// Whether so much is to be written that nothing is read.
    pub fn is_full(&self) -> bool {
        self.out.len() >= self.config.max_output
    }

    /// Requests that are not over.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// A stream's priority, as far as it lives.
    pub fn priority(&self, stream: StreamId) -> Option<Priority> {
        self.streams.get(stream).map(|stream| stream.priority)
    }

    /// Takes a stream out, and gives its part of the connection's window back.
    pub(crate) fn remove(&mut self, id: StreamId, past: Past) {
        if let Some(stream) = self.streams.remove(id, past) {
            if stream.waits == Waits::Turn {
                self.turns.forget(&self.streams);
            }
            self.credit(stream.unreleased);
        }
    }

    /// The peer may send so many bytes more, on all streams together.
    pub(crate) fn credit(&mut self, bytes: u32) {
        self.unannounced += bytes;
        // Half a window at a time: the peer never waits for it, and few frames are needed.
        if self.unannounced >= self.config.connection_window / 2 {
            let bytes = std::mem::take(&mut self.unannounced);
            self.receive_window += i64::from(bytes);
            frame::put(&mut self.out.bytes, Kind::WindowUpdate, 0, 0, &bytes.to_be_bytes());
        }
    }

    /// So many bytes of a request's body are dealt with: the peer may send as many again.
    pub fn release(&mut self, id: StreamId, bytes: usize) {
        // The credit of a stream that is gone was given back with it.
        let Some(stream) = self.streams.get_mut(id) else { return };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(stream.unreleased);
        stream.unreleased -= bytes;
        self.credit_stream(id, bytes);
        self.credit(bytes);
    }

    /// The peer may send so many bytes more on a stream.
    pub(crate) fn credit_stream(&mut self, id: StreamId, bytes: u32) {
        let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.remote_open) else { return };
        stream.unannounced += bytes;
        if stream.unannounced > 0 && stream.unannounced >= self.config.stream_window / 2 {
            let bytes = std::mem::take(&mut stream.unannounced);
            stream.receive_window += i64::from(bytes);
            frame::put(&mut self.out.bytes, Kind::WindowUpdate, 0, id.number, &bytes.to_be_bytes());
        }
    }

    pub(crate) fn acknowledge(&mut self, kind: Kind, payload: &[u8]) {
        frame::put(&mut self.out.bytes, kind, ACK, 0, payload);
    }
}
